"""Paths of senders: the parts of one world, and the JSON form in which a set of worlds is stored.

A world has one or several paths that share nothing, each with a bottleneck, a return link and some of the world's senders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netbuf_gym import traces
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.scenarios.codec import build_dataclass, require_mapping
from netbuf_gym.scenarios.flows import Flow
from netbuf_gym.scenarios.impairments import DelaySchedule, Jitter
from netbuf_gym.scenarios.limits import MAX_DELAY_MS
from netbuf_gym.scenarios.links import Link
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
    """Competing flow that no agent controls: its congestion control and its sending time."""

    cc: str
    start_s: float = 0.0
    stop_s: float | None = None


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
        jitter_ms: Largest additional delay of a packet at the bottleneck, uniform; packets are not reordered.
        on_outage: As in `Link`.
        return_mbps, return_packets: Rate and queue limit of the return link; None: unlimited.
        starts_s: Start times of the senders.
        rivals: Other flows over the bottleneck.
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
    on_outage: str = "hold"
    return_mbps: float | None = None
    return_packets: int | None = None
    starts_s: Sequence[float] = (0.0,)
    rivals: Sequence[RivalFlow] = ()
    reverse: Sequence[RivalFlow] = ()

    def links(self, number: int) -> list[Link]:
        """Return the bottleneck and the return link of the world's path with this number, from 1 on."""
        more = "" if number == 1 else f"-{number}"
        trace = self.generated.trace() if self.generated is not None and self.trace is None else self.trace
        return [
            Link(
                name=f"bottleneck{more}",
                rate_mbps=self.rate_mbps,
                trace=trace,
                delay_ms=self.rtt_ms / 2 if self.delays is None else self.delays,
                queue_packets=self.buffer_packets,
                loss=self.loss,
                jitter=Jitter(scale_ms=self.jitter_ms) if self.jitter_ms else None,
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
        data |= {"loss": self.loss or None, "jitter_ms": self.jitter_ms or None}
        if self.delays is not None:
            data["delays"] = {"time_s": self.delays.time_s.tolist(), "delay_ms": self.delays.delay_ms.tolist()}
        data["on_outage"] = None if self.on_outage == "hold" else self.on_outage
        data["starts_s"] = list(self.starts_s)
        for field, flows in (("rivals", self.rivals), ("reverse", self.reverse)):
            data[field] = [{key: value for key, value in vars(flow).items() if value} for flow in flows] or None
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
        given = dict(require_mapping(at, data))
        for field, kind in (("generated", GeneratedTrace), ("trace", RateTrace), ("delays", DelaySchedule)):
            if field in given:
                given[field] = build_dataclass(f"{at}.{field}", kind, given[field])
        for field in ("rivals", "reverse"):
            if field in given:
                flows = checks.sequence(f"{at}.{field}", given[field], "flows")
                given[field] = tuple(build_dataclass(f"{at}.{field}[{i}]", RivalFlow, one) for i, one in enumerate(flows))
        if "generated" in given:
            require_mapping(f"{at}.generated.arguments", given["generated"].arguments)
            checks.boolean(f"{at}.generated.by_seconds", given["generated"].by_seconds)
        if "starts_s" in given:
            given["starts_s"] = checks.sequence(f"{at}.starts_s", given["starts_s"], "numbers")
        if "rtt_ms" in given:
            checks.number(f"{at}.rtt_ms", given["rtt_ms"], 0, MAX_DELAY_MS)
        return build_dataclass(at, cls, given)


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
        links: list[Link] = []
        first: list[Flow] = []
        others: list[Flow] = []
        for number, path in enumerate(self.paths, 1):
            ahead, behind = (len(links),), (len(links) + 1,)
            links += path.links(number)
            for start_s in path.starts_s:
                first.append(Flow(cc=senders[len(first)], path=ahead, return_path=behind, start_s=start_s))
            for rivals, there, back in ((path.rivals, ahead, behind), (path.reverse, behind, ahead)):
                for one in rivals:
                    others.append(Flow(cc=one.cc, path=there, return_path=back, start_s=one.start_s, stop_s=one.stop_s))
        return Scenario(links=links, flows=[*first, *others], duration_s=self.duration_s, name=name or self.family)

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
