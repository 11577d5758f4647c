"""Campaigns: an agent trained with several seeds, what is kept of it, and the tables that show it."""

import json
import math
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import stable_baselines3
import torch as th

from netbuf_gym import tasks
from netbuf_gym.evaluation import summary
from netbuf_gym.training import campaign
from netbuf_gym.training.checkpoints import archive, checkpoint, digest, packing, versions
from netbuf_gym.training.train import train
from netbuf_gym.zoo import library
from studies.pages import leaderboard_page

WINDOWS, SWITCH_MEASURES = (tasks.get(name).measures for name in ("congestion_window", "queue_threshold"))


@pytest.mark.slow
def test_campaign_trains_evaluates_and_keeps(tiny, tmp_path, monkeypatch):
    overrides = [override for override in tiny[0] if not override.startswith("run_dir")]
    out = tmp_path / "agents" / "task" / "name"
    own = ["seeds=2", "evaluation_seeds=2", "scenarios=ppcc/1,ppcc/4", f"out={out}", f"runs={tmp_path / 'runs'}"]
    command = [*own, "suites=false", "validation_seeds=2", *overrides]
    assert campaign.main(command) == 0
    assert {p.name for p in out.iterdir()} == {"model.zip", "config.yaml", "metrics.json", "card.md"}
    metrics = json.loads((out / "metrics.json").read_text())
    made = tmp_path / "runs" / f"seed{metrics['kept_seed']}" / versions.NAME
    assert metrics[versions.KEY] == json.loads(made.read_text()) == versions.read_versions_beside(out / "model.zip")
    assert metrics["training_seeds"] == [0, 1] and metrics["kept_seed"] in (0, 1)
    assert metrics["training_timesteps"] == [128, 128]
    scores = metrics["validation"]["scores"]
    assert metrics["kept_seed"] == int(scores[1] > scores[0]) and scores[0] != scores[1]
    card = (out / "card.md").read_text()
    assert f"is seed {metrics['kept_seed']}, the best in validation worlds" in card
    assert "the model at the end of its training, in 2 validation worlds of" in card
    for part in metrics["scenarios"].values():
        assert len(part["agent"]["utility"]) == 2
        margin = part["margins"]["cubic"]
        assert margin["low"] <= margin["mean"] <= margin["high"]
        assert margin["mean"] == pytest.approx(np.mean(part["agent"]["utility"]) - part["baselines"]["cubic"]["utility"])
    run = tmp_path / "runs" / f"seed{metrics['kept_seed']}" / "model.zip"
    assert (
        checkpoint.read_model(out / "model.zip").config.seed == metrics["kept_seed"] == checkpoint.read_model(run).config.seed
    )
    kept = [(out / name).read_text() for name in ("config.yaml", "metrics.json", "card.md")]
    with zipfile.ZipFile(out / "model.zip") as mine, zipfile.ZipFile(run) as its:
        assert mine.namelist() == its.namelist() and str(tmp_path) in its.read(checkpoint.META).decode()
        assert mine.read(checkpoint.PARAMETERS) == its.read(checkpoint.PARAMETERS)
        kept.append(mine.read(checkpoint.META).decode())
    assert not any(str(tmp_path) in text for text in kept)

    monkeypatch.setattr(campaign, "train", lambda overrides: pytest.fail("trained again"))
    assert campaign.main(command) == 0
    with pytest.raises(ValueError, match="the campaign chooses seed"):
        campaign.main(["seed=3"])
    assert campaign.main([*command, "torch_threads=2"]) == 0  # what a resumed run may change
    for other, told in (("algo.kwargs.gamma=0.5", "algo.kwargs.gamma = "), ("env=queue_threshold", "'ppcc/1' has 0 switches")):
        with pytest.raises(ValueError, match=told):
            campaign.main([*command, other])

    facts = leaderboard_page.format_training_facts(library.read_metrics(out))
    assert facts[:4] == ["ppo", "default", "ppcc/4", "2"] and facts[4] == "0.0 M"


@pytest.mark.slow
def test_a_card_says_what_training_began_with(tiny, tmp_path):
    overrides = [override for override in tiny[0] if not override.startswith("run_dir")]
    own = ["seeds=2", "evaluation_seeds=1", "validation_seeds=1", "scenarios=ppcc/1", "suites=false", *overrides]
    runs, out = (tmp_path / "first", tmp_path / "second"), [tmp_path / "agents/task/first", tmp_path / "agents/task/second"]
    assert campaign.main([*own, f"runs={runs[0]}", f"out={out[0]}"]) == 0
    began = f"start_from={runs[0]}/seed${{seed}}/model.zip"
    assert campaign.main([*own, began, f"runs={runs[1]}", f"out={out[1]}"]) == 0
    first, second = (json.loads((one / "metrics.json").read_text()) for one in out)
    assert first["begun_with"] == [None, None]
    assert [one["timesteps"] for one in second["begun_with"]] == [128, 128] == second["training_timesteps"]
    assert "goes on with" not in (out[0] / "card.md").read_text()
    said = f"goes on with agents that were trained before, that of `model.zip` with `seed{second['kept_seed']}/model.zip`: 128"
    assert said in (out[1] / "card.md").read_text()
    minutes = [float(leaderboard_page.format_training_facts(one)[-1]) for one in (first, second)]
    assert minutes[1] >= minutes[0]


@pytest.mark.slow
def test_seeds_are_trained_alike_by_an_executor(tiny, tmp_path):
    pytest.importorskip("joblib")
    overrides = [override for override in tiny[0] if not override.startswith("run_dir")]
    weights = []
    for name in ("local", "joblib"):
        words = ["seeds=2", f"executor={name}", "jobs=2", f"runs={tmp_path / name}", f"out={tmp_path / 'out'}", *overrides]
        plan = campaign.parse_plan(words)
        assert "executor" not in plan.command and "jobs" not in plan.command
        for path in campaign._train_seeds(plan):
            with zipfile.ZipFile(path) as file:
                weights.append(file.read(checkpoint.PARAMETERS))
    assert weights[:2] == weights[2:] and weights[0] != weights[1]
    with pytest.raises(ValueError, match="executor = 'dask' is unknown"):
        campaign.parse_plan(["executor=dask"])


@pytest.mark.parametrize(
    ("begun", "kept"), [(None, None), ("queue_threshold/ppo", "queue_threshold/ppo"), ("/a/b/run/model.zip", "run/model.zip")]
)
def test_a_packed_model_holds_no_path_of_the_machine_it_was_trained_on(trained, tmp_path, begun, kept):
    own = checkpoint.read_model(trained)
    own.config.start_from = begun
    config = packing.pack_model(own, tmp_path / "model.zip")
    packed = checkpoint.read_model(tmp_path / "model.zip")
    assert config == packed.config and (config.run_dir, config.resume, config.start_from) == (None, None, kept)
    assert {**config, **{key: own.config[key] for key in ("run_dir", "resume", "start_from")}} == dict(own.config)
    assert (packed.env, packed.progress, packed.attributes) == (own.env, own.progress, own.attributes)


def test_a_packed_model_is_its_networks_without_what_training_would_go_on_with(trained, tmp_path):
    path = tmp_path / "model.zip"
    packing.pack_model(checkpoint.read_model(trained), path)
    with zipfile.ZipFile(path) as mine, zipfile.ZipFile(trained / "model.zip") as its:
        assert mine.namelist() == its.namelist() and mine.read(checkpoint.PARAMETERS) == its.read(checkpoint.PARAMETERS)
        assert mine.getinfo(checkpoint.OPTIMIZER).file_size < 4000 < its.getinfo(checkpoint.OPTIMIZER).file_size / 4
        assert mine.read(checkpoint.RNG) == b"{}"
    again, full = (stable_baselines3.PPO.load(one, device="cpu") for one in (path, trained / "model.zip"))
    assert all(th.equal(ours, its) for ours, its in zip(again.policy.parameters(), full.policy.parameters(), strict=True))
    states = [one.policy.optimizer.state_dict() for one in (again, full)]
    assert states[0]["state"] == {} != states[1]["state"] and len(states[0]["param_groups"]) == 1
    packing.pack_model(checkpoint.read_model(path), tmp_path / "again.zip")
    assert (
        digest.compute_model_digest(tmp_path / "again.zip")
        == digest.compute_model_digest(path)
        == digest.compute_model_digest(trained / "model.zip")
    )


def test_a_packed_model_goes_on_with_a_new_optimiser_and_says_so(trained, tmp_path, capsys):
    packing.pack_model(checkpoint.read_model(trained), tmp_path / "model.zip")
    assert train([f"resume={tmp_path}", "total_timesteps=160", "progress=false"]).timesteps == 160
    assert "model.zip: has no state of optimiser and random generators" in capsys.readouterr().err
    with zipfile.ZipFile(tmp_path / "model.zip") as file:
        steps = [one["step"].item() for one in archive.read_parameters(file, checkpoint.OPTIMIZER)["state"].values()]
        assert archive.read_json(file, checkpoint.RNG) and steps and max(steps) < 4 * 4 * 2


def test_breakdown_marks_the_highest_where_higher_is_better():
    measures = WINDOWS
    runs = [
        summary.Runs(name, [1], {"utility": np.array([value, value])}, {})
        for name, value in (("a", -0.2), ("b", -0.1), ("c", -0.3))
    ]
    rows = summary._format_group(runs, ["u", "v"], summary.Group("x", str), measures).splitlines()
    assert rows[2] == "| u | 1 | -0.20 | **-0.10** | -0.30 | b |"


def test_breakdown_groups_values_and_quarters():
    measures = SWITCH_MEASURES
    group = summary.Group("x", lambda world: world, 1)
    ours, theirs = (
        summary.Runs(name, list(range(12)), {measures.score: np.array(values, float)}, {})
        for name, values in (("a", range(12)), ("b", [5.0] * 11 + [math.nan]))
    )
    rows = summary._format_group([ours, theirs], [float(k) for k in range(12)], group, measures).splitlines()
    assert rows[2:] == [
        "| 0.0 to 2.8 | 3 | **1.00** | 5.00 |  |",
        "| 2.8 to 5.5 | 3 | **4.00** | 5.00 |  |",
        "| 5.5 to 8.2 | 3 | 7.00 | **5.00** | b |",
        "| 8.2 to 11.0 | 3 | 10.00 | **5.00** | b |",
    ]
    assert summary._format_group([ours, theirs], [1.0] * 12, group, measures) == ""
    rows = summary._format_group([ours, theirs], ["u"] * 11 + ["v"], group, measures).splitlines()
    assert rows[2:] == ["| u | 11 | **5.00** | **5.00** |  |", "| v | 1 | **11.00** | - |  |"]


def test_campaigns_of_two_tasks_lie_apart():
    windows, switches = (campaign.parse_plan([f"env={task}"]) for task in ("congestion_window", "queue_threshold"))
    assert windows.runs.parts == ("runs", "campaign", "congestion_window", "ppo")
    assert switches.runs.parts == ("runs", "campaign", "queue_threshold", "ppo")


def test_campaign_margins_over_training_seeds_and_over_evaluation_seeds():
    agents = [summary.Runs("ppo", [1, 2], {"x": np.array(values)}, {}) for values in ([1.0, 2.0], [3.0, 5.0])]
    other = summary.Runs("o", [1, 2], {"x": np.array([2.0, 4.0])}, {})
    margin = campaign._compute_margin(agents, agents[1], other, "x")
    assert margin["mean"] == pytest.approx(-0.25) and margin["least"] == -1.5
    assert margin["paired"] == [1.0, 1.0, 1.0]
    nothing = campaign._compute_margin(agents, agents[1], summary.Runs("n", [1, 2], {"x": np.full(2, np.nan)}, {}), "x")
    assert math.isnan(nothing["mean"]) and campaign._format_margin(summary.statistics.Interval(*nothing["paired"])) == "-"
    assert (
        campaign._format_spread([math.nan, 1.0], 1) == "1.0"
        and campaign._format_spread([math.nan], 1) == campaign._format_number(math.nan, 1) == "-"
    )


def test_paired_margins_are_those_of_the_seed_that_is_kept_in_every_scenario(monkeypatch, measure):
    measure("congestion_window", baselines=("cubic",))
    plan = campaign.parse_plan(["suites=false", "seeds=3", "evaluation_seeds=2", "scenarios=ppcc/1,ppcc/4"])
    # seed 1 is the best in worlds of validation
    values = {"ppcc/1": [4.0, 10.0, 3.0], "ppcc/4": [4.0, 0.0, 9.0]}
    metrics = tuple(WINDOWS.metrics)

    def runs(name, value):
        return summary.Runs(name, [0, 1], {metric: np.full(2, value) for metric in metrics}, {})

    seed = lambda k: SimpleNamespace(  # noqa: E731
        seed=k,
        path=Path(str(k), "model.zip"),
        progress={"timesteps": 1, "seconds": 1.0},
        config=SimpleNamespace(seed=k, algo=SimpleNamespace(name="ppo"), start_from=None),
        env={"id": "netbuf/CongestionWindow-v0", "schema": {"recipe": "default"}, "kwargs": {"scenario": "ppcc/1"}},
    )
    saved = [seed(k) for k in range(3)]
    monkeypatch.setattr(campaign, "SavedAgent", lambda one: SimpleNamespace(k=one.seed, env={}))
    monkeypatch.setattr(campaign.selection, "read_validation_score", lambda run: [1.0, 3.0, 2.0][int(run.name)])
    monkeypatch.setattr(campaign, "draw_worlds", lambda *_: [])
    monkeypatch.setattr(summary, "format_breakdown", lambda runs, *_: str(runs[0].metrics[WINDOWS.score][0]))
    monkeypatch.setattr(campaign.comparison, "run_baselines", lambda *_, **__: [runs("cubic", 0.5)])
    play = lambda one, *_, scenario, **__: runs("agent", values[scenario][one.k])  # noqa: E731
    monkeypatch.setattr(campaign.comparison, "run", play)
    found, kept = campaign._compute_metrics(plan, saved, saved)
    assert kept == found["kept_seed"] == 1
    for name, part in found["scenarios"].items():
        assert part["margins"]["cubic"]["paired"][0] == values[name][1] - 0.5
        assert part["breakdown"] == str(values[name][1])


@pytest.mark.slow
def test_campaign_of_switches(tmp_path, measure):
    measure("queue_threshold", baselines=("naive", "random"))
    tiny = ["algo.num_envs=4", "algo.kwargs.n_steps=8", "algo.kwargs.batch_size=16", "stagger_steps=0", "total_timesteps=64"]
    out = tmp_path / "agents" / "queue_threshold" / "ppo"
    own = ["seeds=2", "evaluation_seeds=3", f"out={out}", f"runs={tmp_path / 'runs'}", "scenarios=rlbm/random"]
    own += ["validation_seeds=2", "validation.name=rlbm/random", "validation.kwargs.duration_s=5"]
    options = ["scenario.kwargs.duration_s=1", "progress=false", "tensorboard=false"]
    assert campaign.main([*own, "env=queue_threshold", *tiny, *options]) == 0
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["score"] == "slowdown_p99_p0" and set(metrics["scenarios"]["rlbm/random"]["margins"]) == {"naive", "random"}
    card = (out / "card.md").read_text()
    assert "| naive |" in card and "99th percentile" in card and "| load |" in card
    assert "nan" not in card and "inf" not in card and "paired by seed" in card
    assert len(metrics["scenarios"]["rlbm/random"]["margins"]["naive"]["paired"]) == 3


def test_cards_have_the_number_of_flows_beside_percentiles():
    measures = tasks.get("queue_threshold").measures
    values = dict.fromkeys(measures.metrics, 1.0)
    margin = {"mean": 0.0, "low": -1.0, "high": 1.0, "paired": [0.0, -1.0, 1.0]}
    part = {
        "agent": {metric: [1.0, 2.0] for metric in values},
        "baselines": {"naive": values},
        "margins": {"naive": margin},
        "margins_goodput_mbps": {"naive": margin},
    }
    plain = campaign.format_evaluation(part, "ppo", measures)
    assert len(plain) == 4 and "flows" not in "".join(plain)
    flows = {"agent": {"slowdown_p99_p0": (3, 1250)}, "naive": {"slowdown_p99_p0": (4, 4), "difference_p99_s": (1, 1)}}
    _, _, ours, theirs, _, note, warning = campaign.format_evaluation(
        {**part, "flows": flows, "warnings": ["few"]}, "ppo", measures
    )
    assert ours.startswith("| ppo | 1.50 ± 6.35, 3 to 1,250 flows |") and ours.count("flows") == 1
    assert theirs.startswith("| naive | 1.00, 4 flows |") and "| 1.00, 1 flow |" in theirs
    assert "a percentile is of" in note and warning == "Warning: few."
