"""Results as tables of columns: what data frames and CSV files are made of. Nothing here needs pandas but `dataframe`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError, MissingExtraError
from netbuf_gym.simulation.results.flows import FlowResult, LinkResult
from netbuf_gym.simulation.results.parts import names_of
from netbuf_gym.simulation.results.traffic import PRIORITY, QueueResult
from netbuf_gym.simulation.results.udp import UdpResult
from netbuf_gym.simulation.results.video import CHUNK, VideoResult
from netbuf_gym.utils.arguments import choice

FLOW_SERIES = (
    "cwnd_packets",
    "ssthresh_packets",
    "rtt_ms",
    "srtt_ms",
    "in_flight_packets",
    "pacing_mbps",
    "goodput_mbps",
    "arrival_mbps",
)
SWITCH_SERIES = ("switch_packets", "switch_bytes", "switch_threshold", "switch_drops")
TRAFFIC_SERIES = ("traffic_goodput_mbps", "traffic_arrival_mbps", "flows_alive")
LINK_SERIES = ("queue_packets", "queue_delay_ms", "queue_drops", "random_losses", "throughput_mbps")

Table = dict[str, np.ndarray]
"""Columns of equal length by name."""


def share_out(result: Any) -> None:
    """Gives each flow and each link of a result its own columns of the result's series."""
    series = result.series
    if not series:
        return
    for parts, names in ((result.flows, FLOW_SERIES), (result.links, LINK_SERIES)):
        for i, part in enumerate(parts):
            part.hold({"time_s": series["time_s"], **{name: series[name][:, i] for name in names if name in series}})


def flows(result: Any) -> Table:
    """Statistics, a row a flow."""
    return _records(FlowResult, result.flows)


def links(result: Any) -> Table:
    """Statistics, a row a link."""
    return _records(LinkResult, result.links)


def series(result: Any) -> Table:
    """A row a sample and flow, with the queue of the flow's own bottleneck (`Scenario.bottleneck_of`), traffic and switches.

    Columns: time_s; flow (its index), cc, and the series of flows; name; bottleneck (the link's name), and the series of that
    link as bottleneck_NAME; the series of the traffic; SWITCH_packets_Q, SWITCH_bytes_Q, ... of each queue. Without flows
    there is a row a sample, of the scenario's bottleneck.
    """
    given, scenario = result.series, result.scenario
    time_s = given.get("time_s", np.zeros(0))
    samples, rows = len(time_s), max(1, len(result.flows))
    at = [scenario.bottleneck_of(i) for i in range(len(result.flows))] or [scenario.bottleneck]
    table: Table = {"time_s": np.repeat(time_s, rows)}
    if result.flows:
        table["flow"] = np.tile(np.arange(rows), samples)
        table["cc"] = _tiled([flow.cc for flow in result.flows], samples)
    else:
        table |= {name: _tiled([""], samples) for name in ("flow", "cc")}
    nothing = np.full((samples, rows), np.nan)
    table |= {name: (given[name] if result.flows and name in given else nothing).ravel() for name in FLOW_SERIES}
    table["name"] = _tiled([flow.name for flow in result.flows] or [""], samples)
    table["bottleneck"] = _tiled([scenario.links[i].name for i in at], samples)
    table |= {f"bottleneck_{name}": given[name][:, at].ravel() for name in LINK_SERIES if name in given}
    table |= {name: np.repeat(given[name], rows) for name in TRAFFIC_SERIES if name in given}
    for i, switch in enumerate(scenario.switches):
        for q in range(switch.queues):
            for name in SWITCH_SERIES:
                if name in given:
                    table[f"{switch.name}_{name.removeprefix('switch_')}_{q}"] = np.repeat(given[name][:, i, q], rows)
    return table


def flow_series(result: Any) -> Table:
    """A row a sample and flow: time_s, flow (its name), cc, and the series of flows."""
    names, ccs = names_of(result.flows), [flow.cc for flow in result.flows]
    return _long(result, {"flow": names, "cc": ccs}, FLOW_SERIES)


def link_series(result: Any) -> Table:
    """A row a sample and link: time_s, link (its name), and the series of links."""
    return _long(result, {"link": names_of(result.links)}, LINK_SERIES)


def switch_series(result: Any) -> Table:
    """A row a sample, switch and queue: time_s, switch, queue, packets, bytes, threshold, drops."""
    time_s, switches = result.series.get("time_s", np.zeros(0)), result.scenario.switches
    which = [(i, q) for i, switch in enumerate(switches) for q in range(switch.queues)]
    table: Table = {"time_s": np.repeat(time_s, len(which))}
    table["switch"] = _tiled([switches[i].name for i, _ in which], len(time_s))
    table["queue"] = np.tile(np.array([q for _, q in which], np.int64), len(time_s))
    for name in SWITCH_SERIES:
        columns = [result.series[name][:, i, q] for i, q in which if name in result.series]
        table[name.removeprefix("switch_")] = np.stack(columns, axis=1).ravel() if columns else np.zeros(0)
    return table


def traffic_series(result: Any) -> Table:
    """A row a sample: time_s, and the series of the traffic."""
    names = ("time_s", *TRAFFIC_SERIES)
    return {name: result.series[name] if result.traffic is not None and result.series else np.zeros(0) for name in names}


def completions(result: Any) -> Table:
    """A row a finite flow that completed."""
    return _fields(result.completions)


def opened(result: Any) -> Table:
    """A row a finite flow that started."""
    return _fields(result.opened)


def priorities(result: Any) -> Table:
    """A row a priority of the finite flows: counts, completion times, slowdowns."""
    rows = result.by_priority()
    counts = ("priority", "started", "completed")
    return {name: _column([row[name] for row in rows], "int" if name in counts else "float") for name in PRIORITY}


def queues(result: Any) -> Table:
    """A row a queue of each port of each switch."""
    members = [(switch.name, queue) for switch in result.switches for queue in switch.queues]
    return {"switch": _tiled([name for name, _ in members], 1), **_records(QueueResult, [queue for _, queue in members])}


def probes(result: Any) -> Table:
    """A row a packet of a probe that arrived: probe (its index), delay_s."""
    delays = [probe.delays_s for probe in result.probes]
    which = np.repeat(np.arange(len(delays)), [len(one) for one in delays])
    return {"probe": which, "delay_s": np.concatenate([*delays, np.zeros(0)])}


def udp(result: Any) -> Table:
    """Statistics, a row a source of datagrams."""
    return _records(UdpResult, result.udp)


def videos(result: Any) -> Table:
    """A row a video client: what was played, and how far its estimates of the bandwidth were off."""
    rows = [video.summary() for video in result.videos]
    times = {"startup_s": 0.0, "played_s": 0.0, "buffered_s": 0.0, "stalled_s": 0.0}
    nothing: dict[str, Any] = {"name": "", "abr": "", "stalls": 0, "asked_bytes": 0, **times}
    names = VideoResult(**nothing).summary()
    return {name: _column([row[name] for row in rows], type(value).__name__) for name, value in names.items()}


def chunks(result: Any) -> Table:
    """A row a chunk of each video client: video (its flow's name), and the columns of `video.CHUNK`."""
    tables = [video.chunks for video in result.videos]
    names = [name for name, table in zip(names_of(result.videos), tables, strict=True) for _ in table]
    return {"video": np.array(names, object), **_fields(np.concatenate([*tables, np.zeros(0, CHUNK)]))}


TABLES: dict[str, Callable[[Any], Table]] = {
    "flows": flows,
    "links": links,
    "series": series,
    "flow_series": flow_series,
    "link_series": link_series,
    "switch_series": switch_series,
    "traffic_series": traffic_series,
    "completions": completions,
    "opened": opened,
    "priorities": priorities,
    "queues": queues,
    "probes": probes,
    "udp": udp,
    "videos": videos,
    "chunks": chunks,
}
"""What a result can be had as, by name."""


def dataframe(result: Any, what: str = "flows") -> Any:
    """One of `TABLES` as a pandas data frame.

    Raises:
        ConfigError: another name, or a series of a simulation that took no samples.
        MissingExtraError: pandas is not installed.
    """
    make = TABLES[choice("what", what, TABLES)]
    require_series(result, f"what = {what!r}", "series" in what)
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("a data frame", "analysis", "pandas") from None
    return pandas.DataFrame(make(result))


def require_series(result: Any, for_what: str, needed: bool = True) -> None:
    """Raises ConfigError where samples are needed and the simulation took none."""
    if needed and not result.series:
        raise ConfigError(f"{for_what} needs series, and this result has none; valid: simulate(..., sample_interval_s=0.1)")


def _records(kind: type, parts: Sequence[Any]) -> Table:
    """The fields of dataclasses as columns."""
    rows = [asdict(part) for part in parts]
    return {field.name: _column([row[field.name] for row in rows], field.type) for field in fields(kind)}


def _long(result: Any, of: dict[str, list[str]], names: Sequence[str]) -> Table:
    time_s = result.series.get("time_s", np.zeros(0))
    count = len(next(iter(of.values())))
    table: Table = {"time_s": np.repeat(time_s, count)}
    table |= {name: _tiled(values, len(time_s)) for name, values in of.items()}
    return table | {name: result.series[name].ravel() if name in result.series else np.zeros(0) for name in names}


def _tiled(values: Sequence[str], times: int) -> np.ndarray:
    return np.tile(np.array(values, dtype=object), times)


def _column(values: list, kind: Any = "float") -> np.ndarray:
    """An array of what the annotation `kind` says; of objects where there is text, with or without rows."""
    if any(isinstance(value, str) for value in values):
        return np.array(values, object)
    known = {"str": object, "float": float} | ({} if values else {"int": np.int64})  # counts may be unknown, NaN
    return np.array(values, known.get(str(kind), None if values else float))


def _fields(table: np.ndarray) -> Table:
    return {name: table[name] for name in table.dtype.names or ()}
