# SPDX-License-Identifier: GPL-2.0-or-later
"""Parameters for a link, by the papers' own theorems, as lines for tc or modprobe."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

from scipy.optimize import brentq

from aqmlab.options import Parser, checked, whole
from aqmlab.scenario import US_PER_S, parse_rate, parse_rtt, parse_seconds, parse_share

from . import lred, pert, rem, xqm

REFUSED = 1  # exit status
COLUMNS = 79
MAX_FLOWS, MAX_PACKETS = 1_000_000, 1_048_576  # the qdiscs' own limits
MIN_PACKET, MAX_PACKET = 64, 65535  # bytes
PPM = 1_000_000
SAMPLING = 170  # Hz, PI's of all papers
# Limits of the options of tc and of the module.
MIN_REAL, MAX_GAMMA = 1e-6, 1.0
MIN_PHI, MAX_PHI = 1.00001, 1000.0
MIN_INTERVAL_S = 1e-5
MAX_SAMPLING = 100_000
MAX_WEIGHT_PPM = 999_999
FINEST = 1e-12  # of a - b: 300 of tc's steps
ROOM = 10  # how far from a limit that must not be met: alpha below 1, b above 0
MARGIN = 2.0  # of the gain, where all delays are counted
SLOW_S = 60.0  # beyond this an average is called slow
T_MIN_S, T_MAX_S, PERT_DECREASE = 0.005, 0.01, 0.35  # PERT's defaults
MAX_T_MAX_S = 2.0
DEFAULTS = {
    "lred": (100, 200),
    "pi": (50, 1000),
    "rem": (20, 120),
    "xqm": (50, 250),
    "pert": (0, 0),
}
"""Target and limit, packets: those of the qdiscs."""


class NoSettingError(Exception):
    """No setting is stable, or can be expressed; the text says why."""


@dataclass(frozen=True)
class Need:
    """What the setting is for: no fewer flows, no longer a round-trip time."""

    rate_bps: int
    flows: int
    rtts_s: tuple[float, ...]  # with the queue at its target
    packet: int  # bytes, as the shaper counts
    target: int  # packets
    limit: int
    loss: float = 0.0  # elsewhere, 0..1
    queue_s: float | None = None  # of PERT at rest

    @property
    def capacity(self) -> float:
        """Packets/s."""
        return self.rate_bps / (8 * self.packet)

    @property
    def network(self) -> lred.Network:
        """(N-, C, R+)."""
        return lred.Network(self.flows, self.capacity, max(self.rtts_s))


@dataclass(frozen=True)
class Row:
    """A number, and what it is."""

    name: str
    value: float
    unit: str
    says: str


@dataclass
class Setting:
    """What to type, and why."""

    words: str  # the qdisc as tc takes it, or the module with its parameters
    rows: list[Row] = field(default_factory=list)
    assumes: list[str] = field(default_factory=list)

    def row(self, name: str, value: float, unit: str, says: str) -> None:
        self.rows.append(Row(name, value, unit, says))


def real(value: float) -> str:
    """A real as tc takes it, and shows it again."""
    return f"{value:.8g}"


def rate(bps: int) -> str:
    """A rate in the largest unit in which it is whole."""
    for unit, size in (("gbit", 10**9), ("mbit", 10**6), ("kbit", 10**3)):
        if bps % size == 0:
            return f"{bps // size}{unit}"
    return f"{bps}bit"


def time(seconds: float) -> str:
    """A time in us, or in ms where it is whole."""
    us = round(seconds * US_PER_S)
    return f"{us}us" if us % 1000 else f"{us // 1000}ms"


def rounded_down(value: float, digits: int = 2) -> float:
    """VALUE, or less, with so many digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return float(f"{math.floor(value / step + 1e-9) * step:.{digits}g}")


def critical(growth: Callable[[float], float]) -> float:
    """How many times the gain is too many: where GROWTH(times), 1/s, becomes positive.

    It is looked for from a thousandth, 0 if it is positive there, to a million.
    """
    low, high = 0.0, 1e-3
    while growth(high) < 0:
        if high > 1e6:
            return high
        low, high = high, 2 * high
    return float(brentq(growth, low, high)) if low else 0.0


def allowed(growth: Callable[[float], float]) -> float:
    """The share of a theorem's gain that all delays leave, with a gain margin of MARGIN; at most 1.

    Raises NoSettingError if no gain is stable.
    """
    limit = critical(growth)
    if not limit:
        raise NoSettingError("no stable setting: with all delays counted no gain is stable")
    return min(1.0, limit / MARGIN)


ALL_DELAYS = (
    "All delays, with a gain margin of 2 or more, for this number of flows and this round-trip"
    " time: the linear equations of TCP's fluid model, LRED's (4) and (5), with the queue in R."
)
FLUID = (
    "Flows are TCP Reno's, long-lived, alike in round-trip time, and never time out; packets are of"
    " one length. More flows and shorter round trips are stable too."
)


def add_check(setting: Setting, growth: Callable[[float], float], gain: str) -> None:
    """How far SETTING is from what all delays allow, by GROWTH, 1/s, at so many times its gain."""
    setting.row("gain margin", critical(growth), "", f"times {gain} until all delays forbid it")
    setting.row("fades in", -1 / growth(1), "s", "a disturbance, to 37 %")
    setting.assumes.append(ALL_DELAYS)


def add_network(setting: Setting, network: lred.Network) -> None:
    """The equilibrium."""
    setting.row("window", network.window, "packets", "of a flow on the longest path")
    setting.row("p0", network.loss_ratio, "", "loss or mark ratio at rest, LRED's (6)")


def tune_lred(need: Need) -> Setting:
    """beta+ of Theorem 2."""
    network = need.network
    try:
        beta_0, lemma_5 = lred.theorem_2(network)
    except ValueError as small:
        raise NoSettingError(
            f"no stable setting: {small}; p0 of (6) would not be below 1"
        ) from None

    def growth(beta: float) -> float:
        return lred.growth(network, beta * network.slope, same=False, fixed_rtt=False)

    bound = min(beta_0, lemma_5)
    beta = rounded_down(bound * allowed(lambda share: growth(share * bound)))
    if beta < MIN_REAL:
        raise NoSettingError(f"no setting: beta would have to be {beta:.2g}, tc's least is 1e-6")
    setting = Setting(f"lred limit {need.limit} target {need.target} beta {real(beta)}")
    add_network(setting, network)
    setting.row("beta_0", beta_0, "", "bound of eq. (31)")
    setting.row("Lemma 5", lemma_5, "", "Theorem 2's other; (2N)^2, as in its proof")
    setting.assumes.append(
        f"Theorem 2: {FLUID} It takes w(t) for w(t - R), a fixed R, and the measured loss ratio for"
        " p0."
    )
    add_check(setting, lambda times: growth(times * beta), "beta")
    return setting


def pi_rule(need: Need) -> tuple[float, float, float]:
    """m and K of PI's design rule, and the share of K that is used.

    Raises NoSettingError where the rule asks for more of a window.
    """
    network = need.network
    if network.window <= 2:
        raise NoSettingError(
            f"no stable setting: windows of {network.window:.2f} packets; PI's design rule needs"
            " more than 2 (N- < R+ C/2)"
        )
    m, gain = lred.pi_gains(network)
    return m, gain, allowed(lambda share: lred.growth_pi(network, share * gain / m, share * gain))


PI_RULE = f"PI's design rule (Hollot and others, 2001; LRED's [12]): {FLUID} It needs N- < R+ C/2."


def tune_pi(need: Need) -> Setting:
    """PI* of LRED's section 6: fifa's base pi without FIFA's scaling."""
    network, (m, gain, share) = need.network, pi_rule(need)
    sampling = max(SAMPLING, math.ceil(ROOM * m / 2))
    a, b = (
        share * one for one in lred.pi_star(need.flows, network.rtt_s, network.capacity, sampling)
    )
    if sampling > MAX_SAMPLING or a - b < FINEST:
        raise NoSettingError(
            f"no setting: PI would need a {a:.3g}, b {b:.3g} and {sampling} Hz, beyond tc's limits"
        )
    setting = Setting(
        f"fifa base pi noscale limit {need.limit} target {need.target}"
        f" a {real(a)} b {real(b)} sampling {sampling}"
    )
    add_network(setting, network)
    add_rule(setting, m, gain, share)
    add_bound(setting, network)
    add_check(
        setting,
        lambda times: lred.growth_pi(network, times * share * gain / m, times * share * gain),
        "a and b",
    )
    return setting


def add_rule(setting: Setting, m: float, gain: float, share: float) -> None:
    """PI's design rule."""
    setting.row("m", m, "1/s", "the controller's zero, TCP's window's pole")
    setting.row("K", gain, "1/s", "by PI's rule: probability a packet and second")
    setting.row("K used", share * gain, "1/s", "the same, but for the gain margin")
    setting.assumes.append(PI_RULE)


def add_bound(setting: Setting, network: lred.Network) -> None:
    """LRED's bound on the response time."""
    bound = lred.response_bound_s(setting.words, network.loss_ratio)
    assert bound
    equation = 40 if setting.words.startswith("rem") else 34
    setting.row("response time", bound, "s", f"to p0 from none, at least: LRED's ({equation})")


def tune_rem(need: Need) -> Setting:
    """Within REM's 2/omega_L, and with the gains of PI's rule, as REM's (4) is PI in the price."""
    network, (m, gain, share) = need.network, pi_rule(need)
    longest_s = min(rem.INTERVAL_S, 1 / (ROOM * m), network.rtt_s / ROOM)
    interval_s = max(MIN_INTERVAL_S, rounded_down(longest_s, 1))
    slope = share * gain / m / (1 - network.loss_ratio)  # gamma ln(phi)
    log_phi = min(max(math.log(rem.PHI), slope / MAX_GAMMA), slope / MIN_REAL)
    if not MIN_PHI <= (phi := float(real(math.exp(log_phi)))) <= MAX_PHI:
        raise NoSettingError(
            f"no setting: gamma ln(phi) would have to be {slope:.2g}, beyond tc's limits"
        )
    gamma = rounded_down(slope / math.log(phi), 3)
    alpha = rounded_down(m * interval_s, 3)
    if alpha < MIN_REAL or gamma < MIN_REAL:
        raise NoSettingError(
            f"no setting: alpha {alpha:.2g} and gamma {gamma:.2g} are below 1e-6, tc's least"
        )
    setting = Setting(
        f"rem limit {need.limit} target {need.target} interval {time(interval_s)}"
        f" alpha {real(alpha)} gamma {real(gamma)} phi {real(phi)} bandwidth {rate(need.rate_bps)}"
    )
    omega = rem.one_link(network.flows, network.capacity, network.rtt_s, interval_s, phi)
    add_network(setting, network)
    setting.row("2/omega_L", rem.greatest_gamma(omega), "", "REM's bound on gamma; alpha below 1")
    add_bound(setting, network)
    setting.assumes.append(
        "2/omega_L: sources answer a price within one interval, which they do not, so it is far too"
        " generous. The gains are therefore PI's by rule: REM's (4) is PI control of the price."
    )
    add_rule(setting, m, gain, share)
    speed = gamma * math.log(phi) * (1 - network.loss_ratio)
    add_check(
        setting,
        lambda times: lred.growth_pi(network, times * speed, times * speed * alpha / interval_s),
        "gamma",
    )
    return setting


def tune_xqm(need: Need) -> Setting:
    """The quiescent loss rate of each round-trip time, eq. (16)."""
    share = need.capacity / need.flows
    if share * min(need.rtts_s) <= 1:
        raise NoSettingError(
            f"no setting: a share of {share:.3g} packets/s is not one packet in"
            f" {1000 * min(need.rtts_s):g} ms, and TCP cannot send less"
        )
    quiescent = {rtt: float(xqm.quiescent_loss(share, rtt)) for rtt in need.rtts_s}
    hide = " hide smooth" if need.loss > min(quiescent.values()) else ""
    setting = Setting(
        f"xqm bandwidth {rate(need.rate_bps)} limit {need.limit} target {need.target}{hide}"
    )
    setting.row("share", share, "1/s", "packets of a flow")
    for rtt, loss_rate in quiescent.items():
        left = loss_rate - need.loss
        setting.row(f"q at {1000 * rtt:g} ms", loss_rate, "", "quiescent loss rate, eq. (16)")
        if need.loss:
            says = "of it left to impose" if left >= 0 else "of losses elsewhere to hide"
            setting.row("", abs(left), "", says)
    setting.assumes.append(
        "Eq. (12): TCP Reno, long-lived, without timeouts; Linux's is 20 to 25 % slower than that."
        " xqm measures each flow's round-trip time and takes the queue to be at its target."
    )
    setting.assumes.append(
        "No theorem: delta and phi are the paper's, by experience. A tenth of both is calmer."
    )
    if hide:
        setting.assumes.append("Hiding acts where the queues downstream have: protect 33.")
    return setting


def tune_pert(need: Need) -> Setting:
    """Theorem 1's condition on the average's weight, with the default thresholds."""
    network = pert.Network(need.capacity, need.flows, max(need.rtts_s))
    response = network.response(PERT_DECREASE)
    if response >= 0.5:
        raise NoSettingError(
            f"no stable setting: windows of {network.window:.2f} packets would need a response to"
            f" {100 * response:.0f} % of all ACKs, and pmax should be twice that"
        )
    p_max, t_max_s = max(0.05, 2 * response), T_MAX_S
    if need.queue_s is not None:
        p_max, t_max_s = 2 * response, 2 * need.queue_s - T_MIN_S
    p_max, t_max_s = math.ceil(p_max * PPM) / PPM, round(t_max_s * US_PER_S) / US_PER_S
    sampling_s = need.flows / need.capacity
    curve = pert.Curve(T_MIN_S, t_max_s, p_max, 0.99, sampling_s)
    least_s = pert.least_sampling(network, curve)
    if least_s > sampling_s:
        # (13) the other way round: ln(weight) in proportion to the interval that there is
        ppm = math.ceil(PPM * curve.weight ** (sampling_s / least_s))
        if ppm > MAX_WEIGHT_PPM:
            raise NoSettingError(
                "no stable setting: Theorem 1 asks for a weight beyond 0.999999; a longer --queue"
                " would help"
            )
        curve = replace(curve, weight=ppm / PPM)
    setting = Setting(
        f"tcp_pert tmin={T_MIN_S * US_PER_S:.0f} tmax={t_max_s * US_PER_S:.0f}"
        f" pmax={p_max * PPM:.0f} weight={curve.weight * PPM:.0f}"
    )
    setting.row("window", network.window, "packets", "of a flow on the longest path, eq. (9)")
    setting.row("p*", response, "", "responses an ACK at rest; decrease .35")
    setting.row("queue", 1000 * curve.delay(response), "ms", "at rest, eq. (4); part of --rtt")
    setting.row("delta", 1000 * sampling_s, "ms", "between two ACKs of a flow")
    setting.row("least delta", 1000 * least_s, "ms", "eq. (13), with a weight of .99")
    setting.row("Theorem 1", pert.theorem_1(network, curve), "", "times within its bound (11)")
    setting.row("averages over", -1 / curve.forgetting, "s", "time constant of the average")
    setting.assumes.append(
        f"Theorem 1: {FLUID} It takes W(t) for W(t - R) and a decrease of .5; PERT's is .35, which"
        " is calmer. Each packet has an ACK; one for two doubles delta, which is calmer too."
    )
    growth = pert.growth(network, curve, PERT_DECREASE, fixed_rtt=False)
    if growth >= 0:
        raise NoSettingError(
            f"no stable setting: what Theorem 1 allows, {setting.words}, grows by {growth:.2g}/s"
            " when all delays are counted"
        )
    setting.row("fades in", -1 / growth, "s", "a disturbance, to 37 %")
    setting.assumes.append(
        "All delays, for this number of flows and this round-trip time: the linear equations of"
        " (2)-(7), with the queue in R."
    )
    setting.assumes.append(
        f"All senders on the link use pert, and its buffer holds {2000 * t_max_s:.3g} ms and more."
    )
    if -1 / curve.forgetting > SLOW_S:
        setting.assumes.append(
            "So slow an average helps a steady load only; a longer --queue makes it faster."
        )
    return setting


SCHEMES: dict[str, Callable[[Need], Setting]] = {
    "lred": tune_lred,
    "pi": tune_pi,
    "rem": tune_rem,
    "xqm": tune_xqm,
    "pert": tune_pert,
}


def commands(scheme: str, setting: Setting, device: str) -> list[str]:
    """What to type as root."""
    if scheme == "pert":
        parameters = (word.split("=") for word in setting.words.split()[1:])
        return [
            f"modprobe {setting.words}",
            "sysctl net.ipv4.tcp_congestion_control=pert",
            *(
                f"echo {value} > /sys/module/tcp_pert/parameters/{name}"
                for name, value in parameters
            ),
        ]
    return [f"tc qdisc replace dev {device} root {setting.words}"]


def shown(scheme: str, need: Need, setting: Setting, device: str) -> str:
    """Words for people, within COLUMNS."""
    typed = commands(scheme, setting, device)
    lines = [*folded(typed[0]), *typed[1:2]]
    if scheme == "pert":
        lines += ["", "Where the module is loaded already:", *typed[2:]]
    times = ", ".join(f"{1000 * rtt:g}" for rtt in need.rtts_s)
    lines += ["", *textwrap.wrap(
        f"For {rate(need.rate_bps)} in packets of {need.packet} bytes, {need.capacity:.6g}/s;"
        f" {need.flows} flows or more; round trips of {times} ms, the queue with its target"
        " included.", COLUMNS,
    ), ""]  # fmt: skip
    for row in setting.rows:
        value = f"{row.value:.4g} {row.unit}".rstrip()
        lines.append(f"  {row.name:<14} {value:<16} {row.says}".rstrip())
    lines += ["", "Assumed:"]
    for words in setting.assumes:
        lines += textwrap.wrap(
            words, COLUMNS, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False
        )
    return "\n".join(lines)


def folded(command: str) -> list[str]:
    """A command on as many lines as it needs, to be pasted into a shell."""
    tied = re.sub(r" (?=\d)", "\0", command)  # a number stays with its option
    lines = [
        line.replace("\0", " ")
        for line in textwrap.wrap(
            tied, COLUMNS - 2, subsequent_indent="    ", break_on_hyphens=False
        )
    ]
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def times(text: str) -> tuple[float, ...]:
    """Seconds of '80ms' or of each of '24ms,176ms'; of '24ms:176ms' the ends."""
    return tuple(us / US_PER_S for us in parse_rtt(text).values)


def arguments(argv: Sequence[str] | None) -> tuple[argparse.Namespace, Need]:
    """The command line."""
    parser = Parser(__doc__)
    parser.prog = "aqm-tune"
    add = parser.add_argument
    add("scheme", choices=SCHEMES, help="what to tune")
    add("--rate", required=True, type=checked(parse_rate), help="of the link: 10mbit")
    add(
        "--flows", required=True, type=whole(1, MAX_FLOWS), metavar="N", help="the fewest there are"
    )
    add(
        "--rtt",
        required=True,
        type=checked(times),
        help="round trips, the longest too, with the queue at its target: 350ms or 24ms,176ms",
    )
    add(
        "--packet",
        type=whole(MIN_PACKET, MAX_PACKET),
        default=1500,
        metavar="BYTES",
        help="length of a packet as the shaper counts it (%(default)s)",
    )
    add("--target", type=whole(1, MAX_PACKETS), metavar="PACKETS", help="of the queue")
    add("--limit", type=whole(2, MAX_PACKETS), metavar="PACKETS", help="what the queue holds")
    add("--loss", type=checked(parse_share), default=0.0, help="xqm: losses elsewhere: 1%%")
    add("--queue", type=checked(parse_seconds), help="pert: the queueing delay at rest: 20ms (6ms)")
    add("--dev", default="eth0", help="device in the line printed (%(default)s)")
    add("--json", action="store_true", help="print one line of JSON")
    args = parser.parse_args(argv)
    for name in ("target", "limit"):
        if args.scheme == "pert" and getattr(args, name):
            parser.error(f"--{name}: pert has no queue of its own")
    if args.loss and args.scheme != "xqm":
        parser.error("--loss: goes with xqm only")
    if args.queue is not None:
        if args.scheme != "pert":
            parser.error("--queue: goes with pert only")
        if not T_MIN_S < args.queue <= MAX_T_MAX_S / 2:
            parser.error("--queue: more than 5ms, at most 1s")
    target, limit = DEFAULTS[args.scheme]
    target = args.target or target
    limit = args.limit or max(limit, min(2 * target, MAX_PACKETS))
    if target >= limit and args.scheme != "pert":
        parser.error(f"--target: {target} packets are not below --limit, {limit}")
    link = (args.rate, args.flows, args.rtt, args.packet)
    return args, Need(*link, target, limit, args.loss, args.queue)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; its exit status: 0, 1 where no setting is stable, 2 for a wrong option."""
    args, need = arguments(argv)
    try:
        setting = SCHEMES[args.scheme](need)
    except NoSettingError as refused:
        print(f"aqm-tune: {refused}.", file=sys.stderr)
        return REFUSED
    if args.json:
        typed = commands(args.scheme, setting, args.dev)
        print(json.dumps({"scheme": args.scheme, "commands": typed} | asdict(setting)))
    else:
        print(shown(args.scheme, need, setting, args.dev))
    return 0
