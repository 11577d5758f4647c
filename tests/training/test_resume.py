"""A run that was interrupted and gone on with is the run that was not, bit for bit."""

import itertools
import signal

import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.training import callbacks, learning
from netbuf_gym.training.train import train
from netbuf_gym.utils.files import exclusive_lock
from tests.helpers.release_cases import for_release
from tools.kills import kill_train
from tools.kills.killing import compare

COMMON = ("algo.num_envs=4", "total_timesteps=448", "progress=false", "tensorboard=false", "stagger_steps=7")
WORLDS = {
    "cwnd": ("scenario=ppcc/random", "scenario.kwargs.duration_s=2"),
    "two": ("scenario=ppcc/4", "scenario.kwargs.duration_s=2", "env.kwargs.senders=2"),
    "rivals": (
        *("scenario=ppcc/4", "scenario.kwargs.duration_s=3", "scenario.kwargs.senders=[agent,cubic]"),
        *("reward=considerate_utility", "reward.kwargs.harm_weight=1.0", "reward.kwargs.harm_reference=cubic"),
    ),
    "twins": ("env=receiver_window", "scenario=nuwa/training", "scenario.kwargs.duration_s=2", "twins=2"),
    "stages": (
        "scenario=ppcc/random",
        "scenario.kwargs.duration_s=1",
        "curriculum=[{until: 0.25, kwargs: {duration_s: 2}}, {until: 0.5, kwargs: {duration_s: 3}}]",
    ),
    "constraints": (
        *("env=queue_threshold", "scenario.kwargs.duration_s=2", "reward=switch_log"),
        *("constraint_worlds=2", "constraint_updates=6"),
        "constraints=[{metric: goodput_mbps, least: 0.99, of: naive, family: each, term: goodput}, "
        "{metric: queue_mean_packets, most: 1, term: short_flows}]",
    ),
    "switch": ("env=queue_threshold", "scenario.kwargs.duration_s=2", "env.kwargs.actions=limits"),
}
ROLLOUT = ("algo.kwargs.n_steps=8", "algo.kwargs.batch_size=16")
LEARNERS = {
    "ppo": (*ROLLOUT, "algo.kwargs.target_kl=0.01"),
    "ppo_kl": ROLLOUT,
    "a2c": ("algo.kwargs.n_steps=1",),  # 112 updates: its log has a row every 100
    "dqn": ("algo.kwargs.learning_starts=80", "algo.kwargs.buffer_size=300", "algo.kwargs.target_update_interval=60"),
    "ppo_lstm": (*ROLLOUT, "algo.policy_kwargs.lstm_hidden_size=8"),
}
TOLD = ("algo.kwargs.privileged_critic=true",)


def job(algo, run_dir, worlds="cwnd", *more):
    return [f"algo={algo}", *COMMON, *WORLDS[worlds], *LEARNERS[algo], *more, f"run_dir={run_dir}"]


def require_same(run_dir, reference):
    compare(kill_train.JOBS[0], run_dir, reference)


@pytest.fixture
def interrupted_after(monkeypatch):
    """Makes a signal come after so many steps of the environment, once."""

    def arrange(steps):
        left, goes_on = [steps], callbacks.StopCondition._on_step

        def count(stop):
            left[0] -= 1
            if left[0] == 0:
                signal.raise_signal(signal.SIGINT)
            return goes_on(stop)

        monkeypatch.setattr(callbacks.StopCondition, "_on_step", count)

    return arrange


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Run directories of jobs that were left alone, made once."""
    made = {}

    def run(algo, worlds="cwnd", *more):
        key = (algo, worlds, *more)
        if key not in made:
            made[key] = tmp_path_factory.mktemp("undisturbed") / "run"
            train(job(algo, made[key], worlds, *more))
        return made[key]

    return run


IN_CI = [
    ("ppo", True, "none"),
    ("ppo_kl", False, "running"),
    ("a2c", True, "running"),
    ("dqn", False, "none"),
    ("ppo_lstm", False, "running"),
]
OTHERS = [case for case in itertools.product(LEARNERS, (True, False), ("none", "running")) if case not in IN_CI]


@pytest.mark.slow
@pytest.mark.parametrize(("algo", "at_once", "normalize"), [*IN_CI, *for_release(*OTHERS)])
def test_an_interruption_leaves_no_trace(algo, at_once, normalize, tmp_path, undisturbed, interrupted_after, monkeypatch):
    observations = () if normalize == "none" else (f"algo.normalize={normalize}",)
    monkeypatch.setattr(learning, "LONG_SECONDS", 0.0 if at_once else 1e9)
    interrupted_after(61)
    result = train(job(algo, tmp_path / "run", "cwnd", *observations))
    assert result.interrupted and 0 < result.timesteps < 448
    assert train([f"resume={tmp_path / 'run'}"]).timesteps == 448
    require_same(tmp_path / "run", undisturbed(algo, "cwnd", *observations))


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [True, False])
def test_a_critic_that_is_told_more_comes_back(at_once, tmp_path, undisturbed, interrupted_after, monkeypatch):
    monkeypatch.setattr(learning, "LONG_SECONDS", 0.0 if at_once else 1e9)
    interrupted_after(61)
    assert train(job("ppo_lstm", tmp_path / "run", "rivals", *TOLD)).interrupted
    train([f"resume={tmp_path / 'run'}"])
    require_same(tmp_path / "run", undisturbed("ppo_lstm", "rivals", *TOLD))


@pytest.mark.slow
@pytest.mark.parametrize("worlds", ["two", "rivals", "twins", "switch", "stages", "constraints"])
def test_every_kind_of_world_comes_back(worlds, tmp_path, undisturbed, interrupted_after):
    interrupted_after(75)
    assert train(job("ppo", tmp_path / "run", worlds)).interrupted
    train([f"resume={tmp_path / 'run'}"])
    require_same(tmp_path / "run", undisturbed("ppo", worlds))


@pytest.mark.slow
def test_interrupted_again_and_again(tmp_path, undisturbed, interrupted_after, monkeypatch):
    interrupted_after(1)
    assert train(job("ppo", tmp_path / "run")).interrupted
    for steps in (3, 40, 17):
        monkeypatch.undo()
        interrupted_after(steps)
        assert train([f"resume={tmp_path / 'run'}"]).interrupted
    monkeypatch.undo()
    train([f"resume={tmp_path / 'run'}"])
    require_same(tmp_path / "run", undisturbed("ppo"))


def test_one_process_at_a_time(tmp_path, interrupted_after):
    interrupted_after(30)
    assert train(job("ppo", tmp_path / "run")).interrupted
    with (
        exclusive_lock(tmp_path / "run", "output"),
        pytest.raises(ConfigError, match=r"^resume = .*being written by another process"),
    ):
        train([f"resume={tmp_path / 'run'}"])
    (tmp_path / "new").mkdir()
    with (
        exclusive_lock(tmp_path / "new", "output"),
        pytest.raises(ConfigError, match=r"^run_dir = .*being written by another process"),
    ):
        train(job("ppo", tmp_path / "new"))
    assert list((tmp_path / "new").iterdir()) == []
    assert not train([f"resume={tmp_path / 'run'}"]).interrupted
