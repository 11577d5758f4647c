"""What rewards may know of agents' surroundings: what rivals get beside them at their bottlenecks, and what paths lose.

A rival is a flow of another sender over the slowest link of an agent, which is its own slowest link too. It counts while it
always has data to send: from its start, and a settling time, until it stops. Flows that are limited by their application, their
receiver or a host never count as harmed, and those of background transports (RFC 6817) yield by design.

The fair rate of an interval is what the bulk flows of a bottleneck, agents and rivals, received there over the number of them
that were on: what the link could have carried beyond that is nobody's loss. Counters are read only in intervals after which
somebody asks, and only of worlds with rivals.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netbuf_gym.plants.plant import Plant
from netbuf_gym.scenarios.catalogue import get_control_name
from netbuf_gym.scenarios.fields import copy_with
from netbuf_gym.scenarios.flows import Bulk, Flow, Route
from netbuf_gym.scenarios.types import AGENT, Scenario

MEMORY_S = 5.0
"""Time constant of a rival's recent rate and of the fair one; the mean over all time before as much of it has gone by."""

SETTLING_S, SETTLING_RTTS = 1.0, 10
"""Time after a rival's start for which it does not count: the longer of so many seconds and base round trips."""

BACKGROUND = ("ledbat", "ledbatpp")
"""Congestion controls that yield to every other flow by design."""

MOST_LOSS = 0.99
"""Largest random loss of a path that rewards reckon with."""

FAIR, CUBIC = "fair", "cubic"
REFERENCES = (FAIR, CUBIC)
"""What a rival could have: its fair share; or as much of it as with CUBIC flows in the agents' places, in the same world."""

TWIN_STEP_S = 0.1
"""Time between two readings of the world with CUBIC flows."""


class _Shares:
    """Rates of flows and fair rates in some worlds, world by world; arrays are `(worlds, flows)` unless stated.

    Attributes:
        place: int64, the row of the first agent at the bottleneck that a bulk flow shares with agents, else -1.
        agent: bool, whether the flow is an agent's; counted: bool, whether it is a rival that can be harmed.
        from_s, to_s: times between which a flow is on; settled_s: time from which a rival counts.
        arrived: bytes that had arrived at the last reading; time_s: its time, `(worlds,)`.
        rate, fair: recent means of a rival's rate and of the fair one in B/s; age_s: time over which they are taken.
        now: the rate in the last interval; here: bool, whether a rival counted in it.
        agents: number of agents that were on at a flow's place.
    """

    def __init__(self, worlds: int, flows: int, memory_s: float):
        self.memory_s, shape = memory_s, (worlds, flows)
        self.place = np.full(shape, -1)
        self.agent, self.counted, self.here = np.zeros((3, *shape), bool)
        self.from_s, self.to_s, self.settled_s, self.arrived, self.rate, self.fair, self.age_s = np.zeros((7, *shape))
        self.now, self.agents = np.zeros((2, *shape))
        self.time_s = np.zeros(worlds)

    def widen(self, flows: int) -> _Shares:
        """Return the same shares with room for so many flows in a world."""
        made = _Shares(len(self.time_s), flows, self.memory_s)
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray) and values.ndim == 2:
                getattr(made, name)[:, : values.shape[1]] = values
        made.time_s = self.time_s
        return made

    def start(self, world: int, scenario: Scenario, first_row: int) -> bool:
        """Begin a world anew, whose agents' rows begin with `first_row`; return whether it has rivals that can be harmed."""
        for values in (self.agent, self.counted, self.here, self.arrived, self.rate, self.fair, self.age_s, self.now):
            values[world] = 0
        self.place[world] = -1
        self.time_s[world] = 0.0
        tightest = [scenario.tightest_link(i) for i in range(len(scenario.flows))]
        places: dict[int, int] = {}
        agents = [i for i, flow in enumerate(scenario.flows) if flow.cc == AGENT]
        for row, i in enumerate(agents, first_row):
            places.setdefault(tightest[i], row)
        for i, flow in enumerate(scenario.flows):
            at = world, i
            if tightest[i] not in places or not (flow.cc == AGENT or _is_unlimited(flow)):
                continue
            self.place[at] = places[tightest[i]]
            self.agent[at] = flow.cc == AGENT
            self.counted[at] = flow.cc != AGENT and get_control_name(flow.cc) not in BACKGROUND
            self.from_s[at], self.to_s[at] = flow.start_s, math.inf if flow.stop_s is None else flow.stop_s
            self.settled_s[at] = flow.start_s + max(SETTLING_S, SETTLING_RTTS * scenario.base_rtt_ms(i) * 1e-3)
        return bool(self.counted[world].any())

    def update(self, worlds: np.ndarray, time_s: np.ndarray, arrived: np.ndarray, rows: int) -> None:
        """Take in the bytes that have arrived by these times in some worlds; `rows` is the number of agents' rows."""
        elapsed_s = (time_s - self.time_s[worlds])[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            now = np.where(elapsed_s > 0, (arrived - self.arrived[worlds]) / elapsed_s, 0.0)
        before_s = self.time_s[worlds][:, None]
        place, agent = self.place[worlds], self.agent[worlds]
        on = (place >= 0) & (self.from_s[worlds] <= before_s) & (time_s[:, None] <= self.to_s[worlds])
        passed = np.bincount(place[place >= 0], now[place >= 0], rows)
        fair = (passed / np.maximum(np.bincount(place[on], minlength=rows), 1))[place]
        here = on & self.counted[worlds] & (self.settled_s[worlds] <= before_s) & (elapsed_s > 0)
        age_s = self.age_s[worlds] + np.where(here, elapsed_s, 0.0)
        part = np.where(here, np.minimum(elapsed_s / np.maximum(np.minimum(age_s, self.memory_s), 1e-12), 1), 0)
        for means, latest in ((self.rate, now), (self.fair, fair)):
            means[worlds] += part * (latest - means[worlds])
        self.age_s[worlds], self.now[worlds], self.here[worlds] = age_s, now, here
        self.agents[worlds] = np.bincount(place[on & agent], minlength=rows)[place]
        self.arrived[worlds], self.time_s[worlds] = arrived, time_s

    def ratios(self, rates: np.ndarray) -> np.ndarray:
        """Return rates over the recent fair rates, 1 where these are 0."""
        return np.divide(rates, self.fair, out=np.ones_like(rates), where=self.fair > 0)


class Surroundings:
    """Rivals and random losses on the paths of all rows of a tracker; all is worked out when it is asked for.

    Rivals are measured on plants in virtual time whose worlds tell their counters (`Plant.in_world`); elsewhere none are known.

    Args:
        rows: Number of agents, over all worlds.
    """

    def __init__(self, rows: int):
        self._rows = rows
        self._plant: Plant | None = None
        self._seeds = np.zeros(1, np.int64)
        self._scenarios: dict[int, Scenario] = {}  # of worlds that began since the last reading
        self._known: list[Any] = []
        self._contested: set[int] = set()
        self._shares = _Shares(0, 0, MEMORY_S)
        self._twins: dict[int, np.ndarray] = {}
        self._random_loss = np.zeros(rows, np.float32)
        self._agents, self._stale = 1, True

    def attach(self, plant: Plant, seeds: np.ndarray) -> None:
        """Measure the worlds of a plant from now on; `seeds` is an array that holds each world's seed."""
        self._plant, self._seeds = plant if plant.in_world and plant.virtual_time else None, seeds
        self._agents = plant.agents
        self._shares = _Shares(plant.worlds, 0, MEMORY_S)
        self._known = [None] * plant.worlds
        self._contested.clear()
        self._scenarios.clear()

    def start(self, rows: slice, scenario: Scenario) -> None:
        """Begin the world of these rows anew."""
        self._scenarios[rows.start // self._agents] = scenario

    def note(self) -> None:
        """Note that an interval has ended."""
        self._stale = True

    def random_loss(self) -> np.ndarray:
        """Return the share of its data packets that each agent's path loses at random, in the mean, float32 `(rows,)`."""
        self._begin_worlds()
        return self._random_loss

    def share(self) -> np.ndarray:
        """Return the recent mean rate of each agent's rivals over the fair one, float32 `(rows,)`; 1 where there is none."""
        self._read()
        one = self._shares
        total, number = self._sum(one.ratios(one.rate)), self._sum(np.ones_like(one.rate))
        return self._tell_agents(np.where(number > 0, total / np.maximum(number, 1), 1), 1.0)

    def shortfall(self, reference: str, floor: float, cap: float, tolerance: float = 0.0) -> np.ndarray:
        """Return what each agent's rivals lack, float32 `(rows,)`, in shares of what they have had lately.

        With x = rate / fair rate of a rival in the last interval, X its recent mean and r its reference, at most 1, less the
        tolerated part, that is (r - x) / X where X is below r, else 0, within +-`cap`, X at least `floor`, over rivals in sum
        and agents of the bottleneck that are on in equal parts: against it, a byte that goes to a rival counts as in the
        logarithm of its share, up to r.
        What one rival lacks since another has more is no agent's doing: the sum is multiplied by the sum of r - X, at least 0,
        over the sum of those above 0.

        Args:
            reference: One of `REFERENCES`.
            floor: Least X, above 0.
            cap: Largest size of a rival's shortfall.
            tolerance: Part of the reference that a rival may lack, 0 to 1.
        """
        self._read()
        one = self._shares
        goal = np.ones_like(one.rate)
        if reference == CUBIC:
            for world in self._contested:
                goal[world, : len(self._twin(world))] = self._twin(world)
        goal *= 1 - tolerance
        mean, now = one.ratios(one.rate), one.ratios(one.now)
        gap = goal - mean
        lack = np.where(gap > 0, np.clip((goal - now) / np.maximum(mean, floor), -cap, cap) / np.maximum(one.agents, 1), 0)
        taken, lacking = np.maximum(self._sum(gap), 0), self._sum(np.maximum(gap, 0))
        return self._tell_agents(self._sum(lack) * np.divide(taken, lacking, out=np.zeros_like(taken), where=lacking > 0))

    def _sum(self, values: np.ndarray) -> np.ndarray:
        """Return sums of values, `(worlds, flows)`, over the rivals that count at each place, `(rows,)`."""
        here = self._shares.here
        return np.bincount(self._shares.place[here], values[here], self._rows).astype(float)  # integers if none counts

    def _tell_agents(self, values: np.ndarray, otherwise: float = 0.0) -> np.ndarray:
        """Return the value of each agent's place, float32; `otherwise` before its start."""
        one, found = self._shares, np.full(self._rows, otherwise, np.float32)
        worlds, flows = np.nonzero(one.agent & (one.from_s < one.time_s[:, None]))
        if len(worlds):
            order = (np.cumsum(one.agent, axis=1) - 1)[worlds, flows]
            found[worlds * self._agents + order] = values[one.place[worlds, flows]]
        return found

    def _read(self) -> None:
        """Read the counters of all worlds with rivals, once an interval."""
        plant = self._plant
        self._begin_worlds()
        if not self._stale or plant is None:
            return
        self._stale = False
        if not self._contested:
            return
        worlds = np.array(sorted(self._contested))
        time_s, arrived = np.empty(len(worlds)), np.zeros((len(worlds), self._shares.place.shape[1]))
        for k, world in enumerate(worlds.tolist()):
            now = plant.world(world)  # type: ignore[attr-defined]  # of plants with `in_world`
            own = now.flow_arrivals()
            time_s[k], arrived[k, : len(own)] = now.now_ns * 1e-9, own
        self._shares.update(worlds, time_s, arrived, self._rows)

    def _begin_worlds(self) -> None:
        """Take in the worlds that began since this was last done."""
        for world, scenario in self._scenarios.items():
            first = world * self._agents
            flows = [i for i, flow in enumerate(scenario.flows) if flow.cc == AGENT]
            self._random_loss[first : first + len(flows)] = [compute_random_loss(scenario, flow) for flow in flows]
            if self._plant is None:
                continue
            if len(scenario.flows) > self._shares.place.shape[1]:
                self._shares = self._shares.widen(len(scenario.flows))
            self._twins.pop(world, None)
            self._known[world] = scenario
            if self._shares.start(world, scenario, first):
                self._contested.add(world)
            else:
                self._contested.discard(world)
        self._scenarios.clear()

    def _twin(self, world: int) -> np.ndarray:
        """Return what each flow of a world has with CUBIC flows in the agents' places, see `play_twin`."""
        if world not in self._twins:
            assert self._plant is not None  # else no world is contested
            self._twins[world] = play_twin(self._plant, self._known[world], int(self._seeds[world]))
        return self._twins[world]


def compute_random_loss(scenario: Scenario, flow: int) -> float:
    """Return the share of a flow's data packets that the links of its path lose at random, 0 to `MOST_LOSS`."""
    passed = math.prod(1 - link.mean_loss(scenario.duration_s) for link in scenario.links_of(flow))
    return min(1 - passed, MOST_LOSS)


def make_twin(scenario: Scenario) -> tuple[Scenario, np.ndarray]:
    """Return a world with CUBIC flows in the agents' places, and the numbers of its flows: those that meet agents with rivals.

    Flows meet that share a link, for data or ACKs, or meet the same flow.
    """
    shares = _Shares(1, len(scenario.flows), math.inf)
    shares.start(0, scenario, 0)
    links = {int(link) for i in np.flatnonzero(shares.counted[0]).tolist() for link in scenario.flows[i].path}
    kept: set[int] = set()
    while met := [i for i, flow in enumerate(scenario.flows) if i not in kept and links.intersection(_links_of(flow))]:
        kept.update(met)
        links.update(link for i in met for link in _links_of(scenario.flows[i]))
    numbers = sorted(kept)
    flows = [scenario.flows[i] for i in numbers]
    flows = [copy_with(flow, cc="cubic") if flow.cc == AGENT else flow for flow in flows]
    return copy_with(scenario, flows=tuple(flows)), np.array(numbers)


def play_twin(plant: Plant | type[Plant], scenario: Scenario, seed: int) -> np.ndarray:
    """Play a world's twin (`make_twin`) to its end.

    Returns:
        What each flow that can be harmed has, its mean rate over the mean fair one while it counts, at most 1; for others 1.
        Shape (flows,). Of rivals that differ by chance alone, of one congestion control and round trip at one place, it is
        their mean.
    """
    twin, numbers = make_twin(scenario)
    world = plant.make_lone_world(twin, seed)
    shares, only = _Shares(1, len(scenario.flows), math.inf), np.zeros(1, np.int64)
    shares.start(0, scenario, 0)
    arrived = np.zeros((1, len(scenario.flows)))
    for step in range(1, math.ceil(scenario.duration_s / TWIN_STEP_S) + 1):
        world.run(round(step * TWIN_STEP_S * 1e9))
        arrived[0, numbers] = world.flow_arrivals()
        shares.update(only, np.array([step * TWIN_STEP_S]), arrived, scenario.agents)
    world.close()
    found, reference = shares.ratios(shares.rate)[0], np.ones(len(scenario.flows))
    alike: dict[tuple[int, str, float], list[int]] = {}
    for i in np.flatnonzero(shares.counted[0] & (shares.age_s[0] > 0)).tolist():
        key = int(shares.place[0, i]), get_control_name(scenario.flows[i].cc), scenario.base_rtt_ms(i)
        alike.setdefault(key, []).append(i)
    for rivals in alike.values():
        reference[rivals] = min(1.0, float(found[rivals].mean()))
    return reference


def _links_of(flow: Flow) -> set[int]:
    """Return the links that a flow's data and ACKs cross, before any change of route and after."""
    ways: list[Flow | Route] = [flow, *flow.routes]
    return {int(link) for way in ways for link in (*way.path, *way.return_path)}


def _is_unlimited(flow: Flow) -> bool:
    """Return whether nothing but its congestion control limits a flow."""
    buffers = flow.send_buffer_bytes, flow.receive_buffer_bytes, flow.sender_host, flow.receiver_host
    return isinstance(flow.app, Bulk) and all(limit is None for limit in (*buffers, flow.receiver, flow.read_mbps))
