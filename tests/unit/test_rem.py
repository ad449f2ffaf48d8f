# SPDX-License-Identifier: GPL-2.0-or-later
"""rem.h against the paper in floating point."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import laws
from model_rem import Measure, Rem

PAPER = {"alpha": 0.1, "gamma": 0.001, "phi": 1.001}
EVENTS = 20_000
HISTORIES = 200  # of each measure


@dataclass
class History:
    """What happens to a queue: times in ns, units in (> 0) and out (< 0)."""

    time: npt.NDArray[np.uint64]
    units: npt.NDArray[np.int64]


def history(rng: np.random.Generator, mean_gap: float, sizes: list[int], events: int) -> History:
    """Arrivals and departures at random, with bursts, drains and idle times."""
    gaps = rng.exponential(mean_gap, events) * rng.choice([0, 1, 1, 1, 20], events)
    time = np.cumsum(gaps).astype(np.uint64)
    trend = np.repeat(rng.uniform(-0.3, 0.3, events // 500 + 1), 500)[:events]
    inward = rng.uniform(size=events) < 0.5 + trend
    size = rng.choice(sizes, events)
    units = np.zeros(events, dtype=np.int64)
    queued: list[int] = []
    for i in range(events):
        if inward[i] and len(queued) < 1000:
            queued.append(int(size[i]))
            units[i] = queued[-1]
        elif queued:
            units[i] = -queued.pop(0)
    return History(time, units)


def config(measure: Measure, target: int, interval: int, **real: float) -> laws.RemConfig:
    parameters = {name: round(value * laws.REAL_ONE) for name, value in real.items()}
    return laws.RemConfig(measure=measure, target=target, interval=interval, **parameters)


def test_price_105_gives_the_papers_probability() -> None:
    law = config(Measure.QUEUE, 20, 2_000_000, **PAPER)
    probability = laws.rem_probability(law, 105 * laws.PRICE_ONE) / laws.PROB_ONE
    assert probability == pytest.approx(0.09963, abs=5e-6)
    assert probability == pytest.approx(1 - 1.001**-105, abs=3e-10)


@given(st.floats(1.00001, 1000), st.floats(0, 40))
def test_probability(phi: float, certainty: float) -> None:
    """Eq. (3) for every base, from none to certain."""
    law = config(Measure.QUEUE, 20, 2_000_000, **{**PAPER, "phi": phi})
    exact_phi = law.phi / laws.REAL_ONE
    ceiling = laws.rem_price_max(law) / laws.PRICE_ONE
    assert ceiling == pytest.approx(34 / math.log2(exact_phi), rel=1e-9, abs=2**-9)
    price = round(certainty / math.log2(exact_phi) * laws.PRICE_ONE)
    exact = -math.expm1(-price / laws.PRICE_ONE * math.log(exact_phi))
    assert abs(laws.rem_probability(law, price) / laws.PROB_ONE - exact) < 2 / laws.PROB_ONE
    if certainty >= 35:
        assert laws.rem_probability(law, price) == laws.PROB_ONE


@pytest.mark.parametrize("measure", Measure)
def test_against_floating_point(measure: Measure) -> None:
    rng = np.random.default_rng(measure)
    worst_price = worst_probability = worst_share = 0.0
    instants = 0
    for _ in range(HISTORIES):
        real = {
            "alpha": 10 ** rng.uniform(-3, -0.01),
            "gamma": 10 ** rng.uniform(-4, -2),
            "phi": 1 + 10 ** rng.uniform(-5, -2),
        }
        packet_time = 10 ** rng.uniform(3, 7)  # ns
        interval = round(packet_time * 10 ** rng.uniform(-0.5, 3))
        # Bytes in half of the histories: then a packet is 512 units.
        unit = int(rng.choice([1, 512]))
        sizes = [1] if unit == 1 else [64, 512, 1536]
        law = config(measure, int(rng.integers(1, 200)), interval, **real)
        capacity = round(laws.REAL_ONE * unit / packet_time)
        send_time = math.ceil(packet_time / unit)
        queue = history(rng, packet_time, sizes, EVENTS)
        price, probability = laws.rem_history(
            law, unit, capacity, send_time, queue.time, queue.units
        )

        model = Rem(
            measure, law.target, interval,
            law.alpha / laws.REAL_ONE, law.gamma / laws.REAL_ONE, law.phi / laws.REAL_ONE,
            capacity / laws.REAL_ONE / unit, laws.rem_price_max(law) / laws.PRICE_ONE,
        )  # fmt: skip
        events = zip(
            queue.time.tolist(),
            (queue.units / unit).tolist(),
            np.abs(queue.units * send_time).tolist(),
            strict=True,
        )
        exact = np.fromiter(model.prices(events), float, EVENTS)
        exact_probability = -np.expm1(-exact * math.log(model.phi))

        # One step errs by two roundings of the price, one of the capacity's
        # product and by the gains' own rounding; clamping never adds to it.
        steps = queue.time.astype(float) / interval
        instants += int(steps[-1])
        largest = queue.units.cumsum().max() + law.target * unit + interval / packet_time * unit
        per_step = 2**-40 + model.gamma / unit * 2**-24 + largest * 2**-60
        bound = steps * per_step + 2**-40
        error = np.abs(price / laws.PRICE_ONE - exact)
        worst_share = max(worst_share, float((error / bound).max()))
        worst_price = max(worst_price, float(error.max()))
        worst_probability = max(
            worst_probability,
            float(np.abs(probability / laws.PROB_ONE - exact_probability).max()),
        )
    print(
        f"{measure.name.lower()}: {HISTORIES * EVENTS} events, {instants} steps, errors: price "
        f"{worst_price:.1e}, probability {worst_probability:.1e}; "
        f"{worst_share:.2f} of the bound"
    )
    assert worst_share <= 1
    assert worst_probability < 1e-6


@settings(max_examples=200)
@given(
    seed=st.integers(0, 2**32 - 1),
    measure=st.sampled_from(Measure),
    interval=st.integers(10_000, 10**9),
    packet_time=st.integers(10, 10**9),
    alpha=st.floats(1e-6, 0.999),
    gamma=st.floats(1e-6, 1),
    phi=st.floats(1.00001, 1000),
    target=st.integers(1, 10**6),
    unit=st.sampled_from([1, 64, 1500]),
)
def test_lazy_equals_eager(
    seed: int, measure: Measure, interval: int, packet_time: int,
    alpha: float, gamma: float, phi: float, target: int, unit: int,
) -> None:  # fmt: skip
    """To the last bit, whatever the parameters."""
    rng = np.random.default_rng(seed)
    mean_gap = min(packet_time, 1000 * interval)
    queue = history(rng, mean_gap, [unit, 3 * unit], 300)
    law = config(measure, target, interval, alpha=alpha, gamma=gamma, phi=phi)
    capacity = laws.REAL_ONE * unit // packet_time
    arguments = (law, unit, capacity, packet_time // unit, queue.time, queue.units)
    lazy = laws.rem_history(*arguments)
    eager = laws.rem_history(*arguments, eager=True)
    np.testing.assert_array_equal(lazy, eager)


def test_a_year_of_silence() -> None:
    """An idle router's price falls to nothing, and nothing overflows."""
    law = config(Measure.BACKLOG, 20, 10_000, **PAPER)
    year = 365 * 86400 * 10**9
    time = np.array([0, 10**9, 2 * 10**9, 2 * 10**9 + 1, year, year + 10_000], dtype=np.uint64)
    units = np.array([1000, 0, -999, -1, 0, 0], dtype=np.int64)
    price, probability = laws.rem_history(law, 1, laws.REAL_ONE // 125_000, 125_000, time, units)
    assert price[1] > 0 and probability[1] > 0
    assert price[4] == price[5] == probability[4] == 0
    # 34 / log2(phi) is where the price stops rising: with it certainty is reached.
    forever = np.array([0, year, year + 10**9], dtype=np.uint64)
    price, probability = laws.rem_history(
        law, 1, laws.REAL_ONE // 125_000, 125_000, forever, np.array([100, 0, 0])
    )
    assert price[1] == price[2] and probability[1] == laws.PROB_ONE
    assert price[1] / laws.PRICE_ONE == pytest.approx(34 / math.log2(1.001), rel=1e-6)
