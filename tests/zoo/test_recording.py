"""Episodes as datasets: what was seen, done and earned, and again from the file."""

import numpy as np
import pytest

from netbuf_gym.cli.program import main
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.zoo import datasets

TASK = "queue_threshold"


@pytest.fixture(autouse=True)
def minari(monkeypatch, tmp_path):
    monkeypatch.setenv(datasets.FOLDER_VARIABLE, str(tmp_path / "data"))
    return pytest.importorskip("minari")


def test_episodes_are_kept_as_they_were_played(minari, tmp_path, capsys):
    folder = tmp_path / "data"
    words = [TASK, "brief_pulse", "--scenario", "rlbm/default", "--episodes", "2", "--folder", str(folder)]
    assert main(["record", *words]) == 0 and "netbuf/queue_threshold/brief_pulse-v0" in capsys.readouterr().out
    dataset = minari.load_dataset("netbuf/queue_threshold/brief_pulse-v0")
    assert dataset.total_episodes == 2 and dataset.total_steps == 1200
    env, episode = dataset.recover_environment(), dataset[1]
    observation, _ = env.reset(seed=2)
    np.testing.assert_array_equal(observation, episode.observations[0])
    for k in range(50):
        observation, reward, *_ = env.step(episode.actions[k])
        np.testing.assert_array_equal(observation, episode.observations[k + 1])
        assert reward == episode.rewards[k]
    assert main(["record", *words]) == 2 and "is there already" in capsys.readouterr().err


@pytest.mark.slow
def test_agents_and_constants_are_recorded_too(minari, tmp_path):
    to = {"scenario": "ppcc/4", "seeds": [1], "name": "mine-v0"}
    name = datasets.record_dataset("congestion_window", "constant:5", tmp_path / "data", **to)
    assert name == "mine-v0" and set(minari.load_dataset(name)[0].actions.tolist()) == {5}


@pytest.mark.slow
@pytest.mark.parametrize(("control", "delay"), [("cubic", 0.02), ("vegas", 0.02), ("bbr", 1.0)])
def test_a_congestion_control_is_followed_window_by_window(control, delay, minari, tmp_path, capsys):
    folder = tmp_path / "data"
    words = ["congestion_window", control, "--scenario", "ppcc/4", "--episodes", "2", "--folder", str(folder)]
    assert main(["record", *words]) == 0
    dataset = minari.load_dataset(f"netbuf/congestion_window/{control}-v0")
    said = f"an agent that follows {control}, its window standing still between decisions: goodput"
    assert said in capsys.readouterr().out
    assert dataset.spec.env_spec.kwargs["actions"] == "continuous" and dataset[0].actions.shape == (1000, 1)
    (world,) = rollout.draw_worlds("congestion_window", "ppcc/4", [2])
    windows = rollout.get_controller(control, "congestion_window").make_follower(world.scenario, world.seed, 0.1).windows
    env, episode, held = dataset.recover_environment(), dataset[1], []
    env.reset(seed=2)
    for k, action in enumerate(episode.actions):
        observation, reward, *_ = env.step(action)
        held.append(env.unwrapped.engine.tracker.cwnd[0] / 1448)
        np.testing.assert_array_equal(observation, episode.observations[k + 1])
        assert reward == episode.rewards[k]
    off = np.abs(np.array(held) / windows - 1)
    assert np.median(off) < 1e-4 and np.mean(off > 0.02) < 0.05
    ours = env.unwrapped.report()
    (own,) = rollout.evaluate(control, "congestion_window", world.scenario, [2])
    assert ours["goodput_mbps"] == pytest.approx(own["goodput_mbps"], rel=0.02)
    assert ours["mean_rtt_ms"] == pytest.approx(own["mean_rtt_ms"], rel=delay)


@pytest.mark.parametrize(("task", "controller"), [(TASK, "naive"), (TASK, "fq_codel"), ("host_buffers", "max")])
def test_what_no_agent_can_do_is_refused(task, controller, tmp_path):
    said = f"controller = '{controller}' acts in the world, or changes it, as no agent can"
    with pytest.raises(ConfigError, match=said) as raised:
        datasets.record_dataset(task, controller, tmp_path / "data", seeds=[1])
    valid = str(raised.value).partition(f"valid for {task}: ")[2].split(", ")
    assert "random" in valid and controller not in valid and not (tmp_path / "data").exists()


def test_of_congestion_controls_senders_alone_are_recorded():
    assert {"cubic", "keep", "random"} <= set(datasets._list_recordable("congestion_window"))
    assert not {"cubic", "nuwa"} & set(datasets._list_recordable("receiver_window"))


def test_a_folder_that_cannot_be_made_is_refused_by_name(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"folder = '.*file/data' is no folder and cannot become one"):
        datasets.record_dataset(TASK, "random", tmp_path / "file" / "data", seeds=[1])


def test_an_agent_of_another_task_is_refused_by_both_tasks(tmp_path):
    said = "is an agent of task 'queue_threshold'; env netbuf/HostBuffers-v0 is of task 'host_buffers'"
    with pytest.raises(ConfigError, match=said):
        datasets.record_dataset("host_buffers", "queue_threshold/ppo", tmp_path)


def test_names_that_minari_refuses_are_refused_before_anything_is_played(tmp_path):
    with pytest.raises(ConfigError, match="name = 'mine'; valid: NAME-v0"):
        datasets.record_dataset(TASK, "brief_pulse", tmp_path / "data", name="mine")


def test_an_episode_that_is_another_the_second_time_is_refused(monkeypatch, tmp_path):
    own = datasets._play_episode
    monkeypatch.setattr(datasets, "_play_episode", lambda env, controller, seed: own(env, controller, seed + 1))
    with pytest.raises(ConfigError, match=r"earns .* when it is played again, not"):
        datasets.record_dataset(TASK, "brief_pulse", tmp_path / "data", scenario="rlbm/default", seeds=[1])
