"""Paths of senders: the parts of one world, and the JSON form in which a set of worlds is stored.

A world has one or several paths that share nothing, each with a bottleneck, a return link and some of the world's senders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netbuf_gym import traces
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.scenarios.codec import build_dataclass, require_mapping
from netbuf_gym.scenarios.flows import Bulk, Flow, OnOff
from netbuf_gym.scenarios.impairments import DelaySchedule, Jitter
from netbuf_gym.scenarios.limits import MAX_DELAY_MS
from netbuf_gym.scenarios.links import Link
from netbuf_gym.scenarios.senders import Sender
from netbuf_gym.scenarios.traffic import FlowList, Traffic
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.traces.types import RateTrace, Trace
from netbuf_gym.traces.windows import by_seconds
from netbuf_gym.utils import checks


@dataclass(frozen=True)
class GeneratedTrace:
    """Trace described by the call that generates it, so that a file of worlds holds one line instead of all its deliveries.

    Args:
        kind: A key of `netbuf_gym.traces.GENERATORS`.
        duration_s, seed: Arguments of `netbuf_gym.traces.generate`.
        arguments: Arguments of the generator.
        by_seconds: Whether each second carries its mean evenly.
    """

    kind: str
    duration_s: float
    seed: int
    arguments: Mapping[str, Any]
    by_seconds: bool = False

    def trace(self) -> Trace:
        """Generate the trace.

        Raises:
            ScenarioError: The generator or an argument is unknown, or a value is out of range.
        """
        made = traces.generate(self.kind, duration_s=self.duration_s, seed=self.seed, **self.arguments)
        return by_seconds(made) if self.by_seconds else made


@dataclass(frozen=True)
class RivalFlow:
    """Competing flow that no agent controls.

    Args:
        cc: Congestion control.
        start_s, stop_s: Sending time, as in `Flow`.
        more_rtt_ms: Propagation that the flow has beyond its path's, on a way back of its own.
        app: Application that pauses; None: there always are data to send.
    """

    cc: str
    start_s: float = 0.0
    stop_s: float | None = None
    more_rtt_ms: float = 0.0
    app: OnOff | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able dict; fields at their default are left out."""
        return {key: _write_app(value) if key == "app" else value for key, value in vars(self).items() if value}

    @classmethod
    def from_dict(cls, data: object, at: str) -> RivalFlow:
        """Return the flow that `to_dict` describes; `at` is the name of the data in messages."""
        return build_dataclass(at, cls, _read_app(dict(require_mapping(at, data)), at))


@dataclass(frozen=True)
class ShortFlows:
    """Short flows that come and go over a bottleneck: Poisson arrivals, log-normal sizes.

    They are traffic of the scenario and have no part in fair shares (`Scenario.fair_share_mbps`).

    Args:
        cc: Congestion control.
        flows_per_s: Mean number of flows that start in a second, above 0 to 1e4.
        median_bytes: Median of the sizes, 1 to 1e9.
        sigma: Standard deviation of the logarithm of the sizes, 0 to 3.
        seed: Seed of starts and sizes.
    """

    cc: str
    flows_per_s: float
    median_bytes: float
    sigma: float = 1.0
    seed: int = 0

    def list_flows(self, sender: int, duration_s: float) -> FlowList | None:
        """Return the flows that start within `duration_s`, each at the traffic's sender of this number; None: there are none.

        Raises:
            ScenarioError: A value is out of range.
        """
        per_s = checks.number("short_flows.flows_per_s", self.flows_per_s, 0, 1e4, low_open=True)
        median = checks.number("short_flows.median_bytes", self.median_bytes, 1, 1e9)
        sigma = checks.number("short_flows.sigma", self.sigma, 0, 3)
        rng = np.random.default_rng(checks.integer("short_flows.seed", self.seed, 0, 2**63 - 1))
        starts_s = np.sort(rng.random(rng.poisson(per_s * duration_s))) * duration_s
        sizes = np.maximum(1, median * np.exp(sigma * rng.standard_normal(len(starts_s)))).astype(np.int64)
        zeros = np.zeros_like(sizes)
        return FlowList(start_s=starts_s, sender=zeros + sender, size_bytes=sizes, priority=zeros) if len(sizes) else None


def _write_app(app: OnOff) -> dict[str, Any]:
    return {key: value for key, value in vars(app).items() if value}


def _read_app(given: dict[str, Any], at: str) -> dict[str, Any]:
    """Return the fields of a record with the application in place of its description."""
    return given | {"app": build_dataclass(f"{at}.app", OnOff, given["app"])} if "app" in given else given


@dataclass(frozen=True, kw_only=True)
class Path:
    """Bottleneck and return link, with the flows that use them.

    Args:
        rate_mbps: Rate of the bottleneck; None: given by its trace.
        generated: Call that generates the bottleneck's trace.
        trace: Trace of the bottleneck where nothing generates it, or the result of `generated`, to avoid generating it again.
        rtt_ms: Round-trip propagation delay, half of it each way.
        buffer_packets: Queue limit of the bottleneck.
        loss: Random loss of data packets behind the bottleneck, 0 to below 1.
        delays: Delay schedule of the bottleneck, in place of half of `rtt_ms`.
        jitter_ms: Largest additional delay of a packet at the bottleneck, uniform.
        jitter_correlation, jitter_reorder: As in `Jitter`.
        policer_mbps: Rate of a token bucket at the bottleneck, which drops what exceeds it; None: no bucket.
        policer_bytes: Most that passes the bucket at once.
        on_outage: As in `Link`.
        return_mbps, return_packets: Rate and queue limit of the return link; None: unlimited.
        starts_s: Start times of the senders.
        more_rtts_ms: Propagation that each sender has beyond `rtt_ms`, on a way back of its own; (): none has.
        app: Application of the senders, which pauses; None: they always have data to send.
        rivals: Other flows over the bottleneck.
        short_flows: Short flows over the bottleneck; None: none.
        reverse: Flows over the return link, whose ACKs cross the bottleneck.
    """

    rtt_ms: float
    buffer_packets: int
    rate_mbps: float | None = None
    generated: GeneratedTrace | None = None
    trace: Trace | None = None
    loss: float = 0.0
    delays: DelaySchedule | None = None
    jitter_ms: float = 0.0
    jitter_correlation: float = 0.0
    jitter_reorder: bool = False
    policer_mbps: float | None = None
    policer_bytes: float = 15000.0
    on_outage: str = "hold"
    return_mbps: float | None = None
    return_packets: int | None = None
    starts_s: Sequence[float] = (0.0,)
    more_rtts_ms: Sequence[float] = ()
    app: OnOff | None = None
    rivals: Sequence[RivalFlow] = ()
    short_flows: ShortFlows | None = None
    reverse: Sequence[RivalFlow] = ()

    def links(self, number: int) -> list[Link]:
        """Return the bottleneck and the return link of the world's path with this number, from 1 on."""
        more = "" if number == 1 else f"-{number}"
        trace = self.generated.trace() if self.generated is not None and self.trace is None else self.trace
        jitter = None
        if self.jitter_ms:
            jitter = Jitter(scale_ms=self.jitter_ms, correlation=self.jitter_correlation, reorder=self.jitter_reorder)
        policer = None
        if self.policer_mbps is not None:
            policer = {"name": "policer", "rate_mbps": self.policer_mbps, "burst_bytes": self.policer_bytes}
        return [
            Link(
                name=f"bottleneck{more}",
                rate_mbps=self.rate_mbps,
                trace=trace,
                delay_ms=self.rtt_ms / 2 if self.delays is None else self.delays,
                queue_packets=self.buffer_packets,
                loss=self.loss,
                discipline=policer,
                jitter=jitter,
                on_outage=self.on_outage if trace is not None else "hold",
            ),
            Link(
                name=f"return{more}",
                rate_mbps=self.return_mbps,
                delay_ms=self.rtt_ms / 2,
                queue_packets=self.return_packets,
            ),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able dict; fields at their default are left out, and a generated trace is not written out."""
        data: dict[str, Any] = {
            "rtt_ms": self.rtt_ms,
            "buffer_packets": self.buffer_packets,
            "rate_mbps": self.rate_mbps,
            "return_mbps": self.return_mbps,
            "return_packets": self.return_packets,
        }
        if self.generated is not None:
            data["generated"] = {key: value for key, value in vars(self.generated).items() if value is not False}
        elif self.trace is not None:
            if not isinstance(self.trace, RateTrace):
                raise ScenarioTypeError(f"trace = {quote(self.trace)} is not a RateTrace; valid: a RateTrace, or `generated`")
            data["trace"] = {"time_s": self.trace.time_s.tolist(), "rate_mbps": self.trace.rate_mbps.tolist()}
        data |= {name: getattr(self, name) or None for name in ("loss", "jitter_ms", "jitter_correlation", "jitter_reorder")}
        if self.policer_mbps is not None:
            data |= {"policer_mbps": self.policer_mbps, "policer_bytes": self.policer_bytes}
        if self.delays is not None:
            data["delays"] = {"time_s": self.delays.time_s.tolist(), "delay_ms": self.delays.delay_ms.tolist()}
        data["on_outage"] = None if self.on_outage == "hold" else self.on_outage
        data["starts_s"] = list(self.starts_s)
        data["more_rtts_ms"] = list(self.more_rtts_ms) if any(self.more_rtts_ms) else None
        data["app"] = None if self.app is None else _write_app(self.app)
        for field, flows in (("rivals", self.rivals), ("reverse", self.reverse)):
            data[field] = [flow.to_dict() for flow in flows] or None
        data["short_flows"] = None if self.short_flows is None else dict(vars(self.short_flows))
        return {key: value for key, value in data.items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], at: str = "path") -> Path:
        """Return the path that `to_dict` describes.

        Args:
            data: Result of `to_dict`.
            at: Name of the data in messages.

        Raises:
            ScenarioError: A field is missing, unknown or of a wrong type; values are checked when links are made.
        """
        given = _read_app(dict(require_mapping(at, data)), at)
        for field, kind in _PARTS.items():
            if field in given:
                given[field] = build_dataclass(f"{at}.{field}", kind, given[field])
        for field in ("rivals", "reverse"):
            if field in given:
                flows = checks.sequence(f"{at}.{field}", given[field], "flows")
                given[field] = tuple(RivalFlow.from_dict(one, f"{at}.{field}[{i}]") for i, one in enumerate(flows))
        if "generated" in given:
            require_mapping(f"{at}.generated.arguments", given["generated"].arguments)
            checks.boolean(f"{at}.generated.by_seconds", given["generated"].by_seconds)
        for field in ("starts_s", "more_rtts_ms"):
            if field in given:
                given[field] = checks.sequence(f"{at}.{field}", given[field], "numbers")
        if "rtt_ms" in given:
            checks.number(f"{at}.rtt_ms", given["rtt_ms"], 0, MAX_DELAY_MS)
        return build_dataclass(at, cls, given)


_PARTS = {"generated": GeneratedTrace, "trace": RateTrace, "delays": DelaySchedule, "short_flows": ShortFlows}
"""Records that fields of a `Path` hold."""


@dataclass(frozen=True, kw_only=True)
class PathWorld:
    """World of one or several paths.

    Args:
        family: Default name of the scenario, and the property that the world has.
        duration_s: Duration of the world.
        paths: Paths of the world.
    """

    family: str
    duration_s: float
    paths: Sequence[Path]

    @property
    def senders(self) -> int:
        """Number of senders over all paths, not counting rivals."""
        return sum(len(path.starts_s) for path in self.paths)

    def scenario(self, senders: Sequence[Any], name: str = "") -> Scenario:
        """Return the world as a scenario: first the senders, path by path, then rivals and flows over the return links.

        Args:
            senders: Congestion control of each sender.
            name: Name of the scenario; "": that of the family.

        Raises:
            ScenarioError: A value is out of range, or the number of `senders` is wrong.
        """
        if len(senders) != self.senders:
            raise ScenarioError(f"senders has {len(senders)} names for {self.senders} senders; valid: as many")
        links = [link for number, path in enumerate(self.paths, 1) for link in path.links(number)]
        first: list[Flow] = []
        others: list[Flow] = []
        opening: list[Sender] = []
        arrivals: list[FlowList] = []

        def return_over(link: int, more_rtt_ms: float) -> tuple[int, ...]:
            if not more_rtt_ms:
                return (link,)
            links.append(Link(name=f"detour-{len(links)}", delay_ms=more_rtt_ms))
            return link, len(links) - 1

        for number, path in enumerate(self.paths):
            ahead, behind = 2 * number, 2 * number + 1
            more_rtts_ms = path.more_rtts_ms or (0.0,) * len(path.starts_s)
            if len(more_rtts_ms) != len(path.starts_s):
                where, valid = f"paths[{number}].more_rtts_ms", f"{len(path.starts_s)}, as in starts_s"
                raise ScenarioError(f"{where} has {len(more_rtts_ms)} values; valid: {valid}")
            for start_s, more_ms in zip(path.starts_s, more_rtts_ms, strict=True):
                back, app = return_over(behind, more_ms), path.app or Bulk()
                first.append(Flow(cc=senders[len(first)], path=(ahead,), return_path=back, start_s=start_s, app=app))
            for rivals, there, back_link in ((path.rivals, ahead, behind), (path.reverse, behind, ahead)):
                for one in rivals:
                    back, app = return_over(back_link, one.more_rtt_ms), one.app or Bulk()
                    flow = Flow(cc=one.cc, path=(there,), return_path=back, start_s=one.start_s, stop_s=one.stop_s, app=app)
                    others.append(flow)
            if path.short_flows is not None:
                made = path.short_flows.list_flows(len(opening), self.duration_s)
                if made is not None:
                    arrivals.append(made)
                    opening.append(Sender(cc=path.short_flows.cc, path=(ahead,), return_path=(behind,)))
        traffic = Traffic(senders=opening, arrivals=arrivals) if arrivals else None
        flows, name = [*first, *others], name or self.family
        return Scenario(links=links, flows=flows, traffic=traffic, duration_s=self.duration_s, name=name)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able dict, see `Path.to_dict`."""
        return {"family": self.family, "duration_s": self.duration_s, "paths": [path.to_dict() for path in self.paths]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PathWorld:
        """Return the world that `to_dict` describes.

        Raises:
            ScenarioError: A field is missing, unknown or of a wrong type.
        """
        given = dict(require_mapping("world", data))
        if "paths" in given:
            paths = checks.sequence("world.paths", given["paths"], "paths")
            given["paths"] = tuple(Path.from_dict(one, f"world.paths[{i}]") for i, one in enumerate(paths))
        if "duration_s" in given:
            checks.number("world.duration_s", given["duration_s"], 0.001, 1e5)
        return build_dataclass("world", cls, given)
