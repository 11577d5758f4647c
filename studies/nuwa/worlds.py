"""The worlds of the studies: generated or real mobile links, servers at a distance, links of a controlled speed of change.

What the paper leaves open and we chose: a base RTT of 40 ms and a buffer of 4 bandwidth-delay products of the trace's mean
rate, at which the mean queueing delay of a loss-based control is about that of Table I.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import traces
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Flow, Link, Scenario, Video
from netbuf_gym.tasks.receiver_window import receiver_world
from netbuf_gym.traces.types import DeliveryTrace, RateTrace, Trace
from studies.nuwa.schemes import TASK
from studies.nuwa.settings import Settings

RTT_MS, BUFFER_BDP, LEAST_PACKETS = 40.0, 4.0, 20
MOBILE = ("4g", "5g")
"""Networks that real traces may stand for."""

DISTANCES_MS = {"near": 10.0, "middle": 35.0, "far": 60.0}
"""Round trips that stand for the paper's three cities, some 200, 1200 and 1600 km from the receiver; of the wired part."""
SERVERS_MBPS = (10, 20, 50)
LAST_HOP, RADIO_MS = "5g", 10.0
"""The network of the last hop, and the round trip over it."""

SPEEDS_S = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Mean times between the jumps of a link between its two rates."""
MEANS_MBPS = (10, 100)
"""Means of the two rates, the lower of which is 0.4 and the higher 1.6 times as much."""
LOW, HIGH = 0.4, 1.6

JOINING_S, FLOWS = 10.0, 4
SHARED_MBPS, SHARED_PACKETS = 10.0, 133
"""The link that flows share: the paper's rate, and a buffer of 4 BDP."""
OWN, WITH_CUBIC = "own", "cubic"

STREAMED = ("24mbps", "4g", "5g")
"""The links of Fig. 2: one of 24 Mbit/s, and mobile ones."""
CONSTANT_MBPS = {"24mbps": 24.0}
BITRATES = ("rate", "buffer")
"""How a client chooses them: by the throughput that it saw, or by what it has buffered."""
LADDER_MBPS = (0.3, 0.75, 1.2, 1.85, 2.85, 4.3, 8.0, 16.0)
"""Ends at more than some of the links carry."""

GENERATOR_STREAM, WINDOW_STREAM, JUMP_STREAM = 0x74726163, 0x77696E64, 0x6A756D70
"""Keep what is drawn from a seed for a trace, for where in a file it begins, and for jumps, apart."""
TRIES, LEAST_MBPS = 16, 0.2

Maker = Callable[[str, int], Scenario]
"""`(cell, seed) -> world`."""


def world(scenario: Scenario, seed: int, agents: int = 1) -> rollout.World:
    """A world with agents in their places, as an environment draws it."""
    return rollout.draw(TASK, scenario, [seed], agents=agents)[0]


def buffer_packets(mean_mbps: float, rtt_ms: float = RTT_MS) -> int:
    """`BUFFER_BDP` of a link."""
    return max(LEAST_PACKETS, round(BUFFER_BDP * mean_mbps * rtt_ms * 1e3 / 8 / 1500))


def path(settings: Settings, network: str, seed: int, duration_s: float) -> Scenario:
    """A receiver behind a network's link; the same for every scheme."""
    trace = trace_of(settings, network, seed, duration_s)
    buffer = buffer_packets(trace.mean_mbps(duration_s))
    return receiver_world(trace=trace, rtt_ms=RTT_MS, buffer_packets=buffer, duration_s=duration_s, name=f"nuwa/{network}")


def server(settings: Settings, cell: str, seed: int, duration_s: float) -> Scenario:
    """A server whose rate is limited, at a distance, and 5G as the last hop."""
    where, _, rate = cell.partition("-")
    rtt_ms, rate_mbps = DISTANCES_MS[where], float(rate)
    trace = trace_of(settings, LAST_HOP, seed, duration_s)
    whole_ms = rtt_ms + RADIO_MS
    radio = buffer_packets(trace.mean_mbps(duration_s), whole_ms)
    links = [
        Link(name="server", rate_mbps=rate_mbps, delay_ms=rtt_ms / 2, queue_packets=buffer_packets(rate_mbps, whole_ms)),
        Link(name="bottleneck", trace=trace, delay_ms=RADIO_MS / 2, queue_packets=radio),
        Link(name="return", delay_ms=whole_ms / 2),
    ]
    flow = Flow(cc="receiver_driven", receiver="nuwa", path=(0, 1), return_path=(2,))
    return Scenario(links=links, flows=[flow], duration_s=duration_s, name=f"nuwa/{cell}")


def jumping_cell(mean_mbps: float, mean_s: float) -> str:
    """What the column `network` calls a link that jumps."""
    return f"{mean_mbps:g}mbps-{mean_s:g}s"


def speed_of(cell: str) -> tuple[float, float]:
    """Its mean rate in Mbit/s, and the mean time between its jumps in s."""
    rate, _, time = cell.partition("mbps-")
    return float(rate), float(time.removesuffix("s"))


def jumping(cell: str, seed: int, duration_s: float) -> Scenario:
    """A receiver behind a link that jumps between two rates; the times between jumps are exponential."""
    mean_mbps, mean_s = speed_of(cell)
    rng = np.random.default_rng((seed, JUMP_STREAM))
    first, jumps = rng.random() < 0.5, np.cumsum(rng.exponential(mean_s, int(8 * duration_s / mean_s) + 8))
    edges = np.concatenate([[0.0], jumps[jumps < duration_s]])
    rates = np.where((np.arange(len(edges)) % 2 == 0) == first, LOW * mean_mbps, HIGH * mean_mbps)
    buffer = buffer_packets(mean_mbps)
    trace = RateTrace(edges, rates)
    return receiver_world(trace=trace, rtt_ms=RTT_MS, buffer_packets=buffer, duration_s=duration_s, name=f"nuwa/{cell}")


def joining(cell: str, seed: int, duration_s: float) -> Scenario:
    """Four flows that share a link of constant rate, one more every 10 s: all a scheme's own, or its two and two of CUBIC.

    The seed decides by how much less than a second each of them comes late.
    """
    own = FLOWS if cell == OWN else FLOWS // 2
    late_s = np.random.default_rng((seed, JUMP_STREAM)).random(FLOWS)
    made = receiver_world(
        rate_mbps=SHARED_MBPS,
        rtt_ms=RTT_MS,
        buffer_packets=SHARED_PACKETS,
        senders=("receiver_driven",) * own + ("cubic",) * (FLOWS - own),
        receivers=("nuwa",) * own + (None,) * (FLOWS - own),
        duration_s=duration_s,
        stagger_s=JOINING_S,
        name=f"nuwa/fairness-{cell}",
    )
    return replace(made, flows=[replace(flow, start_s=flow.start_s + late_s[i]) for i, flow in enumerate(made.flows)])


def streaming(settings: Settings, cell: str, seed: int, duration_s: float) -> Scenario:
    """A video client behind a link; the seed decides by how much less than a second it comes late."""
    link, _, abr = cell.partition("-")
    if link in CONSTANT_MBPS:
        mean_mbps = CONSTANT_MBPS[link]
        capacity: dict[str, Any] = {"rate_mbps": mean_mbps}
    else:
        trace = trace_of(settings, link, seed, duration_s)
        mean_mbps, capacity = trace.mean_mbps(duration_s), {"trace": trace}
    buffer = buffer_packets(mean_mbps)
    made = receiver_world(rtt_ms=RTT_MS, buffer_packets=buffer, duration_s=duration_s, name=f"nuwa/{cell}", **capacity)
    late_s = float(np.random.default_rng((seed, JUMP_STREAM)).random())
    return replace(made, flows=[replace(made.flows[0], start_s=late_s, app=Video(bitrates_mbps=LADDER_MBPS, abr=abr))])


def trace_of(settings: Settings, network: str, seed: int, duration_s: float) -> Trace:
    """The network's trace under a seed: a generated path, or a real one from where the seed says."""
    if settings.traces and network in MOBILE:
        files = files_of(settings, network)
        trace = _read(files[(seed - settings.first_seed) % len(files)])
        return turned(trace, trace.duration_s * np.random.default_rng((seed, WINDOW_STREAM)).random())
    for attempt in range(TRIES):
        drawn = int(np.random.default_rng((seed, GENERATOR_STREAM, attempt)).integers(2**62))
        trace = traces.generate(network, duration_s=duration_s, seed=drawn)
        if trace.mean_mbps(duration_s) >= LEAST_MBPS:
            return trace
    raise ConfigError(f"network {network!r} gave no path of {LEAST_MBPS:g} Mbit/s in {TRIES} tries; valid: a longer duration_s")


def turned(trace: Trace, start_s: float) -> Trace:
    """A trace that repeats, from a moment within it on."""
    if isinstance(trace, DeliveryTrace):
        times = np.sort((trace.time_ms - np.floor(start_s * 1e3)) % trace.period_ms)
        return DeliveryTrace(times, trace.period_ms, trace.name)
    assert trace.period_s is not None
    times = (trace.time_s - start_s) % trace.period_s
    order = np.argsort(times)
    times, rates = times[order], trace.rate_mbps[order]
    if times[0] > 0:
        times, rates = np.append(0.0, times), np.append(rates[-1], rates)
    return RateTrace(times, rates, trace.period_s, trace.name)


@cache
def _files(folder: Path) -> tuple[Path, ...]:
    found = tuple(sorted(one for one in folder.rglob("*") if one.is_file() and not one.name.startswith(".")))
    if not found:
        raise ConfigError(f"traces: {folder} holds no file; valid: a folder with folders {' and '.join(MOBILE)} of traces")
    return found


def files_of(settings: Settings, network: str) -> tuple[Path, ...]:
    """The real traces of a network, by name; ConfigError where there is none."""
    return _files(Path(settings.traces) / network)


@cache
def _read(file: Path) -> Trace:
    return traces.read(file, loop=True)


def traces_sha256(settings: Settings, networks: Sequence[str]) -> str:
    """Of all real traces of these networks; "" where they are generated. Raises what reading one raises."""
    if not settings.traces:
        return ""
    whole = hashlib.sha256()
    for file in [file for network in networks if network in MOBILE for file in files_of(settings, network)]:
        _read(file)
        whole.update(file.read_bytes())
    return whole.hexdigest()
