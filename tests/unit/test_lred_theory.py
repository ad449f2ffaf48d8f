# SPDX-License-Identifier: GPL-2.0-or-later
"""What LRED's paper says of its rivals, against the numbers that it prints."""

import pytest

from lred_theory import pi_star, response_bound_s

PI = "fifa base pi noscale limit 200 target 100"
REM = "rem limit 200 target 100 bandwidth 10mbit"


def test_check_values_of_the_bounds() -> None:
    """At a loss ratio of .165: PI, eq. (34), 162 s; REM, eq. (40), 33 s."""
    assert response_bound_s(PI, 0.165) == pytest.approx(161.8, abs=0.05)
    assert response_bound_s(REM, 0.165) == pytest.approx(33.0, abs=0.05)


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
    of_defaults = response_bound_s(PI if "pi" in qdisc else REM, 0.1)
    assert of_defaults
    assert response_bound_s(qdisc, 0.1) == pytest.approx(of_defaults * times)


def test_others_have_no_bound() -> None:
    for qdisc in ("lred", "fifa base red noscale", "fifa base pi limit 200", "pfifo limit 200"):
        assert response_bound_s(qdisc, 0.1) is None


def test_check_values_of_pi_star() -> None:
    """For N = 100, R = 0.45 s, C = 2500/s: a 2.857e-5, b 2.850e-5."""
    a, b = pi_star(100, 0.45, 2500)
    assert a == pytest.approx(2.857e-5, abs=5e-9) and b == pytest.approx(2.850e-5, abs=5e-9)
