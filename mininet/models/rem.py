# SPDX-License-Identifier: GPL-2.0-or-later
"""REM's stability: section 3 of the paper, the difference equations (1), (2), (7), (8).

In them sources answer a price within the period in which it was set. The paper leaves the length of
a period open; its simulations, and the qdisc, set the price every 2 ms, which is far shorter than a
round trip. Rates here are in packets a period, so a length must be chosen: figures show both.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .dde import Numbers
from .figure import ModelFigure, Panel

PHI, ALPHA, GAMMA, TARGET = 1.001, 0.1, 0.001, 20.0  # of section 4; the target in packets
INTERVAL_S = 0.002  # the qdisc's


def marking(price: npt.ArrayLike, phi: float = PHI) -> Numbers:
    """Probability at a price, or a path's sum of prices: eq. (3)."""
    return np.asarray(-np.expm1(-np.asarray(price) * math.log(phi)))


def reno_rate(price: npt.ArrayLike, rtt: float, phi: float = PHI) -> Numbers:
    """Packets a period of Reno at a path's price, (U')^-1 of (8); RTT in periods.

    The paper leaves U open. This is x = sqrt(2 (1 - m)/m)/r, m by (3): XQM's eq. (12), and that of
    the paper's [10].
    """
    return np.asarray(np.sqrt(2 / np.expm1(np.asarray(price) * math.log(phi))) / rtt)


def reno_price(rate: npt.ArrayLike, rtt: float, phi: float = PHI) -> Numbers:
    """The price at which Reno sends RATE packets a period, U'(x); RTT in periods."""
    return np.asarray(np.log1p(2 / np.multiply(rate, rtt) ** 2) / math.log(phi))


def reno_beta(rate: npt.ArrayLike, rtt: float, phi: float = PHI) -> Numbers:
    """beta_s = -1/U''(x), packets a period for each unit of price: what stands in B."""
    return np.asarray(np.asarray(rate) * math.log(phi) / 2 * (np.multiply(rate, rtt) ** 2 / 2 + 1))


def largest_eigenvalue(routing: npt.ArrayLike, betas: npt.ArrayLike) -> float:
    """omega_L of A B A^T. ROUTING: A, a row for each link, a column for each source.

    Raises ValueError if the rank of A is not its number of links, as the theorem asks.
    """
    links = np.atleast_2d(np.asarray(routing, float))
    if np.linalg.matrix_rank(links) < len(links):
        raise ValueError("the routing matrix must have as many independent rows as links")
    return float(np.linalg.eigvalsh(links * np.asarray(betas) @ links.T)[-1])


def greatest_gamma(omega: float) -> float:
    """2/omega_L: up to it, with 0 < alpha < 1, the theorem's proof holds."""
    return 2 / omega


def exact_gamma(omega: float, alpha: float = ALPHA) -> float:
    """gamma at which the equations do become unstable, with 0 < alpha < 1: 4/((2 - alpha) omega_L).

    The characteristic equation's root is at -1 there; the paper's bound is sufficient only.
    """
    return 4 / ((2 - alpha) * omega)


def spectral_radius(
    routing: npt.ArrayLike, betas: npt.ArrayLike, alpha: float, gamma: float
) -> float:
    """That of the matrix Q of the linear part: stable if below 1."""
    links = np.atleast_2d(np.asarray(routing, float))
    gains = links * np.asarray(betas) @ links.T
    one = np.eye(len(links))
    whole = np.block([[one - gamma * gains, gamma * alpha * one], [-gains, one]])
    return float(np.abs(np.linalg.eigvals(whole)).max())


def one_link(
    flows: float, capacity: float, rtt_s: float, period_s: float, phi: float = PHI
) -> float:
    """omega_L of one link: FLOWS share CAPACITY packets/s; RTT_S with the queue at its target."""
    rate = capacity * period_s / flows
    return flows * float(reno_beta(rate, rtt_s / period_s, phi))


def iterate(
    flows: float,
    capacity: float,
    rtt: float,
    gamma: float,
    alpha: float = ALPHA,
    target: float = TARGET,
    periods: int = 1000,
    off: float = 1.01,
) -> tuple[Numbers, Numbers]:
    """Prices and queues, in packets, of (1), (2), (8) at one link, from OFF times that at rest.

    CAPACITY in packets a period, RTT in periods.
    """
    price = off * float(reno_price(capacity / flows, rtt))
    queue, prices, queues = target, [], []
    for _ in range(periods):
        prices.append(price)
        queues.append(queue)
        surplus = flows * float(reno_rate(price, rtt)) - capacity if price > 0 else capacity
        price = max(0.0, price + gamma * (alpha * (queue - target) + surplus))  # (2)
        queue = max(0.0, queue + surplus)  # (1)
    return np.array(prices), np.array(queues)


def stability() -> ModelFigure:
    """The bound on gamma against the flows on the paper's link: 8000 packets/s, 80 ms, b* 20."""
    flows = np.arange(20, 321, 5).astype(float)
    rtt_s = 0.08 + TARGET / 8000
    bounds = {
        f"2/omega_L, periods of {words}": (
            flows,
            np.array([greatest_gamma(one_link(n, 8000, rtt_s, period_s)) for n in flows]),
        )
        for words, period_s in (("2 ms", INTERVAL_S), ("a round trip", rtt_s))
    }
    paper = (flows, np.full_like(flows, GAMMA))
    return ModelFigure(
        "REM's stability: gamma must be below",
        "flows",
        (Panel("gamma", bounds | {"the paper's gamma": paper}, log_y=True),),
        "The paper has no such figure. Its gamma is within the bound; its alpha, 0.1 in 2 ms, is 4"
        " in a round trip, where the theorem asks for less than 1.",
    )
