"""The live plant: worlds of the kernel's TCP, in real time."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from netbuf_gym.errors import ConfigError, LateDecisionsWarning, PlantFault, describe_scenario, quote
from netbuf_gym.plants.kinds import AgentKind
from netbuf_gym.plants.linux.carried import KINDS
from netbuf_gym.plants.linux.process import START_S, Process
from netbuf_gym.plants.linux.readings import LiveReadings, LiveRun, summarize_lateness
from netbuf_gym.plants.linux.relayed import Proxy, split_proxy_work
from netbuf_gym.plants.linux.setup import Setup
from netbuf_gym.plants.plant import EVENT, INTERVAL, Advance, Plant
from netbuf_gym.utils.arguments import check_boolean

LATE_INTERVALS = 1.5
"""Median length of a world's intervals, in intervals as they are to be, above which a warning is given."""
LEAST_DECISIONS = 10
"""Decisions of an episode after which the warning is given; earlier if it ends before."""
GRACE_S = 10.0
"""Longest delay of an answer of a world's process, beyond the time when it is due."""


class LinuxPlant(Plant):
    """`worlds` live worlds with `agents` agents each: network namespaces, and links in real time between them.

    A world begins with the first `advance` after its reset; all worlds advance at the same time. Intervals follow each other
    without a gap: one that begins late, because the decision took long, ends later. A world that fails, because its process
    was killed or one of its connections broke, ends its own episode; the next reset makes it anew.

    `timing`, in each report, has how often agents decided and how late packets were. Where half of a world's intervals are more
    than 1.5 times as long as they are to be, a LateDecisionsWarning is given, once for the plant.

    Args:
        realtime: ask for a real-time priority for the links' thread (where this user may have one).
        proxy: for worlds with an agent's host: real programs send and fetch what its flows would, through `"plain"`, a relay of
            this package's, or `"shadowsocks"`; a mapping of `name`, `page` and `think_s` for pages of several objects
            (`relayed.Proxy`). None: plain sockets.
    """

    kinds: ClassVar[tuple[str, ...]] = tuple(KINDS)
    untils: ClassVar[tuple[str, ...]] = (INTERVAL, EVENT)
    in_world: ClassVar[bool] = True

    def __init__(
        self,
        worlds: int,
        agents: int,
        kind: AgentKind,
        threads: int = 1,
        *,
        realtime: bool = True,
        proxy: str | Mapping[str, Any] | None = None,
    ):
        self._carried = KINDS[kind.name]
        self._realtime = check_boolean("realtime", realtime)
        self._proxy = None if proxy is None else Proxy.parse(proxy)
        if proxy is not None and kind.name != "host":
            raise ConfigError(f"proxy = {quote(proxy)}: no host decides here; valid: task host_buffers, or no proxy")
        super().__init__(worlds, agents, kind, threads)
        self._processes: list[Process | None] = [None] * worlds
        self._scenarios: list[Any] = [None] * worlds
        self._failures: dict[int, str] = {}
        self._elapsed_ns = np.zeros(worlds, np.int64)
        self._intervals_s: list[list[float]] = [[] for _ in range(worlds)]
        self._interval_s = math.nan
        self._lateness: list[Mapping[str, Any]] = [{}] * worlds
        self._warned = False
        self._elapsed_column = kind.telemetry.index("elapsed_s")
        self._about: list[Mapping[str, Any]] = [{}] * worlds
        self._setup: Setup | None = None
        self._prepared_for: Any = None
        self._closed = False

    @classmethod
    def make_lone_world(
        cls, scenario: Any, seed: int, *, realtime: bool = True, proxy: str | Mapping[str, Any] | None = None, **options: Any
    ) -> LiveRun:
        if proxy is not None:
            raise ConfigError(f"proxy = {quote(proxy)}: no host decides here; valid: task host_buffers, or no proxy")
        return LiveRun(scenario, seed, check_boolean("realtime", realtime))

    def world(self, world: int) -> LiveReadings:
        """Return readings of a world's present counters, which may be taken at any time.

        Raises:
            PlantFault: the world was never reset.
        """
        scenario = self._scenarios[world]
        if scenario is None:
            raise PlantFault(f"world {world} was never reset")
        return LiveReadings(scenario, lambda: self.state(world))

    def reset(self, world: int, scenario: Any, seed: int) -> None:
        """Make a world anew, which begins with the next advance.

        Raises:
            ConfigError: the scenario has what a live world has not, or this machine lacks what one needs; the message says so.
            PlantFault: the world's process has ended, or the plant is closed.
        """
        if self._closed:
            raise PlantFault("the plant is closed")
        setup = self._prepare_setup(scenario)
        places = self._carried.places(scenario)
        if not 1 <= len(places) <= self.agents:
            found = f"{len(places)} agents of kind {self.kind.name!r}"
            raise ConfigError(f"{describe_scenario(scenario)} has {found}; valid: 1 to {self.agents}")
        self._scenarios[world] = None
        process = self._processes[world] or Process()
        self._processes[world] = process
        try:
            answer = process.ask({**setup.message, "seed": seed, "places": places}, START_S)
        except (ConfigError, PlantFault):
            self._end(world)
            raise
        self._about[world] = answer["about"]
        self._scenarios[world] = scenario
        self._failures.pop(world, None)
        self._intervals_s[world] = []
        self._lateness[world] = {}
        self.agent_mask[world] = np.arange(self.agents) < len(places)
        self.control[world] = self.telemetry[world] = np.nan

    def apply(self, control: np.ndarray) -> None:
        if control is not self.control:
            self.control[...] = control

    def advance(self, interval_ns: int, until: str = INTERVAL, left_ns: np.ndarray | None = None) -> Advance:
        """Advance every world, see `Plant.advance`. Elapsed times are measured by each world's own clock."""
        if self._closed:
            raise PlantFault("the plant is closed")
        self._elapsed_ns.fill(0)
        waiting = []
        for world in range(self.worlds):
            if world in self._failures:
                continue
            process = self._processes[world]
            if process is None or self._scenarios[world] is None:
                self._failures[world] = "the world was never reset"
                continue
            most = 1 if left_ns is None else max(1, -(-int(left_ns[world]) // interval_ns))
            step = {"do": "step", "interval_ns": interval_ns, "until": until, "most": most}
            try:
                process.tell({**step, "control": _encode_control(self.control[world][self.agent_mask[world] != 0])})
            except PlantFault as fault:
                self._fail(world, str(fault))
                continue
            waiting.append((world, process, most if until == EVENT else 1))
        begun = time.monotonic()
        for world, process, intervals in waiting:
            left_s = begun + 2 * interval_ns * 1e-9 * intervals + GRACE_S - time.monotonic()
            try:
                answer = process.answer(max(left_s, 0.0))
            except (ConfigError, PlantFault) as fault:
                self._fail(world, str(fault))
                continue
            self.telemetry[world, : len(answer["telemetry"])] = answer["telemetry"]
            self._elapsed_ns[world] = max(1, answer["elapsed_ns"])
            elapsed_s = float(self._elapsed_ns[world]) * 1e-9
            self.telemetry[world, :, self._elapsed_column] = elapsed_s
            self._intervals_s[world].append(elapsed_s)
            self._interval_s = interval_ns * 1e-9 if until == INTERVAL else math.nan
            if len(self._intervals_s[world]) % LEAST_DECISIONS == 0:
                self._warn_if_late(world)
        for world in self._failures:
            self.telemetry[world] = np.nan
        return Advance(self._elapsed_ns, dict(self._failures))

    def report(self, world: int) -> list[Any]:
        """Return the counters of the kind, from what is known of the world."""
        scenario = self._scenarios[world]
        if scenario is None:
            raise PlantFault(f"world {world} was never reset")
        return self._carried.counters(scenario, self._carried.places(scenario), self.state(world))

    def timing(self, world: int) -> Mapping[str, float]:
        """Return `decisions`, and percentiles of the intervals between them and of the packets' lateness, as `report` found it.

        `interval_p50_s` and `interval_p99_s` are measured from decision to decision, `packet_lateness_p50_ms` and
        `packet_lateness_p99_ms`, over `packets_timed` packets, from the time when a link is to hand on one; NaN: unknown.
        """
        self._warn_if_late(world)
        intervals_s = self._intervals_s[world]
        p50_s, p99_s = np.percentile(intervals_s, [50, 99]).tolist() if intervals_s else (math.nan, math.nan)
        decided = {"decisions": len(intervals_s), "interval_p50_s": p50_s, "interval_p99_s": p99_s}
        return {**decided, **summarize_lateness(self._lateness[world])}

    def _warn_if_late(self, world: int) -> None:
        intervals_s = self._intervals_s[world]
        median_s = float(np.median(intervals_s)) if intervals_s and not self._warned else math.nan
        if median_s > LATE_INTERVALS * self._interval_s:
            self._warned = True
            what = f"agents of plant 'linux' decide every {median_s:.3g} s (median), interval_s is {self._interval_s:.3g}"
            remedy = "valid: fewer worlds or processes at a time, a faster controller, or a longer interval_s"
            warnings.warn(f"{what}: this machine, or the controller, is too slow; {remedy}", LateDecisionsWarning, stacklevel=2)

    def state(self, world: int) -> dict[str, Any]:
        """Return all counters of a world (`netbuf_gym.plants.linux.world.LiveWorld.report`); empty when the world is gone."""
        process = self._processes[world]
        if process is None:
            return {}
        try:
            state = process.ask({"do": "report"})["report"]
            self._lateness[world] = state["emulator"]
            return state
        except (ConfigError, PlantFault) as fault:
            self._fail(world, str(fault))
            return {}

    def about(self, world: int) -> Mapping[str, Any]:
        """Return facts on the system that the world runs on: the kernel's version, and what its kind of agents reports."""
        return self._about[world]

    def close(self) -> None:
        """End all worlds. Further calls do nothing."""
        self._closed = True
        for world in range(self.worlds):
            self._end(world)

    def _prepare_setup(self, scenario: Any) -> Setup:
        if self._setup is None or self._prepared_for is not scenario:
            agents = replace(self._carried.agents, parameters=self.kind.parameters)
            if self._proxy is None:
                self._setup = Setup(scenario, agents, self._realtime)
            else:
                bare, work = split_proxy_work(scenario, self._proxy)
                self._setup = Setup(bare, agents, self._realtime)
                control = self._setup.message["flows"][0]["cc"]
                self._setup.message["work"] = {**work, "control": control}
            self._prepared_for = scenario
        return self._setup

    def _fail(self, world: int, reason: str) -> None:
        """Mark a world as failed and end its process: one that is late would answer another question."""
        self._failures.setdefault(world, reason)
        self._end(world)

    def _end(self, world: int) -> None:
        process, self._processes[world] = self._processes[world], None
        if process is not None:
            process.close()


def _encode_control(control: np.ndarray) -> list[list[float | None]]:
    return [[None if math.isnan(x) else x for x in row] for row in control.tolist()]
