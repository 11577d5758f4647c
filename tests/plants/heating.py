"""A plant and a task that have nothing to do with networks: rooms, each with heaters that decide by temperature.

The plant keeps its own clock, which never takes exactly what it was asked for, and its rooms fail when they are told to.
Rooms are of a class of their own, of which the package knows the name and the duration only.
"""

from dataclasses import dataclass, field

import gymnasium as gym
import numpy as np

from netbuf_gym.errors import ConfigError, PlantFault
from netbuf_gym.plants import Advance, AgentKind, Control, Field, Plant, TelemetrySchema
from netbuf_gym.tasks import Feature, Task, TaskRecord, documented, feature_table

HEATER = AgentKind(
    name="heater",
    telemetry=TelemetrySchema(
        1,
        (
            Field("elapsed_s", "s", "measured length of the interval"),
            Field("temperature_c", "C", "of the room"),
            Field("power_w", "W", "of this heater; NaN where it was never set"),
        ),
    ),
    controls=(Control("power_w", "W", "heating power", 0.0, 2000.0),),
    counters="dicts: energy_j, seconds, temperature_c",
)


@dataclass(frozen=True)
class Room:
    """`fails_at_s`: when it fails, by its own clock; `never`: not at all."""

    name: str = "test/room"
    duration_s: float = 2.0
    outside_c: float = 5.0
    fails_at_s: float = np.inf
    starts: bool = True


@dataclass
class State:
    room: Room
    rng: np.random.Generator
    temperature_c: float
    power_w: np.ndarray
    seconds: float = 0.0
    energy_j: np.ndarray = field(default_factory=lambda: np.zeros(1))
    failure: str = ""


class Rooms(Plant):
    """Args: `jitter`, by what share an interval may be longer than asked for; `broken`: the whole plant gives up."""

    kinds = ("heater",)
    made = []

    def __init__(self, worlds, agents, kind, threads=1, *, jitter=0.3, broken=False, shape=None):
        self.jitter, self.broken, self.shape, self.closings = jitter, broken, shape, 0
        self.rooms = [None] * worlds
        super().__init__(worlds, agents, kind, threads)
        Rooms.made.append(self)

    def buffers(self):
        telemetry, control, mask = super().buffers()
        return (np.zeros(self.shape) if self.shape else telemetry), control, mask

    def reset(self, world, scenario, seed):
        if not scenario.starts:
            raise PlantFault(f"room {scenario.name} does not start")
        rng = np.random.default_rng(seed)
        first_c, off = scenario.outside_c + 5 * rng.random(), np.full(self.agents, np.nan)
        self.rooms[world] = State(scenario, rng, first_c, off, energy_j=np.zeros(self.agents))
        self.control[world] = np.nan

    def apply(self, control):
        for state, told in zip(self.rooms, control[:, :, 0], strict=True):
            state.power_w = np.where(np.isnan(told), state.power_w, told)

    def advance(self, interval_ns, until="interval", left_ns=None):
        if self.broken:
            raise PlantFault("the fuse has blown")
        elapsed = np.zeros(self.worlds, np.int64)
        for number, state in enumerate(self.rooms):
            if state.failure:
                continue
            elapsed[number] = round(interval_ns * (1 + self.jitter * state.rng.random()))
            seconds = elapsed[number] * 1e-9
            if state.seconds + seconds >= state.room.fails_at_s:
                state.failure = "the window broke"
                self.telemetry[number] = 1e30  # whatever was half written counts for nothing
                continue
            state.seconds += seconds
            power = np.nan_to_num(state.power_w)
            state.energy_j += power * seconds
            state.temperature_c += seconds * (power.sum() / 100 - (state.temperature_c - state.room.outside_c) / 10)
            self.telemetry[number, :, 0], self.telemetry[number, :, 1] = seconds, state.temperature_c
            self.telemetry[number, :, 2] = state.power_w
        return Advance(elapsed, {number: state.failure for number, state in enumerate(self.rooms) if state.failure})

    def report(self, world):
        state = self.rooms[world]
        known = {"seconds": state.seconds, "temperature_c": state.temperature_c}
        return [{"energy_j": float(energy), **known} for energy in state.energy_j]

    def close(self):
        self.closings += 1


@dataclass(frozen=True)
class Comfort:
    """Minus the distance from 20 C, times the measured length of the interval."""

    name, terms = "comfort", ("comfort",)

    def __call__(self, tracker, out):
        out[0] = -np.abs(tracker["temperature_c"] - 20) * tracker["elapsed_s"]


@documented
class Heating(Task):
    """Heaters.

    {features of default}
    """

    name = "heating"
    recipes = ("default",)
    default_scenario = "test/room"
    options = ("actions", "too_hot_c")
    kind = HEATER
    default_reward = "comfort"
    features = (
        Feature("temperature", 0, 40, "degrees Celsius"),
        Feature("power", 0, 2000, "W"),
        Feature("elapsed", 0, 1, "s"),
    )
    spaces = {
        "steps": gym.spaces.Discrete(5),
        "share": gym.spaces.Box(-1.0, 1.0, (1,), np.float32),
        "digits": gym.spaces.MultiDiscrete([2, 10]),
    }

    def __init__(self, recipe="default", history=None, agents=1, *, actions="steps", too_hot_c=np.inf):
        super().__init__(recipe, history, agents)
        self.actions, self.too_hot_c = actions, too_hot_c
        self.action_space = self.spaces[actions]
        self.observation_space = gym.spaces.Box(0.0, 1.0, (self.history * self.width,), np.float32)

    @classmethod
    def feature_tables(cls):
        return {"default": feature_table(cls.features)}

    def control(self, scenario):
        if not hasattr(scenario, "outside_c"):
            raise ConfigError(f"scenario {scenario.name!r} is no room; valid: one, e.g. test/room")
        return scenario

    def decode(self, action, tracker, out):
        share = {
            "steps": lambda: action / 4,
            "share": lambda: (action[:, 0] + 1) / 2,
            "digits": lambda: (action[:, 0] * 10 + action[:, 1]) / 19,
        }[self.actions]()
        out[:, 0] = 2000 * share
        return out

    def observe(self, tracker, out):
        for row, (name, feature) in enumerate(zip(("temperature_c", "power_w", "elapsed_s"), self.features, strict=True)):
            out[row] = tracker[name] / feature.high
        return np.clip(out, 0, 1, out=out)

    def terminal(self, tracker):
        return tracker["temperature_c"] > self.too_hot_c


def a_room(*, duration_s=2.0, outside_c=5.0, fails_at_s=np.inf, starts=True):
    """A room for tests: cold, and whole unless told to fail."""
    return Room("test/room", duration_s, outside_c, fails_at_s, starts)


def record():
    return TaskRecord(
        rules=Heating,
        ids=("test/Heating-v0",),
        summary="heaters: their power",
        rewards={"comfort": Comfort},
        scenarios={"test/room": a_room},
    )
