# SPDX-License-Identifier: GPL-2.0-or-later
"""red.h against floating point."""

import numpy as np
import pytest

import laws
from model_red import Red

EVENTS = 20_000
HISTORIES = 100  # for each form: 8 million arrivals
AVG_ONE = 1 << 24
NEVER = 2**64 - 1


@pytest.mark.parametrize("gentle", [False, True])
@pytest.mark.parametrize("wait", [False, True])
def test_against_floating_point(gentle: bool, wait: bool) -> None:
    rng = np.random.default_rng(2 * gentle + wait)
    worst_avg = worst_probability = 0.0
    disagreed = hits = 0
    for _ in range(HISTORIES):
        law = laws.RedConfig(
            min=int(rng.integers(1, 100)),
            max=0,
            probability=round(10 ** rng.uniform(-2, 0) * laws.REAL_ONE),
            weight=round(10 ** rng.uniform(-4, -1) * laws.REAL_ONE),
            gentle=gentle,
            wait=wait,
        )
        law.max = law.min + int(rng.integers(1, 300))
        unit = int(rng.choice([1, 512]))
        send_time = round(10 ** rng.uniform(3, 7))
        gaps = rng.exponential(send_time, EVENTS) * rng.choice([0, 1, 1, 1, 30], EVENTS)
        time = np.cumsum(gaps).astype(np.uint64) + np.uint64(send_time)
        backlog = np.abs(law.min + np.cumsum(rng.integers(-3, 4, EVENTS))) % (3 * law.max)
        idle = (backlog == 0) | (rng.uniform(size=EVENTS) < 1e-3)
        since = time - (rng.uniform(size=EVENTS) * gaps).astype(np.uint64)
        idle_from = np.where(idle, since, np.uint64(NEVER))
        random = rng.integers(0, 2**32, EVENTS, dtype=np.uint32)
        avg, probability = laws.red_history(
            law, unit, send_time, time, (backlog * unit).astype(np.uint64), idle_from, random
        )

        model = Red(
            law.min, law.max, law.probability / laws.REAL_ONE, law.weight / laws.REAL_ONE,
            gentle, wait, send_time,
        )  # fmt: skip
        arrivals = zip(
            time.tolist(),
            backlog.tolist(),
            [None if t == NEVER else t for t in idle_from.tolist()],
            (random / laws.PROB_ONE).tolist(),
            strict=True,
        )
        exact = np.array(list(model.decisions(arrivals)))
        error = np.abs(avg / AVG_ONE / unit - exact[:, 0])
        # What one decision's rounding changes, the count's next ones inherit: compare the
        # slopes everywhere, and the probabilities up to the first decision that differs.
        differs = (random < probability) != (random / laws.PROB_ONE < exact[:, 1])
        end = int(np.argmax(differs)) if differs.any() else EVENTS
        worst_avg = max(worst_avg, float((error * model.weight).max()))
        gap = np.abs(probability[:end] / laws.PROB_ONE - exact[:end, 1])
        # p / (1 - count p) is as steep as 1 / p^2 at its end: measured where it is below 1/2.
        worst_probability = max(worst_probability, float(gap[exact[:end, 1] < 0.5].max(initial=0)))
        disagreed += bool(differs.any())
        hits += int((random < probability).sum())
    print(
        f"{HISTORIES * EVENTS} arrivals, {hits} hits, worst error of the average times w"
        f" {worst_avg:.1e} packets, of the probability {worst_probability:.1e};"
        f" {disagreed} of {HISTORIES} histories took another turn"
    )
    # An idle time is known to 2^-16 of a packet: w avg 2^-16, at w = 0.1 and 900 packets.
    assert worst_avg < 2e-4
    assert worst_probability < 1e-3
    assert disagreed <= HISTORIES / 10
    assert hits > 1000


def test_an_idle_link_forgets() -> None:
    """(1 - w)^m for m packets that could have been sent."""
    law = laws.RedConfig(5, 15, laws.REAL_ONE // 10, laws.REAL_ONE // 500, False, False)
    time = np.array([0] * 5000 + [10**9], dtype=np.uint64)
    backlog = np.array([100] * 5000 + [0], dtype=np.uint64)
    idle_from = np.array([NEVER] * 5000 + [0], dtype=np.uint64)
    random = np.full(5001, 2**32 - 1, dtype=np.uint32)
    avg, _ = laws.red_history(law, 1, 10**6, time, backlog, idle_from, random)
    before, after = avg[-2] / AVG_ONE, avg[-1] / AVG_ONE
    assert after == pytest.approx(before * 0.998**1001, rel=1e-6)
    avg, _ = laws.red_history(law, 1, 0, time, backlog, idle_from, random)
    assert avg[-1] / AVG_ONE == pytest.approx(before * 0.998, rel=1e-6)


@pytest.mark.parametrize("days", [0.4, 1, 1.7, 30, 400])
def test_a_slow_idle_link_forgets_for_days(days: float) -> None:
    """A packet takes a minute: what a day is worth is a day's packets, neither more nor less."""
    law = laws.RedConfig(5, 15, laws.REAL_ONE // 10, laws.REAL_ONE // 100_000, False, False)
    idle, send_time = round(days * 86_400e9), 60 * 10**9
    time = np.array([0] * 5000 + [idle], dtype=np.uint64)
    backlog = np.array([100] * 5000 + [0], dtype=np.uint64)
    idle_from = np.array([NEVER] * 5000 + [0], dtype=np.uint64)
    random = np.full(5001, 2**32 - 1, dtype=np.uint32)
    avg, _ = laws.red_history(law, 1, send_time, time, backlog, idle_from, random)
    expected = avg[-2] / AVG_ONE * (1 - 1e-5) ** (idle / send_time + 1)
    assert avg[-1] / AVG_ONE == pytest.approx(expected, rel=1e-4)
