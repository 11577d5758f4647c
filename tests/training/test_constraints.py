"""Constraints: their violations by hand, dual ascent, penalties, and trainings whose multipliers go on to the bit."""

import csv
import json
import math

import numpy as np
import pytest
from omegaconf import OmegaConf

from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.tasks.metrics import Score
from netbuf_gym.training import constraints, selection
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.config import load
from netbuf_gym.training.constraints import Constraint, Lagrangian
from netbuf_gym.training.criteria import Criterion, resolve_criterion
from netbuf_gym.training.train import make_lagrangian, train
from tests.training.test_selection import weights

GOODPUT = "{metric: goodput_mbps, least: 0.99, of: naive, family: each, term: goodput}"
LONG = "{metric: slowdown_p99_p1, most: 1.1, of: naive}"
NAN = math.nan


def read(*given, task="queue_threshold"):
    return constraints.read_constraints(load("train", [f"env={task}", f"constraints=[{','.join(given)}]"]))


def test_a_violation_is_of_the_geometric_mean_of_ratios_in_the_same_worlds():
    one = Constraint("goodput_mbps", least=0.99, of="naive")
    assert one.compute_violation(np.array([8.0, 2.0, NAN]), np.array([4.0, 4.0, 4.0])) == pytest.approx(-0.01 / 0.99)
    assert one.compute_violation(np.array([9.0, 0.0, 4.0]), np.array([4.0, 4.0, 0.0])) == 1
    assert one.compute_violation(np.array([0.0]), np.array([4.0])) == 1
    assert math.isnan(one.compute_violation(np.array([NAN]), np.array([4.0])))
    most = Constraint("slowdown_p99_p1", most=1.1, of="naive")
    assert most.compute_violation(np.array([12.1]), np.array([10.0])) == pytest.approx(0.1)
    assert Constraint("drops", most=100).compute_violation(np.array([100.0, 300.0]), None) == pytest.approx(1.0)
    assert Constraint("fct_utility", least=0).compute_violation(np.array([-0.5]), None) == pytest.approx(0.5)


def test_violations_are_by_family_where_asked():
    own = read(GOODPUT, LONG)
    metrics = {"goodput_mbps": np.array([9.9, 9.0, 10.0]), "slowdown_p99_p1": np.array([11.0, 22.0, 11.0])}
    naive = {"goodput_mbps": np.full(3, 10.0), "slowdown_p99_p1": np.full(3, 11.0)}
    each, pooled = constraints.compute_violations(own, metrics, {"naive": naive}, ["a", "b", "a"])
    assert each.keys() == {"a", "b"} and each["a"] == pytest.approx((0.99 - math.sqrt(0.99)) / 0.99)
    assert each["b"] == pytest.approx(0.09 / 0.99) and pooled.keys() == {"all"}
    assert pooled["all"] == pytest.approx((2 ** (1 / 3) - 1.1) / 1.1)


def test_multipliers_rise_with_violations_and_fall_where_bounds_are_kept_never_below_0():
    dual = Lagrangian(read(GOODPUT, LONG))
    terms = ("goodput", "short_flows", "long_flows")
    assert dual.compute_factors("a", terms).tolist() == [1, 1, 1]
    dual.update([{"a": 0.1, "b": -0.1}, {"all": 0.2}])
    dual.update([{"a": 0.05, "b": 0.02}, {"all": NAN}])
    assert dual.multipliers == [pytest.approx({"a": 1.5, "b": 0.2}), {"all": 2.0}] and dual.updates == 2
    assert dual.compute_factors("a", terms).tolist() == [2.5, 1, 1]
    assert dual.compute_factors("never measured", terms).tolist() == [1, 1, 1]
    dual.update([{"a": -1.0, "b": 0.0}, {"all": 0.0}])
    assert dual.multipliers[0]["a"] == 0
    again = Lagrangian(dual.constraints)
    again.load(json.loads(json.dumps(dual.to_dict())))
    assert again.to_dict() == dual.to_dict() and again.list_values() == dual.list_values()
    with pytest.raises(ValueError, match="of 2 constraints, not of 1"):
        Lagrangian(dual.constraints[:1]).load(dual.to_dict())


def test_violated_constraints_cost_score():
    own, violations = read(GOODPUT, LONG), [{"a": 0.02, "b": -1.0, "c": NAN}, {"all": 0.1}]
    assert constraints.apply_penalties(1.0, Score("fct_utility"), own, violations) == pytest.approx(1 - 1.2)
    assert constraints.apply_penalties(1.0, Score("x", lower_is_better=True), own, violations) == pytest.approx(2.2)
    ratio = Score("slowdown_p99_p0", lower_is_better=True, geometric=True)
    assert constraints.apply_penalties(2.0, ratio, own, violations) == pytest.approx(2 * math.exp(1.2))
    metrics = {"fct_utility": np.array([-1.0, -2.0]), "goodput_mbps": np.array([8.0, 8.0])}
    judged = selection.judge(
        metrics, {"naive": {"goodput_mbps": np.full(2, 10.0)}}, ["a", "b"], Criterion(Score("fct_utility"), 0.0, own[:1])
    )
    assert judged.score == pytest.approx(-1.5 - 2 * 10 * 0.19 / 0.99) and judged.violations[0].keys() == {"a", "b"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{metric: goodput_mbps}", r"constraints\[0\] = .*; valid: .*least"),
        ("{metric: goodput_mbps, least: 1, most: 2}", r"constraints\[0\] = .*; valid"),
        ("{metric: goodput_mbps, least: much}", r"constraints\[0\]\.least"),
        ("{metric: goodput, least: 1}", r"constraints\[0\]\.metric = 'goodput'"),
        ("{metric: goodput_mbps, least: 1, of: nothing}", r"constraints\[0\]\.of: .*nothing"),
        ("{metric: goodput_mbps, least: 1, family: all}", r"constraints\[0\]\.family = 'all'"),
        ("{metric: goodput_mbps, least: 1, stpe: 2}", r"constraints\[0\] has no key 'stpe'.*step"),
        ("{metric: goodput_mbps, least: 1, step: 0}", r"constraints\[0\]\.step = 0"),
        ("{metric: goodput_mbps, least: 1, penalty: -1}", r"constraints\[0\]\.penalty = -1"),
        ("{metric: goodput_mbps, least: 1, term: 3}", r"constraints\[0\]\.term = 3"),
        ("3", r"constraints\[0\] = 3"),
    ],
)
def test_bad_constraints_name_what_is_wrong(given, message):
    with pytest.raises(ConfigError, match=message):
        read(given)


def test_a_score_that_the_task_does_not_have_is_refused():
    assert (
        resolve_criterion(load("train", ["env=queue_threshold", "validation.score=fct_utility"])).score.metric == "fct_utility"
    )
    with pytest.raises(ConfigError, match=r"validation.score = 'drops' .*valid: slowdown_p99_p0, fct_utility"):
        train(["env=queue_threshold", "validation.score=drops"])


def test_terms_weigh_by_the_world():
    """Factors 3 and 1 of two worlds, then 5 of those that are drawn anew; another reward has none."""
    envs = VectorEnv(2, task="queue_threshold", scenario={"name": "rlbm/random", "load": 0.8}, reward="switch_log")
    engine = envs.engine
    envs.reset(seed=1)
    plain, _ = play_both(envs)
    envs.reset(seed=1)
    of_world = dict(zip(map(id, engine.scenarios), (3.0, 1.0), strict=True))
    engine.weigh_terms(lambda scenario: np.array([of_world.get(id(scenario), 5.0), 1, 0], np.float32))
    terms, rewards = play_both(envs)
    assert plain[:, 0].all(axis=1).any() and not terms[:, 2].any()
    np.testing.assert_allclose(terms[:, 0], plain[:, 0] * [3, 1], rtol=1e-6)
    np.testing.assert_allclose(rewards, terms.sum(axis=1), rtol=1e-6)
    kept = list(engine.scenarios)
    envs.reset(seed=1)
    np.testing.assert_allclose(play_both(envs)[0][:, 0], plain[:, 0] * 5, rtol=1e-6)
    assert engine.scenarios[0] is not kept[0]
    engine.set_reward("switch_log")
    envs.reset(seed=1)
    np.testing.assert_array_equal(play_both(envs)[0], plain)
    envs.close()


def play_both(envs):
    """Terms and rewards of ten seconds, over the decisions."""
    terms, rewards = [], []
    for _ in range(100):
        envs.step(np.zeros((2, 2), np.float32))
        terms.append(envs.engine.terms.copy())
        rewards.append(envs.engine.rewards.copy())
    return np.array(terms), np.array(rewards)


@pytest.fixture
def tiny_switch(tmp_path):
    return [
        *("env=queue_threshold", "scenario=rlbm/random", "scenario.kwargs.duration_s=4", "reward=switch_log"),
        *("algo.num_envs=4", "algo.kwargs.n_steps=8", "algo.kwargs.batch_size=16", "algo.net_arch=[8]", "stagger_steps=0"),
        *("total_timesteps=256", "constraint_worlds=3", "constraint_updates=4", "tensorboard=false", "progress=false"),
        f"constraints=[{GOODPUT},{LONG},{{metric: drops, most: 0, term: short_flows}}]",
        f"run_dir={tmp_path / 'run'}",
    ], tmp_path / "run"


def rows(run_dir):
    with (run_dir / "progress.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_training_measures_violations_and_logs_them(tiny_switch):
    overrides, run_dir = tiny_switch
    train(overrides)
    state = checkpoint.read_model(run_dir).progress["constraints"]
    assert (
        state["updates"] == 4
        and state["multipliers"][0].keys() == {"rlbm/random"}
        and state["multipliers"][1].keys() == {"all"}
    )
    found = rows(run_dir)
    name = "constraints/drops_most_0/all"
    violations, multipliers = ([float(row[f"{name}/{key}"]) for row in found] for key in ("violation", "multiplier"))
    assert len(found) == 8 and min(violations) > 0 and multipliers == sorted(multipliers)
    assert multipliers[0] == pytest.approx(10 * violations[0]) and multipliers[-1] == pytest.approx(10 * sum(violations[::2]))
    assert state["multipliers"][2]["all"] == multipliers[-1]


def test_multipliers_matter_and_damaged_ones_are_refused(tiny_switch, tmp_path):
    overrides, run_dir = tiny_switch
    train(overrides)
    without = [one for one in overrides if not one.startswith(("constraints=", "run_dir="))]
    train([*without, f"run_dir={tmp_path / 'plain'}"])
    assert not np.array_equal(weights(run_dir), weights(tmp_path / "plain"))
    assert "constraints" not in checkpoint.read_model(tmp_path / "plain").progress
    saved = checkpoint.read_model(run_dir)
    saved.progress["constraints"] = {"updates": 1, "multipliers": [{}], "violations": [{}]}
    with pytest.raises(CheckpointError, match="its multipliers do not match this job"):
        make_lagrangian(saved.config, saved)


def test_a_term_that_the_reward_does_not_have_is_refused(tiny_switch):
    overrides, run_dir = tiny_switch
    wrong = GOODPUT.replace("term: goodput", "term: throughput")
    with pytest.raises(ConfigError, match=r"constraints\[0\]\.term = 'throughput'.*goodput, short_flows, long_flows"):
        train([*overrides, f"constraints=[{wrong}]"])
    assert not run_dir.exists()


def test_a_model_is_chosen_by_score_and_constraints(tiny_switch):
    overrides, run_dir = tiny_switch
    train([*overrides[:-2], f"run_dir={run_dir}", "snapshots=1"])
    criterion = resolve_criterion(
        OmegaConf.merge(load("train", overrides), {"validation": {"score": "fct_utility"}, "constraints": list(read_plain())})
    )
    scenario = {"name": "rlbm/random", "duration_s": 4}
    selection.choose_model(run_dir, "queue_threshold", scenario, 2, criterion)
    said = json.loads((run_dir / selection.SCORES).read_text())
    assert said["score"] == "fct_utility" and len(said["violations"]) == len(said["scores"]) == 2
    assert said["constraints"][0]["metric"] == "queue_mean_packets"
    plain = selection.score_models(
        [run_dir / "model.zip"], "queue_threshold", scenario, said_seeds(said), criterion=Criterion(criterion.score)
    )
    cost = 10 * said["violations"][1][0]["all"]
    assert cost > 0 and said["scores"][1] == pytest.approx(plain[0] - cost)


def read_plain():
    yield {"metric": "queue_mean_packets", "most": 0}


def said_seeds(said):
    return range(said["seeds"][0], said["seeds"][1] + 1)
