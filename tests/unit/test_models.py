# SPDX-License-Identifier: GPL-2.0-or-later
"""The papers' models: against numbers in print, in limits, and theorems against simulation."""

import functools
import math

import numpy as np
import numpy.typing as npt
import pytest

from aqmlab.metrics import null_model_jain
from models import FIGURES, dde, fifa, lred, pert, rem, xqm
from models.figure import ModelFigure, Panel
from report.figures import of_model, svg

figure = functools.cache(lambda name: FIGURES[name]())


def between(model: ModelFigure, name: str, low: float, high: float) -> npt.NDArray[np.float64]:
    x, y = model.series[name]
    return y[(x > low) & (x < high)]


# The method


def test_a_step_is_exact_where_nothing_changes() -> None:
    start, gain, decay = np.array([1.0, 5.0, 2.0, 2.0]), 3.0, np.array([2.0, -1.0, 0.0, 1e-18])
    found = dde.relax(start, np.full(4, gain), decay, 0.5)
    for y, k, got in zip(start, decay[:2], found, strict=False):
        assert got == pytest.approx(gain / k + (y - gain / k) * math.exp(-k / 2))
    assert found[2:] == pytest.approx([3.5, 3.5])


def test_the_past_is_on_lines() -> None:
    past = dde.Past(np.array([1.0, 10.0]), steps=2, step_s=0.5)
    past.add(np.array([2.0, 20.0]))
    past.add(np.array([4.0, 20.0]))
    when = np.array([-9.0, 0.0, 0.25, 0.75, 1.0, 1.25, 0.25])
    columns = np.array([0, 0, 0, 0, 0, 0, 1])
    assert past.at(when, columns) == pytest.approx([1, 1, 1.5, 3, 4, 5, 15])


@pytest.mark.parametrize("delay", [0.1, 3.0])
def test_roots_of_a_delay_equation(delay: float) -> None:
    """z' = -k z(t - delay) is stable to k = pi/2/delay; and has e^t for k = -e^delay."""
    for k in (0.0, 1.0, math.pi / 2, 2.0):
        growth = dde.abscissa(np.zeros((1, 1)), np.array([[-k / delay]]), delay)
        assert np.sign(round(growth, 9)) == np.sign(round(k - math.pi / 2, 9)) * (k > 0)
    then = np.array([[math.exp(delay)]])
    assert dde.abscissa(np.zeros((1, 1)), then, delay) == pytest.approx(1)


def test_roots_do_not_depend_on_how_they_are_found() -> None:
    """Six digits with twice the nodes."""
    rng = np.random.default_rng(3)
    for delay in rng.uniform(0.01, 1, 20):
        now, then = rng.normal(size=(2, 3, 3)) / delay
        found = dde.abscissa(now, then, delay)
        assert found == pytest.approx(dde.abscissa(now, then, delay, nodes=32), rel=1e-6)


@pytest.mark.parametrize("same", [False, True])
def test_halving_the_step_quarters_the_error_of_pert(same: bool) -> None:
    ends = [pert.fluid(0.16, 6, step_s=step, same=same)[1][-1, 0] for step in (8e-3, 4e-3, 2e-3)]
    assert (ends[0] - ends[1]) / (ends[1] - ends[2]) == pytest.approx(4, rel=0.25)
    assert ends[1] == pytest.approx(ends[2], rel=1e-3)


def test_halving_the_step_hardly_moves_xqm() -> None:
    """The mean of DropTail's swings, which a queue that is full or not makes discontinuous."""
    delays, ahead = xqm.drawn_flows()
    means = []
    for step in (xqm.STEP_S, xqm.STEP_S / 2):
        course = xqm.fluid(delays, ahead, xqm.stepped((np.inf, 0.0)), 20, step_s=step)
        late = course.time_s > 5
        means.append((course.throughput[late].mean(), course.queue[late].mean()))
    assert means[0] == pytest.approx(means[1], rel=0.01)


# XQM


def test_check_value_of_the_quiescent_loss() -> None:
    assert xqm.quiescent_loss(100, 0.1) == pytest.approx(0.01961, abs=5e-6)
    assert xqm.quiescent_loss(xqm.throughput(0.03, 0.2), 0.2) == pytest.approx(0.03)


def test_jain() -> None:
    assert xqm.jain(np.array([[1.0, 1, 1, 1], [4, 0, 0, 0]])) == pytest.approx([1, 0.25])


def test_adjustment_and_compensation() -> None:
    loss = np.array([0.0, 0.005, 0.015, 0.025, 0.035])
    assert xqm.long_term(loss, 0.01) == pytest.approx([0, 0, 0.005, 0.015, 0.025])
    # outside the band what is left of the swing is seen, from 0.02 on
    assert xqm.short_term(loss, 0.02, 0.01) == pytest.approx([0.01, 0.015, 0.02, 0.02, 0.025])


def test_red_signal() -> None:
    signal = xqm.Red().signal(np.array([50.0, 85.0, 119.99, 120.0]))
    assert signal == pytest.approx([0, 0.05, 0.1, 1], abs=2e-5)


@pytest.mark.parametrize("loss", [0.03, 0.05, 0.1])
def test_fluid_settles_at_the_square_root_formula(loss: float) -> None:
    """Where the link has room: eq. (12) with an empty queue, for each flow by its own delay."""
    delays, ahead = xqm.drawn_flows()
    delays = delays + 0.04  # so that 3 % leave room
    course = xqm.fluid(delays, ahead, lambda when: np.full(when.shape, loss), 15)
    assert course.throughput[-1, 0] == pytest.approx(xqm.throughput(loss, delays), rel=1e-4)
    assert course.queue[-1, 0] == 0


@pytest.mark.parametrize(("loss", "queue"), [(0.01, 81.3), (0.015, 29.2)])
def test_fluid_settles_at_the_share(loss: float, queue: float) -> None:
    """Where it has not: eq. (11), and (12) gives the queue: C (sqrt(2 (1/q - 1))/share - D)."""
    delays, ahead = xqm.equal_flows()
    course = xqm.fluid(delays, ahead, lambda when: np.full(when.shape, loss), 40)
    assert course.throughput[-1, 0] == pytest.approx(np.full(20, 100.0), rel=1e-2)
    assert course.queue[-1, 0] == pytest.approx(queue, abs=0.5)


def test_systems_have_nothing_to_do_with_each_other() -> None:
    delays, ahead = xqm.drawn_flows()
    rates = np.array([0.0, 0.05])
    both = xqm.fluid(np.tile(delays, (2, 1)), ahead, lambda when: rates[:, None] + 0 * when, 3)
    alone = xqm.fluid(delays, ahead, lambda when: np.full(when.shape, 0.05), 3)
    np.testing.assert_allclose(both.throughput[:, 1], alone.throughput[:, 0])
    np.testing.assert_allclose(both.queue[:, 1], alone.queue[:, 0])


def test_step_longer_than_a_delay_is_refused() -> None:
    with pytest.raises(ValueError, match="step"):
        xqm.fluid(0.1, 0.01, lambda when: 0 * when, 1)
    with pytest.raises(ValueError, match="step"):
        pert.fluid(0.01, 1, step_s=0.05)
    with pytest.raises(ValueError, match="step"):
        lred.fluid(lred.Network(10, 1000, 0.01), 0.001, 1, step_s=0.05)


def test_figure_2_as_the_paper_tells_it() -> None:
    told = figure("xqm.fig2")
    swings, share, less = (
        between(told, "DropTail, mean flow", low, high)
        for low, high in ((5, 20), (35, 40), (50, 60))
    )
    assert np.ptp(swings) > 100
    assert np.ptp(share) < 1 and share.mean() == pytest.approx(100, rel=0.01)
    assert np.ptp(less) < 1 and 60 < less.mean() < 66
    assert between(told, "DropTail, queue", 35, 40).min() > 80
    assert between(told, "DropTail, queue", 45, 60).max() == 0
    # RED's queue runs empty when the loss begins and comes back to its lower threshold
    assert between(told, "RED, queue", 21, 22).max() == 0
    assert between(told, "RED, queue", 38, 40) == pytest.approx(51.7, abs=1)
    assert between(told, "DropTail, queue", 23, 24).min() > 50


def test_figure_3_holds_the_share_between_1_and_2_percent() -> None:
    told = figure("xqm.fig3a").series
    loss, low = told["lowest"]
    _, high = told["highest"]
    inside = (loss > 0.9) & (loss < 1.95)
    assert low[inside] == pytest.approx(100, rel=0.01)
    assert high[inside] == pytest.approx(100, rel=0.01)
    assert np.all((high - low)[loss < 0.5] > 50)
    assert np.all(high[loss > 2.5] < 95)


def test_figure_5_loses_to_the_quiescent_rate_and_hides_from_there() -> None:
    one = xqm.Shared(8e6, 1000, (0.095,), 5.0)  # 1000 packets/s, a flow: 100 ms with the queue
    rate = float(xqm.quiescent_loss(1000, 0.1))
    assert one.quiescent == pytest.approx([rate])
    assert one.imposed([0, rate, 2 * rate]) == pytest.approx([rate, 0, 0])
    assert one.hidden([0, rate, 3 * rate]) == pytest.approx([0, 0, 2 * rate])
    least, most = xqm.TABLE_1.quiescent.min(), xqm.TABLE_1.quiescent.max()
    assert len(xqm.TABLE_1.quiescent) == 20
    assert xqm.TABLE_1.hidden(least) == pytest.approx(0)
    assert xqm.TABLE_1.imposed(most) == pytest.approx(0)
    for name, low, high in (("imposed", 0, 0.03), ("hidden, below 0", -0.07, 0)):
        _, shown = figure("xqm.fig5").series[name]
        assert np.all(np.diff(shown) <= 0)
        assert low <= shown.min() <= shown.max() <= high
    both = figure("xqm.fig5").series["both"][1]
    assert np.diff(both) == pytest.approx(np.full(80, -0.001))


def test_figure_4_as_the_paper_tells_it() -> None:
    told = figure("xqm.fig4")
    names = ("as it is", "adjusted", "adjusted and compensated")
    before = [between(told, f"loss {name}", 5, 10).mean() for name in names]
    assert before == pytest.approx([80.4, 98.99, 98.99], abs=0.1)
    spread = [np.ptp(between(told, f"loss {name}", 10, 21)) for name in names]
    assert spread[2] < spread[0] < spread[1]


# PERT


def test_equilibrium_of_pert() -> None:
    network = pert.Network(100, 5, 0.1)
    assert network.window == 2 and network.response() == 0.5
    assert pert.Network(150e6 / 12e3, 50, 0.067).response(0.35) == pytest.approx(
        2 / (0.7 * (12500 * 0.067 / 50) ** 2)
    )


@pytest.mark.parametrize(
    ("queue_ms", "probability"),
    [(0, 0), (5, 0), (7.5, 0.025), (10, 0.05), (15, 0.525), (20, 1), (300, 1)],
)
def test_the_response_curve_of_pert(queue_ms: float, probability: float) -> None:
    """Section 3's: no response up to 5 ms, p_max at 10, always from twice that on."""
    assert pert.response_probability(queue_ms) == pytest.approx(probability)


def test_theorem_1_is_at_its_bound_at_171_ms() -> None:
    margin = [pert.theorem_1(pert.Network(100, 5, r), pert.SIMULATED) for r in (0.1709, 0.1711)]
    assert margin[0] > 1 > margin[1]


@pytest.mark.parametrize(("flows", "least"), [(10, 8.04), (40, 0.115), (50, 0.050)])
def test_least_sampling_interval(flows: int, least: float) -> None:
    """Figure 13 (a), "0.1 seconds as N goes to 40"; at which (11) holds with equality."""
    network = pert.Network(1000, flows, 0.2)
    found = pert.least_sampling(network, pert.SIMULATED)
    assert found == pytest.approx(least, rel=0.01)
    assert pert.theorem_1(network, pert.Curve(sampling_s=found)) == pytest.approx(1)


def test_no_sampling_interval_is_asked_for_where_the_gain_is_low() -> None:
    assert pert.least_sampling(pert.Network(100, 50, 0.1), pert.SIMULATED) == 0


@pytest.mark.parametrize(
    ("rtt", "rings", "settles"), [(0.1, False, True), (0.16, True, True), (0.171, True, False)]
)
def test_stability_of_the_fluid_model(rtt: float, rings: bool, settles: bool) -> None:
    """Fig. 13: stable at 100 ms, after ringing at 160 ms, and never at 171 ms."""
    model = figure("pert.fig13")
    name = f"R = {1000 * rtt:.0f} ms"
    target = rtt * 100 / 5
    crossings = np.count_nonzero(np.diff(np.sign(between(model, name, 5, 30) - target)))
    assert (crossings > 20) == rings
    assert (np.ptp(between(model, name, 50, 60)) < 0.01 * target) == settles


@pytest.mark.parametrize(("same", "boundary"), [(False, 0.1658), (True, 0.1727)])
def test_pert_is_unstable_where_it_grows(same: bool, boundary: float) -> None:
    """Simulated 3 ms on either side of where the rightmost root crosses the axis.

    The paper sees the same: unstable at 171 ms, and with W(t) for W(t - R) from 175 on only.
    """
    rtts = [boundary - 0.003, boundary + 0.003]
    growth = [pert.growth(pert.Network(100, 5, r), pert.SIMULATED, same=same) for r in rtts]
    assert growth[0] < 0 < growth[1]
    _, windows = pert.fluid(rtts, 80, same=same)
    early, late = np.ptp(windows[10_000:15_000], axis=0), np.ptp(windows[-5_000:], axis=0)
    assert late[0] < 0.2 * early[0]
    assert late[1] > 0.9 * early[1]


@pytest.mark.parametrize(("capacity", "flows", "rtt"), [(1000, 10, 0.1), (18750, 50, 0.2)])
def test_theorem_2_of_pert(capacity: float, flows: float, rtt: float) -> None:
    """Stable for any more flows and shorter times; but not if the queue is left out of R."""
    m, k = pert.theorem_2(pert.Network(capacity, flows, rtt))
    for more in (1, 1.5, 3):
        for shorter in (1, 0.7, 0.4):
            assert pert.growth_pi(pert.Network(capacity, flows * more, rtt * shorter), m, k) < 0
    assert pert.growth_pi(pert.Network(capacity, flows, rtt), m, k, fixed_rtt=True) > 0
    with pytest.raises(ValueError, match=r"windows of 2\.00"):
        pert.theorem_2(pert.Network(100, 5, 0.1))


# LRED

PI = "fifa base pi noscale limit 200 target 100"
REM = "rem limit 200 target 100 bandwidth 10mbit"
EXAMPLE = lred.Network(300, 2500, 0.35)


def test_check_values_of_the_bounds() -> None:
    """At a loss ratio of .165: PI, eq. (34), 162 s; REM, eq. (40), 33 s."""
    assert lred.response_bound_s(PI, 0.165) == pytest.approx(161.8, abs=0.05)
    assert lred.response_bound_s(REM, 0.165) == pytest.approx(33.0, abs=0.05)


@pytest.mark.parametrize(
    ("qdisc", "times"),
    [
        (f"{PI} a 1.834e-5 b 1.822e-5", 0.5),
        (f"{PI} sampling 340", 0.5),
        ("fifa base pi noscale limit 150", 1),
        (f"{REM} gamma 0.002 alpha 0.05", 1),
        (f"{REM} interval 1ms", 0.5),
        ("rem", 1),
        ("fifa base rem noscale limit 70 interval 1000us", 1),
    ],
)
def test_bounds_follow_the_options(qdisc: str, times: float) -> None:
    of_defaults = lred.response_bound_s(PI if "pi" in qdisc else REM, 0.1)
    assert of_defaults
    assert lred.response_bound_s(qdisc, 0.1) == pytest.approx(of_defaults * times)


def test_others_have_no_bound() -> None:
    for qdisc in ("lred", "fifa base red noscale", "fifa base pi limit 200", "pfifo limit 200"):
        assert lred.response_bound_s(qdisc, 0.1) is None


def test_a_loss_ratio_comes_out_of_its_probability() -> None:
    queue = np.array([0.0, 90, 100, 130, 200])
    for ratio in (0.01, 0.12, 0.4):
        probability = ratio + 0.001 * math.sqrt(ratio) * (queue - 100)
        found = lred.loss_ratio("lred limit 200 target 100", probability, queue)
        assert found == pytest.approx(np.where(probability > 0, ratio, np.nan), nan_ok=True)
    slow = lred.loss_ratio("lred beta 0.002 target 50", np.array([0.13]), np.array([60.0]))
    assert slow + 0.02 * np.sqrt(slow) == pytest.approx([0.13])
    # No loss so far; cut to 0 and to 1.
    found = lred.loss_ratio("lred", np.array([0.0, 0.0, 1.0]), np.array([100.0, 50.0, 150.0]))
    assert found == pytest.approx([0, np.nan, np.nan], nan_ok=True)


def test_check_values_of_pi_star() -> None:
    """For N = 100, R = 0.45 s, C = 2500/s: a 2.857e-5, b 2.850e-5."""
    a, b = lred.pi_star(100, 0.45, 2500)
    assert a == pytest.approx(2.857e-5, abs=5e-9) and b == pytest.approx(2.850e-5, abs=5e-9)


def test_check_value_of_theorem_2() -> None:
    """beta+ 9.31e-4 for 300 flows, 2500 packets/s, 0.35 s."""
    assert min(lred.theorem_2(EXAMPLE)) == pytest.approx(9.31e-4, abs=5e-7)
    with pytest.raises(ValueError, match=r"windows of 1\.09 packets"):
        lred.theorem_2(lred.Network(800, 2500, 0.35))


def test_the_crossing_is_a_root_of_the_characteristic_equation() -> None:
    gain, s = lred.greatest_gain(EXAMPLE), 1j * lred.crossing(EXAMPLE)
    left = s**2 + EXAMPLE.k11 * s + EXAMPLE.kc * gain * np.exp(-EXAMPLE.rtt_s * s)
    assert abs(left) < 1e-9
    assert lred.growth(EXAMPLE, gain) == pytest.approx(0, abs=1e-9)
    assert lred.growth(EXAMPLE, 0.9 * gain) < 0 < lred.growth(EXAMPLE, 1.1 * gain)


def test_theorem_2_holds_for_more_flows_and_shorter_times() -> None:
    beta = min(lred.theorem_2(EXAMPLE))
    for more in (1, 1.2, 1.4):
        for shorter in (1, 0.9, 0.8):
            network = lred.Network(300 * more, 2500, 0.35 * shorter)
            if network.loss_ratio < 1:
                assert lred.growth(network, beta * network.slope) < 0
                # and with the queue in R without the paper's w(t) = w(t - R)
                assert lred.growth(network, beta * network.slope, same=False, fixed_rtt=False) < 0


def test_lred_is_unstable_where_it_grows() -> None:
    """(4), (5), (26) simulated on either side of where they are no longer stable: 9.07e-4."""
    betas = [8.7e-4, 9.5e-4]
    growth = [lred.growth(EXAMPLE, beta * EXAMPLE.slope, same=False) for beta in betas]
    assert growth[0] < 0 < growth[1]
    time, _, queues = lred.fluid(EXAMPLE, betas, 60, start=0.99)
    early, late = (np.ptp(queues[(time > t) & (time < t + 10)], axis=0) for t in (10, 50))
    assert late[0] < 0.5 * early[0]
    assert late[1] > 1.5 * early[1]


def test_lred_settles_at_its_target() -> None:
    _, windows, queues = lred.fluid(EXAMPLE, 3e-4, 60)
    assert queues[-1, 0] == pytest.approx(100, abs=1e-3)
    assert windows[-1, 0] == pytest.approx(EXAMPLE.window, rel=1e-6)


# REM


def test_check_value_of_the_marking() -> None:
    assert rem.marking(105) == pytest.approx(0.09963, abs=5e-6)
    assert 1 - rem.marking(30 + 12) == pytest.approx((1 - rem.marking(30)) * (1 - rem.marking(12)))


def test_reno_as_rem_sees_it() -> None:
    price = rem.reno_price(33.0, 1.5)
    assert rem.reno_rate(price, 1.5) == pytest.approx(33)
    slope = (rem.reno_rate(price + 1e-4, 1.5) - rem.reno_rate(price - 1e-4, 1.5)) / 2e-4
    assert rem.reno_beta(33.0, 1.5) == pytest.approx(-slope, rel=1e-6)
    # and its marks are eq. (12) of XQM
    assert rem.reno_rate(price, 1.5) == pytest.approx(xqm.throughput(rem.marking(price), 1.5))


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.5, 0.9])
def test_bounds_of_gamma(alpha: float) -> None:
    """Section 4.2's four links: stable at 2/omega_L, up to 4/((2 - alpha) omega_L), not beyond."""
    routing = np.hstack([np.ones((4, 1)), np.eye(4)])
    betas = np.array([3.0, 1, 2, 1, 4])
    omega = rem.largest_eigenvalue(routing, betas)
    exact = rem.exact_gamma(omega, alpha)
    assert rem.spectral_radius(routing, betas, alpha, rem.greatest_gamma(omega)) < 1
    assert rem.spectral_radius(routing, betas, alpha, 0.999 * exact) < 1
    assert rem.spectral_radius(routing, betas, alpha, 1.001 * exact) > 1


def test_links_that_are_the_same_are_refused() -> None:
    with pytest.raises(ValueError, match="independent rows"):
        rem.largest_eigenvalue([[1, 1], [1, 1]], [1, 1])


def test_rem_is_unstable_beyond_its_bound() -> None:
    """(1), (2), (8) for 20 flows with periods of a round trip, 660 packets."""
    omega = rem.one_link(20, 8000, 0.0825, 0.0825)
    spread = []
    for share in (0.95, 1.05):
        _, queues = rem.iterate(20, 660, 1, share * rem.exact_gamma(omega), off=1.0001)
        spread.append(np.ptp(queues[-100:]))
    assert spread[0] < 1e-6 and spread[1] > 1
    prices, queues = rem.iterate(20, 660, 1, 0.5 * rem.greatest_gamma(omega))
    assert queues[-1] == pytest.approx(rem.TARGET)
    assert prices[-1] == pytest.approx(rem.reno_price(33, 1))


# FIFA

RTTS = [0.04 + 0.01 * flow for flow in range(30)]


def test_examples_of_section_3() -> None:
    """Ratios .129 and .775; 46.5 s for 6; and 701.3 Mb, with the 300 ms that print leaves out."""
    ratio = fifa.response_ratio(4, 0.1)
    assert ratio == pytest.approx(0.129, abs=5e-4)
    assert 6 / ratio == pytest.approx(46.5)
    fair, unfair = (fifa.transfer_s(1e6, 10e6, s) for s in (1 / 4, fifa.unfair_share(4, 0.1)))
    assert fair / unfair == pytest.approx(ratio)
    assert fifa.recovery_ratio(4, 0.1) == pytest.approx(0.775)
    assert fifa.printed_area(4, 0.1, 10e6, 0.3, 8000) == pytest.approx(701.3e6, rel=1e-4)


def test_data_lost_are_between_the_lines() -> None:
    told = figure("fifa.fig3").series
    x = np.linspace(0, 120, 100_001)
    fair, unfair = (np.interp(x, *told[name]) for name in ("fair", "unfair"))
    lost = float(np.trapezoid(fair - unfair, x)) * 1e6
    assert fifa.lost_bits(4, 0.1, 10e6, 0.3, 8000) == pytest.approx(lost, rel=1e-4)


def test_figures_of_section_3_have_its_examples() -> None:
    printed = {"fifa.response": (6, 46.5), "fifa.recovery": (84.4, 108.9)}
    for name, (fair, unfair) in printed.items():
        series = figure(name).series
        place = np.argmin(abs(series["fair"][0] - 0.1))
        assert series["fair"][1][place] == pytest.approx(fair, abs=0.05)
        assert series["unfair"][1][place] == pytest.approx(unfair, abs=0.05)
        queued = series["unfair, 20 packets queued"][1]
        assert fair < queued[place] < unfair
        assert series["fair"][1][-1] == pytest.approx(queued[-1])  # all alike
    series = figure("fifa.unsent").series
    place = np.argmin(abs(series["fair"][0] - 0.1))
    lost = fifa.lost_bits(4, 0.1, **fifa.EXAMPLE)
    assert 1e6 * (series["unfair"][1] - series["fair"][1])[place] == pytest.approx(lost)


def test_exponent_of_the_response_function() -> None:
    assert fifa.fitted_exponent()[1] == pytest.approx(0.63, abs=0.01)
    assert fifa.fitted_exponent(1e-6, 1e-4)[1] == pytest.approx(0.5, abs=1e-3)


def test_exponents_are_those_in_force() -> None:
    assert fifa.exponents("fifa base red limit 1000") == (0.65, 1.4)
    assert fifa.exponents("fifa base red ecn") == (1.6, 1.4)
    assert fifa.exponents("fifa base pi exponent-robust 1.5 exponent-fragile 2 ecn") == (1.5, 2.0)
    assert fifa.exponents("fifa base pi noscale exponent-robust 1.5") == (0.0, 0.0)
    assert fifa.exponents("sfq limit 120") == (0.0, 0.0)


def test_without_scaling_it_is_the_common_null_model() -> None:
    assert fifa.fifa_null_jain(RTTS, 0.02, 0, 0) == pytest.approx(
        null_model_jain([rtt + 0.02 for rtt in RTTS])
    )


def test_an_exponent_of_2_makes_up_for_any_rtt() -> None:
    assert fifa.fifa_null_jain(RTTS, 0.0, 2, 2) == pytest.approx(1)


def test_a_label_average_of_its_own_shares() -> None:
    """Two flows, R_formula between them: x (R_1 + q) sqrt((F/R_1)^a) is y (R_2 + q) sqrt(...)."""
    near, far = fifa.shares([1.0, 4.0], 0.5, 1.0, 2.0)
    formula = near * 1.0 + far * 4.0
    left = near * (1.0 + 0.5) * formula**0.5
    right = far * (4.0 + 0.5) * (formula / 4.0)
    assert left == pytest.approx(right)
    assert near + far == pytest.approx(1)


# Figures


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_drawn(name: str) -> None:
    model = figure(name)
    assert len(model.series) == sum(len(panel.series) for panel in model.panels)
    for x, y in model.series.values():
        assert x.shape == y.shape and 1 < len(x) <= 1500
        assert np.isfinite(x).all() and np.isfinite(y).all() and np.all(np.diff(x) >= 0)
    drawn = svg(of_model(model), model.note)
    for words in (model.x_label, *(panel.y_label for panel in model.panels)):
        assert words in drawn


def test_measurements_are_drawn_over_the_model() -> None:
    line = (np.array([0.0, 1.0]), np.array([0.0, 2.0]))
    model = ModelFigure("title", "x", (Panel("a", {"one": line}), Panel("b", {"two": line})), "")
    seen = (np.array([0.5]), np.array([1.2]))
    first, second = of_model(model, {"two": seen, "kernel": seen}).axes
    assert [drawn.get_label() for drawn in first.lines] == ["one", "kernel"]
    assert [drawn.get_label() for drawn in second.lines] == ["two", "two, seen"]
    assert second.lines[1].get_color() == second.lines[0].get_color()
