# SPDX-License-Identifier: GPL-2.0-or-later
"""Experiments with queues, on Mininet's API: network, traffic, samples, metrics, verdict.

Needs Debian's python3 and mininet and nothing else, and runs unchanged as root of a real
kernel and in the virtual-time lab. There a user/kernel switch costs some 30 us of wall time
and starting a program a tenth of a second, so one process builds the network by netlink,
carries the traffic, and samples the queue.
"""
