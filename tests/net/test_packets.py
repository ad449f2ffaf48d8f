# SPDX-License-Identifier: GPL-2.0-or-later
"""What becomes of a packet that the law wants to signal congestion with."""

from collections.abc import Callable, Sequence

import pytest

from bottleneck import STANDING, Bottleneck
from conftest import Link
from frames import (
    CE,
    DESTINATION,
    ECT0,
    ECT1,
    ETH_P_8021AD,
    ETH_P_8021Q,
    ETH_P_ARP,
    ETH_P_IP,
    ETH_P_IPV6,
    NOT_ECT,
    SOURCE,
    frame,
    received,
)
from kinds import CERTAIN, ECN, KINDS, NO_DSCP, PROTECT, Kind, Settings, Stat
from netlink import Netlink

DSCP = 46
VERSIONS = pytest.mark.parametrize("version", [4, 6], ids=["IPv4", "IPv6"])
TAGS = pytest.mark.parametrize(
    "tags",
    [(), (ETH_P_8021Q,), (ETH_P_8021AD, ETH_P_8021Q)],
    ids=["untagged", "VLAN", "QinQ"],
)

Congested = Callable[[Settings], "Congestion"]


class Congestion:
    """A queue that signals every packet which it may signal."""

    def __init__(self, queue: Bottleneck) -> None:
        self._queue = queue
        self._before = queue.congest()
        assert self._before.stats[Stat.PROB] == CERTAIN

    def fate(self, data: bytes) -> tuple[dict[str, int], bytes | None]:
        """Send a frame; return what was counted, and the frame as it came out or None."""
        refused = self._queue.send(data)
        after = self._queue.read()
        counted = {
            stat.name: after.stats[stat] - self._before.stats[stat]
            for stat in Stat
            if after.stats[stat] != self._before.stats[stat]
            and stat in (Stat.PKTS_IN, Stat.DROPPED, Stat.OVERLIMIT, Stat.ECN_MARK, Stat.PROTECTED)
        }
        assert after.drops - self._before.drops == refused
        self._queue.open()
        came = self._queue.received()[STANDING:]
        assert len(came) == 1 - refused
        return counted, came[0] if came else None


@pytest.fixture(params=KINDS, ids=str, scope="session")
def kind(request: pytest.FixtureRequest) -> Kind:
    assert isinstance(request.param, Kind)
    return request.param


@pytest.fixture
def congested(kernel: Netlink, link: Link, kind: Kind) -> Congested:
    return lambda settings: Congestion(Bottleneck(kernel, link, kind, {**kind.never, **settings}))


PASSED = {"PKTS_IN": 1}
MARKED = {"PKTS_IN": 1, "ECN_MARK": 1}
SPARED = {"PKTS_IN": 1, "PROTECTED": 1}
DROPPED = {"DROPPED": 1}


@VERSIONS
@TAGS
@pytest.mark.parametrize("ect", [ECT0, ECT1], ids=["ECT0", "ECT1"])
def test_ecn_marks_capable_packets(
    congested: Congested, version: int, tags: Sequence[int], ect: int
) -> None:
    sent = frame(DSCP << 2 | ect, version=version, tags=tags)
    marked = received(frame(DSCP << 2 | CE, version=version, tags=tags))
    assert congested({ECN: 1}).fate(sent) == (MARKED, marked)


@VERSIONS
@TAGS
def test_ecn_drops_other_packets(congested: Congested, version: int, tags: Sequence[int]) -> None:
    sent = frame(DSCP << 2 | NOT_ECT, version=version, tags=tags)
    assert congested({ECN: 1}).fate(sent) == (DROPPED, None)


@VERSIONS
@pytest.mark.parametrize("ect", [NOT_ECT, ECT0, ECT1, CE])
def test_without_ecn_all_are_dropped(congested: Congested, version: int, ect: int) -> None:
    assert congested({ECN: 0}).fate(frame(ect, version=version)) == (DROPPED, None)


@VERSIONS
def test_a_packet_marked_before_is_no_mark_of_ours(congested: Congested, version: int) -> None:
    sent = frame(DSCP << 2 | CE, version=version)
    assert congested({ECN: 1}).fate(sent) == (PASSED, sent)


@VERSIONS
@TAGS
@pytest.mark.parametrize("ecn", [0, 1], ids=["noecn", "ecn"])
@pytest.mark.parametrize("ect", [NOT_ECT, ECT0], ids=["NotECT", "ECT0"])
@pytest.mark.parametrize("dscp", [0, DSCP, 63])
def test_protected_packets_pass_as_they_are(
    congested: Congested, version: int, tags: Sequence[int], ecn: int, ect: int, dscp: int
) -> None:
    sent = frame(dscp << 2 | ect, version=version, tags=tags)
    assert congested({ECN: ecn, PROTECT: dscp}).fate(sent) == (SPARED, received(sent))


@VERSIONS
@pytest.mark.parametrize(("protect", "dscp"), [(DSCP, DSCP - 1), (0, 1), (NO_DSCP, 63)])
def test_other_packets_are_not_protected(
    congested: Congested, version: int, protect: int, dscp: int
) -> None:
    sent = frame(dscp << 2, version=version)
    assert congested({PROTECT: protect}).fate(sent) == (DROPPED, None)


@pytest.mark.parametrize("protect", [0, NO_DSCP], ids=["DSCP0", "none"])
@pytest.mark.parametrize(
    ("ethertype", "length"),
    [
        (ETH_P_ARP, 46),
        (0x1234, 46),
        # IP whose header is cut: whether it could be marked is not known
        (ETH_P_IP, 1),
        (ETH_P_IP, 19),
        (ETH_P_IPV6, 1),
        (ETH_P_IPV6, 39),
        (ETH_P_8021Q, 3),
    ],
)
def test_what_is_not_ip_is_dropped(
    congested: Congested, protect: int, ethertype: int, length: int
) -> None:
    sent = DESTINATION + SOURCE + ethertype.to_bytes(2, "big") + (b"\x45\x02" * 23)[:length]
    assert congested({ECN: 1, PROTECT: protect}).fate(sent) == (DROPPED, None)
