"""Learning curves in Nuwa's campaign: trained in processes of their own, and not twice."""

import threading

import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.rollout import Stopped
from netbuf_gym.tasks.receiver_window import NETWORKS
from netbuf_gym.training.config import load
from netbuf_gym.training.ranges import check_algo, check_rollout, check_training
from studies.common.campaign import Campaign
from studies.nuwa import learning
from studies.nuwa import nuwa_claims as claims
from studies.nuwa.nuwa_experiment import NUWA
from studies.nuwa.nuwa_settings import ALGORITHMS, POINTS, Settings


def tiny(output, **changes) -> Campaign:
    values = {"studies": ("learning",), "networks": ("wired",), "algorithms": ("a2c",), "training_seeds": 1, "steps": 12_000}
    return Campaign(NUWA, Settings(**(values | {"duration_s": 1.0} | changes)), output, jobs=1)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("network", NETWORKS)
def test_every_run_is_a_configuration(network, algorithm):
    config = load("train", learning.build_overrides(Settings(), network, algorithm, 3))
    check_training(config)
    check_algo(config.algo)
    assert check_rollout(config.algo, config.env.num_envs) is None
    assert config.env.kwargs.recipe == "nuwa" and config.scenario.name == f"nuwa/{network}" and config.seed == 3
    assert config.algo.name == algorithm and config.env.num_envs == learning.WORLDS


@pytest.mark.slow
def test_a_curve_is_trained_once(tmp_path, monkeypatch):
    runs = NUWA.read(tiny(tmp_path / "out").run(lambda done, total: None))
    assert len(runs) == POINTS and runs.columns["step"].tolist() == learning.list_steps(Settings(steps=12_000))
    returns = runs.columns["return"]
    assert np.isfinite(returns[-1]) and np.isnan(runs.columns["utility"]).all()
    assert (tmp_path / "out" / "training" / "wired-a2c-0" / "model.zip").is_file()
    assert "| wired | a2c |" in claims.build_returns_table(runs).replace("  ", " ")
    (tmp_path / "out" / "runs.csv").unlink()
    monkeypatch.setattr(learning, "_train", None)
    again = NUWA.read(tiny(tmp_path / "out").run(lambda done, total: None))
    np.testing.assert_array_equal(again.columns["return"], returns)
    assert len(tiny(tmp_path / "out").draw(tmp_path / "figures")) == 1


@pytest.mark.slow
def test_what_a_learner_says_when_it_fails_is_said(tmp_path):
    with pytest.raises(ConfigError, match=r"netbuf-gym train algo=sac: .*sac"):
        learning._train(["algo=sac"], threading.Event())


@pytest.mark.slow
def test_an_interruption_reaches_the_learner(tmp_path):
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        learning.train_curve(Settings(), "4g", "ppo", 0, tmp_path, stop)
