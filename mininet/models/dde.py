# SPDX-License-Identifier: GPL-2.0-or-later
"""Delay equations as the papers have them: y' = g - k y, with g and k of a delay ago.

All fluid models here are of that form, if need be for the square of a rate. With g and k held at
what they are in the middle of a step, a step is exact: a rate cannot become negative, however steep
its equation is where it is small, and the error goes with the square of the step. Tests halve it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import exprel

Numbers = npt.NDArray[np.float64]


def relax(value: Numbers, gain: Numbers, decay: Numbers, step_s: float) -> Numbers:
    """y after a step of y' = GAIN - DECAY y from VALUE; GAIN per s, DECAY 1/s of any sign."""
    exponent = -step_s * np.asarray(decay)
    result: Numbers = value * np.exp(exponent) + step_s * gain * exprel(exponent)
    return result


class Past:
    """What some quantities were at instants STEP_S apart: FIRST until time 0, then what is added.

    Between two instants, and up to a step after the last, it is on the line through them.
    """

    def __init__(self, first: Numbers, steps: int, step_s: float) -> None:
        self.step_s = step_s
        self.values = np.empty((steps + 2, len(first)))
        self.values[:2] = first  # at -step_s and at 0
        self.last = 1

    def add(self, values: Numbers) -> None:
        """One step on."""
        self.last += 1
        self.values[self.last] = values

    @property
    def times_s(self) -> Numbers:
        """The instants, from 0 on."""
        return np.linspace(0, (self.last - 1) * self.step_s, self.last)

    def at(self, when_s: Numbers, columns: npt.NDArray[np.int64]) -> Numbers:
        """Quantity COLUMNS[i] at time WHEN_S[i], in s."""
        position = np.maximum(when_s * (1 / self.step_s) + 1, 0)
        before = np.minimum(position.astype(np.int64), self.last - 1)
        share = position - before
        index = before * self.values.shape[1] + columns
        flat = self.values.reshape(-1)
        low = flat[index]
        return low + share * (flat[index + self.values.shape[1]] - low)


def abscissa(now: Numbers, then: Numbers, delay_s: float, nodes: int = 16) -> float:
    """Largest real part, 1/s, of the roots of z' = NOW z(t) + THEN z(t - DELAY_S).

    Negative: stable, disturbances fade as e^(abscissa t); the sign changes where a Nyquist plot
    goes through -1. The eigenvalues of the equation on NODES + 1 Chebyshev points of a delay
    (Breda, Maset, Vermiglio 2005), right to six digits and more in the roots furthest to the right
    (tested; more NODES are slow).
    """
    angles = np.cos(np.pi * np.arange(nodes + 1) / nodes)
    ends = np.where((np.arange(nodes + 1) % nodes) == 0, 2.0, 1.0) * (-1.0) ** np.arange(nodes + 1)
    apart = angles[:, None] - angles[None, :] + np.eye(nodes + 1)
    derive = np.outer(ends, 1 / ends) / apart
    derive -= np.diag(derive.sum(axis=1))
    size = len(now)
    whole = np.kron(derive * 2 / delay_s, np.eye(size))
    whole[:size] = 0
    whole[:size, :size] = now
    whole[:size, -size:] = then
    return float(np.linalg.eigvals(whole).real.max())
