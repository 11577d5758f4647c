"""The protocol of plants: what is being controlled, many worlds at a time.

A plant is a class derived from `Plant` that is registered under a name (`netbuf_gym.plants.register`), and environments are
given it by this name, or by a dict of the name and the plant's own arguments:

    class Kettle(Plant):
        kinds = ("kettle",)
        ...

    netbuf_gym.plants.register("kettle", Kettle)
    env = gym.make("mine/Kettle-v0", plant={"name": "kettle", "volume_l": 1.7})

An environment calls, for each world, `reset`; then again and again `apply` and `advance`, which all worlds do together;
`report` at the end of an episode; and `close` once, also when it is dropped or its making fails half-way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from netbuf_gym.errors import ConfigError, PlantFault, shown
from netbuf_gym.plants.kinds import AgentKind
from netbuf_gym.utils.thread_guard import Unique

INTERVAL, EVENT = "interval", "event"
"""What a plant advances until: so much time further, or the next event of the agents' kind (`AgentKind.event`)."""


class Advance(NamedTuple):
    """What an advance came to. Environments check it, and where it is anything else close the plant and raise `PlantFault`.

    Attributes:
        elapsed_ns: int64 `(worlds,)`, how long it was by each world's own clock, as measured: from the end of the advance
            before it, or from the reset. Above 0; of a world that has failed, or up to an event (two may be at the same
            time), 0 or more. Belongs to the plant; the next advance may rewrite it.
        failures: the reason of each world that has failed, by its number, 0 to worlds - 1; the others are running. A world
            that has failed stays so, and is named each time, until it is reset.
    """

    elapsed_ns: np.ndarray
    failures: Mapping[int, str]


def checked(advance: Any, plant: Any, worlds: int, until: str, failed: Container[int] = ()) -> Advance:
    """`advance`, if it is what `Plant.advance` may give.

    Args:
        plant: what it is called in messages.
        until: what it was told.
        failed: worlds known to have failed before it.

    Raises:
        PlantFault: it is not.
    """
    if not isinstance(advance, Advance):
        raise PlantFault(f"plant {shown(plant)}: advance gave {shown(advance)}; valid: a netbuf_gym.plants.Advance")
    elapsed, failures = advance
    if not isinstance(elapsed, np.ndarray) or elapsed.dtype != np.int64 or elapsed.shape != (worlds,):
        what = f"{elapsed.dtype} {elapsed.shape}" if isinstance(elapsed, np.ndarray) else shown(elapsed)
        raise PlantFault(f"plant {shown(plant)}: elapsed_ns = {what}; valid: an int64 array of shape ({worlds},)")
    if not isinstance(failures, Mapping):
        raise PlantFault(f"plant {shown(plant)}: failures = {shown(failures)}; valid: a mapping of worlds to reasons")
    for world in failures:
        if not isinstance(world, (int, np.integer)) or not 0 <= world < worlds:
            raise PlantFault(f"plant {shown(plant)}: failures has world {shown(world)}; valid: 0..{worlds - 1}")
    if np.minimum.reduce(elapsed) <= 0:
        for world in np.flatnonzero(elapsed <= 0).tolist():
            least = 0 if until == EVENT or world in failures or world in failed else 1
            if elapsed[world] < least:
                value = f"elapsed_ns[{world}] = {elapsed[world]}"
                raise PlantFault(f"plant {shown(plant)}: {value}; valid: at least {least}")
    return advance


class Plant(Unique, ABC):
    """`worlds` worlds with `agents` agents of one kind in each.

    Args:
        worlds, agents: at least 1.
        kind: of the agents; one of those that the plant carries.
        threads: that may advance the worlds; what they measure does not depend on it.

    Further keyword arguments of a derived class are what users may write into the `plant` dict of an environment.

    Attributes:
        kinds: names of the kinds of agents that it carries.
        untils: what `advance` takes as `until`.
        virtual_time: whether an advance by an interval takes exactly that. Episodes of other plants end by the measured
            clock, so that their number of decisions is not known beforehand.
        in_world: whether its worlds have the methods of `netbuf_gym.plants.simulator.World`, and `lone` ones those of
            `Simulator`, so that controllers may act in them (`netbuf_gym.controllers.InWorld`). Not inherited: a class derived
            from such a plant may change its worlds.
        outlives_program: whether it may hold what the program's end leaves behind, processes for instance, so that it is closed
            then. Not inherited either. Memory goes by itself, and a thread at work is not told that its plant was closed.
        telemetry: float64 `(worlds, agents, fields)` by `kind.telemetry`, of the last advance. What was not measured is NaN.
        control: float64 `(worlds, agents, controls)` by `kind.controls`: a place to write what `apply` is given.
        agent_mask: `(worlds, agents)`, not 0 where the agent is there; what is not there is not rewarded.
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
        """The arrays `telemetry`, `control` and `agent_mask`, which stay the same for the plant's life."""
        rows = self.worlds, self.agents
        telemetry = np.full((*rows, len(self.kind.telemetry.fields)), np.nan)
        return telemetry, np.empty((*rows, len(self.kind.controls))), np.ones(rows, np.uint8)

    @classmethod
    def lone(cls, scenario: Any, seed: int, **options: Any) -> Any:
        """A world without agents, from its start, with the methods of `netbuf_gym.plants.simulator.Simulator`.

        Of plants with `in_world`.

        Args:
            scenario: without agents.
            seed: 0 to 2**63 - 1.
            options: arguments of the plant.

        Raises:
            ConfigError: the plant has no such worlds.
            PlantFault: the world does not start.
        """
        raise ConfigError(f"plant {cls.__name__} has no worlds without agents")

    @abstractmethod
    def reset(self, world: int, scenario: Any, seed: int) -> None:
        """Starts a world anew, with nothing run yet, whatever became of it before; its control is NaN.

        Args:
            world: its number.
            scenario: what the task's `control` made of the scenario drawn: of most tasks a `Scenario`, in any case an object
                with a `name` and a `duration_s`. A fixed one is the same object each time.
            seed: 0 to 2**63 - 1, of whatever is drawn at random.

        Raises:
            ConfigError: the plant has no such worlds.
            PlantFault: the world does not start. An environment's `reset()` raises it. Where a vector environment resets an
                ended world by itself, this world has failed instead, with the message as the reason: whatever `advance` says
                of it counts for nothing, the next step truncates it, and it is reset again. The other worlds go on.
        """

    @abstractmethod
    def apply(self, control: np.ndarray) -> None:
        """Takes what the agents are told for the next advance, in the shape of `control`; NaN leaves things as they are."""

    @abstractmethod
    def advance(self, interval_ns: int, until: str = INTERVAL, left_ns: np.ndarray | None = None) -> Advance:
        """Runs every world on, and writes into `telemetry` what was measured meanwhile.

        A world that fails does not raise: it is named in the result. Nothing is measured of it, so that its agents are not
        rewarded for the interval; the environment truncates its episode, with the reason in `info["failure"]`, and resets it.

        Args:
            interval_ns: how far.
            until: `"interval"`; or `"event"`: to the next event of the agents' kind, `interval_ns` being the longest wait, or
                the time between looks, as the kind has it.
            left_ns: int64 `(worlds,)`, what is left of each world's scenario; None: more than it takes.

        Raises:
            SimulatorFault, PlantFault: the plant is of no further use; the environment closes it.
        """

    @abstractmethod
    def report(self, world: int) -> list[Any]:
        """What was counted of each agent of a world since its reset, in the form that `kind.counters` says.

        Also of a world that has failed: what is known of it.
        """

    def about(self, world: int) -> Mapping[str, Any]:
        """What users should know of what a world runs on, `info["plant"]` of a reset; empty: nothing."""
        return {}

    def close(self) -> None:
        """Gives back whatever the plant holds: processes, sockets, memory. Called again, it does nothing."""
        return None
