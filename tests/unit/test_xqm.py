# SPDX-License-Identifier: GPL-2.0-or-later
"""xqm.h against the paper in floating point."""

from bisect import bisect_right

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import laws
from model_xqm import BINS, ONOFF, PI_T, PI_TB, Flow, Xqm, quiescent

MS, S = 10**6, 10**9
RATE_ONE = 1 << 48
PACKET_ONE = 1 << 8
EVENTS = 4000
HISTORIES = 24

Events = tuple[laws.U64s, npt.NDArray[np.int32], laws.U64s]


def config(
    control: int = PI_TB,
    smooth: bool = False,
    target: int = 50,
    control_period: int = 10 * MS,
    measure_period: int = S,
    delta: float = 1e-5,
    phi: float = 4e-5,
) -> laws.XqmConfig:
    return laws.XqmConfig(
        control=control,
        smooth=smooth,
        target=target,
        control_period=control_period,
        measure_period=measure_period,
        delta=round(delta * laws.REAL_ONE),
        phi=round(phi * laws.REAL_ONE),
    )


def model(law: laws.XqmConfig, capacity: float, kinds: list[laws.XqmKind]) -> Xqm:
    return Xqm(
        control=law.control,
        smooth=law.smooth,
        target=law.target,
        period=law.control_period,
        bin=max(round(law.measure_period / BINS / law.control_period), 1),
        delta=law.delta / laws.REAL_ONE,
        phi=law.phi / laws.REAL_ONE,
        capacity=capacity,
        flows=[Flow(kind.rtt / 1e9, kind.weight, kind.responsive) for kind in kinds],
    )


def population(rng: np.random.Generator, count: int, *, mixed: bool = True) -> list[laws.XqmKind]:
    return [
        laws.XqmKind(
            rtt=int(rng.integers(1 * MS, 300 * MS)),
            weight=int(rng.integers(1, 6)) if mixed else 1,
            responsive=not mixed or rng.uniform() < 0.8,
        )
        for _ in range(count)
    ]


def arrivals(rng: np.random.Generator, law: laws.XqmConfig, flows: int, rate: float) -> Events:
    """Packets of flows some of which come, go and come back; the queue wanders about its target."""
    gaps = rng.exponential(1e9 / rate, EVENTS)
    gaps[rng.uniform(size=EVENTS) < 2 / EVENTS] += 1.3 * law.measure_period  # silence
    time = np.cumsum(gaps)
    # in each stretch of time each flow is there or not, and not equally often
    stretch = (time // (1.2 * law.measure_period)).astype(int)
    there = rng.uniform(size=(stretch.max() + 1, flows)) < 0.7
    there[:, 0] = True
    weight = there * 10 ** rng.uniform(-1.5, 0, flows)
    share = np.cumsum(weight, axis=1) / weight.sum(axis=1, keepdims=True)
    flow = (rng.uniform(size=(EVENTS, 1)) > share[stretch]).sum(axis=1)
    walk = np.cumsum(rng.integers(-2, 3, EVENTS)) + law.target
    backlog = np.abs(walk) * PACKET_ONE
    return time.astype(np.uint64), flow.astype(np.int32), backlog.astype(np.uint64)


@pytest.mark.parametrize(
    ("control", "smooth"),
    [(ONOFF, False), (PI_T, False), (PI_T, True), (PI_TB, False), (PI_TB, True)],
)
def test_against_floating_point(control: int, smooth: bool) -> None:
    """Every flow brought up to the present at every control instant, as in the paper."""
    rng = np.random.default_rng(1)
    worst = {"rate": 0.0, "throughput": 0.0, "share": 0.0, "quiescent": 0.0}
    between = 0
    for _ in range(HISTORIES):
        law = config(
            control,
            smooth,
            target=int(rng.integers(1, 200)),
            control_period=round(10 ** rng.uniform(6, 7.5)),
            measure_period=round(10 ** rng.uniform(8.8, 9.6)),
            delta=10 ** rng.uniform(-7, -3),
            phi=10 ** rng.uniform(-7, -3),
        )
        kinds = population(rng, 7)
        capacity = 10 ** rng.uniform(1.5, 4)
        link = round(capacity * PACKET_ONE)
        rate = EVENTS / (4 * law.measure_period / 1e9)
        time, flow, backlog = arrivals(rng, law, len(kinds), rate)
        found = laws.xqm_history(law, link, kinds, time, flow, backlog, eager=True)
        exact = model(law, link / PACKET_ONE, kinds)
        history = zip(time.tolist(), flow.tolist(), (backlog / PACKET_ONE).tolist(), strict=True)
        instants = float(time[-1]) / law.control_period
        for i, (state, share) in enumerate(exact.run(history)):
            # rates of packets are rounded to 1/256 of a packet a second, twice
            error = {
                "share": abs(found.share[i] / PACKET_ONE - share)
                / (kinds[flow[i]].weight / PACKET_ONE),
                "throughput": 0.0
                if state.throughput is None
                else abs(found.throughput[i] / PACKET_ONE - state.throughput) * PACKET_ONE,
                "quiescent": abs(found.quiescent[i] / RATE_ONE - state.quiescent)
                / (1e-12 + state.quiescent * (12 / (share * PACKET_ONE) + 1e-4)),
                "rate": 0.0,
            }
            if control != ONOFF or abs((state.throughput or 0.0) - share) > 0.1:
                bound = 1e-11 * instants + exact.delta * instants * 12 / PACKET_ONE
                bound += state.quiescent * (12 / (share * PACKET_ONE) + 1e-4)
                error["rate"] = abs(found.rate[i] / RATE_ONE - state.rate) / bound
            between += -state.quiescent < state.rate < state.quiescent and state.rate != 0
            worst = {key: max(worst[key], value) for key, value in error.items()}
    print(f"worst errors in units of their bounds: {worst}; {between} rates between their limits")
    assert max(worst.values()) <= 1
    assert between > 100 or control == ONOFF


@given(seed=st.integers(0, 2**32 - 1))
def test_lazy_equals_eager_where_nothing_is_clamped(seed: int) -> None:
    """Updated at its own packets only, a flow gets what it would have got at every instant."""
    rng = np.random.default_rng(seed)
    # gains so small that no flow comes near a limit but that it begins at: UDP begins at 0
    law = config(PI_TB, target=10, delta=1e-9, phi=1e-8)
    kinds = population(rng, 5, mixed=False)
    for kind in kinds:
        kind.responsive = False
    time, flow, _ = arrivals(rng, law, len(kinds), 2000)
    # more than the target: upwards only. The shares are below every flow's throughput
    backlog = rng.integers(10, 400, EVENTS).astype(np.uint64) * np.uint64(PACKET_ONE)
    lazy = laws.xqm_history(law, 10 * PACKET_ONE, kinds, time, flow, backlog)
    eager = laws.xqm_history(law, 10 * PACKET_ONE, kinds, time, flow, backlog, eager=True)
    np.testing.assert_array_equal(lazy.throughput, eager.throughput)
    np.testing.assert_array_equal(lazy.share, eager.share)
    np.testing.assert_array_equal(lazy.present, eager.present)
    free = (eager.rate > 0) & (lazy.rate > 0)
    assert free.mean() > 0.5
    # one rounding an instant against one a packet, each of two terms
    steps = float(time[-1]) / law.control_period
    assert np.abs(lazy.rate - eager.rate)[free].max() <= 2 * steps


def test_lazy_differs_little_where_something_is_clamped() -> None:
    """Printed gains, which switch nearly bang-bang: measured, of flows of 10 to 1000 packets/s."""
    rng = np.random.default_rng(3)
    differences: list[float] = []
    for rate in (100, 1000, 10_000):
        law = config(measure_period=10 * S)
        kinds = population(rng, 10, mixed=False)
        time, flow, backlog = arrivals(rng, law, len(kinds), rate)
        link = rate * PACKET_ONE
        lazy = laws.xqm_history(law, link, kinds, time, flow, backlog)
        eager = laws.xqm_history(law, link, kinds, time, flow, backlog, eager=True)
        relative = np.abs(lazy.rate - eager.rate) / eager.quiescent
        differences.append(float(relative.mean()))
    print(f"mean difference, of the quiescent rate: {differences}")
    assert differences[0] < 0.05 and differences[1] < 0.02 and differences[2] < 0.005


@pytest.mark.parametrize("period", [S, 10 * S])
def test_sliding_window_against_an_exact_one(period: int) -> None:
    """The window moves on by bins: a throughput that was exact at most one bin ago."""
    rng = np.random.default_rng(5)
    law = config(measure_period=period)
    kinds = population(rng, 1)
    bin = period // BINS
    time = np.sort(rng.uniform(0, 6 * period, EVENTS)).astype(np.uint64)
    flow = np.zeros(EVENTS, dtype=np.int32)
    backlog = np.zeros(EVENTS, dtype=np.uint64)
    found = laws.xqm_history(law, 1000 * PACKET_ONE, kinds, time, flow, backlog)
    times = time.tolist()
    # the grid of the control instants, at which bins begin too
    offset = -(-times[0] // law.control_period) * law.control_period
    worst = 0.0
    for i in range(EVENTS):
        last_bin = times[i] // bin * bin
        if times[0] // bin == times[i] // bin:
            assert found.throughput[i] == 0  # not known yet
            continue
        began = max(last_bin - period, 0)
        packets = bisect_right(times, last_bin - 1) - bisect_right(times, began - 1)
        age = min(period, last_bin - offset + law.control_period)
        exact = packets / age * 1e9
        measured = int(found.throughput[i]) / PACKET_ONE
        worst = max(worst, abs(measured - exact) / exact)
    print(f"worst relative error {worst:.2e}")
    assert worst < 1e-4


def test_check_value_of_equation_16() -> None:
    assert laws.xqm_quiescent(100 * PACKET_ONE, 100 * MS) / RATE_ONE == pytest.approx(
        0.01961, abs=5e-6
    )


@given(share=st.floats(0.01, 1e8), rtt=st.floats(1e-6, 60))
def test_equation_16(share: float, rtt: float) -> None:
    fixed_share, fixed_rtt = round(share * PACKET_ONE), round(rtt * 1e9)
    window = fixed_share / PACKET_ONE * fixed_rtt / 1e9
    got = laws.xqm_quiescent(fixed_share, fixed_rtt) / RATE_ONE
    exact = quiescent(1, min(window, 32768.0))
    # the window has steps of 2^-16, the time of 2^-32 s
    assert got == pytest.approx(exact, rel=1e-4 + 2**-31 / rtt, abs=2**-47)


@given(
    rate=st.one_of(st.integers(-RATE_ONE, RATE_ONE), st.integers(1, RATE_ONE // 100)),
    since=st.one_of(st.integers(0, 2**32 - 1), st.integers(0, 1000)),
)
def test_equation_17(rate: int, since: int) -> None:
    spent = since * rate / RATE_ONE
    if rate <= 0:
        exact = 0.0
    elif spent >= 1:
        exact = 1.0
    else:
        exact = min(1.0, rate / RATE_ONE / (1 - spent))
    # dividend and divisor have steps of 2^-32
    rounded = 1e-12 + (2**-32 / (1 - spent) if spent < 1 - 2**-32 else 1)
    got = laws.xqm_probability(rate, since) / laws.PROB_ONE
    assert got == pytest.approx(exact, rel=rounded, abs=2 * rounded)


@pytest.mark.parametrize("rate", [0.3, 0.1, 0.01, 0.001])
def test_drops_are_uniform(rate: float) -> None:
    """Eq. (17) makes the packets between two drops uniform, of a mean of 1 / 2q and none above 1/q.

    That is twice the rate q, as in RED; the README says so.
    """
    rng = np.random.default_rng(7)
    fixed = round(rate * RATE_ONE)
    gaps = []
    since = 0
    for random in rng.integers(0, 2**32, round(1000 / rate)).tolist():
        hit = random < laws.xqm_probability(fixed, since)
        if hit:
            gaps.append(since + 1)
        since = laws.xqm_since(fixed, since, 1, hit)
    longest = round(1 / rate)
    assert max(gaps) <= longest + 1
    counts, _ = np.histogram(gaps, bins=4, range=(0.5, 4 * (longest // 4) + 0.5))
    if rate <= 0.01:
        assert counts == pytest.approx(len(gaps) / 4, rel=0.25)
    assert len(gaps) * rate / 1000 == pytest.approx(2 * rate / (1 + rate), rel=0.1)


def test_since_a_drop() -> None:
    """The count k goes on while a rate is imposed and is 0 while none is."""
    assert laws.xqm_since(1, 5, 3, False) == 8
    assert laws.xqm_since(1, 5, 3, True) == 0
    assert laws.xqm_since(0, 5, 3, False) == 0
    assert laws.xqm_since(-7, 5, 3, False) == 0
    assert laws.xqm_since(1, 2**32 - 2, 9, False) == 2**32 - 1


def test_hiding() -> None:
    """Every packet while q <= 0; smooth, a share -q / qhat of them."""
    qhat = RATE_ONE // 50
    for smooth in (False, True):
        assert laws.xqm_hidden(smooth, True, 1, qhat) == 0
        # nothing for who does not slow down, or whose rate nobody knows
        assert laws.xqm_hidden(smooth, False, -1, qhat) == 0
        assert laws.xqm_hidden(smooth, True, -1, 0) == 0
    assert laws.xqm_hidden(False, True, 0, qhat) == laws.xqm_hidden(False, True, -1, qhat) == 2**32
    assert laws.xqm_hidden(True, True, 0, qhat) == 0
    assert laws.xqm_hidden(True, True, -qhat, qhat) == 2**32
    assert laws.xqm_hidden(True, True, -RATE_ONE, RATE_ONE) == 2**32
    # qhat may have fallen since
    assert laws.xqm_hidden(True, True, -3 * qhat, qhat) == 2**32
    for share in (0.1, 0.5, 0.9):
        found = laws.xqm_hidden(True, True, -round(share * qhat), qhat)
        assert found == pytest.approx(share * 2**32, abs=2)


def test_months_of_silence() -> None:
    """All flows are forgotten, and a new one begins as the first did."""
    month = 30 * 86400 * S
    law = config(measure_period=10 * S)
    kinds = [laws.XqmKind(100 * MS, 1, True), laws.XqmKind(50 * MS, 2, True)]
    time = np.array([0, S, 2 * S, 3 * month, 3 * month + 1], dtype=np.uint64)
    flow = np.array([0, 1, 0, 1, 0], dtype=np.int32)
    found = laws.xqm_history(
        law, 3000 * PACKET_ONE, kinds, time, flow, np.zeros(5, dtype=np.uint64)
    )
    assert found.present.tolist() == [1, 2, 2, 1, 2]
    assert (found.share / PACKET_ONE).tolist() == [3000, 2000, 1000, 3000, 1000]
    assert found.rate[3] == found.quiescent[3] > 0
    assert found.rate[4] == found.quiescent[4] > 0


@pytest.mark.parametrize("responsive", [True, False])
@pytest.mark.parametrize("gain", [1, 2**48 - 1])
def test_the_greatest_gains_and_queues(responsive: bool, gain: int) -> None:
    """Nothing overflows; what should be limited is."""
    law = laws.XqmConfig(PI_TB, True, 1 << 20, MS, 100 * S, gain, gain)
    kinds = [laws.XqmKind(60 * S, 1000, responsive)]
    time = np.array([0, S, 50 * S, 140 * S, 141 * S], dtype=np.uint64)
    backlog = np.array([0, 2**36, 2**36, 0, 0], dtype=np.uint64)
    flow = np.zeros(5, dtype=np.int32)
    found = laws.xqm_history(law, 2**39, kinds, time, flow, backlog)
    limit = found.quiescent.astype(np.int64)
    assert (np.abs(found.rate) <= limit).all()
