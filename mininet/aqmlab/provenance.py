# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run was made of: kernel, modules, programs, settings. Nothing of where or when."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .kernel import read_sysctl
from .mininet_api import VERSION as MININET_VERSION
from .tc import ask
from .topology import HOST_SYSCTLS, Device, NamespaceNode

MODULE_DIR = Path("/sys/module")
MODULE_PATTERNS = ("sch_*", "tcp_*", "act_*")

# What decides how a sender behaves, besides what we set.
SENDER_SYSCTLS = tuple(
    f"net.ipv4.{name}"
    for name in (
        "tcp_autocorking",
        "tcp_dsack",
        "tcp_early_retrans",
        "tcp_ecn",
        "tcp_fack",
        "tcp_frto",
        "tcp_limit_output_bytes",
        "tcp_max_reordering",
        "tcp_mem",
        "tcp_min_rtt_wlen",
        "tcp_min_tso_segs",
        "tcp_mtu_probing",
        "tcp_pacing_ca_ratio",
        "tcp_pacing_ss_ratio",
        "tcp_recovery",
        "tcp_reordering",
        "tcp_window_scaling",
    )
)


@dataclass(frozen=True)
class Provenance:
    """Versions and settings, for run.json."""

    kernel: str  # release
    clock: str  # "virtual" in the lab, else "real"
    modules: dict[str, dict[str, str]]  # loaded ones: srcversion, version and parameters
    iproute2: str
    mininet: str
    python: str
    sysctls: dict[str, str]  # of the senders; all have the same
    qdiscs: list[object]  # as tc shows what hangs on each bottleneck's device


def target_of(shown: object) -> int | None:
    """The length that a qdisc so SHOWN aims at, packets; None if it has none."""
    if not isinstance(shown, list):
        return None
    options = [qdisc.get("options", {}) for qdisc in shown if isinstance(qdisc, dict)]
    targets = [found["target"] for found in options if "target" in found]
    return targets[0] if targets and isinstance(targets[0], int) else None


def loaded_modules() -> dict[str, dict[str, str]]:
    """Those that decide what queues and senders do: versions and parameters."""
    found = {}
    for pattern in MODULE_PATTERNS:
        for module in MODULE_DIR.glob(pattern):
            files = [module / "srcversion", module / "version"]
            files += sorted((module / "parameters").glob("*"))
            if facts := {file.name: file.read_text().strip() for file in files if file.exists()}:
                found[module.name] = facts
    return dict(sorted(found.items()))


def _shown(device: Device) -> object:
    words = ("qdisc", "show", "dev", device.name)
    with device.node.namespace:
        text = ask("-j", *words)
        try:
            return json.loads(text)
        except ValueError:  # a kind whose tc half has no JSON form
            return ask(*words).splitlines()


def provenance(sender: NamespaceNode, bottlenecks: Sequence[Device]) -> Provenance:
    """Gather it while the network stands."""
    names = sorted({*HOST_SYSCTLS, *SENDER_SYSCTLS})
    with sender.namespace:
        values = {name: read_sysctl(name) for name in names}
    values["net.ipv4.tcp_mem"] = read_sysctl("net.ipv4.tcp_mem")
    return Provenance(
        kernel=platform.release(),
        clock="virtual" if os.environ.get("AQM_LAB") else "real",
        modules=loaded_modules(),
        iproute2=ask("-V").split(",")[1].strip(),
        mininet=MININET_VERSION,
        python=platform.python_version(),
        sysctls={name: value for name, value in values.items() if value is not None},
        qdiscs=[_shown(device) for device in bottlenecks],
    )
