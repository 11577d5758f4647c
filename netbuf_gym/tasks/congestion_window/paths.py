"""Paths of a sender: what one world is made of, and the JSON in which a set of worlds is kept.

A world has one or several paths that share nothing, each a bottleneck and a way back with some of the world's senders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netbuf_gym import traces
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.scenarios.codec import made, mapping
from netbuf_gym.scenarios.flows import Flow
from netbuf_gym.scenarios.impairments import DelaySchedule, Jitter
from netbuf_gym.scenarios.limits import MAX_DELAY_MS
from netbuf_gym.scenarios.links import Link
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.traces.types import RateTrace, Trace
from netbuf_gym.traces.windows import by_seconds
from netbuf_gym.utils import checks


@dataclass(frozen=True)
class Generated:
    """A trace by the call that makes it, so that a file of worlds holds a line instead of all its deliveries.

    Args:
        kind: A key of `netbuf_gym.traces.GENERATORS`.
        duration_s, seed: Of `netbuf_gym.traces.generate`.
        arguments: Of the generator.
        by_seconds: Whether each second carries its mean evenly.
    """

    kind: str
    duration_s: float
    seed: int
    arguments: Mapping[str, Any]
    by_seconds: bool = False

    def trace(self) -> Trace:
        """It.

        Raises:
            ScenarioError: An unknown generator or argument, or a value out of range.
        """
        made = traces.generate(self.kind, duration_s=self.duration_s, seed=self.seed, **self.arguments)
        return by_seconds(made) if self.by_seconds else made


@dataclass(frozen=True)
class Rival:
    """A flow beside the agents' that no agent controls: its congestion control, and from when to when it sends."""

    cc: str
    start_s: float = 0.0
    stop_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Path:
    """A bottleneck and a way back, and who sends over them.

    Args:
        rate_mbps: Of the bottleneck; None: its trace.
        generated: The call that makes its trace.
        trace: Its trace where nothing generates it, or what `generated` made, which is then not made again.
        rtt_ms: Propagation there and back, half of it each way.
        buffer_packets: The bottleneck's queue limit.
        loss: Random loss of data packets behind the bottleneck, 0 to below 1.
        delays: Of the bottleneck, in the place of half of `rtt_ms`.
        jitter_ms: Most by which the bottleneck delays a packet besides, uniform; none overtakes another.
        on_outage: As in `Link`.
        return_mbps, return_packets: Rate and queue limit of the way back; None: none.
        starts_s: When each of the senders begins.
        rivals: Other flows over the bottleneck.
        reverse: Flows over the way back, whose ACKs take the bottleneck.
    """

    rtt_ms: float
    buffer_packets: int
    rate_mbps: float | None = None
    generated: Generated | None = None
    trace: Trace | None = None
    loss: float = 0.0
    delays: DelaySchedule | None = None
    jitter_ms: float = 0.0
    on_outage: str = "hold"
    return_mbps: float | None = None
    return_packets: int | None = None
    starts_s: Sequence[float] = (0.0,)
    rivals: Sequence[Rival] = ()
    reverse: Sequence[Rival] = ()

    def links(self, number: int) -> list[Link]:
        """Bottleneck and way back of the world's path of this number, from 1 on."""
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
        """JSON-able; fields at their default are left out, and a trace that is generated is not written out."""
        data: dict[str, Any] = {"rtt_ms": self.rtt_ms, "buffer_packets": self.buffer_packets}
        for field in ("rate_mbps", "return_mbps", "return_packets"):
            if getattr(self, field) is not None:
                data[field] = getattr(self, field)
        if self.generated is not None:
            data["generated"] = {key: value for key, value in vars(self.generated).items() if value is not False}
        elif self.trace is not None:
            if not isinstance(self.trace, RateTrace):
                raise ScenarioTypeError(f"trace = {shown(self.trace)} is not a RateTrace; valid: one, or `generated`")
            data["trace"] = {"time_s": self.trace.time_s.tolist(), "rate_mbps": self.trace.rate_mbps.tolist()}
        for field in ("loss", "jitter_ms"):
            if getattr(self, field):
                data[field] = getattr(self, field)
        if self.delays is not None:
            data["delays"] = {"time_s": self.delays.time_s.tolist(), "delay_ms": self.delays.delay_ms.tolist()}
        if self.on_outage != "hold":
            data["on_outage"] = self.on_outage
        data["starts_s"] = list(self.starts_s)
        for field in ("rivals", "reverse"):
            if getattr(self, field):
                data[field] = [{key: one for key, one in vars(rival).items() if one} for rival in getattr(self, field)]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], at: str = "path") -> Path:
        """What `to_dict` gave.

        Args:
            at: How messages call it.

        Raises:
            ScenarioError: A field that is missing, unknown or of another type; others are checked where links are made.
        """
        given = dict(mapping(at, data))
        for field, kind in (("generated", Generated), ("trace", RateTrace), ("delays", DelaySchedule)):
            if field in given:
                given[field] = made(f"{at}.{field}", kind, given[field])
        for field in ("rivals", "reverse"):
            if field in given:
                flows = checks.sequence(f"{at}.{field}", given[field], "flows")
                given[field] = tuple(made(f"{at}.{field}[{i}]", Rival, one) for i, one in enumerate(flows))
        if "generated" in given:
            mapping(f"{at}.generated.arguments", given["generated"].arguments)
            checks.boolean(f"{at}.generated.by_seconds", given["generated"].by_seconds)
        if "starts_s" in given:
            given["starts_s"] = checks.sequence(f"{at}.starts_s", given["starts_s"], "numbers")
        if "rtt_ms" in given:
            checks.number(f"{at}.rtt_ms", given["rtt_ms"], 0, MAX_DELAY_MS)
        return made(at, cls, given)


@dataclass(frozen=True, kw_only=True)
class PathWorld:
    """A world of one or several paths.

    Args:
        family: What its name is, and what it shows.
        duration_s: Its length.
        paths: Those that it has.
    """

    family: str
    duration_s: float
    paths: Sequence[Path]

    @property
    def senders(self) -> int:
        """How many there are over all paths, rivals not counted."""
        return sum(len(path.starts_s) for path in self.paths)

    def scenario(self, senders: Sequence[Any], name: str = "") -> Scenario:
        """The world; its first flows are the senders, path by path, and after them come rivals and flows on the way back.

        Args:
            senders: Their congestion controls, as many as there are.
            name: Of the scenario; "": the family's.

        Raises:
            ScenarioError: A value out of range, or not as many senders.
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
                    times = {"start_s": one.start_s, "stop_s": one.stop_s}
                    others.append(Flow(cc=one.cc, path=there, return_path=back, **times))
        return Scenario(links=links, flows=[*first, *others], duration_s=self.duration_s, name=name or self.family)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, see `Path.to_dict`."""
        return {"family": self.family, "duration_s": self.duration_s, "paths": [path.to_dict() for path in self.paths]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PathWorld:
        """What `to_dict` gave.

        Raises:
            ScenarioError: A field that is missing, unknown or of another type.
        """
        given = dict(mapping("world", data))
        if "paths" in given:
            paths = checks.sequence("world.paths", given["paths"], "paths")
            given["paths"] = tuple(Path.from_dict(one, f"world.paths[{i}]") for i, one in enumerate(paths))
        if "duration_s" in given:
            checks.number("world.duration_s", given["duration_s"], 0.001, 1e5)
        return made("world", cls, given)
