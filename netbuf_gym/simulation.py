"""The simulator without an agent: a scenario and a seed in, statistics and time series out."""

from __future__ import annotations

import numpy as np

from netbuf_gym import checks
from netbuf_gym.errors import ConfigError, ScenarioError, ScenarioTypeError, SimulatorFault, shown
from netbuf_gym.results import FLOW_SERIES, NAN, FlowResult, LinkResult, Links, Result
from netbuf_gym.scenarios.types import AGENT, MSS_BYTES, Link, Scenario

MAX_SAMPLES = 5_000_000


def simulate(
    scenario: Scenario,
    seed: int = 1,
    *,
    sample_interval_s: float | None = 0.1,
    warmup_s: float = 0.0,
) -> Result:
    """Runs a scenario from start to end.

    Args:
        scenario: The world. None of its flows may be an agent's: nothing would set its window.
        seed: 0 to 2**63 - 1; decides random losses and random application periods. The same scenario and seed give
            the same result to the last bit.
        sample_interval_s: Time between samples of the series, at least 1e-6 s and at most 5 million samples (counted
            over all flows and links); None: no series.
        warmup_s: The statistics cover the time from here to the end, 0 to below the duration.

    Returns:
        A `Result`.

    Raises:
        ScenarioError: An argument out of range, or an agent among the flows.
        SimulatorFault: The simulator found its own state inconsistent.
    """
    if not isinstance(scenario, Scenario):
        raise ScenarioTypeError(f"scenario = {shown(scenario)} is not a Scenario; sample a distribution first")
    for i, flow in enumerate(scenario.flows):
        if flow.cc == AGENT:
            raise ScenarioError(f"flows[{i}].cc = 'agent' has no agent here; valid: see scenarios.congestion_controls")
    seed = checks.integer("seed", seed, 0, 2**63 - 1)
    warmup_s = checks.number("warmup_s", warmup_s, 0, scenario.duration_s)
    if warmup_s >= scenario.duration_s:
        raise ScenarioError(f"warmup_s = {warmup_s:g} leaves nothing of duration_s = {scenario.duration_s:g} to measure")
    end_ns, warm_ns = round(scenario.duration_s * 1e9), round(warmup_s * 1e9)
    stops = _sample_times(scenario, sample_interval_s, end_ns)

    from netbuf_gym import _core  # native: loaded when first needed

    try:
        world = _core.World(scenario.to_core(), seed)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    flow_rows, link_rows = [], []
    before = None
    try:
        if not warm_ns:
            before = _snapshot(world)
        for stop in stops:
            if before is None and stop >= warm_ns:
                world.run(warm_ns)
                before = _snapshot(world)
            world.run(stop)
            flow_rows.append(np.array(world.flow_sample()))
            link_rows.append(np.array(world.link_sample()))
        if before is None:
            world.run(warm_ns)
            before = _snapshot(world)
        world.run(end_ns)
        after = _snapshot(world)
    except RuntimeError as error:
        raise SimulatorFault(str(error)) from None
    span_s = (end_ns - warm_ns) * 1e-9
    series = {}
    if stops:
        series = _series(np.array(stops) * 1e-9, np.stack(flow_rows), np.stack(link_rows), _core)
    return Result(
        scenario=scenario,
        seed=seed,
        window_s=(warmup_s, scenario.duration_s),
        flows=tuple(
            _flow_result(f.name or f"flow-{i}", f.cc, a, b, span_s)
            for i, (f, a, b) in enumerate(zip(scenario.flows, before[0], after[0], strict=True))
        ),
        links=Links(
            _link_result(link, a, b, warmup_s, scenario.duration_s)
            for link, a, b in zip(scenario.links, before[1], after[1], strict=True)
        ),
        bottleneck=scenario.links[scenario.bottleneck].name,
        series=series,
    )


def _sample_times(scenario: Scenario, interval_s: float | None, end_ns: int) -> list[int]:
    """When to sample, nanoseconds: every interval, and at the end."""
    if interval_s is None:
        return []
    interval_ns = round(checks.number("sample_interval_s", interval_s, 1e-6, 1e6) * 1e9)
    count = -(-end_ns // interval_ns)
    columns = len(scenario.flows) + len(scenario.links)
    if count * columns > MAX_SAMPLES:
        raise ScenarioError(
            f"sample_interval_s = {interval_s:g} makes {count} samples of {columns} flows and links;"
            f" valid: {scenario.duration_s * columns / MAX_SAMPLES:g} or more"
        )
    return [min((i + 1) * interval_ns, end_ns) for i in range(count)]


def _snapshot(world) -> tuple[list[dict], list[dict]]:
    return world.flow_stats(), world.link_stats()


def _flow_result(name: str, cc: str, a: dict, b: dict, span_s: float) -> FlowResult:
    d = {key: b[key] - a[key] for key in b if key not in ("start_s", "completion_s", "rtt_min_s")}
    lost = d["queue_drops"] + d["random_losses"]
    return FlowResult(
        name=name,
        cc=cc,
        start_s=b["start_s"],
        completion_s=b["completion_s"],
        delivered_bytes=d["delivered_bytes"],
        goodput_mbps=d["delivered_bytes"] * 8e-6 / span_s,
        packets_sent=d["packets_sent"],
        packets_retransmitted=d["packets_retransmitted"],
        queue_drops=d["queue_drops"],
        random_losses=d["random_losses"],
        loss_rate=_ratio(lost, d["packets_sent"]),
        rtt_mean_ms=_ratio(d["rtt_sum_s"] * 1e3, d["rtt_count"]),
        rtt_min_ms=b["rtt_min_s"] * 1e3 if b["rtt_count"] else NAN,
        cwnd_mean_packets=d["cwnd_integral_byte_s"] / (MSS_BYTES * span_s),
        acks_received=d["acks_received"],
        timeouts=d["timeouts"],
        fast_recoveries=d["fast_recoveries"],
        packets_sent_total=b["packets_sent"],
        queue_drops_total=b["queue_drops"],
    )


def _link_result(link: Link, a: dict, b: dict, start_s: float, end_s: float) -> LinkResult:
    span_s = end_s - start_s
    d = {key: b[key] - a[key] for key in b if key not in ("name", "queue_max_packets")}
    mean_s = _ratio(d["sojourn_sum_s"], d["sojourn_count"])
    variance = max(_ratio(d["sojourn_sum2"], d["sojourn_count"]) - mean_s**2, 0.0) if d["sojourn_count"] else NAN
    offered_mbit = link.mean_mbps(end_s) * end_s - (link.mean_mbps(start_s) * start_s if start_s else 0.0)
    return LinkResult(
        name=b["name"],
        packets_in=d["packets_in"],
        packets_out=d["packets_out"],
        throughput_mbps=d["bytes_out"] * 8e-6 / span_s,
        utilisation=_ratio(d["bytes_out"] * 8e-6, offered_mbit) if link.finite else NAN,
        queue_delay_mean_ms=mean_s * 1e3,
        queue_delay_std_ms=variance**0.5 * 1e3,
        queue_mean_packets=d["queue_integral_packet_s"] / span_s,
        queue_drops=d["queue_drops"],
        random_losses=d["random_losses"],
        queue_drops_total=b["queue_drops"],
        queue_max_packets_total=b["queue_max_packets"],
    )


def _series(time_s: np.ndarray, flows: np.ndarray, links: np.ndarray, core) -> dict[str, np.ndarray]:
    """Columns by name; cumulative counters become what happened in each interval."""
    flow = {name: flows[:, :, i] for i, name in enumerate(core.flow_sample_fields())}
    link = {name: links[:, :, i] for i, name in enumerate(core.link_sample_fields())}
    span_s = np.diff(time_s, prepend=0.0)[:, None]
    series = {"time_s": time_s, **{name: flow[name] for name in FLOW_SERIES if name in flow}}
    series["goodput_mbps"] = _gain(flow["delivered_bytes"]) * 8e-6 / span_s
    series["queue_packets"] = link["queue_packets"]
    count = _gain(link["sojourn_count"])
    with np.errstate(divide="ignore", invalid="ignore"):
        series["queue_delay_ms"] = np.where(count > 0, _gain(link["sojourn_sum_s"]) * 1e3 / count, np.nan)
    series["queue_drops"] = _gain(link["queue_drops"])
    series["random_losses"] = _gain(link["random_losses"])
    series["throughput_mbps"] = _gain(link["bytes_out"]) * 8e-6 / span_s
    return series


def _gain(cumulative: np.ndarray) -> np.ndarray:
    return np.diff(cumulative, axis=0, prepend=0.0)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else NAN
