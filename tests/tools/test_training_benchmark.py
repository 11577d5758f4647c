"""`benchmarks/training.py`: the learner that shares are measured beside comes from the history, if that is there."""

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def training(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location("training_benchmark", FOLDER / "training.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("kept_learner", None)


def test_the_kept_learner_is_that_of_its_commit(training):
    pytest.importorskip("stable_baselines3")
    place = training.LEARNERS["PPO of 54368972"][0]
    if training.read_history(training.KEPT_LEARNER) is None:
        pytest.skip("the repository's history is not there")
    learner = training.find_learner(place)
    assert learner.__name__ == "BatchPPO" and learner.__module__ == "kept_learner"
    assert learner is not training.find_learner(training.LEARNERS["PPO"][0])


def test_history_that_is_not_there_is_none(training):
    assert training.read_history("54368972:zoo/no_such_file.py") is None
