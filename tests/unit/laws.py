# SPDX-License-Identifier: GPL-2.0-or-later
"""The control laws of include/aqm, compiled for user space and callable."""

import ctypes
import functools
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).parent
PROB_ONE = 1 << 32
REAL_ONE = 1 << 48
PRICE_ONE = 1 << 40

U32s = npt.NDArray[np.uint32]
U64s = npt.NDArray[np.uint64]


@functools.cache
def library() -> ctypes.CDLL:
    """The laws with undefined behaviour made a crash."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "laws.so")
        subprocess.run(
            ["cc", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Wno-sign-compare", "-Werror"]
            + ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
            + ["-fPIC", "-shared", "-lm"]
            + ["-iquote", str(HERE), "-I", str(HERE.parent.parent / "include")]
            + ["-o", str(path), str(HERE / "laws.c")],
            check=True,
        )
        lib = ctypes.CDLL(str(path))
    lib.fixed_mul.restype = ctypes.c_uint64
    lib.fixed_smul.restype = ctypes.c_int64
    of_u64 = (
        "rem_probability", "rem_price_max", "lred_ratio_after", "fifa_scaled", "pert_curve",
        "xqm_quiescent_rate", "xqm_probability", "xqm_hidden",
    )  # fmt: skip
    for function in of_u64:
        getattr(lib, function).restype = ctypes.c_uint64
    lib.xqm_since.restype = ctypes.c_uint32
    return lib


def u64(value: int) -> Any:
    return ctypes.c_uint64(value)


def pointer(array: npt.NDArray[Any]) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p)


def mul(a: int, b: int, shift: int) -> int:
    """aqm_mul()."""
    return int(library().fixed_mul(u64(a), u64(b), shift))


def smul(a: int, b: int, shift: int) -> int:
    """aqm_smul()."""
    return int(library().fixed_smul(ctypes.c_int64(a), u64(b), shift))


def _map(function: str, x: npt.NDArray[np.uint64 | np.int64]) -> U64s:
    out = np.empty(len(x), dtype=np.uint64)
    getattr(library(), function)(ctypes.c_size_t(len(x)), pointer(x), pointer(out))
    return out


log2 = functools.partial(_map, "fixed_log2")
exp2 = functools.partial(_map, "fixed_exp2")


def dice_first(throw: U64s, part: U64s, whole: U64s) -> U64s:
    """For each throw: the first packet that is hit; each has its part / whole (both Q32)."""
    first = np.empty_like(throw)
    library().dice_first(
        ctypes.c_size_t(len(throw)), pointer(throw), ctypes.c_size_t(len(part)),
        pointer(part), pointer(whole), pointer(first),
    )  # fmt: skip
    return first


class RemConfig(ctypes.Structure):
    """struct rem_config."""

    _fields_ = [
        ("measure", ctypes.c_int),
        ("target", ctypes.c_uint32),
        ("interval", ctypes.c_uint64),
        ("alpha", ctypes.c_uint64),
        ("gamma", ctypes.c_uint64),
        ("phi", ctypes.c_uint64),
    ]


def rem_probability(config: RemConfig, price: int) -> int:
    """m(p), eq. (3): Q32 for a price in Q40."""
    return int(library().rem_probability(ctypes.byref(config), u64(price)))


def rem_price_max(config: RemConfig) -> int:
    """Where the price stops rising, Q40."""
    return int(library().rem_price_max(ctypes.byref(config)))


def rem_history(
    config: RemConfig,
    unit: int,
    capacity: int,
    send_time: int,
    time: npt.NDArray[np.uint64],
    units: npt.NDArray[np.int64],
    eager: bool = False,
) -> tuple[U64s, U64s]:
    """Price (Q40) and probability (Q32) before each of a queue's events."""
    price = np.empty_like(time)
    probability = np.empty_like(time)
    library().rem_history(
        ctypes.byref(config), unit, u64(capacity), u64(send_time), eager,
        ctypes.c_size_t(len(time)), pointer(time), pointer(units),
        pointer(price), pointer(probability),
    )  # fmt: skip
    return price, probability


class LredConfig(ctypes.Structure):
    """struct lred_config."""

    _fields_ = [
        ("target", ctypes.c_uint32),
        ("periods", ctypes.c_uint32),
        ("period", ctypes.c_uint64),
        ("beta", ctypes.c_uint64),
        ("weight", ctypes.c_uint64),
    ]


def lred_ratio_after(config: LredConfig, arrived: int, lost: int) -> int:
    """The averaged loss ratio, Q48, after one period with these counts."""
    return int(library().lred_ratio_after(ctypes.byref(config), u64(arrived), u64(lost)))


def lred_history(
    config: LredConfig,
    unit: int,
    time: U64s,
    backlog: U64s,
    lost: npt.NDArray[np.bool_],
    eager: bool = False,
) -> tuple[U64s, U64s]:
    """Averaged loss ratio (Q48) and probability (Q32) at each arrival."""
    ratio = np.empty_like(time)
    probability = np.empty_like(time)
    library().lred_history(
        ctypes.byref(config), unit, eager, ctypes.c_size_t(len(time)), pointer(time),
        pointer(backlog), pointer(lost), pointer(ratio), pointer(probability),
    )  # fmt: skip
    return ratio, probability


class PiConfig(ctypes.Structure):
    """struct pi_config."""

    _fields_ = [
        ("target", ctypes.c_uint32),
        ("interval", ctypes.c_uint64),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    ]


def pi_history(config: PiConfig, unit: int, time: U64s, backlog: U64s, eager: bool = False) -> U64s:
    """Probability (Q48) before each change of the queue."""
    probability = np.empty_like(time)
    library().pi_history(
        ctypes.byref(config), unit, eager, ctypes.c_size_t(len(time)),
        pointer(time), pointer(backlog), pointer(probability),
    )  # fmt: skip
    return probability


class RedConfig(ctypes.Structure):
    """struct red_config."""

    _fields_ = [
        ("min", ctypes.c_uint32),
        ("max", ctypes.c_uint32),
        ("probability", ctypes.c_uint64),
        ("weight", ctypes.c_uint64),
        ("gentle", ctypes.c_bool),
        ("wait", ctypes.c_bool),
    ]


def red_history(
    config: RedConfig,
    unit: int,
    send_time: int,
    time: U64s,
    backlog: U64s,
    idle_from: U64s,
    random: npt.NDArray[np.uint32],
) -> tuple[U64s, U64s]:
    """Average (Q24 units) and probability after the count (Q32) at each arrival."""
    avg = np.empty_like(time)
    probability = np.empty_like(time)
    library().red_history(
        ctypes.byref(config), unit, u64(send_time), ctypes.c_size_t(len(time)), pointer(time),
        pointer(backlog), pointer(idle_from), pointer(random), pointer(avg), pointer(probability),
    )  # fmt: skip
    return avg, probability


class FifaParams(ctypes.Structure):
    """struct fifa_params."""

    _fields_ = [
        ("robust", ctypes.c_uint64 * 2),
        ("fragile", ctypes.c_uint64 * 2),
        ("rtt_min", ctypes.c_uint16),
        ("rtt_max", ctypes.c_uint16),
        ("rtt_weight", ctypes.c_uint64),
    ]


def fifa_history(
    params: FifaParams, time: U64s, label: npt.NDArray[np.uint16]
) -> tuple[U64s, U64s]:
    """R_average and R_formula, both Q32 of 0.1 ms, after each labelled packet."""
    average = np.empty_like(time)
    formula = np.empty_like(time)
    library().fifa_history(
        ctypes.byref(params), ctypes.c_size_t(len(time)), pointer(time), pointer(label),
        pointer(average), pointer(formula),
    )  # fmt: skip
    return average, formula


def fifa_scaled(params: FifaParams, formula: int, probability: int, label: int, mark: bool) -> int:
    """The scaled probability (Q32) of a packet; R_formula in Q32."""
    return int(
        library().fifa_scaled(
            ctypes.byref(params), u64(formula), u64(probability), ctypes.c_uint16(label), mark
        )
    )


class PertParams(ctypes.Structure):
    """struct pert_params."""

    _fields_ = [
        ("min", ctypes.c_uint32),
        ("max", ctypes.c_uint32),
        ("probability", ctypes.c_uint64),
        ("weight", ctypes.c_uint64),
        ("time_constant", ctypes.c_uint32),
        ("window", ctypes.c_uint32),
    ]


class PertPiConfig(ctypes.Structure):
    """struct pert_pi_config."""

    _fields_ = [
        ("target", ctypes.c_uint32),
        ("proportional", ctypes.c_uint32),
        ("integral", ctypes.c_uint32),
        ("sampling", ctypes.c_uint32),
    ]


def pert_curve(params: PertParams, delay: int) -> int:
    """The probability, Q32, for a queueing delay in Q24 us."""
    return int(library().pert_curve(ctypes.byref(params), u64(delay)))


@dataclass(frozen=True)
class PertHistory:
    """After each ACK: S (Q24 us), P (us), and the queueing delay (Q24 us)."""

    average: U64s
    base: U32s
    delay: U64s


def pert_history(
    params: PertParams, time: U64s, rtt: U32s, clock: U32s | None = None
) -> PertHistory:
    """What a sender has measured after each ACK; the way there only, if a clock is given."""
    found = PertHistory(np.empty_like(time), np.empty_like(rtt), np.empty_like(time))
    library().pert_history(
        ctypes.byref(params), clock is not None, ctypes.c_size_t(len(time)), pointer(time),
        pointer(rtt), pointer(rtt if clock is None else clock),
        pointer(found.average), pointer(found.base), pointer(found.delay),
    )  # fmt: skip
    return found


class XqmConfig(ctypes.Structure):
    """struct xqm_config."""

    _fields_ = [
        ("control", ctypes.c_int),
        ("smooth", ctypes.c_bool),
        ("target", ctypes.c_uint32),
        ("control_period", ctypes.c_uint64),
        ("measure_period", ctypes.c_uint64),
        ("delta", ctypes.c_uint64),
        ("phi", ctypes.c_uint64),
    ]


class XqmKind(ctypes.Structure):
    """struct xqm_kind."""

    _fields_ = [
        ("rtt", ctypes.c_uint64),
        ("weight", ctypes.c_uint32),
        ("responsive", ctypes.c_bool),
    ]


@dataclass(frozen=True)
class XqmHistory:
    """What each packet's flow has: rates of loss in Q48, packets a second in Q8."""

    rate: npt.NDArray[np.int64]
    quiescent: U64s
    throughput: U64s
    share: U64s
    present: U64s


def xqm_history(
    config: XqmConfig,
    link: int,
    kinds: list[XqmKind],
    time: U64s,
    flow: npt.NDArray[np.int32],
    backlog: U64s,
    eager: bool = False,
) -> XqmHistory:
    """At `time` a packet of `flow` comes, and the queue then has `backlog`; `link` is in Q8."""
    found = XqmHistory(
        np.zeros(len(time), dtype=np.int64), *(np.zeros_like(time) for _ in range(4))
    )
    library().xqm_history(
        ctypes.byref(config), u64(link), ctypes.c_size_t(len(kinds)),
        (XqmKind * len(kinds))(*kinds), eager, ctypes.c_size_t(len(time)), pointer(time),
        pointer(flow), pointer(backlog), pointer(found.rate), pointer(found.quiescent),
        pointer(found.throughput), pointer(found.share), pointer(found.present),
    )  # fmt: skip
    return found


def pert_delayed(acked: list[int]) -> list[bool]:
    """Which ACKs for so many segments each are taken for delayed ones."""
    delayed = np.empty(len(acked), dtype=np.bool_)
    library().pert_delayed(
        ctypes.c_size_t(len(acked)), pointer(np.array(acked, dtype=np.uint32)), pointer(delayed)
    )
    return [bool(one) for one in delayed]


def pert_pi_gains(config: PertPiConfig) -> tuple[int, int]:
    """Gamma and beta, Q60 a us."""
    gamma, beta = ctypes.c_uint64(), ctypes.c_uint64()
    library().pert_pi_gains(ctypes.byref(config), ctypes.byref(gamma), ctypes.byref(beta))
    return gamma.value, beta.value


def pert_pi_history(config: PertPiConfig, time: U64s, delay: U64s) -> U64s:
    """Probability (Q48) at each ACK; times in us, delays in Q24 us."""
    probability = np.empty_like(time)
    library().pert_pi_history(
        ctypes.byref(config), ctypes.c_size_t(len(time)), pointer(time), pointer(delay),
        pointer(probability),
    )  # fmt: skip
    return probability


def pert_pauses(
    spacing: int,
    una: U32s,
    following: U32s,
    time: U32s,
    certain: npt.NDArray[np.bool_],
    coexist: bool = False,
) -> list[int]:
    """Which ACKs a sender responds to that may respond to each."""
    responded = np.empty(len(una), dtype=np.bool_)
    library().pert_pauses(
        spacing, coexist, ctypes.c_size_t(len(una)), pointer(una), pointer(following),
        pointer(time), pointer(certain), pointer(responded),
    )  # fmt: skip
    return [int(index) for index in np.flatnonzero(responded)]


def pert_window(window: int, decrease: float) -> int:
    """The window after an early response."""
    return int(library().pert_window(window, u64(round(decrease * PROB_ONE))))


def xqm_quiescent(share: int, rtt: int) -> int:
    """Eq. (16): Q48 for packets a second in Q8 and ns."""
    return int(library().xqm_quiescent_rate(u64(share), u64(rtt)))


def xqm_probability(rate: int, since: int) -> int:
    """Eq. (17): Q32."""
    return int(library().xqm_probability(ctypes.c_int64(rate), ctypes.c_uint32(since)))


def xqm_hidden(smooth: bool, responsive: bool, rate: int, quiescent: int) -> int:
    """What share of the packets is hidden: Q32."""
    return int(library().xqm_hidden(smooth, responsive, ctypes.c_int64(rate), u64(quiescent)))


def xqm_since(rate: int, since: int, packets: int, lost: bool) -> int:
    """The packet count k after so many more."""
    return int(
        library().xqm_since(
            ctypes.c_int64(rate), ctypes.c_uint32(since), ctypes.c_uint32(packets), lost
        )
    )
