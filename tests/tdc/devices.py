# SPDX-License-Identifier: GPL-2.0-or-later
"""tdc's nsPlugin, for the lab: a case's commands run in a fresh network namespace.

There it finds $DUMMY and $IFB, up, and nothing but its own packets. tdc's own plug-in does the
same with four devices, three forks of itself for each case and one program more for each command.
"""

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path

from tdc_config import NAMES
from TdcPlugin import TdcPlugin

from netlink import Netlink

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def succeed(status: int) -> None:
    if status:
        raise OSError(ctypes.get_errno(), "namespaces")


class SubPlugin(TdcPlugin):  # type: ignore[misc]  # tdc carries no types
    def __init__(self) -> None:
        self.sub_class = "ns/SubPlugin"
        super().__init__()
        self._outside = os.open("/proc/self/ns/net", os.O_RDONLY)

    def pre_case(self, caseinfo: Mapping[str, object], test_skip: bool) -> None:
        super().pre_case(caseinfo, test_skip)
        if test_skip:
            return
        succeed(LIBC.unshare(CLONE_NEWNET))
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
        netlink = Netlink()
        for name in ("DUMMY", "IFB"):
            netlink.add_link(name.lower(), NAMES[name])
        netlink.close()

    def post_case(self) -> None:
        super().post_case()
        succeed(LIBC.setns(self._outside, CLONE_NEWNET))
