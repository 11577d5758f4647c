"""Evaluation: same worlds, same measures, seeds that training never saw."""

import dataclasses
import json
import math

import numpy as np
import pytest

from netbuf_gym import tasks
from netbuf_gym.cli import program
from netbuf_gym.evaluation import comparison, rollout, summary
from netbuf_gym.plants.counters import sender_counters
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.tasks.congestion_window import episode_report
from netbuf_gym.tasks.metrics import Measures
from netbuf_gym.training import demo, schema
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.training.config import build_scenario_spec, load
from netbuf_gym.training.evaluate import choose_readable, describe_outcome, evaluate
from netbuf_gym.training.jobs import expand_demo_overrides
from netbuf_gym.training.train import train
from netbuf_gym.utils import plots
from tests.helpers.machines import needs_live_worlds

FIRST = schema.FIRST_EVALUATION_SEED
SHORT = {"name": "ppcc/4", "duration_s": 3}
WINDOWS, SWITCH_MEASURES = (tasks.get(name).measures for name in ("congestion_window", "queue_threshold"))
METRICS = WINDOWS.metrics


def run_agent(saved, scenario, seeds, agents=1):
    """An agent of the congestion-window task in the worlds of these seeds; and the worlds."""
    agent = SavedAgent(checkpoint.read_model(saved))
    worlds = rollout.draw_worlds("congestion_window", scenario, seeds, agents=agents, **agent.env)
    return comparison.run(agent, worlds, task="congestion_window", scenario=scenario, agents=agents), worlds


def run_cubic(worlds, scenario=SHORT, **env):
    return comparison.run_baselines("congestion_window", ["cubic"], worlds, scenario=scenario, env=env)[0]


@pytest.mark.slow
def test_writes_table_result_and_plots(trained, tmp_path, capsys):
    out = tmp_path / "out"
    command = ["evaluate", f"model={trained}", "seeds=3", "scenario=ppcc/4", "scenario.kwargs.duration_s=3", f"run_dir={out}"]
    assert program.main(command) == 0
    assert {p.name for p in out.iterdir()} == {
        "table.md",
        "result.json",
        "throughput_delay.png",
        "time_series.png",
        "start.png",
    }
    assert capsys.readouterr().out.startswith((out / "table.md").read_text())
    result = json.loads((out / "result.json").read_text())
    assert list(result["controllers"]) == ["ppo", *tasks.get("congestion_window").measures.baselines]
    assert result["scenario"] == SHORT and result["training_seed"] == 0
    for one in result["controllers"].values():
        assert one["seeds"] == [FIRST, FIRST + 1, FIRST + 2]
        for metric, values in one["episodes"].items():
            mean, low, high = one["intervals"][metric]
            assert low <= mean <= high and mean == pytest.approx(np.mean(values))


def test_is_deterministic(trained):
    runs = [run_agent(trained, SHORT, [FIRST, FIRST + 1])[0] for _ in range(2)]
    for metric in METRICS:
        np.testing.assert_array_equal(runs[0].metrics[metric], runs[1].metrics[metric])
    alone = run_agent(trained, SHORT, [FIRST + 1])[0]  # a seed's episode does not depend on the others
    assert alone.metrics["utility"][0] == runs[0].metrics["utility"][1]


def test_series_are_of_the_first_seed(trained):
    agent, worlds = run_agent(trained, SHORT, [FIRST, FIRST + 1])
    for runs in (agent, run_cubic(worlds)):
        assert set(runs.series) == {"time_s", "throughput_mbps", "cwnd_packets", "rtt_ms", "queue_packets"}
        assert len({len(values) for values in runs.series.values()}) == 1
        assert runs.series["time_s"] == pytest.approx(np.arange(1, 31) / 10)
        assert np.nanmax(runs.series["rtt_ms"]) > 48


def test_baselines_are_measured_as_agents_are():
    worlds = rollout.draw_worlds("congestion_window", {"name": "ppcc/4", "duration_s": 5}, [FIRST])
    runs = run_cubic(worlds)
    scenario = worlds[0].scenario
    core = Simulator(scenario.with_senders(["cubic"]), worlds[0].seed)
    core.run(5_000_000_000)
    report = episode_report(scenario, 0, sender_counters(core, scenario, [0])[0])
    for metric in METRICS:
        assert runs.metrics[metric][0] == report[metric], metric
    assert rollout.evaluate("cubic", "congestion_window", {"name": "ppcc/4", "duration_s": 5}, [FIRST]) == [report]


def test_every_controller_meets_the_worlds_that_a_distribution_draws(trained):
    random = {"name": "ppcc/random", "duration_s": 2}
    agent, worlds = run_agent(trained, random, [FIRST, FIRST + 1])
    assert worlds[0].scenario.capacity_mbps != worlds[1].scenario.capacity_mbps
    cubic = run_cubic(worlds, random)
    assert len(agent.metrics["utility"]) == len(cubic.metrics["utility"]) == 2


def test_several_senders(trained):
    agent, worlds = run_agent(trained, SHORT, [FIRST, FIRST + 1, FIRST + 2], agents=2)
    assert len(worlds) == 3 and all(len(world.scenario.flows) == 2 for world in worlds)
    assert agent.metrics["goodput_mbps"].shape == (3,)
    cubic = run_cubic(worlds, agents=2)
    assert 0 < cubic.metrics["goodput_mbps"].max() < 5


def test_margin_and_table_leave_out_what_was_not_measured():
    def runs(name, utility):
        metrics = {metric: np.array(utility, float) for metric in METRICS}
        return summary.Runs(name, [1, 2, 3], metrics, {})

    ours, theirs = runs("a", [-0.1, -0.2, math.nan]), runs("b", [-0.3, -0.5, -0.1])
    assert summary.compute_margin(ours, theirs, "utility").mean == pytest.approx(0.25)
    nothing = runs("c", [math.nan] * 3)
    lines = summary.format_table([ours, theirs, nothing], WINDOWS).splitlines()
    assert len(lines) == 5 and lines[4].startswith("| c | - | - |")
    assert lines[3].split(" | ")[1:3] == ["-0.300 ± 0.497", "0.250 [-0.385, 0.885]"]
    assert lines[2].startswith("| a | -0.150 ± 0.635 (2 of 3) |")
    one = [
        summary.Runs(name, [1], {metric: np.array([value]) for metric in METRICS}, {})
        for name, value in (("a", 1.0), ("b", 2.0))
    ]
    assert "inf" not in summary.format_table(one, WINDOWS)
    percent = summary.compute_margin(ours, theirs, "utility", relative=True)
    assert percent.mean == pytest.approx(100 * 0.25 / -0.4)


def test_evaluation_without_plots(trained, tmp_path):
    settings = ["seeds=1", "plots=false", "baselines=[]", "scenario.kwargs.duration_s=2", f"run_dir={tmp_path}"]
    evaluate(load("evaluate", [f"model={trained}", *settings]))
    assert {p.name for p in tmp_path.iterdir()} == {"table.md", "result.json"}


@pytest.mark.slow
def test_demo_trains_evaluates_and_draws(tiny, monkeypatch, capsys):
    overrides, run_dir = tiny
    short = ("duration_s=4",)
    worlds = [demo.JudgedWorlds("changing", "ppcc/fluctuating", short), demo.JudgedWorlds("plain", "ppcc/4", short)]
    shown = demo.Demonstration((*worlds,), 0, ("cubic", "bbr"), ("throughput_mbps", "queue_packets"))
    monkeypatch.setitem(demo.DEMONSTRATIONS, "congestion_window", shown)
    monkeypatch.setattr(demo, "SEEDS", 2)
    drawn = []
    monkeypatch.setattr(plots, "plot_time_series", lambda *args: drawn.append(args))
    assert program.main(["demo", *overrides, "torch_threads=1"]) == 0
    out = capsys.readouterr().out
    for one in worlds:
        folder = run_dir / "evaluation" / one.scenario.replace("/", "-")
        assert (folder / "table.md").read_text() in out
        assert json.loads((folder / "result.json").read_text())["scenario"] == {"name": one.scenario, "duration_s": 4}
        assert (folder / "throughput_delay.png").exists()
    assert (run_dir / "model.zip").exists() and "* Mt: " in out
    assert list(drawn[0][0]) == ["ppo", *WINDOWS.baselines]
    series, path, rows, _, _, limits = drawn[-1]
    assert list(series) == ["agent", "cubic", "bbr"] and path == run_dir / "demo.png" and str(path) in out
    assert [key for key, _ in rows] == ["throughput_mbps", "queue_packets"]
    assert sorted(set(limits["throughput_mbps"][1][1])) == [10]  # 20 Mbit/s from 10 s on
    said = out.strip().splitlines()[-3:]
    assert said[0].startswith("By utility (higher is better)") and said[1].startswith("On changing the agent has goodput ")
    assert all(line.endswith(".") for line in said)


def make_result(**episodes):
    """What `evaluate` writes, of scores by controller."""
    one = {name: {"episodes": {"utility": values}, "seeds": [*range(len(values))]} for name, values in episodes.items()}
    for name, values in episodes.items():
        mean = float(np.mean(values))
        shared = {"goodput_mbps": [10 * mean, 0, 0], "queue_delay_mean_ms": [100 * mean, 0, 0]}
        one[name]["intervals"] = {"utility": [mean, mean, mean], **shared}
    return {"first": "ppo", "controllers": one}


def test_demo_says_what_was_seen():
    ahead = make_result(ppo=[1.0, 1.1, 1.2], cubic=[0.5, 0.5, 0.7], bbr=[0.9, 1.0, 1.1], keep=[0.0, 3.0, 0.0])
    behind = make_result(ppo=[1.0, 1.1, 1.2], cubic=[0.5, 0.5, 0.7], bbr=[1.5, 1.6, 1.7], keep=[1.2, 1.3, 1.4])
    said = demo.summarise_results({"rough links": ahead, "plain links": behind}, "rough links", ("cubic", "bbr"), WINDOWS)
    assert "ahead of cubic on all of 2 kinds of worlds, of bbr on 1 of 2 kinds of worlds (rough links);" in said[0]
    assert said[0].endswith("nothing is ahead of it on 1 of 2 kinds of worlds (rough links).")  # keep's lead may be chance
    values = "goodput 11.00 Mbit/s and queueing 110.00 ms, cubic 5.67 Mbit/s and 56.67 ms, bbr 10.00 Mbit/s and 100.00 ms"
    assert said[1] == f"On rough links the agent has {values}, means of 3 worlds."
    assert said[2] == "It is furthest behind on plain links: bbr has a utility of 1.600 there, and it 1.100."
    said = demo.summarise_results({"plain links": behind}, "plain links", ("cubic", "bbr"), WINDOWS)
    assert "of cubic on all worlds, of bbr on no worlds; something is ahead of it everywhere." in said[0]
    assert demo.summarise_results({"x": ahead}, "x", ("cubic",), WINDOWS)[2].startswith("Nothing is ahead of it")
    lower = dataclasses.replace(WINDOWS, lower_is_better=True)
    said = demo.summarise_results({"x": behind}, "x", ("bbr",), lower)
    assert "(lower is better)" in said[0] and "of bbr on all worlds" in said[0] and "cubic has a utility of 0.567" in said[2]


def test_demo_judges_where_control_matters():
    shown = demo.get_demonstration("congestion_window")
    words = [[f"scenario={one.scenario}", *(f"scenario.kwargs.{word}" for word in one.kwargs)] for one in shown.worlds]
    worlds = [load("evaluate", one) for one in words]
    assert [one.scenario.name for one in worlds] == ["paths/fixed", "paths/steps", "paths/cellular", "paths/rivals"]
    for config in worlds:
        drawn = demo.draw_worlds("congestion_window", build_scenario_spec(config.scenario), [1_000_000, 1_000_001])
        assert all(one.scenario.duration_s <= 30 for one in drawn)
    trained = load("train", expand_demo_overrides([])[:1])
    drawn = {family for family, share in trained.scenario.kwargs.shares.items() if share}
    assert drawn == {"fixed", "steps", "cellular", "rivals"} and trained.max_minutes == 2
    for word in ("env=queue_threshold", "scenario=ppcc/4", "experiment=queue_threshold"):
        assert "worlds/demo" not in expand_demo_overrides([word])[0]
    for task in tasks.names():
        one = demo.get_demonstration(task)
        assert len(one.beside) == 2 and one.worlds and 0 <= one.drawn < len(one.worlds)


@pytest.fixture(scope="module")
def switch_agent(tmp_path_factory):
    """The run directory of a tiny run on switches; not to be written to."""
    run_dir = tmp_path_factory.mktemp("switch") / "run"
    tiny = ["algo.num_envs=4", "algo.kwargs.n_steps=8", "algo.kwargs.batch_size=16", "stagger_steps=0", "total_timesteps=128"]
    quiet = ["progress=false", "tensorboard=false", f"run_dir={run_dir}"]
    train(["env=queue_threshold", "scenario.kwargs.duration_s=2", *tiny, *quiet])
    return run_dir


SWITCHES = ["scenario=rlbm/random", "scenario.kwargs.duration_s=5", "scenario.kwargs.load=[0.5,2]", "seeds=4"]


@pytest.mark.slow
def test_switch_agents_beside_every_scheme(switch_agent, tmp_path, capsys):
    assert program.main(["evaluate", f"model={switch_agent}", *SWITCHES, f"run_dir={tmp_path}"]) == 0
    text = (tmp_path / "table.md").read_text()
    assert capsys.readouterr().out.startswith(text)
    result = json.loads((tmp_path / "result.json").read_text())
    measures = SWITCH_MEASURES
    assert list(result["controllers"]) == ["ppo", *measures.baselines] and result["task"] == "queue_threshold"
    assert result["first"] == "ppo" and "| flows started | flows completed | mean FCT, priority 0 (s) |" in text
    assert "below 0 says that the agent is better" in text
    for one in result["controllers"].values():
        assert one["measured"]["slowdown_p99_p0"] == sum(
            value is not None and value == value for value in one["episodes"]["slowdown_p99_p0"]
        )
    assert "random" in result["controllers"]
    for one in result["controllers"].values():
        assert set(one["episodes"]) == set(measures.metrics) and len(one["episodes"]["goodput_mbps"]) == 4
    naive = result["controllers"]["naive"]
    difference = np.subtract(*(result["controllers"][name]["episodes"]["slowdown_p99_p0"] for name in ("ppo", "naive")))
    assert naive["slowdown_p99_p0_margin_of_the_agent"][0] == pytest.approx(np.nanmean(difference))
    assert "goodput_mbps_margin_of_the_agent_percent" in naive
    for heading in ("p99 slowdown, priority 0", "margin of the agent", "| load |", "| buffer (packets) |", "**"):
        assert heading in text
    assert {"throughput_delay.png", "time_series.png", "start.png"} <= {path.name for path in tmp_path.iterdir()}


def test_percentiles_have_the_number_of_flows_beside_them_and_can_be_pooled(tmp_path):
    command = ["model=null", "env=queue_threshold", *SWITCHES, "baselines=[naive,random]", "plots=false", f"run_dir={tmp_path}"]
    evaluate(load("evaluate", [*command, "pooled=true"]))
    text, result = (tmp_path / "table.md").read_text(), json.loads((tmp_path / "result.json").read_text())
    seeds = range(FIRST, FIRST + 4)
    for name, one in result["controllers"].items():
        reports = rollout.evaluate(name, "queue_threshold", result["scenario"], seeds, flows=True)
        own = [[flow for flow in report["flows"] if flow["priority"] == 0] for report in reports]
        counts = [len(flows) for flows in own]
        assert counts == one["episodes"]["flows_completed_p0"] == [report["flows_completed_p0"] for report in reports]
        for flows, report in zip(own, reports, strict=True):
            ordered = sorted(flow["slowdown"] for flow in flows)
            assert report["slowdown_p99_p0"] == ordered[math.ceil(0.99 * len(ordered)) - 1]
            assert all(flow["fct_s"] == pytest.approx(flow["slowdown"] * flow["ideal_s"]) for flow in flows)
        together = sorted(flow["slowdown"] for flows in own for flow in flows)
        assert one["pooled"]["p0"]["flows"] == len(together) == sum(counts)
        assert one["pooled"]["p0"]["p99"] == together[math.ceil(0.99 * len(together)) - 1]
        assert one["pooled"]["all"]["flows"] == sum(one["episodes"]["flows_completed"])
        assert one["flows"]["slowdown_p99_p0"] == [min(counts), max(counts)]
        assert {"slowdown_p99", "difference_p99_s"} <= set(one["flows"])
        assert f", {min(counts)} to {max(counts)} flows |" in text.split(f"| {name} |")[1]
        assert f"| {name} | p0 | {len(together)}" in text
    low, high = result["controllers"]["naive"]["flows"]["slowdown_p99_p0"]
    assert describe_outcome(tmp_path)[1].endswith(f", {low} to {high} flows")
    assert f" ({low} to {high} flows)" in demo.format_mean(result, "naive", "slowdown_p99_p0", SWITCH_MEASURES)
    assert "flows" not in demo.format_mean(result, "naive", "goodput_mbps", SWITCH_MEASURES)
    assert (
        text.count("Warning: few flows in an episode: ") == text.count("Warning") == 1
        and "decide a 99th percentile" in result["warnings"][0]
    )
    assert "flows" not in rollout.evaluate("naive", "queue_threshold", result["scenario"], seeds[:1])[0]
    evaluate(load("evaluate", command))
    assert "pooled" not in json.loads((tmp_path / "result.json").read_text())["controllers"]["naive"]


def test_a_percentile_of_enough_flows_has_no_warning():
    values = {"slowdown_p99_p0": np.array([1.0, np.nan]), "flows_completed_p0": np.array([200.0, 0.0])}
    one = summary.Runs("naive", [1, 2], values, {}, np.array([(0, 2.0)] * 250 + [(1, 3.0)] * 50))
    assert summary.warn_of_few([one], SWITCH_MEASURES) == []
    few = summary.Runs("dt", [1, 2], {**values, "flows_completed_p0": np.array([199.0, 0.0])}, {})
    (said,) = summary.warn_of_few([one, few], SWITCH_MEASURES)
    assert said.startswith("few flows in an episode: 199 behind p99 slowdown, priority 0; below 200")
    assert summary.format_pooled([one, few]).splitlines()[2:] == [
        "| naive | p0 | 250 | 2.00 | 2.00 | 2.00 |",
        "| naive | p1 | 50 (few) | 3.00 | 3.00 | 3.00 |",
        "| naive | all | 300 | 2.00 | 3.00 | 3.00 |",
    ]
    assert summary.format_pooled([few]) == "No finite flow was completed in any world."
    assert summary.format_range((22, 22)) == "22" and summary.format_range((22, 1310)) == "22 to 1,310"
    assert summary.format_flows((1, 1)) == "1 flow" and summary.format_flows((0, 1310)) == "0 to 1,310 flows"


def test_few_flows_are_warned_of_once():
    values = {"slowdown_p99_p0": np.array([1.0, 2.0]), "flows_completed_p0": np.array([30.0, 500.0])}
    values |= {"slowdown_p99_p1": np.array([np.nan, 2.0]), "flows_completed_p1": np.array([0.0, 7.0])}
    values |= {"difference_p99_s": np.array([1.0, 2.0]), "flows_completed": np.array([300.0, 507.0])}
    (said,) = summary.warn_of_few([summary.Runs("naive", [1, 2], values, {})], SWITCH_MEASURES)
    assert said.startswith("few flows in an episode: 30 behind p99 slowdown, priority 0, 7 behind p99 slowdown, priority 1;")
    assert "ideal" not in said


def test_breakdowns_have_the_number_of_flows_beside_each_percentile():
    values = {"slowdown_p99_p0": np.array([1.0, 2.0, np.nan]), "flows_completed_p0": np.array([30.0, 1500.0, 0.0])}
    more = {"slowdown_p99_p0": np.array([1.0, 3.0, np.nan]), "flows_completed_p0": np.array([28.0, 1500.0, 0.0])}
    runs = [summary.Runs(name, [1, 2, 3], own, {}) for name, own in (("naive", values), ("dt", more))]
    lines = summary.format_worlds(runs, ["short", "long", "long"], SWITCH_MEASURES).splitlines()
    assert lines[0] == "| world | seeds | flows | naive | dt | ahead of naive |" and lines[1].count("|") == lines[0].count("|")
    assert lines[2].startswith("| short | 1 | 28 to 30 |") and lines[3].startswith("| long | 2 | 1,500 |")
    measures = dataclasses.replace(SWITCH_MEASURES, counts={})
    assert "flows" not in summary.format_worlds(runs, ["short", "long", "long"], measures)


def test_equal_runs_are_told_of():
    def runs(name, *scores):
        return summary.Runs(name, list(range(len(scores))), {SWITCH_MEASURES.score: np.array(scores)}, {})

    several = [runs("a", 1.5, 1.5, 1.5), runs("b", 1.5, 1.6, 1.5), runs("c", np.nan, 2.0, 2.0), runs("d", np.nan, 1.0, np.nan)]
    (said,) = summary.warn_of_equal(several, SWITCH_MEASURES)
    assert (
        f"{SWITCH_MEASURES.score} of a, c is the same under every seed that gave a value" in said and "start_jitter_ms" in said
    )
    assert summary.warn_of_equal([runs("a", 1.5), runs("b", 1.5, 1.6)], SWITCH_MEASURES) == []


@pytest.mark.parametrize("recipe", ["default", "thesis-text", "thesis-code"])
def test_random_thresholds_play_the_recipe_that_is_asked_for(recipe, tmp_path):
    world = {"name": "rlbm/cubic-100-0.8", "duration_s": 4}
    command = ["model=null", "env=queue_threshold", "scenario=rlbm/cubic-100-0.8", "scenario.kwargs.duration_s=4", "seeds=2"]
    evaluate(load("evaluate", [*command, "baselines=[naive,random]", "plots=false", f"recipe={recipe}", f"run_dir={tmp_path}"]))
    result = json.loads((tmp_path / "result.json").read_text())
    name = "random" if recipe == "default" else f"random ({recipe})"
    assert list(result["controllers"]) == ["naive", name] and result["first"] == "naive"
    assert "slowdown_p99_p0_margin_of_the_first" in result["controllers"][name]
    reports = rollout.evaluate("random", "queue_threshold", world, [FIRST, FIRST + 1], recipe=recipe)
    for metric in ("drops", "goodput_mbps", "occupancy_p99"):
        assert result["controllers"][name]["episodes"][metric] == [report[metric] for report in reports]


def test_random_thresholds_decide_as_a_model_does(tmp_path):
    """Recipe, betas and interval are the agent's, and so is the row's name."""
    tiny = ["algo.num_envs=4", "algo.kwargs.n_steps=8", "algo.kwargs.batch_size=16", "stagger_steps=0", "total_timesteps=32"]
    env = {"recipe": "thesis-text", "betas": [1, 0.25], "interval_s": 0.3}
    made = ["env.kwargs.recipe=thesis-text", "env.kwargs.betas=[1,0.25]", "env.kwargs.interval_s=0.3"]
    world = {"name": "rlbm/cubic-100-0.8", "duration_s": 3}
    scenario = ["scenario=rlbm/cubic-100-0.8", "scenario.kwargs.duration_s=3"]
    train(
        ["env=queue_threshold", *made, *scenario, *tiny, "progress=false", "tensorboard=false", f"run_dir={tmp_path / 'run'}"]
    )
    command = [f"model={tmp_path / 'run'}", *scenario, "seeds=2", "baselines=[random]", "plots=false"]
    evaluate(load("evaluate", [*command, f"run_dir={tmp_path / 'out'}"]))
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert list(result["controllers"]) == ["ppo", "random (thesis-text)"]
    reports, others = (
        rollout.evaluate("random", "queue_threshold", world, [FIRST, FIRST + 1], **kwargs)
        for kwargs in (env, env | {"interval_s": 0.1})
    )
    episodes = result["controllers"]["random (thesis-text)"]["episodes"]
    assert episodes["drops"] == [report["drops"] for report in reports] != [report["drops"] for report in others]
    with pytest.raises(ValueError, match="thesis-text"):
        evaluate(load("evaluate", [*command, "recipe=default"]))


@pytest.mark.slow
@pytest.mark.parametrize("queues", [1, 3, 4])
def test_every_baseline_plays_switches_of_any_number_of_queues(queues, tmp_path):
    below = [100_000, 1_000_000, 3_000_000][: queues - 1]
    world = ["scenario=rlbm/default", f"scenario.kwargs.priority_below={below}", "scenario.kwargs.duration_s=3"]
    evaluate(load("evaluate", ["model=null", "env=queue_threshold", *world, "seeds=1", f"run_dir={tmp_path}"]))
    text = (tmp_path / "table.md").read_text()
    assert "| random |" in text and "inf" not in text and "nan" not in text


def test_baselines_of_congestion_windows_alone(tmp_path):
    command = [
        "model=null",
        "env=congestion_window",
        "scenario=ppcc/4",
        "scenario.kwargs.duration_s=3",
        "seeds=2",
        "plots=false",
    ]
    evaluate(load("evaluate", [*command, f"run_dir={tmp_path / 'a'}", "baselines=[random,cubic]"]))
    result = json.loads((tmp_path / "a" / "result.json").read_text())
    reports = rollout.evaluate("random", "congestion_window", SHORT, [FIRST, FIRST + 1])
    assert result["controllers"]["random"]["episodes"]["utility"] == [report["utility"] for report in reports]
    evaluate(
        load("evaluate", [*command, f"run_dir={tmp_path / 'b'}", "senders=2", "recipe=ppcc", "baselines=[queue_target,keep]"])
    )
    result = json.loads((tmp_path / "b" / "result.json").read_text())
    evaluate(
        load("evaluate", [*command, f"run_dir={tmp_path / 'c'}", "agents=2", "recipe=ppcc", "baselines=[queue_target,keep]"])
    )
    assert json.loads((tmp_path / "c" / "result.json").read_text())["controllers"] == result["controllers"]
    assert list(result["controllers"]) == ["queue_target", "keep (ppcc)"]
    assert max(result["controllers"]["queue_target"]["episodes"]["goodput_mbps"]) < 5


def test_two_evaluations_in_a_second_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = [
        "model=null",
        "env=congestion_window",
        "scenario.kwargs.duration_s=1",
        "seeds=1",
        "plots=false",
        "baselines=[cubic]",
    ]
    paths = {evaluate(load("evaluate", command)) for _ in range(3)}
    assert len(paths) == 3 and {path.parent.name for path in paths} == {"congestion_window"}


def test_pictures_over_time_show_as_many_as_can_be_told_apart():
    measures = SWITCH_MEASURES
    scores = {
        "ppo": 3.0,
        "pie": 5.0,
        "dt": 1.0,
        "red": 6.0,
        "naive": 9.0,
        "codel": math.nan,
        "abm": 2.0,
        "random (x)": 7.0,
        "dq": 8,
    }
    runs = [summary.Runs(name, [1], {measures.score: np.array([value])}, {}) for name, value in scores.items()]
    assert [one.name for one in choose_readable(runs, measures, 6)] == ["ppo", "pie", "dt", "naive", "abm", "random (x)"]
    assert choose_readable(runs[:4], measures, 6) == runs[:4]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "model=..."),
        (["model=null"], "model=null env="),
        (["env=congestion_window", "scenario=rlbm/default"], "senders = 1"),
        (["env=queue_threshold", "senders=2"], "senders = 2 is no argument of task 'queue_threshold'; valid: agents="),
        (["env=queue_threshold", "agents=2"], "agents = 2; valid for queue_threshold: 1"),
        (["env=congestion_window", "agents=2", "senders=2"], "agents and senders are given"),
        (["env=congestion_window", "agents=0"], "agents = 0"),
        (["env=congestion_window", "threads=257"], "threads = 257 is out of range; valid: 1..256"),
        (["env=queue_threshold", "env_id=netbuf/CongestionWindow-v0"], "netbuf/QueueThreshold-v0"),
        (["env=queue_threshold", "baselines=[naive,naive]"], "twice"),
        (["env=queue_threshold", "recipe=ppcc"], "recipe"),
        (["env=switching"], "switching"),
        (["env=queue_threshold", "baselines=[cubic]"], "cubic"),
        (["env=queue_threshold", "baselines=[]"], "baselines"),
        (["env=queue_threshold", "scenario=ppcc/1"], "switch"),
        (["env=congestion_window", "seeds=[1,2]"], "no evaluation seed"),
        (["env=congestion_window", "baselines=[reno2000]"], "reno2000"),
        (["env=congestion_window", "confidence=1"], "confidence"),
        (["env=congestion_window", "threads=0"], "threads"),
        (["env=congestion_window", "scenario=ppcc/77"], "ppcc/77"),
        (["env=congestion_window", "scenario.kwargs.loss=3"], "loss"),
    ],
)
def test_what_cannot_be_evaluated_is_said(arguments, message, tmp_path, capfd):
    assert program.main(["evaluate", *arguments, f"run_dir={tmp_path / 'out'}"]) == 2
    error = capfd.readouterr().err
    assert message in error and error.count("\n") == 1 and not (tmp_path / "out").exists()


def test_a_model_of_another_task_is_refused(switch_agent, trained, capfd):
    assert program.main(["evaluate", f"model={switch_agent}", "env=congestion_window"]) == 2
    assert "queue_threshold" in capfd.readouterr().err
    assert program.main(["evaluate", f"model={trained}", "scenario=rlbm/default", "env_id=netbuf/QueueThreshold-v0"]) == 2


@pytest.mark.slow
def test_the_result_is_written_last_and_taken_away_first(trained, tmp_path, monkeypatch):
    """Killed in between, a folder has none: neither one whose plots lack, nor that of an evaluation before."""
    from netbuf_gym.training import evaluate as module

    out = tmp_path / "out"
    words = ["seeds=1", "scenario=ppcc/4", "scenario.kwargs.duration_s=1", f"run_dir={out}"]
    config = load("evaluate", [f"model={trained}", *words])

    def killed(*arguments, **named):
        raise KeyboardInterrupt

    evaluate(config)
    assert (out / "result.json").is_file()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(module, "_draw_pictures", killed)
        evaluate(config)
    assert (out / "table.md").is_file() and not (out / "result.json").exists()
    evaluate(config)
    assert (out / "result.json").is_file()


def test_times_of_worlds_in_real_time_are_columns():
    timed = {"decisions": np.array([20.0, 18.0]), "interval_p50_s": np.array([0.1, 0.2]), "own_ms": np.array([np.nan, 4.0])}
    runs = [summary.Runs("random", [1, 2], timed, {}, timing=tuple(timed)), summary.Runs("cubic", [1, 2], {}, {})]
    head, _, first, second, *notes = summary.format_timing(runs).splitlines()[2:]
    assert head == "| controller | decisions | interval, p50 (s) | own_ms |"
    assert first.startswith("| random | 19.0 ± ") and "| 0.1500 ± " in first and first.endswith("| 4.000 (1 of 2) |")
    assert second == "| cubic | - | - | - |" and "* decisions: made in an episode" in notes
    assert summary.format_timing(runs[1:]) == ""


@pytest.mark.slow
def test_evaluation_on_the_kernel_has_its_times(tmp_path):
    needs_live_worlds()
    command = [
        "model=null",
        "env=congestion_window",
        "scenario=ppcc/4",
        "scenario.kwargs.duration_s=1",
        "seeds=2",
        "plots=false",
    ]
    evaluate(load("evaluate", [*command, "plant=linux", "baselines=[random,cubic]", f"run_dir={tmp_path}"]))
    text, result = (tmp_path / "table.md").read_text(), json.loads((tmp_path / "result.json").read_text())
    deciding, acting = result["controllers"]["random"], result["controllers"]["cubic"]
    assert min(deciding["episodes"]["decisions"]) >= 4 and deciding["intervals"]["interval_p50_s"][0] >= 0.09
    assert min(acting["episodes"]["packets_timed"]) > 10 and acting["intervals"]["packet_lateness_p99_ms"][0] > 0
    assert "| decisions | interval, p50 (s) | interval, p99 (s) | packets | lateness, p50 (ms) |" in text
    evaluate(load("evaluate", [*command, "baselines=[cubic]", f"run_dir={tmp_path}"]))
    assert "lateness" not in (tmp_path / "table.md").read_text()


def test_times_are_kept_apart_from_the_metrics_of_a_task_that_names_none(monkeypatch):
    record = dataclasses.replace(tasks.get("congestion_window"), measures=Measures())
    monkeypatch.setattr(comparison.tasks, "get", lambda task: record)
    timed = {"decisions": 3, "own_ms": 2.5}
    monkeypatch.setattr(
        comparison, "_play", lambda *args, **options: [comparison.Played([{"goodput_mbps": 1.0, **timed}], list(timed))]
    )
    world = rollout.World(None, 1, 1)
    runs = comparison.run(rollout.get_controller("cubic", "congestion_window"), [world], task="congestion_window", scenario="x")
    assert runs.timing == ("decisions", "own_ms") and set(runs.metrics) == {"goodput_mbps", "decisions", "own_ms"}
    content = summary.to_dict([runs], record.measures.fill_in(["goodput_mbps"]))["controllers"]["cubic"]
    assert list(content["intervals"]) == ["goodput_mbps", "decisions", "own_ms"]
