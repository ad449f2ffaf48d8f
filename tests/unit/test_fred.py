# SPDX-License-Identifier: GPL-2.0-or-later
"""fred.h against the paper in floating point."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

import laws
from model_fred import Event, Fred, replay

EVENTS = 5_000
HISTORIES = 60
AVG_ONE = 1 << 24
GONE = -1
NEVER, ALWAYS = laws.PROB_ONE - 1, 0  # random numbers


@dataclass
class Seen:
    """At each event, in packets."""

    probability: npt.NDArray[np.float64]
    avg: npt.NDArray[np.float64]
    share: npt.NDArray[np.float64]


def config(
    low: int = 10, high: int = 30, probability: float = 0.1, weight: float = 0.002
) -> laws.RedConfig:
    return laws.RedConfig(
        low, high, round(probability * laws.REAL_ONE), round(weight * laws.REAL_ONE), False, False
    )


def run(
    law: laws.RedConfig,
    flow: npt.NDArray[np.int32] | list[int],
    time: laws.U64s | None = None,
    random: laws.U64s | None = None,
    minq: int = 2,
    unit: int = 1,
    send_time: int = 10**6,
) -> Seen:
    flows = np.asarray(flow, dtype=np.int32)
    times = np.arange(1, len(flows) + 1, dtype=np.uint64) if time is None else time
    randoms = np.full(len(flows), NEVER, dtype=np.uint64) if random is None else random
    found = laws.fred_history(law, minq, unit, send_time, times, flows, randoms)
    probability, avg, share = (one.astype(float) for one in found)
    return Seen(probability / laws.PROB_ONE, avg / AVG_ONE / unit, share / AVG_ONE / unit)


def test_against_floating_point() -> None:
    rng = np.random.default_rng(1)
    worst_avg = worst_share = worst_probability = 0.0
    hits = disagreed = 0
    for _ in range(HISTORIES):
        low = int(rng.integers(2, 40))
        law = config(
            low, low + int(rng.integers(1, 60)), 10 ** rng.uniform(-2, 0), 10 ** rng.uniform(-3, -1)
        )
        minq, unit, flows = int(rng.integers(1, 6)), int(rng.choice([1, 512])), 12
        send_time = 10**6
        weights = rng.exponential(1, flows)
        flow = rng.choice(flows, EVENTS, p=weights / weights.sum()).astype(np.int32)
        load = np.repeat(rng.uniform(0.4, 0.6, EVENTS // 500), 500)
        flow[rng.uniform(size=EVENTS) > load] = GONE
        gaps = rng.exponential(send_time / 2, EVENTS) * rng.choice([1, 20], EVENTS, p=[0.99, 0.01])
        time = np.cumsum(gaps).astype(np.uint64) + np.uint64(1)
        random = rng.integers(0, laws.PROB_ONE, EVENTS, dtype=np.uint64)
        seen = run(law, flow, time, random, minq, unit, send_time)

        real = law.probability / laws.REAL_ONE, law.weight / laws.REAL_ONE
        model = Fred(law.min, law.max, *real, minq, send_time)
        events = [
            Event(t, f if f >= 0 else None, r / laws.PROB_ONE)
            for t, f, r in zip(time.tolist(), flow.tolist(), random.tolist(), strict=True)
        ]
        exact = np.array(replay(model, events))
        # Where a rounding decides otherwise, all that follows is another history.
        chance = random / laws.PROB_ONE
        differs = (chance < seen.probability) != (chance < exact[:, 0])
        end = int(np.argmax(differs)) if differs.any() else EVENTS
        gap = np.abs(seen.probability[:end] - exact[:end, 0])
        # p / (1 - count p) is as steep as 1 / p^2 at its end: measured where it is below 1/2.
        small = np.maximum(seen.probability[:end], exact[:end, 0]) < 0.5
        worst_probability = max(worst_probability, float(gap[small].max(initial=0)))
        worst_avg = max(worst_avg, float(np.abs(seen.avg - exact[:, 1])[:end].max()))
        worst_share = max(worst_share, float(np.abs(seen.share - exact[:, 2])[:end].max()))
        disagreed += bool(differs.any())
        hits += int((chance < seen.probability)[:end].sum())
    print(
        f"{HISTORIES * EVENTS} events, {hits} hits, worst error of avg {worst_avg:.1e}, of avgcq"
        f" {worst_share:.1e} packets, of the probability {worst_probability:.1e};"
        f" {disagreed} of {HISTORIES} histories took another turn"
    )
    assert worst_avg < 1e-3
    assert worst_share < 1e-3
    assert worst_probability < 1e-3
    assert disagreed <= HISTORIES / 10
    assert hits > 5_000


def test_no_flow_has_more_than_min_th() -> None:
    """maxq = min_th: a flow alone is stopped there, whatever the average is."""
    seen = run(config(10, 30), [0] * 40)
    assert seen.probability.tolist() == [0] * 10 + [1] * 30


def test_whoever_was_struck_twice_gets_no_more_than_the_average() -> None:
    """And is forgotten when nothing of its is queued: with strikes it could not begin again."""
    low = 5
    # flow 0 is struck twice at min_th; then only one packet of its stays beside flow 1's
    flow = [0] * (low + 2) + [GONE] * (low - 1) + [1, 0, GONE, 0]
    seen = run(config(low, 100), flow)
    assert seen.probability[: low + 2].tolist() == [0] * low + [1, 1]
    assert seen.share[-3] == 1
    assert seen.probability[-3:].tolist() == [1, 0, 0]


def test_fragile_flows_are_spared_between_the_thresholds() -> None:
    """Robust ones have RED's probability, fragile ones below max(minq, avgcq) have none."""
    # 12 flows with a packet each, then one with many: the average goes up to the queue
    law = config(5, 100, 0.5, 0.5)
    others = list(range(1, 13))
    seen = run(law, [*others, 0, 0, 0, 0, 0, 1, 20], minq=2)
    assert 5 < seen.avg[-1] < 100
    assert 1 < seen.share[-1] < 2
    robust = seen.probability[len(others) :]
    assert robust[:2].tolist() == [0, 0]  # one with 0 or 1 queued
    assert robust[2:4].min() > 0
    assert seen.probability[-2:].tolist() == [0, 0]


def test_above_max_th_everything_is_dropped() -> None:
    seen = run(config(2, 4, 0.1, 0.9), [1, 2, 3, 4, 5, 6, 7, 8, 9])
    first = int(np.argmax(seen.avg >= 4))
    assert seen.probability[: first + 1].max() == 0
    assert seen.probability[first + 1 :].tolist() == [1] * (8 - first)


def test_departures_move_the_average() -> None:
    """RED's own would stand still until the next arrival."""
    count = 20
    seen = run(config(50, 100, 0.1, 0.25), [*range(count), *[GONE] * count])
    avg = 0.0
    for queue in [*range(count), *reversed(range(count))]:
        avg += 0.25 * (queue - avg)
    assert seen.avg[-1] == pytest.approx(avg, abs=1e-5)
    assert seen.avg[-1] < 5 < seen.avg[count - 1]


def test_an_idle_link_forgets() -> None:
    flow = [*range(20), *[GONE] * 20, 0]
    time = np.arange(1, len(flow) + 1, dtype=np.uint64)
    time[-1] += np.uint64(50 * 10**6)
    seen = run(config(50, 100, 0.1, 0.1), flow, time)
    # 50 packets could have been sent, and the arrival finds none
    assert seen.avg[-1] == pytest.approx(seen.avg[-2] * 0.9**51, rel=1e-3)
