"""Simulation without an agent: statistics and time series from a scenario and a seed."""

from __future__ import annotations

from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from netbuf_gym import plants
from netbuf_gym.errors import ConfigError, ScenarioError, ScenarioWarning, warn_caller
from netbuf_gym.plants.simulator import FLOW_SAMPLE, LINK_SAMPLE, Simulator
from netbuf_gym.scenarios.catalogue import sender_controls
from netbuf_gym.scenarios.sources import ScenarioLike, resolve_world
from netbuf_gym.scenarios.traffic import WebSessions
from netbuf_gym.scenarios.types import AGENT, Link, Scenario
from netbuf_gym.scenarios.udp import list_source_names
from netbuf_gym.scenarios.video import Video
from netbuf_gym.simulation.monitor import Progress, SimulationMonitor
from netbuf_gym.simulation.results.flows import NAN, FlowResult, Flows, LinkResult, Links
from netbuf_gym.simulation.results.packets import build_packet_log
from netbuf_gym.simulation.results.result import Result
from netbuf_gym.simulation.results.tables import FLOW_SERIES, SWITCH_SERIES
from netbuf_gym.simulation.results.traffic import (
    ProbeResult,
    Switches,
    TrafficResult,
    build_completions,
    build_opened,
    build_pages,
    build_switch_result,
)
from netbuf_gym.simulation.results.udp import UdpResults, build_udp_result
from netbuf_gym.simulation.results.video import build_video_results
from netbuf_gym.utils import checks

MAX_SAMPLES = 5_000_000
SAMPLE_INTERVALS_S = (1e-6, 1e6)
"""Shortest and longest time between samples."""
FLOW_COUNTS = (
    *("delivered_bytes", "packets_sent", "packets_retransmitted", "queue_drops", "random_losses", "acks_received"),
    *("timeouts", "fast_recoveries", "marks", "mark_responses"),
)
LINK_COUNTS = ("packets_in", "packets_out", "queue_drops", "random_losses", "marks")
"""Counts of flows and links in the window that are the core's own."""


def simulate(
    scenario: ScenarioLike,
    seed: int = 1,
    *,
    sample_interval_s: float | None = 0.1,
    warmup_s: float = 0.0,
    progress: bool | Progress = False,
    plant: str | dict[str, Any] = "sim",
    packets: bool = False,
) -> Result:
    """Run a scenario from start to end.

    Args:
        scenario: The world: a `Scenario`, or whatever environments accept as one
            (`netbuf_gym.scenarios.sources.resolve_scenario`): a name, a dict of name and arguments or from `Scenario.to_dict`,
            a distribution or a function `(rng) -> Scenario`, which are sampled with `numpy.random.default_rng(seed)`. None of
            the flows may be an agent's: nothing would set its window. A switch whose thresholds are an agent's keeps its first
            ones.
        seed: 0 to 2**63 - 1; decides random losses, random application periods and the traffic. The same scenario and
            seed give the same result to the last bit; the same traffic and seed the same flows in every scenario.
        sample_interval_s: Time between samples of the series, at least 1e-6 s and at most 5 million samples (counted
            over all flows, links and queues of switches); None: no series.
        warmup_s: Start of the time that the statistics cover, up to the end; 0 to below the duration.
        progress: Whether to draw a bar on standard error; or a function that is called with the elapsed share of the virtual
            time, 0 to 1. Its exceptions end the run.
        plant: Plant to run on: `"sim"`; or `"linux"`, on the kernel of this machine, in real time. There times and rates are as
            measured, and values that the kernel does not report are NaN.
        packets: Whether the result has the log of all packets (`Result.packets`, `write_packets_csv`, `write_pcap`): of each
            when it sets out, arrives, or is lost, at most 2**24 rows of 72 bytes. On the plant `"sim"`.

    Warns:
        ScenarioWarning: The log of packets was full before the end.
        SlowWorldWarning: A world that takes long for a reason that does not show, as flows that no link limits.

    Returns:
        A `Result`.

    Raises:
        ScenarioError: An argument out of range, or an agent among the flows.
        ControlError: A congestion control in Python returned an invalid window; exceptions raised by its code are passed on.
        SimulatorFault: The simulator found its own state inconsistent.
        ConfigError, PlantFault: The plant does not support such a world, or the world has failed.
    """
    seed = checks.integer("seed", seed, 0, 2**63 - 1)
    scenario = resolve_world(scenario, seed)
    for i, flow in enumerate(scenario.flows):
        if flow.cc == AGENT:
            valid = ", ".join(sender_controls(scenario.stack))
            raise ScenarioError(f"flows[{i}].cc = 'agent' has no agent here; valid: {valid}")
    warmup_s = checks.number("warmup_s", warmup_s, 0, scenario.duration_s)
    end_ns, warm_ns = round(scenario.duration_s * 1e9), round(warmup_s * 1e9)
    if warm_ns >= end_ns:
        raise ScenarioError(f"warmup_s = {warmup_s:g} leaves nothing of duration_s = {scenario.duration_s:g} to measure")
    stops = _compute_sample_times(scenario, sample_interval_s, end_ns)

    if checks.boolean("packets", packets) and plant != "sim":
        raise ConfigError(f"packets = True on plant {plant!r}, which logs none; valid: False, or plant 'sim'")
    with closing(Simulator(scenario, seed, True) if packets else plants.make_lone_world(plant, scenario, seed)) as world:
        return _run_world(scenario, seed, world, stops, warmup_s, progress, packets)


def _run_world(
    scenario: Scenario, seed: int, world: Any, stops: list[int], warmup_s: float, progress: bool | Progress, packets: bool
) -> Result:
    end_ns, warm_ns = round(scenario.duration_s * 1e9), round(warmup_s * 1e9)
    samples: list[_Sample] = []
    before = None if warm_ns else _read_counters(scenario, world)
    with SimulationMonitor(world, end_ns, progress) as watch:
        world.between = watch if isinstance(world, Simulator) else watch.report
        for stop in stops:
            if before is None and stop >= warm_ns:
                world.run(warm_ns)
                before = _read_counters(scenario, world)
            world.run(stop)
            samples.append(_take_sample(scenario, world))
            watch.report()
        if before is None:
            world.run(warm_ns)
            before = _read_counters(scenario, world)
        world.run(end_ns)
    after = _read_counters(scenario, world)
    span_s = (after[4] - before[4]) * 1e-9
    series = {}
    if stops:
        series = _build_series(np.array(stops) * 1e-9, samples)
    finite: dict[str, Any] = {}
    if scenario.traffic is not None:
        finite["traffic"] = _build_traffic_result(before[2], after[2], span_s)
        finite["completions"] = build_completions(scenario, np.array(world.completions()))
        finite["opened"] = build_opened(np.array(world.flows_opened()))
        if any(isinstance(arrivals, WebSessions) for arrivals in scenario.traffic.arrivals):
            finite["pages"] = build_pages(np.array(world.pages()))
    if scenario.switches:
        finite["switches"] = Switches(build_switch_result(scenario, i, stats) for i, stats in enumerate(world.switch_stats()))
    if scenario.probes:
        delays = [np.array(d) for d in world.probe_delays()]
        finite["probes"] = tuple(ProbeResult(sent=n, delays_s=d) for n, d in zip(world.probe_sent(), delays, strict=True))
    if scenario.udp:
        finite["udp"] = UdpResults(
            build_udp_result(name, a, b, span_s)
            for name, a, b in zip(list_source_names(scenario.udp), before[3], after[3], strict=True)
        )
    if any(isinstance(flow.app, Video) for flow in scenario.flows):
        finite["videos"] = build_video_results(scenario, world.video_stats())
    if packets:
        raw, left_out = world.packets()
        finite["packet_log"] = build_packet_log(raw, scenario)
        if left_out:
            warn_caller(f"the log of packets is full: {left_out} later rows are left out", ScenarioWarning)
    return Result(
        scenario=scenario,
        seed=seed,
        window_s=(warmup_s, scenario.duration_s),
        flows=Flows(
            _build_flow_result(f.name or f"flow-{i}", str(f.cc), a, b, span_s, scenario.mss_of(i))
            for i, (f, a, b) in enumerate(zip(scenario.flows, before[0], after[0], strict=True))
        ),
        links=Links(
            _build_link_result(link, a, b, span_s) for link, a, b in zip(scenario.links, before[1], after[1], strict=True)
        ),
        bottleneck=scenario.links[scenario.bottleneck].name,
        series=series,
        **finite,
    )


def _compute_sample_times(scenario: Scenario, interval_s: float | None, end_ns: int) -> list[int]:
    """Return the sampling times in nanoseconds: every interval, and at the end."""
    if interval_s is None:
        return []
    interval_ns = round(checks.number("sample_interval_s", interval_s, *SAMPLE_INTERVALS_S) * 1e9)
    count = -(-end_ns // interval_ns)
    columns = len(scenario.flows) + len(scenario.links) + sum(switch.queues for switch in scenario.switches)
    if count * columns > MAX_SAMPLES:
        raise ScenarioError(
            f"sample_interval_s = {interval_s:g} makes {count} samples of {columns} flows and links;"
            f" valid: {scenario.duration_s * columns / MAX_SAMPLES:g} or more"
        )
    return [min((i + 1) * interval_ns, end_ns) for i in range(count)]


def _read_counters(scenario: Scenario, world: Simulator) -> tuple[list[dict], list[dict], dict, list[dict], int]:
    """Return the counters of flows, links, traffic and datagram sources, and the world's time at which they were read."""
    traffic = world.traffic_stats() if scenario.traffic is not None else {}
    return world.flow_stats(), world.link_stats(), traffic, world.udp_stats() if scenario.udp else [], world.now_ns


class _Sample(NamedTuple):
    """Current values and cumulative counters at one moment; the arrays are the core's."""

    flows: np.ndarray
    arrived: list[int]  # bytes, at each flow's receiver
    links: np.ndarray
    switches: np.ndarray | None
    traffic: tuple[float, float, float] | None  # bytes arrived, bytes delivered in order, flows alive


def _take_sample(scenario: Scenario, world: Simulator) -> _Sample:
    traffic = None
    if scenario.traffic is not None:
        t = world.traffic_stats()
        traffic = (t["received_bytes"], t["delivered_bytes"], t["flows_started"] - t["flows_completed"])
    switches = np.array(world.switch_sample()) if scenario.switches else None
    return _Sample(np.array(world.flow_sample()), world.flow_arrivals(), np.array(world.link_sample()), switches, traffic)


def _build_flow_result(name: str, cc: str, a: dict, b: dict, span_s: float, mss: int) -> FlowResult:
    d = {key: b[key] - a[key] for key in b if key not in ("start_s", "completion_s", "failed_s", "rtt_min_s")}
    lost = d["queue_drops"] + d["random_losses"]
    return FlowResult(
        name=name,
        cc=cc,
        start_s=b["start_s"],
        completion_s=b["completion_s"],
        failed_s=b["failed_s"],
        goodput_mbps=d["delivered_bytes"] * 8e-6 / span_s,
        **{name: d[name] for name in FLOW_COUNTS},
        loss_rate=_divide_or_nan(lost, d["packets_sent"]),
        rtt_mean_ms=_divide_or_nan(d["rtt_sum_s"] * 1e3, d["rtt_count"]),
        rtt_min_ms=b["rtt_min_s"] * 1e3 if b["rtt_count"] else NAN,
        cwnd_mean_packets=d["cwnd_integral_byte_s"] / (mss * span_s),
        packets_sent_total=b["packets_sent"],
        queue_drops_total=b["queue_drops"],
    )


def _build_link_result(link: Link, a: dict, b: dict, span_s: float) -> LinkResult:
    d = {key: b[key] - a[key] for key in b if key not in ("name", "queue_max_packets")}
    mean_s = _divide_or_nan(d["sojourn_sum_s"], d["sojourn_count"])
    variance = max(_divide_or_nan(d["sojourn_sum2"], d["sojourn_count"]) - mean_s**2, 0.0) if d["sojourn_count"] else NAN
    return LinkResult(
        name=b["name"],
        **{name: d[name] for name in LINK_COUNTS},
        throughput_mbps=d["bytes_sent"] * 8e-6 / span_s,
        utilisation=_clip_share(d["used_bits"], d["offered_bits"]) if link.has_finite_rate else NAN,
        queue_delay_mean_ms=mean_s * 1e3,
        queue_delay_std_ms=variance**0.5 * 1e3,
        queue_mean_packets=d["queue_integral_packet_s"] / span_s,
        queue_drops_total=b["queue_drops"],
        queue_max_packets_total=b["queue_max_packets"],
    )


def _build_traffic_result(a: dict, b: dict, span_s: float) -> TrafficResult:
    names = [name for name in TrafficResult.__dataclass_fields__ if name != "goodput_mbps"]
    d = {name: b[name] - a[name] for name in names}
    return TrafficResult(**d, goodput_mbps=d["delivered_bytes"] * 8e-6 / span_s)


def _build_series(time_s: np.ndarray, samples: list[_Sample]) -> dict[str, np.ndarray]:
    """Return the series by name; cumulative counters become increments per interval."""
    flows, links = np.stack([s.flows for s in samples]), np.stack([s.links for s in samples])
    flow = {name: flows[:, :, i] for i, name in enumerate(FLOW_SAMPLE)}
    link = {name: links[:, :, i] for i, name in enumerate(LINK_SAMPLE)}
    span_s = np.diff(time_s, prepend=0.0)[:, None]
    series = {"time_s": time_s, **{name: flow[name] for name in FLOW_SERIES if name in flow}}
    series["goodput_mbps"] = _compute_increments(flow["delivered_bytes"]) * 8e-6 / span_s
    arrived = np.array([s.arrived for s in samples], np.float64).reshape(len(samples), -1)
    series["arrival_mbps"] = _compute_increments(arrived) * 8e-6 / span_s
    series["queue_packets"] = link["queue_packets"]
    count = _compute_increments(link["sojourn_count"])
    with np.errstate(divide="ignore", invalid="ignore"):
        series["queue_delay_ms"] = np.where(count > 0, _compute_increments(link["sojourn_sum_s"]) * 1e3 / count, np.nan)
    series["queue_drops"] = _compute_increments(link["queue_drops"])
    series["random_losses"] = _compute_increments(link["random_losses"])
    series["throughput_mbps"] = _compute_increments(link["bytes_sent"]) * 8e-6 / span_s
    if samples[0].switches is not None:
        switches = np.stack([s.switches for s in samples if s.switches is not None])
        series |= {name: switches[..., i] for i, name in enumerate(SWITCH_SERIES)}
        series["switch_drops"] = _compute_increments(series["switch_drops"])
    if samples[0].traffic is not None:
        arrived, delivered, alive = np.array([s.traffic for s in samples]).T
        series["traffic_arrival_mbps"] = _compute_increments(arrived) * 8e-6 / span_s[:, 0]
        series["traffic_goodput_mbps"] = _compute_increments(delivered) * 8e-6 / span_s[:, 0]
        series["flows_alive"] = alive
    return series


def _compute_increments(cumulative: np.ndarray) -> np.ndarray:
    return np.diff(cumulative, axis=0, prepend=0.0)


def _divide_or_nan(part: float, whole: float) -> float:
    return part / whole if whole else NAN


def _clip_share(part: float, whole: float) -> float:
    """Return part / whole clipped to 0..1, which rounding errors in differences of large sums exceed; NaN for a whole of 0."""
    return min(max(part / whole, 0.0), 1.0) if whole else NAN
