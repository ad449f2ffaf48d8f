# SPDX-License-Identifier: GPL-2.0-or-later
"""avq.h against the paper in floating point."""

import numpy as np
import numpy.typing as npt
import pytest

import laws
from model_avq import Avq

EVENTS = 20_000
HISTORIES = 30  # marking and dropping: 1.2 million arrivals
SECOND = 10**9
SHARE_ONE = 1 << 60
TIME_ONE = 1 << 16
CAPACITY = 1.25e6  # bytes/s: the paper's link of 10 Mbit/s


def config(alpha: float = 0.15, gamma: float = 0.98) -> laws.AvqConfig:
    return laws.AvqConfig(round(alpha * laws.REAL_ONE), round(gamma * laws.REAL_ONE))


def link_time(size: npt.NDArray[np.float64] | float, capacity: float) -> laws.U64s:
    """What the law is told of a packet's size, ns in Q16."""
    return np.round(np.asarray(size) / capacity * SECOND * TIME_ONE).astype(np.uint64)


@pytest.mark.parametrize("mark", [False, True])
def test_against_floating_point(mark: bool) -> None:
    rng = np.random.default_rng(1)
    worst_share = worst_queue = 0.0
    hits = 0
    for _ in range(HISTORIES):
        law = config(10 ** rng.uniform(-4, 1), rng.uniform(0.5, 1))
        capacity = 10 ** rng.uniform(4, 10)
        load = np.repeat(rng.uniform(0.2, 2, EVENTS // 1000), 1000)
        size = rng.integers(64, 1515, EVENTS).astype(float)
        gaps = rng.exponential(750 / capacity, EVENTS) / load * SECOND
        gaps *= rng.choice([0, 1, 100], EVENTS, p=[0.1, 0.899, 0.001])
        time = np.cumsum(gaps).astype(np.uint64)
        buffer = float(rng.integers(2, 200)) * 750
        hit, share, queue = laws.avq_history(
            law, time, link_time(size, capacity), int(link_time(buffer, capacity)), mark
        )
        real = law.alpha / laws.REAL_ONE, law.gamma / laws.REAL_ONE
        model = Avq(capacity, buffer, *real, mark)
        arrivals = zip((time / SECOND).tolist(), size.tolist(), strict=True)
        exact = np.array(list(model.decisions(arrivals)))
        # Which packet is hit is certain, but for one that fits to the last bit: compare up to it.
        differs = hit != exact[:, 0].astype(bool)
        end = int(np.argmax(differs)) if differs.any() else EVENTS
        if differs.any():
            close = exact[end, 2] + size[end] - buffer
            assert min(abs(close), abs(close - size[end])) < 1e-3
        worst_share = max(
            worst_share, float(np.abs(share[:end] / SHARE_ONE - exact[:end, 1] / capacity).max())
        )
        error = np.abs(queue[:end] / TIME_ONE / SECOND * capacity - exact[:end, 2])
        worst_queue = max(worst_queue, float(error.max()))
        hits += int(hit[:end].sum())
    print(
        f"{HISTORIES * EVENTS} arrivals, {hits} hits, worst error of the virtual capacity"
        f" {worst_share:.1e} of the link's, of the virtual queue {worst_queue:.1e} bytes"
    )
    # A packet's time has 2^-17 ns, which add up while the virtual queue lasts.
    assert worst_share < 1e-6
    assert worst_queue < 0.1
    assert hits > 25_000


def stream(rate: float, seconds: float) -> tuple[laws.U64s, laws.U64s]:
    """Packets of 1000 bytes at so many bytes a second, evenly."""
    count = round(seconds * rate / 1000)
    time = (np.arange(1, count + 1) * (1000 / rate * SECOND)).astype(np.uint64)
    return time, np.full(count, int(link_time(1000, CAPACITY)), dtype=np.uint64)


@pytest.mark.parametrize("load", [0.3, 0.9, 0.97])
def test_below_gamma_the_virtual_link_is_the_link(load: float) -> None:
    time, size = stream(load * CAPACITY, 100)
    hit, share, _ = laws.avq_history(config(), time, size, 100 * int(size[0]))
    assert not hit.any()
    assert share[-1] / SHARE_ONE == pytest.approx(1, abs=2e-4)  # less alpha times the last packet


@pytest.mark.parametrize("load", [1, 1.1, 2])
def test_check_value_of_equation_1(load: float) -> None:
    """dC~/dt = alpha (gamma C - lambda), in the paper's simulations: alpha .15, gamma .98."""
    time, size = stream(load * CAPACITY, 0.9 / (0.15 * (load - 0.98)))
    hit, share, _ = laws.avq_history(config(), time, size, 100 * int(size[0]))
    exact = 1 - 0.15 * (load - 0.98) * time / SECOND
    np.testing.assert_allclose(share / SHARE_ONE, exact, atol=2e-4)
    assert hit.any()


def test_arrivals_at_gamma_hold_the_virtual_capacity() -> None:
    """Its equilibrium, wherever it is, and that is the utilisation."""
    time, size = stream(1.2 * CAPACITY, 10)
    more, much = stream(0.98 * CAPACITY, 100)
    time = np.concatenate([time, time[-1] + more])
    _, share, _ = laws.avq_history(config(), time, np.concatenate([size, much]), 100 * int(size[0]))
    reached = share[len(size) - 1] / SHARE_ONE
    assert reached == pytest.approx(1 - 0.15 * 0.22 * 10, abs=2e-4)
    assert share[-1] / SHARE_ONE == pytest.approx(reached, abs=1e-4)


@pytest.mark.parametrize(("mark", "utilisation"), [(False, 0.98), (True, 0)])
def test_drops_leave_the_link_used(mark: bool, utilisation: float) -> None:
    """Packets that come at twice the link's rate, whatever befalls them: gamma of it is accepted.

    Marks that nobody heeds would end with every packet being marked.
    """
    time, size = stream(2 * CAPACITY, 100)
    hit, share, _ = laws.avq_history(config(), time, size, 100 * int(size[0]), mark)
    late = time > 50 * SECOND
    passed = np.count_nonzero(~hit[late]) / np.count_nonzero(late) * 2
    assert passed == pytest.approx(utilisation, abs=0.002)
    assert share[-1] / SHARE_ONE == pytest.approx(utilisation, abs=0.005)


def test_a_buffer_of_b_takes_b_at_once() -> None:
    """So many packets that come together fit, and no more."""
    time = np.ones(100, dtype=np.uint64)
    size = np.full(100, TIME_ONE, dtype=np.uint64)
    hit, _, queue = laws.avq_history(config(), time, size, 30 * TIME_ONE)
    assert hit.tolist() == [False] * 30 + [True] * 70
    assert queue[-1] == 30 * TIME_ONE


@pytest.mark.parametrize(
    ("alpha", "last_is_hit", "share_left"), [(100, True, 0), (0.000001, False, 0.859)]
)
def test_centuries_of_silence_and_hours_of_queue(
    alpha: float, last_is_hit: bool, share_left: float
) -> None:
    """Nothing overflows. The virtual queue is served at what C~ was before the silence."""
    time = np.array([1, 2, 3, 2**63], dtype=np.uint64)
    size = np.full(4, 2**63 - 1, dtype=np.uint64)
    hit, share, queue = laws.avq_history(config(alpha, 1), time, size, 2**63 - 1)
    assert hit.tolist() == [False, True, True, last_is_hit]
    assert share[-1] / SHARE_ONE == pytest.approx(share_left, abs=1e-3)
    assert queue[-1] == size[0]
