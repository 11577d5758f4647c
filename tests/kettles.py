"""A stranger's plant and task: kettles in memory, whose clocks are their own, which boil over and burst."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym.contenders import ConstantAction, Decider, RandomAction
from netbuf_gym.plants import AgentKind, Control, Field, Plant, TelemetrySchema
from netbuf_gym.plants.plant import Advance
from netbuf_gym.rewards import reward_of
from netbuf_gym.tasks import Feature, Task, TaskRecord
from netbuf_gym.tasks.measures import Column, Measures

KETTLE = AgentKind(
    "kettle",
    TelemetrySchema(1, (Field("elapsed_s", "s", "Length of the interval."), Field("heat_c", "degree C", "Of the water."))),
    (Control("power", "1", "Share of the full power.", 0.0, 1.0),),
)


@dataclass(frozen=True)
class Kitchen:
    """Where kettles stand; `bursts_s`: when the world fails, 0: never."""

    name: str
    duration_s: float = 2.0
    start_c: float = 20.0
    bursts_s: float = 0.0


class Kettles(Plant):
    """Each heats by 50 degrees a second at full power; an interval takes a little longer than was asked for."""

    kinds = ("kettle",)

    def __init__(self, worlds: int, agents: int, kind: AgentKind, threads: int = 1):
        super().__init__(worlds, agents, kind, threads)
        self.kitchens: list[Kitchen | None] = [None] * worlds
        self.heat_c = np.zeros((worlds, agents))
        self.clock_s = np.zeros(worlds)
        self.closed = False

    def reset(self, world: int, scenario: Kitchen, seed: int) -> None:
        self.kitchens[world] = scenario
        self.heat_c[world] = scenario.start_c + np.random.default_rng(seed).uniform(0, 10)
        self.clock_s[world] = 0

    def apply(self, control: np.ndarray) -> None:
        self.control[...] = control

    def advance(self, interval_ns: int, until: str = "interval", left_ns: np.ndarray | None = None) -> Advance:
        elapsed_ns = np.full(len(self.kitchens), interval_ns + 1_000_000)
        self.clock_s += elapsed_ns * 1e-9
        self.heat_c += 50 * np.nan_to_num(self.control[:, :, 0]) * elapsed_ns[:, None] * 1e-9
        self.telemetry[:, :, 0], self.telemetry[:, :, 1] = elapsed_ns[:, None] * 1e-9, self.heat_c
        burst = {w: "burst" for w, k in enumerate(self.kitchens) if k and 0 < k.bursts_s <= self.clock_s[w]}
        return Advance(elapsed_ns, burst)

    def report(self, world: int) -> list[Any]:
        return [{"heat_c": float(heat), "seconds": float(self.clock_s[world])} for heat in self.heat_c[world]]

    def close(self) -> None:
        self.closed = True


class Boil(Task):
    """Power `Box` (0 to 1), or in recipe "steps" one of four; over at 100 degrees."""

    name = "boil"
    recipes = ("default", "steps")
    default_history = {"default": 1, "steps": 2}
    default_scenario = "kitchen"
    kind = KETTLE
    features = (Feature("heat", 0, 100, "of the water"),)
    default_reward = "warmth"

    def __init__(self, recipe: str = "default", history: int | None = None, agents: int = 1):
        super().__init__(recipe, history, agents)
        self.observation_space = gym.spaces.Box(0.0, 1.0, (self.history,), np.float32)
        steps = gym.spaces.MultiDiscrete([4])
        self.action_space = steps if recipe == "steps" else gym.spaces.Box(0.0, 1.0, (1,), np.float32)

    def control(self, scenario: Kitchen) -> Kitchen:
        return scenario

    def decode(self, action: np.ndarray, tracker: Any, out: np.ndarray) -> np.ndarray:
        out[...] = action / 3 if self.recipe == "steps" else action
        return out

    def observe(self, tracker: Any, out: np.ndarray) -> np.ndarray:
        np.clip(tracker["heat_c"] / 100, 0, 1, out=out[0])
        return out

    def terminal(self, tracker: Any) -> np.ndarray:
        return tracker["heat_c"] >= 100


class Thermostat(Decider):
    """Full power below 60 degrees."""

    name, recipes = "thermostat", ("default",)

    def start(self, rules: Boil, seeds: Any) -> Any:
        self._require_recipe(rules)
        return lambda observations, state, starts: ((observations[:, -1:] < 0.6).astype(np.float32), None)


def warmth(tracker: Any) -> np.ndarray:
    return tracker["heat_c"] / 100


def kitchen(**arguments: float) -> Kitchen:
    return Kitchen("kitchen", **arguments)


RECORD = TaskRecord(
    rules=Boil,
    ids=("test/Boil-v0",),
    summary="a kettle: its power",
    rewards={"warmth": reward_of(warmth)},
    contenders={"thermostat": Thermostat, "off": lambda: ConstantAction([0], "off"), "random": RandomAction},
    scenarios={"kitchen": kitchen},
)
MEASURES = Measures(
    metrics=("heat_c",),
    columns=(Column("heat_c", "heat", 1),),
    score="heat_c",
    series=(("heat_c", "heat"),),
    baselines=("thermostat", "random"),
)
