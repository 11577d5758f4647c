"""Ways of managing a switch's buffer without an agent: thresholds by rule and active queue management, in its own worlds."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.arguments import choice, whole
from netbuf_gym.baselines.controller import checked_seeds
from netbuf_gym.engine import check_names, draw_episode, generator_of
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.plants.counters import counters_of
from netbuf_gym.plants.simulator import LINK_SAMPLE, Simulator
from netbuf_gym.scenarios import SCHEMES, Scenario
from netbuf_gym.tasks.queue_threshold import QueueThreshold, switch_report
from netbuf_gym.worlds import WorldSource, example, resolve

NAMES = tuple(name for name in SCHEMES if name != "agent")


def draw_worlds(
    scenario: str | dict[str, Any], seeds: Sequence[int], task: str = QueueThreshold.name, senders: int = 1
) -> list[tuple[Scenario, int]]:
    """The world and its simulator's seed that an environment of a task draws under each seed."""
    seeds, kind = checked_seeds(seeds), tasks.get(task).rules
    rules = kind(agents=senders)  # checks the number of agents
    world = resolve(scenario, rules.agents)
    rules = kind(agents=senders, **kind.fitted(example(world)))
    source = WorldSource(world, rules.control)
    return [draw_episode(source, generator_of(seed)) for seed in seeds]


class BufferScheme:
    """One of `netbuf_gym.scenarios.SCHEMES` instead of an agent: another admission to the buffer, or an AQM of its size.

    There are no decisions to predict: it acts on every packet. Worlds and their traffic are the ones that an environment
    draws under the same seeds.

    Args:
        name: e.g. `"naive"`, `"sophisticated"`, `"dt"`, `"abm"`, `"static_bdp"`, `"codel"`.
        parameters: of the scheme, see `netbuf_gym.scenarios.SCHEMES[name].parameters`.
    """

    task = QueueThreshold.name

    def __init__(self, name: str, **parameters: Any):
        self.name = choice("scheme", name, NAMES)
        for parameter in parameters:
            if parameter not in SCHEMES[name].parameters:
                valid = ", ".join(SCHEMES[name].parameters) or "none"
                raise ConfigError(f"scheme {name} has no parameter {parameter!r}; valid: {valid}")
        self.parameters = parameters

    def place(self, scenario: Scenario) -> Scenario:
        """The same world under this scheme.

        Raises:
            ConfigError: a parameter out of range.
        """
        try:
            return scenario.with_scheme({"name": self.name, **self.parameters})
        except ScenarioError as error:
            raise ConfigError(str(error)) from None

    def evaluate(
        self, scenario: str | dict[str, Any], seeds: Sequence[int], threads: int = 1, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """One episode for each seed.

        Args:
            scenario: as for the environment.
            seeds: of the episodes.
            threads: that run them.
            kwargs: as for the environment, so that all controllers are called alike; they say when and how agents decide,
                and a scheme does not.

        Returns:
            a report for each seed (`netbuf_gym.tasks.queue_threshold.switch_report`).

        Raises:
            ConfigError: no seeds, or an argument that the environment does not have.
        """
        check_names(QueueThreshold.name, kwargs)
        if kwargs.get("agents", 1) != 1:
            raise ConfigError(f"agents = {kwargs['agents']!r}; valid for {self.task}: 1, the switch")
        with ThreadPoolExecutor(whole("threads", threads, 1, 1024)) as pool:
            return list(pool.map(lambda drawn: self.episode(*drawn), draw_worlds(scenario, seeds)))

    def episode(self, scenario: Scenario, seed: int) -> dict[str, Any]:
        """The report of one world run to its end."""
        own = scenario.switches[0]
        scenario = self.place(scenario)
        world = Simulator(scenario, seed)
        world.run_to_end()
        return switch_report(scenario, counters_of(world), own.queues, own)

    def series(self, scenario: Scenario, seed: int, interval_s: float) -> dict[str, np.ndarray]:
        """One world over time, as `QueueThreshold.show` has it, but for thresholds: `(samples,)` of each.

        Where an AQM stands in the place of the switch there are no queues by number; its ports are added up.
        """
        placed = self.place(scenario)
        world = Simulator(placed, seed)
        interval_ns, ports = round(interval_s * 1e9), list(scenario.switches[0].ports)
        length_column, drop_column = (LINK_SAMPLE.index(name) for name in ("queue_packets", "queue_drops"))
        times, queues, drops = [], [], []
        while world.now_ns < round(placed.duration_s * 1e9):
            world.run(world.now_ns + interval_ns)
            times.append(world.now_ns / 1e9)
            if placed.switches:
                sample = np.array(world.switch_sample())[0, : placed.switches[0].queues]
                queues.append(sample[:, 0])
                drops.append(sample[:, 3].sum())
            else:
                sample = np.array(world.link_sample())[ports]
                queues.append([sample[:, length_column].sum()])
                drops.append(sample[:, drop_column].sum())
        lengths = np.array(queues).T
        series = {"time_s": np.array(times), "queue_packets": lengths.sum(axis=0), "drops": np.diff(drops, prepend=0.0)}
        if placed.switches:
            series |= {f"queue_packets_{q}": length for q, length in enumerate(lengths)}
        return series
