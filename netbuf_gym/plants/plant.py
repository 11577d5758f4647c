"""The protocol of plants: systems that are controlled, many worlds at a time.

A plant is a class derived from `Plant` that is registered under a name (`netbuf_gym.plants.register`). Environments are
given this name, or a dict of the name and the plant's own arguments:

    class Kettle(Plant):
        kinds = ("kettle",)
        ...

    netbuf_gym.plants.register("kettle", Kettle)
    env = gym.make("mine/Kettle-v0", plant={"name": "kettle", "volume_l": 1.7})

An environment calls, for each world, `reset`; then again and again `apply` and `advance`, which all worlds do together;
`report` at the end of an episode; and `close` once, also when it is dropped or its construction fails half-way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from netbuf_gym import _core
from netbuf_gym.errors import ConfigError, PlantFault, quote
from netbuf_gym.plants.kinds import AgentKind
from netbuf_gym.utils.thread_guard import Uncopyable

INTERVAL, EVENT = "interval", "event"
"""Conditions that a plant advances until: a length of time, or the next event of the agents' kind (`AgentKind.event`)."""


class Advance(NamedTuple):
    """Result of an advance. Environments check it; if it is invalid, they close the plant and raise `PlantFault`.

    Attributes:
        elapsed_ns: int64 `(worlds,)`, the measured length by each world's own clock: from the end of the previous advance, or
            from the reset. Above 0; 0 or more for a world that has failed, or up to an event (two may be at the same
            time). Belongs to the plant; the next advance may rewrite it.
        failures: the reason of each world that has failed, by its number, 0 to worlds - 1; the others are running. A world
            that has failed stays so, and is named each time, until it is reset.
    """

    elapsed_ns: np.ndarray
    failures: Mapping[int, str]


def check_advance(advance: Any, plant: Any, worlds: int, until: str, failed: Container[int] = ()) -> Advance:
    """Return `advance`, if it is a valid result of `Plant.advance`.

    Args:
        plant: the plant's name in messages.
        until: the `until` that the plant was given.
        failed: worlds known to have failed before it.

    Raises:
        PlantFault: the result is not valid.
    """
    if not isinstance(advance, Advance):
        raise PlantFault(f"plant {quote(plant)}: advance gave {quote(advance)}; valid: a netbuf_gym.plants.Advance")
    elapsed, failures = advance
    if not isinstance(elapsed, np.ndarray) or elapsed.dtype != np.int64 or elapsed.shape != (worlds,):
        what = f"{elapsed.dtype} {elapsed.shape}" if isinstance(elapsed, np.ndarray) else quote(elapsed)
        raise PlantFault(f"plant {quote(plant)}: elapsed_ns = {what}; valid: an int64 array of shape ({worlds},)")
    if not isinstance(failures, Mapping):
        raise PlantFault(f"plant {quote(plant)}: failures = {quote(failures)}; valid: a mapping of worlds to reasons")
    for world in failures:
        if not isinstance(world, (int, np.integer)) or not 0 <= world < worlds:
            raise PlantFault(f"plant {quote(plant)}: failures has world {quote(world)}; valid: 0..{worlds - 1}")
    if not _core.all_positive(elapsed):
        for world in np.flatnonzero(elapsed <= 0).tolist():
            least = 0 if until == EVENT or world in failures or world in failed else 1
            if elapsed[world] < least:
                value = f"elapsed_ns[{world}] = {elapsed[world]}"
                raise PlantFault(f"plant {quote(plant)}: {value}; valid: at least {least}")
    return advance


class Plant(Uncopyable, ABC):
    """`worlds` worlds with `agents` agents of one kind in each.

    Args:
        worlds, agents: at least 1.
        kind: the kind of the agents; one of those that the plant carries.
        threads: number of threads that may advance the worlds; the measurements do not depend on it.

    Further keyword arguments of a derived class are what users may write into the `plant` dict of an environment.

    Attributes:
        kinds: names of the kinds of agents that the plant carries.
        untils: values that `advance` takes as `until`.
        virtual_time: whether an advance by an interval takes exactly that. Episodes of other plants end by the measured
            clock, so that their number of decisions is not known beforehand.
        in_world: whether the plant's worlds have the methods of `netbuf_gym.plants.simulator.World`, and those of
            `make_lone_world` those of `Simulator`, so that controllers may act in them (`netbuf_gym.controllers.InWorld`).
            Not inherited: a class derived from such a plant may change its worlds.
        outlives_program: whether the plant may hold what the program's end leaves behind, processes for instance, so that it
            is closed then. Not inherited either. Memory goes by itself, and a thread at work is not told that its plant was
            closed.
        telemetry: float64 `(worlds, agents, fields)` by `kind.telemetry`, of the last advance. NaN where nothing was measured.
        control: float64 `(worlds, agents, controls)` by `kind.controls`: a buffer for the argument of `apply`.
        agent_mask: `(worlds, agents)`, not 0 where the agent is present; absent agents are not rewarded.
    """

    kinds: ClassVar[tuple[str, ...]] = ()
    untils: ClassVar[tuple[str, ...]] = (INTERVAL,)
    virtual_time: ClassVar[bool] = False
    in_world: ClassVar[bool] = False
    outlives_program: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        cls.in_world = vars(cls).get("in_world", False)
        cls.outlives_program = vars(cls).get("outlives_program", True)

    def __init__(self, worlds: int, agents: int, kind: AgentKind, threads: int = 1):
        self.worlds, self.agents, self.kind, self.threads = worlds, agents, kind, threads
        self.telemetry, self.control, self.agent_mask = self.buffers()
        self.control.fill(np.nan)

    def buffers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the arrays `telemetry`, `control` and `agent_mask`, which stay the same for the plant's life."""
        rows = self.worlds, self.agents
        telemetry = np.full((*rows, len(self.kind.telemetry.fields)), np.nan)
        return telemetry, np.empty((*rows, len(self.kind.controls))), np.ones(rows, np.uint8)

    @classmethod
    def make_lone_world(cls, scenario: Any, seed: int, **options: Any) -> Any:
        """Return a world without agents, from its start, with the methods of `netbuf_gym.plants.simulator.Simulator`.

        For plants with `in_world`.

        Args:
            scenario: a scenario without agents.
            seed: 0 to 2**63 - 1.
            options: arguments of the plant.

        Raises:
            ConfigError: the plant has no such worlds.
            PlantFault: the world does not start.
        """
        raise ConfigError(f"plant {cls.__name__} has no worlds without agents")

    @abstractmethod
    def reset(self, world: int, scenario: Any, seed: int) -> None:
        """Restart a world, with nothing run yet, whatever its state was before; its control is NaN.

        Args:
            world: number of the world.
            scenario: the result of the task's `control` for the drawn scenario: for most tasks a `Scenario`, in any case an
                object with a `name` and a `duration_s`. A fixed one is the same object each time.
            seed: 0 to 2**63 - 1, for everything that is drawn at random.

        Raises:
            ConfigError: the plant has no such worlds.
            PlantFault: the world does not start. An environment's `reset()` raises it. Where a vector environment resets an
                ended world by itself, this world has failed instead, with the message as the reason: whatever `advance` says
                of it counts for nothing, the next step truncates it, and it is reset again. The other worlds go on.
        """

    @abstractmethod
    def apply(self, control: np.ndarray) -> None:
        """Set the agents' controls for the next advance, in the shape of `control`; NaN leaves a control unchanged."""

    @abstractmethod
    def advance(self, interval_ns: int, until: str = INTERVAL, left_ns: np.ndarray | None = None) -> Advance:
        """Advance every world, and write the measurements of the interval into `telemetry`.

        A world that fails does not raise: it is named in the result. Nothing is measured of it, so that its agents are not
        rewarded for the interval; the environment truncates its episode, with the reason in `info["failure"]`, and resets it.

        Args:
            interval_ns: length of the advance.
            until: `"interval"`; or `"event"`: to the next event of the agents' kind, `interval_ns` being the longest wait, or
                the time between looks, as the kind has it.
            left_ns: int64 `(worlds,)`, what is left of each world's scenario; None: more than the advance takes.

        Raises:
            SimulatorFault, PlantFault: the plant is of no further use; the environment closes it.
        """

    def rest(self, world: int) -> None:
        """Let a world that nobody looks at any more stand still from now on, until it is reset: it need not be advanced.

        Its telemetry is then of no meaning. Plants whose worlds run by themselves may ignore this.
        """

    @abstractmethod
    def report(self, world: int) -> list[Any]:
        """Return the counters of each agent of a world since its reset, in the form that `kind.counters` says.

        For a world that has failed: what is known of it.
        """

    def timing(self, world: int) -> Mapping[str, float]:
        """Return how well a world has kept its times, additions to each agent's report; empty: it always does."""
        return {}

    def about(self, world: int) -> Mapping[str, Any]:
        """Return facts for users on the system that a world runs on, `info["plant"]` of a reset; empty: none."""
        return {}

    def close(self) -> None:
        """Release everything that the plant holds: processes, sockets, memory. Further calls do nothing."""
        return None
