"""Claims that hold of every result, whatever the world: counts, conservation, bounds, and files that can be read again."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.scenarios import FlowList, PacketReplay, Scenario, Video
from netbuf_gym.simulation.results.result import Result
from netbuf_gym.simulation.results.video import VideoResult
from tools.fuzz.case import Finding

SLACK = 1e-6
MAY_BE_NAN = {
    "completion_s", "failed_s", "loss_rate", "rtt_mean_ms", "rtt_min_ms", "utilisation", "queue_delay_mean_ms",
    "queue_delay_std_ms", "delay_mean_ms", "delay_std_ms", "lost_share_total",
    "delay_min_ms_total", "delay_max_ms_total", "fairness", "occupancy_mean",
}  # fmt: skip
"""Where the docs say so: nothing was measured."""


def check_result(result: Result) -> None:
    """Raise `Finding` for the first thing that does not hold."""
    for what, holds in _list_claims(result):
        if not holds:
            raise Finding(f"does not hold: {what}")


def _list_claims(result: Result) -> Iterator[tuple[str, bool]]:
    yield from _list_finite_flow_claims(result)
    whole_run = result.window_s[0] == 0
    for i, flow in enumerate(result.flows):
        yield from _list_flow_claims(result, i, flow, whole_run)
    for i, link in enumerate(result.links):
        yield from _list_link_claims(result, i, link, whole_run)
    yield from _list_traffic_claims(result, whole_run)
    yield from _list_switch_claims(result)
    for probe, given in zip(result.probes, result.scenario.probes, strict=True):
        yield f"probe: received {probe.received} of {probe.sent}", 0 <= probe.received <= probe.sent
        least_s = sum(result.scenario.links[i].least_delay_ms for i in given.path) * 1e-3
        yield "probe: delays are at least propagation", bool((probe.delays_s >= least_s - 1e-8).all())
    for source, given in zip(result.udp, result.scenario.udp, strict=True):
        lost = source.queue_drops + source.random_losses
        if whole_run:
            yield f"udp: received {source.packets_received}, lost {lost}", source.packets_received + lost <= source.packets_sent
        span_s = result.window_s[1] - result.window_s[0]
        if isinstance(given, PacketReplay):
            most = given.bound_events(result.window_s[1])
            yield f"udp: replayed {source.packets_sent} of {most}", source.packets_sent <= most + len(given.time_s)
        elif isinstance(given.packet_bytes, int) and given.arrivals == "constant":
            gap_s = max(round(given.packet_bytes * 8e-6 / given.rate_mbps, 9), 1e-9)
            most = 1 + span_s / gap_s
            yield f"udp: sent {source.packets_sent} of {most}", source.packets_sent <= most * (1 + SLACK) + 1
        longest = given.longest_packet_bytes * 8e-6 * source.packets_sent
        yield f"udp: sent at {source.sent_mbps}", source.sent_mbps * span_s <= longest * (1 + SLACK + 2e-9 / span_s) + 1e-9
        least_ms = sum(result.scenario.links[i].least_delay_ms for i in given.path)
        yield f"udp: least delay {source.delay_min_ms_total}", not source.delay_min_ms_total < least_ms - 1e-5
    clients = [flow.app for flow in result.scenario.flows if isinstance(flow.app, Video)]
    for video, given in zip(result.videos, clients, strict=True):
        yield from _list_video_claims(video, given)
    fairness = result.fairness
    yield f"fairness {fairness}", math.isnan(fairness) or 1 / len(result.flows) - SLACK <= fairness <= 1 + SLACK


def _list_video_claims(video: VideoResult, given: Video) -> Iterator[tuple[str, bool]]:
    chunks, of = video.chunks, video.name
    held_s = video.played_s + video.buffered_s
    yield f"{of}: played and buffered {held_s} of {len(chunks)} chunks", abs(held_s - len(chunks) * given.chunk_s) < 1e-6
    yield f"{of}: buffers no more than it holds", video.buffered_s <= given.buffer_s + SLACK
    yield f"{of}: a chunk at a time", bool((chunks["begun_s"][1:] >= chunks["ended_s"][:-1] - SLACK).all())
    in_order = (chunks["begun_s"] <= chunks["first_byte_s"]) & (chunks["first_byte_s"] <= chunks["ended_s"])
    yield f"{of}: chunks are asked for, begin and end", bool(in_order.all())
    yield f"{of}: asked for what arrived", int(chunks["size_bytes"].sum()) <= video.asked_bytes
    yield f"{of}: stalls take time", (video.stalled_s > 0) == (video.stalls > 0) and video.stalled_s >= 0


def _list_finite_flow_claims(result: Result) -> Iterator[tuple[str, bool]]:
    records = [*result.flows, *result.links, *([result.traffic] if result.traffic else []), *result.switches, *result.udp]
    records += [queue for switch in result.switches for queue in switch.queues]
    for record in records:
        for entry in fields(record):
            value = getattr(record, entry.name)
            if isinstance(value, (int, float)):
                finite = math.isfinite(value) or (entry.name in MAY_BE_NAN and math.isnan(value))
                yield f"{type(record).__name__}.{entry.name} = {value} is finite", finite
                yield f"{type(record).__name__}.{entry.name} = {value} is not negative", not value < -1e-9
    for name, series in result.series.items():
        yield f"series {name} has no infinities", not np.isinf(series).any() or name == "ssthresh_packets"


def _list_flow_claims(result: Result, i: int, flow: Any, whole_run: bool) -> Iterator[tuple[str, bool]]:
    scenario, at = result.scenario, f"flow {i}: "
    yield f"{at}resent {flow.packets_retransmitted} of {flow.packets_sent}", flow.packets_retransmitted <= flow.packets_sent
    span_s = result.window_s[1] - result.window_s[0]
    if scenario.flows[i].routes or scenario.flows[i].misbehaviour:  # other paths; what has come twice counts as delivered
        return
    if whole_run:
        lost = flow.queue_drops + flow.random_losses
        first = flow.packets_sent - flow.packets_retransmitted
        yield f"{at}lost {lost} of {flow.packets_sent}", lost <= flow.packets_sent
        yield f"{at}delivered {flow.delivered_bytes} of {first} segments", flow.delivered_bytes <= first * scenario.mss
        most = compute_capacity_mbit(scenario, scenario.flows[i].path) + scenario.data_bytes * 8e-6
        yield f"{at}goodput {flow.goodput_mbps} within capacity", flow.goodput_mbps * span_s <= most * (1 + SLACK)
    least_ms = scenario.propagation_rtt_ms(i)
    yield f"{at}least RTT {flow.rtt_min_ms} of {least_ms}", not flow.rtt_min_ms < least_ms - 1e-4
    yield f"{at}mean RTT {flow.rtt_mean_ms} of {flow.rtt_min_ms}", not flow.rtt_mean_ms < flow.rtt_min_ms * (1 - SLACK)
    for name in ("completion_s", "failed_s"):
        end = getattr(flow, name)
        yield f"{at}{name} = {end}", math.isnan(end) or flow.start_s - 1e-8 <= end <= scenario.duration_s + 1e-8


def _list_link_claims(result: Result, i: int, link: Any, whole_run: bool) -> Iterator[tuple[str, bool]]:
    given, at = result.scenario.links[i], f"link {link.name}: "
    if whole_run:
        left = link.packets_in - link.packets_out - link.queue_drops
        yield f"{at}in {link.packets_in}, out {link.packets_out}, drops {link.queue_drops}", left >= 0
        if "queue_packets" in result.series and len(result.series["queue_packets"]):
            waiting = result.series["queue_packets"][-1, i]
            yield f"{at}{left} left in the queue, {waiting} seen", abs(left - waiting) < 0.5
        yield f"{at}left {left} of most {link.queue_max_packets_total}", left <= link.queue_max_packets_total
        admitted = link.packets_in - link.queue_drops  # whose loss may be decided before they leave
        yield f"{at}losses {link.random_losses} of {admitted}", link.random_losses <= admitted
        yield f"{at}marks {link.marks} of {link.packets_in}", 0 <= link.marks <= link.packets_in
    if given.queue_packets is not None and given.discipline is None:
        yield f"{at}queue {link.queue_max_packets_total}", link.queue_max_packets_total <= given.queue_packets
    start_s, end_s = result.window_s
    if given.has_finite_rate and given.medium is None:
        # A packet counts when it begins to be sent, so that one may count whose end the window does not hold.
        lone = [*(probe.bytes for probe in result.scenario.probes), *(udp.longest_packet_bytes for udp in result.scenario.udp)]
        one = max([result.scenario.data_bytes, *lone]) * 8e-6
        offered = compute_capacity_mbit(result.scenario, (i,), start_s)
        carried = link.throughput_mbps * (end_s - start_s)
        most = offered + 2 * one
        told = f"{at}carried {carried:.9g} of {offered:.9g} Mbit (device_packets={given.device_packets})"
        yield told, carried <= most * (1 + SLACK)
        if offered > 1e3 * one:
            yield f"{at}utilisation {link.utilisation}", link.utilisation <= 1 + 2e-3


def _list_traffic_claims(result: Result, whole_run: bool) -> Iterator[tuple[str, bool]]:
    done, opened, total = result.completions, result.opened, result.traffic
    if total is None:
        return
    yield "completions are of flows that opened", bool(np.isin(done["flow"], opened["flow"]).all())
    pages = result.pages
    yield "pages come in order, in positive times", bool((pages["load_s"] > 0).all() and (pages["objects"] > 0).all())
    yield "completions come once", len(np.unique(done["flow"])) == len(done)
    yield "received is at most the size", bool((opened["received_bytes"] <= opened["size_bytes"]).all())
    own = opened[done["flow"]] if len(done) else opened[:0]
    yield "what is complete was received", bool((own["received_bytes"] == done["size_bytes"]).all())
    least = 1 - SLACK - 1e-9 * len(result.scenario.links) / done["ideal_s"]  # delays are of whole nanoseconds
    constant = all(link.medium is None for link in result.scenario.links)
    bounded = not constant or bool((done["slowdown"] >= least).all())
    yield "slowdown is at least 1", bounded and not np.isnan(done["slowdown"]).any()
    if whole_run:
        counts = total.flows_started, total.flows_connected, total.flows_completed
        yield f"started, connected, completed {counts}", counts[0] >= counts[1] >= counts[2]
        yield f"{len(done)} completions of {counts[2]}", len(done) == counts[2]
        yield f"{len(opened)} opened of {counts[0]}", len(opened) == counts[0]
        lost = total.queue_drops + total.random_losses
        yield f"traffic lost {lost} of {total.packets_sent}", lost <= total.packets_sent
        received = int(opened["received_bytes"].sum())
        yield f"traffic delivered {total.delivered_bytes}, {received} received", total.delivered_bytes == received


def _list_switch_claims(result: Result) -> Iterator[tuple[str, bool]]:
    for switch in result.switches:
        shares = switch.occupancy_mean, switch.occupancy_p99, switch.occupancy_max
        yield f"switch {switch.name}: occupancy {shares}", all(not share > 1 + SLACK for share in shares)
        yield f"switch {switch.name}: most is most {shares}", not max(shares) > shares[2] + SLACK
        for q in switch.queues:
            told = f"queue {q.queue} of {q.port}: {asdict(q)}"
            yield told, q.arrivals == q.drops + q.departures + q.packets
            yield told, q.packets_mean <= q.packets_max + SLACK and q.packets_p99 <= q.packets_max + SLACK


def compute_capacity_mbit(scenario: Scenario, path: tuple[int, ...], start_s: float = 0.0) -> float:
    """Compute what a path's slowest link can carry from `start_s` to the end; a token bucket passes its burst at the peak."""
    end_s, least = scenario.duration_s, math.inf
    for i in path:
        link = replace(scenario.links[i], discipline=None)
        if link.has_finite_rate and link.medium is None:  # which carries more in good moments than in the mean
            before = link.mean_mbps(start_s) * start_s if start_s else 0.0
            least = min(least, link.mean_mbps(end_s) * end_s - before)
    return least


def require_equal(a: Any, b: Any, what: str, tolerance: float = 0.0, at: str = "") -> None:
    """Raise `Finding` where two nests of dicts, lists and numbers differ; NaN is equal to itself."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for key in a:
            require_equal(a[key], b[key], what, tolerance, f"{at}.{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            require_equal(x, y, what, tolerance, f"{at}[{i}]")
    elif isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance):
        return
    elif a != b and not (a != a and b != b):
        raise Finding(f"{what}: {at.lstrip('.')} is {a!r} and {b!r}")


def check_files(result: Result, folder: Path) -> None:
    """Write a result in every form and read it again."""
    result.write_json(folder / "result.json")
    json.loads((folder / "result.json").read_text(), parse_constant=_no_constant)
    if result.series:
        result.write_csv(folder / "series.csv")
        with open(folder / "series.csv", newline="") as file:
            rows = list(csv.reader(file))
        if {len(row) for row in rows} != {len(rows[0])}:
            raise Finding(f"series.csv has rows of {sorted({len(row) for row in rows})} fields")
    if result.traffic is not None and len(result.opened):
        result.write_flows_csv(folder / "flows.csv")
        read = FlowList.read_csv(folder / "flows.csv")
        sizes = np.sort(read.size_bytes), np.sort(result.opened["size_bytes"])
        if not np.array_equal(*sizes):
            raise Finding("flows.csv does not hold the flows that opened")


def _no_constant(name: str) -> Callable:
    raise Finding(f"result.json holds {name}, which is no JSON")
