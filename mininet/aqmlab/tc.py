# SPDX-License-Identifier: GPL-2.0-or-later
"""Queues on devices: netem by netlink, the shaper and the qdisc under test by tc."""

import re
import struct
import subprocess
from dataclasses import dataclass

from .errors import RefusedError
from .netlink import attribute, u32

ROOM = 1_000_000  # packets: more than a delay line or pacer may ever need
NETEM_CERTAIN = 0xFFFFFFFF  # a loss probability of one
TCA_NETEM_LATENCY64 = 10
TCA_FQ_PLIMIT, TCA_FQ_FLOW_PLIMIT, TCA_FQ_QUANTUM, TCA_FQ_INITIAL_QUANTUM = 1, 2, 3, 4

SHAPER_CLASS = 0x10001  # 1:1, the class whose child is the qdisc under test
SHAPER_FRAMES = 1.5  # packets HTB may send at once
SHAPER_SECONDS = 100e-6  # or what its rate is in a real kernel's timer slack, if that is more


@dataclass(frozen=True)
class Shaper:
    """A bottleneck: rate in bits/s and the words of the qdisc that holds its queue."""

    rate_bps: int
    qdisc: str
    frame_bytes: int

    @property
    def burst_bytes(self) -> int:
        """What may leave back to back: little, or the queue moves out of the qdisc's sight."""
        return round(max(SHAPER_FRAMES * self.frame_bytes, SHAPER_SECONDS * self.rate_bps / 8))

    def commands(self, device: str) -> list[str]:
        """What tc has to do to set it up on DEVICE."""
        burst = self.burst_bytes
        return [
            f"qdisc add dev {device} root handle 1: htb default 1",
            f"class add dev {device} parent 1: classid 1:1 htb rate {self.rate_bps}bit"
            f" burst {burst} cburst {burst} quantum {burst}",
            f"qdisc add dev {device} parent 1:1 handle 10: {self.qdisc}",
        ]

    def attach(self, device: str) -> None:
        """Set it up on DEVICE of the present namespace; RefusedError in tc's words."""
        batch(self.commands(device), f"'{self.qdisc}'")


@dataclass(frozen=True)
class Labels:
    """FIFA's edge on a device: the rttlabel action, its source and its error (0..1)."""

    source: str
    error: float

    def attach(self, device: str) -> None:
        """Set it up on DEVICE of the present namespace; RefusedError in tc's words."""
        action = f"action rttlabel from {self.source} error {100 * self.error:g}%"
        # Timestamps tell a round trip only where both directions are seen.
        ways = ("egress", "ingress") if self.source == "timestamps" else ("egress",)
        batch(
            [f"qdisc add dev {device} clsact"]
            + [f"filter add dev {device} {way} matchall {action}" for way in ways],
            f"{action} (is the module act_rttlabel there?)",
        )


def ask(*words: str) -> str:
    """What tc answers in the present namespace; RefusedError in its words if it will not."""
    done = subprocess.run(["tc", *words], text=True, capture_output=True, check=False)
    if done.returncode:
        raise RefusedError(f"tc: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def batch(commands: list[str], what: str) -> None:
    """Have tc do COMMANDS in the present namespace; RefusedError says WHAT it refused, and why."""
    done = subprocess.run(
        ["tc", "-batch", "-"],
        input="\n".join(commands) + "\n",
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        words = re.sub(r"Command failed -:\d+\n", "", done.stderr or done.stdout)
        raise RefusedError(f"tc refused {what}:\n{words.strip()}")


def netem(delay_s: float = 0.0, loss: float = 0.0) -> bytes:
    """Options of a netem that delays by DELAY_S seconds and loses a share LOSS (0..1)."""
    options = struct.pack("=LLLLLL", 0, ROOM, round(loss * NETEM_CERTAIN), 0, 0, 0)
    if delay_s:
        options += attribute(TCA_NETEM_LATENCY64, struct.pack("=q", round(delay_s * 1e9)))
    return options


def fq(packet_bytes: int) -> bytes:
    """Options of an fq that paces every packet of PACKET_BYTES, and drops none."""
    return b"".join(
        (
            u32(TCA_FQ_PLIMIT, ROOM),
            u32(TCA_FQ_FLOW_PLIMIT, ROOM),
            u32(TCA_FQ_QUANTUM, packet_bytes),
            u32(TCA_FQ_INITIAL_QUANTUM, packet_bytes),
        )
    )
