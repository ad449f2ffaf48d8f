# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's Mininet, imported without a detour that takes a second of wall time in the lab."""

import sys

# Mininet asks distutils to compare two versions. Where setuptools is installed it puts
# itself in the place of distutils, and it is large.
if "_distutils_hack" in sys.modules:
    sys.modules["_distutils_hack"].remove_shim()

from mininet.link import Intf, Link
from mininet.net import VERSION, Mininet
from mininet.node import Node
from mininet.topo import Topo

__all__ = ["VERSION", "Intf", "Link", "Mininet", "Node", "Topo"]
