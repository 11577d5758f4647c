"""Results as tables of columns, for data frames and CSV files. Only `make_dataframe` needs pandas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError, MissingExtraError
from netbuf_gym.simulation.results.flows import FlowResult, LinkResult
from netbuf_gym.simulation.results.parts import unique_names
from netbuf_gym.simulation.results.traffic import PRIORITY, QueueResult
from netbuf_gym.simulation.results.udp import UdpResult
from netbuf_gym.simulation.results.video import CHUNK, VideoResult
from netbuf_gym.utils.arguments import check_choice

FLOW_SERIES = (
    *("cwnd_packets", "ssthresh_packets", "rtt_ms", "srtt_ms", "in_flight_packets", "pacing_mbps"),
    *("goodput_mbps", "arrival_mbps"),
)
SWITCH_SERIES = ("switch_packets", "switch_bytes", "switch_threshold", "switch_drops")
TRAFFIC_SERIES = ("traffic_goodput_mbps", "traffic_arrival_mbps", "flows_alive")
LINK_SERIES = ("queue_packets", "queue_delay_ms", "queue_drops", "random_losses", "throughput_mbps")

Table = dict[str, np.ndarray]
"""Columns of equal length by name."""


def distribute_series(result: Any) -> None:
    """Attach each flow's and each link's own columns of the result's series."""
    series = result.series
    if not series:
        return
    for parts, names in ((result.flows, FLOW_SERIES), (result.links, LINK_SERIES)):
        for i, part in enumerate(parts):
            part.attach_series({"time_s": series["time_s"], **{name: series[name][:, i] for name in names if name in series}})


def series_table(result: Any) -> Table:
    """Return one row per sample and flow, with the flow's own bottleneck (`Scenario.bottleneck_of`), traffic and switches.

    Columns: time_s; flow (its index), cc, and the series of flows; name; bottleneck (the link's name), and the series of that
    link as bottleneck_NAME; the series of the traffic; SWITCH_packets_Q, SWITCH_bytes_Q, ... of each queue. Without flows
    there is one row per sample, of the scenario's bottleneck.
    """
    given, scenario = result.series, result.scenario
    time_s = given.get("time_s", np.zeros(0))
    samples, rows = len(time_s), max(1, len(result.flows))
    at = [scenario.bottleneck_of(i) for i in range(len(result.flows))] or [scenario.bottleneck]
    table: Table = {"time_s": np.repeat(time_s, rows)}
    if result.flows:
        table["flow"] = np.tile(np.arange(rows), samples)
        table["cc"] = _repeat_text([flow.cc for flow in result.flows], samples)
    else:
        table |= {name: _repeat_text([""], samples) for name in ("flow", "cc")}
    nothing = np.full((samples, rows), np.nan)
    table |= {name: (given[name] if result.flows and name in given else nothing).ravel() for name in FLOW_SERIES}
    table["name"] = _repeat_text([flow.name for flow in result.flows] or [""], samples)
    table["bottleneck"] = _repeat_text([scenario.links[i].name for i in at], samples)
    table |= {f"bottleneck_{name}": given[name][:, at].ravel() for name in LINK_SERIES if name in given}
    table |= {name: np.repeat(given[name], rows) for name in TRAFFIC_SERIES if name in given}
    for i, switch in enumerate(scenario.switches):
        for q in range(switch.queues):
            for name in SWITCH_SERIES:
                if name in given:
                    table[f"{switch.name}_{name.removeprefix('switch_')}_{q}"] = np.repeat(given[name][:, i, q], rows)
    return table


def flow_series_table(result: Any) -> Table:
    """Return one row per sample and flow: time_s, flow (its name), cc, and the series of flows."""
    names, ccs = unique_names(result.flows), [flow.cc for flow in result.flows]
    return _stack_samples(result, {"flow": names, "cc": ccs}, FLOW_SERIES)


def link_series_table(result: Any) -> Table:
    """Return one row per sample and link: time_s, link (its name), and the series of links."""
    return _stack_samples(result, {"link": unique_names(result.links)}, LINK_SERIES)


def switch_series_table(result: Any) -> Table:
    """Return one row per sample, switch and queue: time_s, switch, queue, packets, bytes, threshold, drops."""
    time_s, switches = result.series.get("time_s", np.zeros(0)), result.scenario.switches
    which = [(i, q) for i, switch in enumerate(switches) for q in range(switch.queues)]
    table: Table = {"time_s": np.repeat(time_s, len(which))}
    table["switch"] = _repeat_text([switches[i].name for i, _ in which], len(time_s))
    table["queue"] = np.tile(np.array([q for _, q in which], np.int64), len(time_s))
    for name in SWITCH_SERIES:
        columns = [result.series[name][:, i, q] for i, q in which if name in result.series]
        table[name.removeprefix("switch_")] = np.stack(columns, axis=1).ravel() if columns else np.zeros(0)
    return table


def traffic_series_table(result: Any) -> Table:
    """Return one row per sample: time_s, and the series of the traffic."""
    names = ("time_s", *TRAFFIC_SERIES)
    return {name: result.series[name] if result.traffic is not None and result.series else np.zeros(0) for name in names}


def priorities_table(result: Any) -> Table:
    """Return one row per priority of the finite flows: counts, completion times, slowdowns."""
    rows = result.by_priority()
    counts = ("priority", "started", "completed")
    return {name: _make_column([row[name] for row in rows], "int" if name in counts else "float") for name in PRIORITY}


def queues_table(result: Any) -> Table:
    """Return one row per queue of each port of each switch."""
    members = [(switch.name, queue) for switch in result.switches for queue in switch.queues]
    return {
        "switch": _repeat_text([name for name, _ in members], 1),
        **_collect_fields(QueueResult, [queue for _, queue in members]),
    }


def probes_table(result: Any) -> Table:
    """Return one row per packet of a probe that arrived: probe (its index), delay_s."""
    delays = [probe.delays_s for probe in result.probes]
    which = np.repeat(np.arange(len(delays)), [len(one) for one in delays])
    return {"probe": which, "delay_s": np.concatenate([*delays, np.zeros(0)])}


def videos_table(result: Any) -> Table:
    """Return one row per video client: playback statistics, and the errors of its bandwidth estimates."""
    rows = [video.summary() for video in result.videos]
    times = {"startup_s": 0.0, "played_s": 0.0, "buffered_s": 0.0, "stalled_s": 0.0}
    nothing: dict[str, Any] = {"name": "", "abr": "", "stalls": 0, "asked_bytes": 0, **times}
    names = VideoResult(**nothing).summary()
    return {name: _make_column([row[name] for row in rows], type(value).__name__) for name, value in names.items()}


def chunks_table(result: Any) -> Table:
    """Return one row per chunk of each video client: video (its flow's name), and the columns of `video.CHUNK`."""
    tables = [video.chunks for video in result.videos]
    names = [name for name, table in zip(unique_names(result.videos), tables, strict=True) for _ in table]
    return {"video": np.array(names, object), **_split_fields(np.concatenate([*tables, np.zeros(0, CHUNK)]))}


TABLES: dict[str, Callable[[Any], Table]] = {
    "flows": lambda result: _collect_fields(FlowResult, result.flows),
    "links": lambda result: _collect_fields(LinkResult, result.links),
    "series": series_table,
    "flow_series": flow_series_table,
    "link_series": link_series_table,
    "switch_series": switch_series_table,
    "traffic_series": traffic_series_table,
    "completions": lambda result: _split_fields(result.completions),
    "opened": lambda result: _split_fields(result.opened),
    "pages": lambda result: _split_fields(result.pages),
    "priorities": priorities_table,
    "queues": queues_table,
    "probes": probes_table,
    "udp": lambda result: _collect_fields(UdpResult, result.udp),
    "videos": videos_table,
    "chunks": chunks_table,
}
"""Functions that make the tables of a result, by table name."""


def make_dataframe(result: Any, what: str = "flows") -> Any:
    """Return one of `TABLES` as a pandas data frame.

    Raises:
        ConfigError: Another name, or a series of a simulation that took no samples.
        MissingExtraError: pandas is not installed.
    """
    make = TABLES[check_choice("what", what, TABLES)]
    require_series(result, f"what = {what!r}", "series" in what)
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("a data frame", "analysis", "pandas") from None
    return pandas.DataFrame(make(result))


def require_series(result: Any, for_what: str, needed: bool = True) -> None:
    """Raise ConfigError if samples are needed and the simulation took none."""
    if needed and not result.series:
        raise ConfigError(f"{for_what} needs series, and this result has none; valid: simulate(..., sample_interval_s=0.1)")


def _collect_fields(kind: type, parts: Sequence[Any]) -> Table:
    """Return the fields of dataclasses as columns."""
    rows = [asdict(part) for part in parts]
    return {field.name: _make_column([row[field.name] for row in rows], field.type) for field in fields(kind)}


def _stack_samples(result: Any, of: dict[str, list[str]], names: Sequence[str]) -> Table:
    time_s = result.series.get("time_s", np.zeros(0))
    count = len(next(iter(of.values())))
    table: Table = {"time_s": np.repeat(time_s, count)}
    table |= {name: _repeat_text(values, len(time_s)) for name, values in of.items()}
    return table | {name: result.series[name].ravel() if name in result.series else np.zeros(0) for name in names}


def _repeat_text(values: Sequence[str], times: int) -> np.ndarray:
    return np.tile(np.array(values, dtype=object), times)


def _make_column(values: list, kind: Any = "float") -> np.ndarray:
    """Return an array of the type that the annotation `kind` names; of objects where there is text, with or without rows."""
    if any(isinstance(value, str) for value in values):
        return np.array(values, object)
    known = {"str": object, "float": float} | ({} if values else {"int": np.int64})  # counts may be NaN: unknown
    return np.array(values, known.get(str(kind), None if values else float))


def _split_fields(table: np.ndarray) -> Table:
    return {name: table[name] for name in table.dtype.names or ()}
