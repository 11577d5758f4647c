"""Agents and classic congestion controls run over the same worlds, and measured alike."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from omegaconf import DictConfig, OmegaConf

from netbuf_gym import stats
from netbuf_gym.plants.sim import episode_report
from netbuf_gym.results import Result
from netbuf_gym.scenarios import Scenario
from netbuf_gym.simulation import simulate
from netbuf_gym.zoo import checkpoint, models

METRICS = ("utility", "goodput_mbps", "queue_delay_mean_ms", "mean_rtt_ms", "loss_rate", "Mt")
SERIES = ("time_s", "cwnd_packets", "rtt_ms", "queue_packets")


@dataclass(frozen=True)
class Runs:
    """One controller over several seeds.

    Attributes:
        name: of the controller.
        seeds: of the episodes.
        metrics: (seeds,) of each metric: whole-episode means, start-up included; mean over the world's senders.
        series: of the first seed: time_s, cwnd_packets, rtt_ms and queue_packets, (samples,), of the first sender.
    """

    name: str
    seeds: list[int]
    metrics: dict[str, np.ndarray]
    series: dict[str, np.ndarray]

    def interval(self, metric: str, confidence: float = 0.95) -> stats.Interval:
        """Mean over the seeds of the episodes in which the metric was measured, with its t interval."""
        values = self.metrics[metric][np.isfinite(self.metrics[metric])]
        return stats.mean_interval(values, confidence) if len(values) else stats.Interval(*[math.nan] * 3)


def run_agent(
    saved: checkpoint.Saved,
    scenario: str | dict[str, Any],
    seeds: Sequence[int],
    threads: int = 1,
    name: str = "agent",
    senders: int = 1,
) -> tuple[Runs, list[Scenario]]:
    """Runs a saved agent, greedily, over one world a seed; also says which worlds these were.

    With several `senders` the agent controls as many in each world, each by what that sender sees.

    Raises:
        CheckpointError: the model does not fit its environment as it is now.
        ConfigError: an unknown scenario or environment.
    """
    kwargs = {k: v for k, v in saved.env["kwargs"].items() if k not in ("reward", "max_episode_steps")}
    kwargs |= {"scenario": scenario, "senders": senders}
    adapter = models.make_env(saved.env["id"], len(seeds) * senders, threads, kwargs)
    try:
        checkpoint.require_same_env(saved, checkpoint.describe(adapter, saved.env["id"], kwargs))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about batch sizes, which only matter for training
            model = models.make_model(_for_prediction(saved.config.algo), adapter, seed=0)
        checkpoint.restore(saved, model, rng=False)
        env = adapter.env
        observations, _ = env.reset(seed=list(seeds))
        engine = env.unwrapped.engine
        worlds = list(engine.scenarios)
        found: list[dict[str, float] | None] = [None] * env.num_envs
        series: list[dict[str, float]] = []
        state, starts = None, np.ones(env.num_envs, bool)
        while any(report is None for report in found):
            actions, state = model.predict(observations, state=state, episode_start=starts, deterministic=True)
            observations, _, _, starts, info = env.step(actions)
            if found[0] is None and not starts[0]:
                series.append(engine.show(0))
            for row in np.flatnonzero(starts):
                if found[row] is None:
                    found[row] = {metric: float(info["final_info"][metric][row]) for metric in METRICS}
    finally:
        adapter.close()
    metrics = {m: np.array([r[m] for r in found]).reshape(len(seeds), senders).mean(axis=1) for m in METRICS}
    drawn = {key: np.array([sample[key] for sample in series]) for key in SERIES}
    return Runs(name, list(seeds), metrics, drawn), worlds


def run_baseline(congestion_control: str, worlds: Sequence[Scenario], seeds: Sequence[int]) -> Runs:
    """Runs a congestion control in the agent's place, in each world under its seed.

    Raises:
        ConfigError: a congestion control that the simulator does not have.
    """
    reports, series = [], {}
    for world, seed in zip(worlds, seeds, strict=True):
        agents = [index for index, flow in enumerate(world.flows) if flow.cc == "agent"]
        senders = [congestion_control if flow.cc == "agent" else flow.cc for flow in world.flows]
        result = simulate(world.with_senders(senders), seed=seed, sample_interval_s=None if series else 0.1)
        if not series:
            columns = {"time_s": result.series["time_s"], "queue_packets": result.series["queue_packets"]}
            bottleneck = [link.name for link in result.links].index(result.bottleneck)
            columns["queue_packets"] = columns["queue_packets"][:, bottleneck]
            columns |= {key: result.series[key][:, agents[0]] for key in ("cwnd_packets", "rtt_ms")}
            series = columns
        reports.append([_report(world, result, flow) for flow in agents])
    metrics = {m: np.array([np.mean([r[m] for r in flows]) for flows in reports]) for m in METRICS}
    return Runs(congestion_control, list(seeds), metrics, series)


def table(runs: Sequence[Runs], confidence: float = 0.95) -> str:
    """Markdown table: a row a controller, means with the half-widths of their intervals; utility's margin to the first.

    The margin is the first controller's utility minus the row's, paired by seed.
    """
    first = runs[0]
    lines = [
        "| controller | utility | margin of the agent | goodput (Mbit/s) | queueing (ms) | RTT (ms) | loss (%) | Mt |",
        "|:--|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for one in runs:
        margin = "" if one is first else str(utility_margin(first, one, confidence))
        cells = [
            _cell(one.interval("utility", confidence), 3),
            margin,
            _cell(one.interval("goodput_mbps", confidence), 2),
            _cell(one.interval("queue_delay_mean_ms", confidence), 2),
            _cell(one.interval("mean_rtt_ms", confidence), 1),
            _cell(stats.Interval(*(100 * x for x in one.interval("loss_rate", confidence))), 4),
            _cell(one.interval("Mt", confidence), 2),
        ]
        lines.append(f"| {one.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def utility_margin(ours: Runs, theirs: Runs, confidence: float = 0.95) -> stats.Interval:
    """Mean of our utility minus theirs, paired by seed, over the seeds where both have one; with its t interval."""
    difference = ours.metrics["utility"] - theirs.metrics["utility"]
    difference = difference[np.isfinite(difference)]
    return stats.mean_interval(difference, confidence) if len(difference) else stats.Interval(*[math.nan] * 3)


def to_dict(runs: Sequence[Runs], confidence: float = 0.95) -> dict[str, Any]:
    """JSON-able form: every episode, and means with intervals."""
    return {
        "confidence": confidence,
        "controllers": {
            one.name: {
                "seeds": one.seeds,
                "episodes": {metric: values.tolist() for metric, values in one.metrics.items()},
                "intervals": {metric: list(one.interval(metric, confidence)) for metric in METRICS},
                "utility_margin_of_the_agent": None
                if one is runs[0]
                else list(utility_margin(runs[0], one, confidence)),
            }
            for one in runs
        },
    }


def _cell(interval: stats.Interval, digits: int) -> str:
    half = (interval.high - interval.low) / 2
    if not math.isfinite(interval.mean):
        return "-"
    return f"{interval.mean:.{digits}f}" + (f" ± {half:.{digits}f}" if math.isfinite(half) else "")


def _report(world: Scenario, result: Result, flow: int) -> dict[str, float]:
    """The report that an agent in this flow's place would get: by the same function, from the same counters."""
    own, link = result.flows[flow], result.links[result.bottleneck]
    measured = math.isfinite(own.rtt_mean_ms)
    counters = {
        "delivered_bytes": own.delivered_bytes,
        "rtt_count": int(measured),
        "rtt_sum_s": own.rtt_mean_ms / 1e3,
        "rtt_min_s": own.rtt_min_ms / 1e3,
        "queue_drops": own.queue_drops,
        "random_losses": own.random_losses,
        "packets_sent": own.packets_sent,
        "timeouts": own.timeouts,
    }
    queue = {
        "sojourn_sum_s": link.queue_delay_mean_ms / 1e3,
        "sojourn_count": int(math.isfinite(link.queue_delay_mean_ms)),
    }
    empty: dict[str, float] = {}
    flows = [counters if index == flow else empty for index in range(len(world.flows))]
    links = [queue if index == world.bottleneck else empty for index in range(len(world.links))]
    return episode_report(world, flow, flows, links, world.duration_s)


def _for_prediction(algo: DictConfig) -> DictConfig:
    """The same networks without the memory that only training needs."""
    small = {"n_steps": 2, "batch_size": 2, "buffer_size": 1}
    return OmegaConf.merge(algo, {"kwargs": {key: value for key, value in small.items() if key in algo.kwargs}})
