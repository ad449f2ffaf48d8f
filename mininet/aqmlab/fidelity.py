# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a run can be trusted, and if not, why. No I/O here: inspection.py looks.

An emulated network lies in well-known ways: packets joined by offloads, delay lines that
overflow, a shaper that cannot keep its rate, losses that nobody asked for. Each function
returns the reasons it finds, as sentences.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .metrics import BITS, Counters, QueueSample, Reading
from .scenario import NS_PER_S, Queue, Scenario

WINDOW_FRAMES = 100  # packets' time over which the shaper is held to its rate: 1 % a packet
WINDOW_SHARE = 0.1  # of the windows: those with the longest queues
MIN_WINDOWS = 10
MIN_QUEUE = 3  # packets at every sample: it will not have been empty in between
RATE_TOLERANCE = 0.01
SAMPLES_SHARE = 0.99  # of the samples that must have been taken
LIMITED_SHARE = 0.01  # of their time that flows may be held back by buffers at either end
SIGMAS = 6.0  # a loss further off than this is no accident


@dataclass(frozen=True)
class LineState:
    """A delay line or a lossy one: packets since it was made."""

    lossy: bool  # whether it is to lose any
    came: int = 0
    lost: int = 0
    expected: float = 0.0  # losses, by the shares it was asked for as they came
    variance: float = 0.0  # of these


NO_LINE = LineState(lossy=False)


@dataclass(frozen=True)
class DeviceState:
    """One device: its settings, and counts since it was made."""

    name: str
    offloads: tuple[str, ...]  # those that are on
    max_segments: int  # TCP may join into one packet
    sent: int  # packets
    received: int
    dropped: int  # by the device, either way
    line: LineState = NO_LINE  # the netem on it

    @property
    def line_drops(self) -> int:
        """By the netem on it."""
        return self.line.lost


@dataclass(frozen=True)
class Inspection:
    """Devices by name, and the losses that each node's IP and TCP counted, by counter."""

    devices: dict[str, DeviceState]
    stack_losses: dict[str, dict[str, int]]


def shaper_ratio(samples: Sequence[QueueSample], rate_bps: int, frame_bytes: int) -> float | None:
    """Bytes that left over what the rate allows, in windows in which packets always waited.

    That a queue holds packets at each end of 10 ms does not show that it held some all the
    time, so only the windows with the longest queues count. None: no such windows.
    """
    frame_ns = frame_bytes * BITS * NS_PER_S / rate_bps
    windows = []
    first = 0
    for last, sample in enumerate(samples):
        if sample.packets < MIN_QUEUE:
            first = last + 1
        elif sample.time_ns - samples[first].time_ns >= WINDOW_FRAMES * frame_ns:
            shortest = min(s.packets for s in samples[first : last + 1])
            windows.append((shortest, samples[first], sample))
            first = last
    windows.sort(key=lambda window: window[0], reverse=True)
    best = windows[: max(MIN_WINDOWS, math.ceil(len(windows) * WINDOW_SHARE))]
    if len(best) < MIN_WINDOWS:
        return None
    sent = sum(b.sent_bytes - a.sent_bytes for _, a, b in best)
    elapsed_ns = sum(b.time_ns - a.time_ns for _, a, b in best)
    return sent * BITS * NS_PER_S / (rate_bps * elapsed_ns)


def check_shaper(
    device: str, samples: Sequence[QueueSample], queue: Queue, frame_bytes: int
) -> list[str]:
    """The link's rate while packets wait."""
    found = shaper_ratio(samples, queue.link.rate_bps, frame_bytes)
    if found is None or abs(found - 1) <= RATE_TOLERANCE:
        return []
    return [f"the shaper of {device} delivered {found:.1%} of its rate while packets waited"]


def check_samples(samples: Sequence[QueueSample], expected: int) -> list[str]:
    """That the sampler kept up."""
    if len(samples) >= SAMPLES_SHARE * expected:
        return []
    return [f"only {len(samples)} of {expected} queue samples were taken: the machine is too slow"]


def check_devices(before: Inspection, after: Inspection) -> list[str]:
    """Offloads, delay lines and losses of every device."""
    reasons = []
    for name, device in after.devices.items():
        was = before.devices[name]
        if device.offloads:
            reasons.append(f"{name} had offloads on: {', '.join(device.offloads)}")
        if device.max_segments != 1:
            reasons.append(f"{name} let TCP join up to {device.max_segments} segments")
        if device.dropped > was.dropped:
            reasons.append(f"{name} dropped {device.dropped - was.dropped} packets")
        lost = device.line_drops - was.line_drops
        if not device.line.lossy:
            if lost:
                reasons.append(f"the delay line of {name} dropped {lost} packets")
            continue
        came = device.line.came - was.line.came
        expected = device.line.expected - was.line.expected
        variance = device.line.variance - was.line.variance
        if abs(lost - expected) > SIGMAS * math.sqrt(variance) + 1:
            share = expected / came
            reasons.append(f"{name} lost {lost} of {came} packets, asked for {share:.2%}")
    for node, counters in after.stack_losses.items():
        for name, count in counters.items():
            new = count - before.stack_losses[node].get(name, 0)
            if new:
                reasons.append(f"the network stack of {node} lost packets: {name} {new}")
    return reasons


@dataclass(frozen=True)
class Hop:
    """A stretch of the way on which no packet may be lost, counted when all is at rest."""

    name: str
    put_in: int
    came_out: int


def check_hops(hops: Sequence[Hop]) -> list[str]:
    """That all packets that went into a stretch came out of it."""
    return [
        f"{hop.put_in - hop.came_out} of {hop.put_in} packets were lost {hop.name}"
        for hop in hops
        if hop.put_in > hop.came_out
    ]


def check_rest(device: str, rest: Counters) -> list[str]:
    """That the queue under test knows it is empty when it is."""
    if not rest.queued:
        return []
    return [f"the queue of {device} at rest says it holds {rest.queued} packets"]


def check_packets(device: str, warm: Counters, end: Counters, frame_bytes: int) -> list[str]:
    """That the queue under test met packets of the wire, not joined ones."""
    packets = end.sent - warm.sent
    sent = end.sent_bytes - warm.sent_bytes
    if sent <= packets * frame_bytes:
        return []
    return [
        f"packets of {sent / packets:.0f} bytes on average met the queue of {device},"
        f" {frame_bytes} is the most: offloads join them somewhere"
    ]


def check_flows(readings: Sequence[Reading], scenario: Scenario) -> list[str]:
    """That flows were held back by the network alone, and marked if they were to be."""
    reasons = []
    last = readings[-1].flows
    busy = sum(flow.busy_us for flow in last)
    limited = sum(flow.window_limited_us for flow in last)
    if scenario.window is None and limited > LIMITED_SHARE * busy:
        share = limited / busy
        reasons.append(f"the receiver's window held the flows back for {share:.1%} of their time")
    seen = [flow for reading in readings for flow in reading.flows if flow.acked_bytes]
    idle = sum(1 for flow in seen if not flow.unsent_bytes)
    if idle > LIMITED_SHARE * len(seen):
        reasons.append(
            f"flows had nothing left to send, {idle} of {len(seen)} times they were looked at"
        )
    without = sum(1 for flow in last if flow.acked_bytes and not flow.ecn)
    if scenario.ecn and without:
        reasons.append(f"{without} flows did not negotiate ECN")
    return reasons
