"""Random scenarios, as the dicts of scenario files: of every link, discipline, congestion control, application and traffic.

What there is comes from the catalogues, so that whatever is added there is drawn too.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from netbuf_gym.scenarios import CONGESTION_CONTROLS, QUEUE_DISCIPLINES, STACKS, FlowList, Scenario
from netbuf_gym.scenarios.catalogue import MEDIUM_RECORDS, CatalogueEntry
from netbuf_gym.scenarios.codec import SCHEMA
from tools.fuzz.case import Case

PACKETS = 4000
"""About so many a world may send, so that it takes milliseconds."""
MEDIUM_EVENT_US = 10.0
"""Time between two events of a medium, at the least in the mean."""


def draw_world(case: Case, switch: float = 0.25) -> dict[str, Any]:
    """Draw a scenario that is valid but for the odd thing that cannot go together; `switch`: the probability of one."""
    stack = case.pick(STACKS)
    ahead, back = case.whole(1, 3), case.whole(1, 2)
    names = [*(["bottleneck"] if case.chance(0.6) else ["first"]), *(f"ahead-{i}" for i in range(1, ahead))]
    names += [f"back-{i}" for i in range(back)]
    links = [_draw_link(case, name) for name in names]
    data: dict[str, Any] = {"schema": SCHEMA, "links": links, "stack": stack}
    data["duration_s"] = case.log(1e-4, 60)
    ports = _draw_ports(case, links, ahead) if case.chance(switch) else []
    queues = case.whole(1, 4)
    if ports:
        data["switches"] = [_draw_switch(case, [links[i]["name"] for i in ports], queues)]
        for i in ports:
            for key in ("queue_packets", "queue_bytes", "discipline"):
                links[i].pop(key, None)
            links[i]["device_packets"] = case.pick((0, 0, 1, 7)) if "medium" not in links[i] else 0
    priorities = queues if ports else case.pick((1, 1, 64))
    paths = {"ahead": range(ahead), "back": range(ahead, ahead + back), "links": links}
    data["flows"] = [_draw_flow(case, stack, paths, priorities, data["duration_s"]) for _ in range(case.pick((0, 1, 1, 2, 5)))]
    if case.chance(0.4) or not data["flows"]:
        data["traffic"] = _draw_traffic(case, stack, paths, priorities, data["duration_s"])
    data["probes"] = [_draw_probe(case, paths, priorities, data["duration_s"]) for _ in range(case.pick((0, 0, 1, 3)))]
    if case.chance(0.3):
        data["udp"] = [_draw_udp(case, paths, priorities, data["duration_s"]) for _ in range(case.whole(1, 3))]
    for name, make in (
        ("name", lambda: case.pick(("w", "é", "a b"))),
        ("hystart", lambda: case.pick((True, False, "rfc9406") if stack == "linux" else (True, False))),
        ("pacing", lambda: stack == "linux" and case.chance(0.5)),
        ("mss_bytes", lambda: case.pick((100, 536, 1448, 9000, case.whole(100, 9000)))),
        ("min_rto_ms", lambda: case.log(1, 60_000)),
        ("delayed_ack", lambda: case.pick((1, 2, 3, 1000))),
    ):
        if case.chance(0.25):
            data[name] = make()
    return data


def shorten(scenario: Scenario, packets: float = PACKETS) -> Scenario | None:
    """Return the same world, as short as it must be to send about so many packets; None: it cannot be."""
    for _ in range(40):
        found = bound_packets(scenario)
        if found <= packets:
            return scenario
        shorter = scenario.duration_s * (packets / found if math.isfinite(found) else 0.1) * 0.9
        if shorter < 2e-9:
            return None
        scenario = replace(scenario, duration_s=shorter)
    return None


def bound_packets(scenario: Scenario) -> float:
    """Bound how many packets and events a world makes, at most."""
    span_s, total = scenario.duration_s, 0.0
    for i, flow in enumerate(scenario.flows):
        most = _bound_segments(scenario, flow, i, span_s, flow.receive_buffer_bytes, flow.initial_cwnd_packets)
        app = flow.app
        if hasattr(app, "size_bytes"):
            most = min(most, app.size_bytes / scenario.mss + 1)
        if hasattr(app, "on_s"):
            total += 2 * span_s / (app.on_s + app.off_s)
            if app.rate_mbps is not None:
                most = min(most, app.rate_mbps * 1e6 * span_s / 8 / scenario.mss + span_s / (app.on_s + app.off_s) + 1)
        if hasattr(app, "bitrates_mbps"):
            most = min(most, app.bitrates_mbps[-1] * 1e6 * (span_s + app.buffer_s + app.chunk_s) / 8 / scenario.mss + span_s)
        total += most
    if scenario.traffic is not None:
        total += _bound_traffic(scenario, span_s)
    total += sum((span_s - probe.start_s) / probe.interval_s for probe in scenario.probes if probe.start_s < span_s)
    for source in scenario.udp:
        lives_s = max(0.0, min(span_s, source.stop_s or span_s) - source.start_s)
        total += source.bound_events(lives_s)
    for link in scenario.links:
        if link.trace is not None:
            times = link.trace.time_s if hasattr(link.trace, "time_s") else link.trace.time_ms
            total += len(times) * min(span_s / max(link.trace.duration_s, 1e-9), 1e12)
        elif link.medium is not None:
            total += span_s * 1e6 / MEDIUM_EVENT_US
    return total


def _compute_peak_mbps(scenario: Scenario, path: Any, span_s: float) -> float:
    """The mean rate of a path's slowest link, at which it passes a token bucket's burst."""
    return min(replace(scenario.links[i], discipline=None).mean_mbps(span_s) for i in path)


def _bound_segments(scenario: Scenario, flow: Any, index: int, span_s: float, window_bytes: int | None, first: int) -> float:
    """Segments that a flow can send at most: what its slowest link passes, or its window in each round trip."""
    rate = _compute_peak_mbps(scenario, flow.path, span_s)
    if math.isfinite(rate):
        return rate * 1e6 * span_s / 8 / scenario.mss * 3 + first  # small ones are sent several to a packet's time
    rtt_s = scenario.base_rtt_ms(index) * 1e-3
    trips = span_s / rtt_s if rtt_s > 0 else math.inf
    window = first * 2.0 ** min(trips, 60)
    if window_bytes is not None:
        window = min(window, window_bytes / scenario.mss + 1)
    return window * (trips + 1)


def _bound_traffic(scenario: Scenario, span_s: float) -> float:
    total, traffic = 0.0, scenario.traffic
    for arrivals in traffic.arrivals:
        if isinstance(arrivals, FlowList):
            in_time = arrivals.start_s < span_s
            flows, size = float(in_time.sum()), float(arrivals.size_bytes[in_time].mean()) if in_time.any() else 0.0
        else:
            flows = arrivals.count_expected_flows(span_s)
            size = arrivals.offered_mbps * 1e6 / 8 * span_s / flows if flows else 0.0
        rates = [_compute_peak_mbps(scenario, sender.path, span_s) for sender in traffic.senders]
        total += 10 * flows + min(flows * size, sum(rates) * 1e6 * span_s / 8) / scenario.mss
    return total


# ---- the parts


def _draw_link(case: Case, name: str) -> dict[str, Any]:
    link: dict[str, Any] = {"name": name, "delay_ms": case.pick((0, 0.5, case.log(1e-3, 300)))}
    kind = case.rng.random()
    if kind < 0.65:
        link["rate_mbps"] = case.log(0.01, 2000)
    elif kind < 0.85:
        link["trace"] = _draw_trace(case)
    elif kind < 0.92:
        medium = case.pick(sorted(MEDIUM_RECORDS))
        link["medium"] = {"kind": medium, **_draw_parameters(case, MEDIUM_RECORDS[medium], None)}
        link["uplink"] = case.chance(0.4)
        if medium == "cellular":
            link["gain_db"] = case.pick((0, 0, -10, 10))
    limit = case.rng.random()
    if limit < 0.6:
        link["queue_packets"] = case.pick((1, 2, 10, 100, 1000))
    elif limit < 0.75:
        link["queue_bytes"] = case.pick((1, 1500, 10_000, 1_000_000))
    lossy = case.rng.random()
    if lossy < 0.25:
        link["loss"] = case.pick((1e-4, 0.01, 0.2, 0.9))
    elif lossy < 0.4:
        names = ("p_good_to_bad", "p_bad_to_good", "loss_good", "loss_bad")
        link["gilbert_elliott"] = {name: case.pick((0, 0.01, 0.3, 1)) for name in names}
    link["loss_on_acks"] = case.chance(0.3)
    if kind < 0.92 and case.chance(0.35):
        name = case.pick(sorted(QUEUE_DISCIPLINES))
        link["discipline"] = {"kind": name, **_draw_parameters(case, QUEUE_DISCIPLINES[name], None)}
        link["device_packets"] = case.pick((0, 0, 1, 20)) if kind < 0.85 else 0
    return link | _draw_wire(case, link)


def _draw_wire(case: Case, link: dict[str, Any]) -> dict[str, Any]:
    """Draw what changes on the way, of some links."""
    found: dict[str, Any] = {}
    if case.chance(0.25):
        found["delay_ms"] = _draw_schedule(case, "delay_ms", (0, 0.5, 50, case.log(1e-3, 300))) | {"reorder": case.chance(0.5)}
    if case.chance(0.2):
        distribution = case.pick(("uniform", "exponential", "normal", "pareto"))
        found["jitter"] = {"distribution": distribution, "scale_ms": case.pick((0, 0.01, case.log(1e-3, 100)))}
        found["jitter"] |= {"correlation": case.pick((0, 0, 0.9)), "reorder": case.chance(0.6)}
        if distribution == "normal":
            found["jitter"]["mean_ms"] = case.pick((0, 5))
        if distribution == "pareto":
            found["jitter"]["shape"] = case.pick((0.5, 1.5, 3))
    if "loss" not in link and "gilbert_elliott" not in link and case.chance(0.15):
        found["loss"] = _draw_schedule(case, "loss", (0, 0.01, 0.5, 1))
        found["loss"]["loss"][-1] = 0.02
    if "trace" in link and case.chance(0.4):
        found |= {"on_outage": "drop", "outage_ms": case.pick((1, 20, 100, 1000))}
    return found


def _draw_schedule(case: Case, field: str, values: tuple) -> dict[str, Any]:
    gaps = [case.log(1e-3, 3) for _ in range(case.whole(1, 6))]
    schedule = {"time_s": [sum(gaps[:i]) for i in range(len(gaps))], field: [case.pick(values) for _ in gaps]}
    return schedule | ({"period_s": sum(gaps)} if case.chance(0.5) else {})


def _draw_trace(case: Case) -> dict[str, Any]:
    steps = case.whole(1, 8)
    if case.chance(0.5):
        gaps = [case.log(1e-3, 3) for _ in range(steps)]
        rates = [case.pick((0, case.log(0.01, 500), case.log(1e-4, 10))) for _ in range(steps)]
        rates[-1] = case.log(0.1, 100)
        trace = {"kind": "rates", "time_s": [sum(gaps[:i]) for i in range(steps)], "rate_mbps": rates}
        return trace | ({"period_s": sum(gaps)} if case.chance(0.6) else {})
    times = sorted(case.pick((case.whole(1, 300), case.log(0.01, 300))) for _ in range(case.whole(1, 60)))
    period = {"period_ms": times[-1] + case.log(1e-3, 50)} if case.chance(0.4) else {}
    return {"kind": "deliveries", "time_ms": times, **period}


def _draw_parameters(case: Case, record: CatalogueEntry, stack: str | None) -> dict[str, Any]:
    """Some of the parameters of a congestion control or discipline, mostly near their defaults."""
    known = [parameter for parameter in record.parameters if stack is None or stack in parameter.stacks]
    values: dict[str, Any] = {}
    for parameter in case.some(known, 3) if case.chance(0.5) else []:
        low, high, default = parameter.low, parameter.high, parameter.default
        if parameter.kind == "truth":
            values[parameter.name] = case.chance(0.5)
            continue
        if parameter.names:
            values[parameter.name] = case.pick(parameter.names)
            continue
        near = (default or low or 1) * case.log(0.3, 3)
        value = min(max(case.pick((low, high, near, near, near)), low), high)
        values[parameter.name] = round(value) if parameter.kind == "whole" else value
    return values


def _draw_control(case: Case, stack: str) -> Any:
    name = case.pick([r.name for r in CONGESTION_CONTROLS.values() if stack in r.stacks and not r.agent])
    values = _draw_parameters(case, CONGESTION_CONTROLS[name], stack)
    return {"name": name, **values} if values else name


def _draw_path(case: Case, paths: dict[str, Any]) -> dict[str, list]:
    """Some of the links ahead, in order, and some of those back, by number or by name."""
    found = {}
    for key, among in (("path", paths["ahead"]), ("return_path", paths["back"])):
        chosen = sorted(case.some(list(among), len(among))) or [among[0]]
        found[key] = [paths["links"][i]["name"] for i in chosen] if case.chance(0.3) else chosen
    return found


def _draw_flow(case: Case, stack: str, paths: dict[str, Any], priorities: int, span_s: float) -> dict[str, Any]:
    flow: dict[str, Any] = {
        "cc": _draw_control(case, stack),
        **_draw_path(case, paths),
        "priority": case.whole(0, priorities - 1),
    }
    if case.chance(0.4):
        flow["start_s"] = case.pick((0.0, span_s * case.rng.random(), span_s, 2 * span_s))
        if case.chance(0.5):
            flow["stop_s"] = flow["start_s"] + case.log(1e-6, 10)
    if case.chance(0.6):
        app = case.pick(("bulk", "sized", "on_off", "on_off", "paused", "video"))
        flow["app"] = {"kind": app}
        if app == "sized":
            flow["app"]["size_bytes"] = case.pick((1, 1448, 1449, case.whole(1, 3_000_000)))
        elif app == "on_off":
            flow["app"] |= {"on_s": case.log(1e-4, 3), "off_s": case.log(1e-4, 3), "random": case.chance(0.5)}
            if case.chance(0.5):
                flow["app"]["rate_mbps"] = case.log(1e-3, 200)
        elif app == "paused":
            times = sorted({case.log(1e-4, 3) for _ in range(2 * case.whole(1, 4))})
            flow["app"]["rests_s"] = [times[k : k + 2] for k in range(0, len(times) - 1, 2)]
        elif app == "video":
            flow["app"] |= _draw_video(case)
    for name in ("send_buffer_bytes", "receive_buffer_bytes"):
        if case.chance(0.3):
            flow[name] = case.pick((4096, 20_000, 65_536, 10**6))
    if case.chance(0.3):
        flow["initial_cwnd_packets"] = case.pick((1, 2, 3, 100, 1000))
    if stack == "linux" and case.chance(0.3):
        flow["ecn"] = case.pick((True, "accurate"))
    if case.chance(0.2):
        times = sorted({case.log(1e-4, 3) for _ in range(case.whole(1, 4))})
        flow["routes"] = [{"at_s": time, **_draw_path(case, paths)} for time in times]
    bulk = flow.get("app", {"kind": "bulk"})["kind"] == "bulk" and not {"stop_s", "receive_buffer_bytes"} & flow.keys()
    if bulk and case.chance(0.2):
        flow["misbehaviour"] = case.pick(("optimistic", "split", "spoofed"))
        flow["send_buffer_bytes"] = 65_536
    return flow


def _draw_video(case: Case) -> dict[str, Any]:
    """A client that mostly asks for small chunks, so that there are several in a short world."""
    chunk_s = case.pick((0.1, 0.5, 4))
    ladder = sorted({case.log(1e-3, 50) for _ in range(case.whole(1, 6))})
    found = {"bitrates_mbps": ladder, "chunk_s": chunk_s, "buffer_s": chunk_s * case.pick((1, 1.5, 2, 8))}
    found |= {"abr": case.pick(("rate", "buffer")), "startup_s": found["buffer_s"] * case.pick((0, 0.1, 1))}
    for name, values in (("window_chunks", (1, 3)), ("safety", (0.1, 1, 2)), ("reservoir_s", (0, 0.2)), ("cushion_s", (0, 1))):
        if case.chance(0.3):
            found[name] = case.pick(values)
    return found


def _draw_traffic(case: Case, stack: str, paths: dict[str, Any], priorities: int, span_s: float) -> dict[str, Any]:
    spoken = {"ecn": True} if stack == "linux" and case.chance(0.3) else {}
    senders = [{"cc": _draw_control(case, stack), **_draw_path(case, paths), **spoken} for _ in range(case.whole(1, 4))]
    arrivals = [_draw_arrivals(case, len(senders), priorities, span_s) for _ in range(case.pick((1, 1, 2)))]
    below = sorted(case.some((1, 1000, 10_000, 2_000_000), min(priorities - 1, 3)))
    return {"senders": senders, "arrivals": arrivals, "priority_below": below}


def _draw_arrivals(case: Case, senders: int, priorities: int, span_s: float) -> dict[str, Any]:
    kind = case.rng.random()
    span = {"start_s": case.pick((0, 0, span_s / 2))}
    if case.chance(0.2):
        span["stop_s"] = span["start_s"] + case.log(1e-3, 10)
    if kind < 0.4:
        sizes = {"name": "s", "size_bytes": [1, case.whole(2, 5000), case.whole(5000, 200_000)], "cumulative": [0, 0.5, 1]}
        return {"kind": "poisson", "flows_per_s": case.log(1, 100) / span_s, "sizes": sizes, **span}
    if kind < 0.5:
        gaps = _draw_law(case, span_s / case.log(1, 100))
        return {"kind": "renewal", "gap_s": gaps, "sizes": _draw_law(case, case.log(1, 100_000)), **span}
    if kind < 0.6:
        sizes = {name: _draw_law(case, case.log(1, 50_000)) for name in ("main_bytes", "object_bytes")}
        times = {name: _draw_law(case, span_s / case.log(1, 30)) for name in ("reading_s", "parsing_s")}
        users = {"users": case.whole(1, 5), "connections": case.pick((None, 1, 2, 6))}
        return {"kind": "web", "objects": _draw_law(case, case.log(0.5, 10)), **sizes, **times, **users, **span}
    if kind < 0.75:
        burst = {"interval_s": span_s / case.whole(1, 20), "fan_in": case.whole(1, senders), "random": case.chance(0.5)}
        return {"kind": "incast", "size_bytes": case.pick((1, 1448, 60_000)), **burst, **span}
    flows = range(case.whole(1, 30))
    columns = {
        "start_s": [case.pick((0.0, span_s * float(case.rng.random()))) for _ in flows],
        "sender": [case.whole(0, senders - 1) for _ in flows],
        "size_bytes": [case.pick((1, 1448, case.whole(1, 100_000))) for _ in flows],
        "priority": [case.whole(0, priorities - 1) for _ in flows],
    }
    return {"kind": "list", **columns}


def _draw_law(case: Case, mean: float) -> dict[str, Any]:
    """A law of about this mean."""
    laws: tuple[dict[str, Any], ...] = (
        {"kind": "constant", "value": mean},
        {"kind": "exponential", "mean": mean},
        {
            "kind": "pareto",
            "minimum": mean / 2,
            "shape": case.pick((0.9, 1.5, 3.0)),
            "high": case.pick((20 * mean, 1e3 * mean)),
        },
        {"kind": "pareto", "minimum": mean / 2, "shape": case.pick((1.2, 2.5))},
        {"kind": "lognormal", "mu": math.log(mean), "sigma": case.pick((0.1, 1.0, 2.5))},
        {"kind": "weibull", "scale": mean, "shape": case.pick((0.4, 1.0, 3.0)), "high": 100 * mean},
    )
    law = case.pick(laws)
    if case.chance(0.15):
        return {"kind": "mixed", "parts": [law, case.pick(laws)], "weights": [1.0, case.log(0.1, 10)]}
    return law


def _draw_probe(case: Case, paths: dict[str, Any], priorities: int, span_s: float) -> dict[str, Any]:
    probe: dict[str, Any] = {"path": _draw_path(case, paths)["path"], "interval_s": max(span_s / case.whole(1, 100), 1e-6)}
    probe["priority"] = case.whole(0, priorities - 1)
    if case.chance(0.4):
        probe |= {"start_s": span_s * float(case.rng.random()), "bytes": case.pick((1, 64, 1500, 65_535))}
    return probe


def _draw_udp(case: Case, paths: dict[str, Any], priorities: int, span_s: float) -> dict[str, Any]:
    source: dict[str, Any] = {
        "path": case.pick(list(_draw_path(case, paths).values())),
        "priority": case.whole(0, priorities - 1),
    }
    mean_bytes = case.pick((1, 64, 1500, 65_535, case.whole(1, 65_535)))
    if case.chance(0.15):
        count = case.whole(1, 50)
        times = sorted(case.pick((0.0, span_s * float(case.rng.random()))) for _ in range(count))
        period = {"period_s": times[-1] + span_s / case.whole(1, 5)} if case.chance(0.4) else {}
        return {"kind": "replay", "time_s": times, "packet_bytes": [case.whole(1, 65_535) for _ in times], **period, **source}
    source["packet_bytes"] = mean_bytes if case.chance(0.7) else case.pick(("imix", _draw_law(case, min(mean_bytes, 5000))))
    rate_mbps = case.log(1, 1000) * mean_bytes * 8e-6 / span_s
    source["rate_mbps"] = min(max(rate_mbps, 1e-6), mean_bytes * 8e3)
    source["arrivals"] = case.pick(("constant", "constant", "poisson"))
    if case.chance(0.2):
        source |= {name: _draw_law(case, max(span_s / case.whole(1, 50), 2e-6)) for name in ("on_s", "off_s")}
    elif case.chance(0.5):
        periods = {name: max(span_s / case.whole(1, 50), 1e-6) for name in ("on_s", "off_s")}
        source |= {**periods, "random": case.chance(0.5)}
    if case.chance(0.3):
        source["start_s"] = span_s * float(case.rng.random())
    if case.chance(0.3):
        source["stop_s"] = source.get("start_s", 0.0) + case.log(1e-3, 10)
    return source


def _draw_ports(case: Case, links: list[dict[str, Any]], ahead: int) -> list[int]:
    """Links with a rate, one or more of those ahead."""
    rated = [i for i in range(ahead) if "rate_mbps" in links[i] or "trace" in links[i]]
    if not rated:
        links[0]["rate_mbps"] = case.log(0.1, 200)
        rated = [0]
    return rated if case.chance(0.5) else rated[:1]


def _draw_switch(case: Case, ports: list[str], queues: int) -> dict[str, Any]:
    kind = case.pick(("static", "dynamic", "abm", "agent"))
    factors = [case.pick((0, 0.1, 1, 8, 1e6)) for _ in range(queues)]
    admission = {
        "static": {"limits": [case.pick((0, 1, 20, 10**6)) for _ in range(queues)]},
        "agent": {"betas": [case.pick((0.5, 1)) for _ in range(queues)], "alphas": factors},
    }.get(kind, {"alphas": factors})
    scheduler = case.pick(("round_robin", "drr", "strict_priority"))
    quanta = {"quanta_bytes": [case.pick((1, 100, 1500, 100_000)) for _ in range(queues)]} if scheduler == "drr" else {}
    buffer = {"buffer_packets": case.pick((1, 10, 200))} if case.chance(0.6) else {"buffer_bytes": case.pick((1, 3000, 10**6))}
    data = {"ports": ports, "queues": queues, **buffer, "admission": {"kind": kind, **admission}}
    if case.chance(0.3):
        data["queue_cap"] = case.pick((1, 5, 5000))
    if case.chance(0.3):
        data["mark"] = case.pick((1, 20, 5000))
    if case.chance(0.3):
        data |= {"drop": case.pick(("tail", "head")), "protect_syn": case.chance(0.5)}
    if case.chance(0.3):
        table = {
            "slots": case.pick((1, 16, 1024)),
            "service": case.pick(("drr", "fifo")),
            "quantum_bytes": case.pick((64, 1514)),
        }
        data |= {"flow_table": table, "victims": case.pick(("any", "large"))}
    return {**data, "scheduler": {"kind": scheduler, **quanta}}
