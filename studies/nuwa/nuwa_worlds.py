"""Worlds of the studies: generated or real mobile links, servers at a distance, links with a controlled speed of change.

The paper leaves some choices open. Ours: a base RTT of 40 ms, and a buffer of 4 bandwidth-delay products of the trace's mean
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
from studies.nuwa.nuwa_schemes import TASK
from studies.nuwa.nuwa_settings import Settings

RTT_MS, BUFFER_BDP, LEAST_PACKETS = 40.0, 4.0, 20
MOBILE = ("4g", "5g")
"""Networks that real traces may replace."""

DISTANCES_MS = {"near": 10.0, "middle": 35.0, "far": 60.0}
"""Round trips in ms of the wired part, for the paper's three cities, some 200, 1200 and 1600 km from the receiver."""
SERVERS_MBPS = (10, 20, 50)
LAST_HOP, RADIO_MS = "5g", 10.0
"""Network of the last hop, and its round trip in ms."""

SPEEDS_S = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Mean times in s between a link's jumps from one of its two rates to the other."""
MEANS_MBPS = (10, 100)
"""Means of a jumping link's two rates in Mbit/s; the lower rate is 0.4 and the higher 1.6 times the mean."""
LOW, HIGH = 0.4, 1.6

JOINING_S, FLOWS = 10.0, 4
SHARED_MBPS, SHARED_PACKETS = 10.0, 133
"""Shared link of the study of fairness: the paper's rate in Mbit/s, and a buffer of 4 BDP in packets."""
OWN, WITH_CUBIC = "own", "cubic"

STREAMED = ("24mbps", "4g", "5g")
"""Links of Fig. 2: one of 24 Mbit/s, and mobile ones."""
CONSTANT_MBPS = {"24mbps": 24.0}
BITRATES = ("rate", "buffer")
"""Rules by which a client chooses bitrates: measured throughput, or buffered video."""
LADDER_MBPS = (0.3, 0.75, 1.2, 1.85, 2.85, 4.3, 8.0, 16.0)
"""Bitrates of the video; the highest exceeds the capacity of some links."""

GENERATOR_STREAM, WINDOW_STREAM, JUMP_STREAM = 0x74726163, 0x77696E64, 0x6A756D70
"""Tags that separate a seed's random draws for generated traces, for start times within trace files, and for jumps."""
TRIES, LEAST_MBPS = 16, 0.2

Maker = Callable[[str, int], Scenario]
"""Function `(cell, seed)` that returns a world."""


def draw_world(scenario: Scenario, seed: int, agents: int = 1) -> rollout.World:
    """Return the world that an environment draws from a scenario for a number of agents."""
    return rollout.draw_worlds(TASK, scenario, [seed], agents=agents)[0]


def compute_buffer_packets(mean_mbps: float, rtt_ms: float = RTT_MS) -> int:
    """Return a buffer of `BUFFER_BDP` bandwidth-delay products of a link in packets, `LEAST_PACKETS` at least."""
    return max(LEAST_PACKETS, round(BUFFER_BDP * mean_mbps * rtt_ms * 1e3 / 8 / 1500))


def make_path_scenario(settings: Settings, network: str, seed: int, duration_s: float) -> Scenario:
    """Return the scenario of a receiver behind a network's link, the same for every scheme."""
    trace = get_trace(settings, network, seed, duration_s)
    buffer = compute_buffer_packets(trace.mean_mbps(duration_s))
    return receiver_world(trace=trace, rtt_ms=RTT_MS, buffer_packets=buffer, duration_s=duration_s, name=f"nuwa/{network}")


def make_server_scenario(settings: Settings, cell: str, seed: int, duration_s: float) -> Scenario:
    """Return the scenario of a distant server with a limited rate and 5G as the last hop."""
    where, _, rate = cell.partition("-")
    rtt_ms, rate_mbps = DISTANCES_MS[where], float(rate)
    trace = get_trace(settings, LAST_HOP, seed, duration_s)
    whole_ms = rtt_ms + RADIO_MS
    radio = compute_buffer_packets(trace.mean_mbps(duration_s), whole_ms)
    links = [
        Link(
            name="server", rate_mbps=rate_mbps, delay_ms=rtt_ms / 2, queue_packets=compute_buffer_packets(rate_mbps, whole_ms)
        ),
        Link(name="bottleneck", trace=trace, delay_ms=RADIO_MS / 2, queue_packets=radio),
        Link(name="return", delay_ms=whole_ms / 2),
    ]
    flow = Flow(cc="receiver_driven", receiver="nuwa", path=(0, 1), return_path=(2,))
    return Scenario(links=links, flows=[flow], duration_s=duration_s, name=f"nuwa/{cell}")


def format_jumping_cell(mean_mbps: float, mean_s: float) -> str:
    """Return the name of a jumping link in the column `network`."""
    return f"{mean_mbps:g}mbps-{mean_s:g}s"


def parse_jumping_cell(cell: str) -> tuple[float, float]:
    """Return a jumping link's mean rate in Mbit/s and mean time between jumps in s, from its cell."""
    rate, _, time = cell.partition("mbps-")
    return float(rate), float(time.removesuffix("s"))


def make_jumping_scenario(cell: str, seed: int, duration_s: float) -> Scenario:
    """Return the scenario of a receiver behind a link that jumps between two rates at exponential intervals."""
    mean_mbps, mean_s = parse_jumping_cell(cell)
    rng = np.random.default_rng((seed, JUMP_STREAM))
    first, jumps = rng.random() < 0.5, np.cumsum(rng.exponential(mean_s, int(8 * duration_s / mean_s) + 8))
    edges = np.concatenate([[0.0], jumps[jumps < duration_s]])
    rates = np.where((np.arange(len(edges)) % 2 == 0) == first, LOW * mean_mbps, HIGH * mean_mbps)
    buffer = compute_buffer_packets(mean_mbps)
    trace = RateTrace(edges, rates)
    return receiver_world(trace=trace, rtt_ms=RTT_MS, buffer_packets=buffer, duration_s=duration_s, name=f"nuwa/{cell}")


def make_joining_scenario(cell: str, seed: int, duration_s: float) -> Scenario:
    """Return the scenario of four flows on a link of constant rate, one more every 10 s.

    Either all flows are the scheme's own, or two are and two are CUBIC's. The seed delays each flow by less than a second.
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


def make_streaming_scenario(settings: Settings, cell: str, seed: int, duration_s: float) -> Scenario:
    """Return the scenario of a video client behind a link; the seed delays the client by less than a second."""
    link, _, abr = cell.partition("-")
    if link in CONSTANT_MBPS:
        mean_mbps = CONSTANT_MBPS[link]
        capacity: dict[str, Any] = {"rate_mbps": mean_mbps}
    else:
        trace = get_trace(settings, link, seed, duration_s)
        mean_mbps, capacity = trace.mean_mbps(duration_s), {"trace": trace}
    buffer = compute_buffer_packets(mean_mbps)
    made = receiver_world(rtt_ms=RTT_MS, buffer_packets=buffer, duration_s=duration_s, name=f"nuwa/{cell}", **capacity)
    late_s = float(np.random.default_rng((seed, JUMP_STREAM)).random())
    return replace(made, flows=[replace(made.flows[0], start_s=late_s, app=Video(bitrates_mbps=LADDER_MBPS, abr=abr))])


def get_trace(settings: Settings, network: str, seed: int, duration_s: float) -> Trace:
    """Return a network's trace under a seed: a generated one, or a real one from a start that the seed decides.

    Raises:
        ConfigError: No generated trace reaches `LEAST_MBPS` in `TRIES` tries, or there are no real traces.
    """
    if settings.traces and network in MOBILE:
        files = list_trace_files(settings, network)
        trace = _read_trace(files[(seed - settings.first_seed) % len(files)])
        return rotate_trace(trace, trace.duration_s * np.random.default_rng((seed, WINDOW_STREAM)).random())
    for attempt in range(TRIES):
        drawn = int(np.random.default_rng((seed, GENERATOR_STREAM, attempt)).integers(2**62))
        trace = traces.generate(network, duration_s=duration_s, seed=drawn)
        if trace.mean_mbps(duration_s) >= LEAST_MBPS:
            return trace
    raise ConfigError(f"network {network!r} gave no path of {LEAST_MBPS:g} Mbit/s in {TRIES} tries; valid: a longer duration_s")


def rotate_trace(trace: Trace, start_s: float) -> Trace:
    """Return a repeating trace shifted to start at `start_s`."""
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
def _list_files(folder: Path) -> tuple[Path, ...]:
    found = tuple(sorted(one for one in folder.rglob("*") if one.is_file() and not one.name.startswith(".")))
    if not found:
        raise ConfigError(f"traces: {folder} holds no file; valid: a folder with folders {' and '.join(MOBILE)} of traces")
    return found


def list_trace_files(settings: Settings, network: str) -> tuple[Path, ...]:
    """Return the files of a network's real traces, sorted by name.

    Raises:
        ConfigError: There are none.
    """
    return _list_files(Path(settings.traces) / network)


@cache
def _read_trace(file: Path) -> Trace:
    return traces.read(file, loop=True)


def hash_traces(settings: Settings, networks: Sequence[str]) -> str:
    """Return the SHA-256 of all real traces of these networks; "" for generated ones. Raises what reading a trace raises."""
    if not settings.traces:
        return ""
    whole = hashlib.sha256()
    for file in [file for network in networks if network in MOBILE for file in list_trace_files(settings, network)]:
        _read_trace(file)
        whole.update(file.read_bytes())
    return whole.hexdigest()
