"""What agents are not told is known in training alone: labels by scenario and time, and a memory that learns to say them."""

import gymnasium as gym
import numpy as np
import pytest
import torch as th

import netbuf_gym as nb
from netbuf_gym import scenarios
from netbuf_gym.cli import program
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.scenarios import Flow, Link, Scenario
from netbuf_gym.tasks.congestion_window.hidden_traffic import find_hidden_spans
from netbuf_gym.training.algorithms.ppo_lstm import BatchRecurrentPPO, HiddenConditions, compute_guess_logits
from netbuf_gym.training.checkpoints import checkpoint

SHORT = ["algo=ppo_lstm", "experiment=worlds/congestion_window", "algo.num_envs=8", "env.threads=1", "torch_threads=1"]
SHORT += ["algo.kwargs.n_steps=8", "algo.kwargs.batch_size=32", "algo.kwargs.n_epochs=1", "total_timesteps=128"]


def crowded(duration_s=4.0):
    """Two agents, a CUBIC from 1 to 2 s beside the first, one from 2 s on over the way back of both."""
    ways = [Link(name=f"way-{i}", rate_mbps=10, delay_ms=5, queue_packets=50) for i in range(3)]
    flows = [
        Flow(cc="agent", path=(0,), return_path=(2,)),
        Flow(cc="agent", path=(1,), return_path=(2,), start_s=0.5),
        Flow(cc="cubic", path=(0,), return_path=(2,), start_s=1.0, stop_s=2.0),
        Flow(cc="cubic", path=(2,), return_path=(1,), start_s=2.0),
    ]
    return Scenario(links=ways, flows=flows, duration_s=duration_s)


def made(scenario, senders=2, num_envs=4):
    return VectorEnvAdapter(gym.make_vec("netbuf/CongestionWindow-v0", num_envs=num_envs, scenario=scenario, senders=senders))


def test_company_is_what_crosses_the_agents_own_links():
    world, end = crowded(), float("inf")
    assert find_hidden_spans(world, 0) == ([], [(1.0, 2.0)], [(2.0, end)])
    assert find_hidden_spans(world, 1) == ([], [], [(2.0, end)])
    both = scenarios.get("ppcc/4").with_agents(1)
    assert find_hidden_spans(both, 0)[0] == []
    shared = Scenario(
        links=[Link(name=f"way-{i}", rate_mbps=10, delay_ms=5, queue_packets=50) for i in range(2)],
        flows=[Flow(cc="agent", path=(0,), return_path=(1,), start_s=start) for start in (0.0, 3.0)],
        duration_s=5.0,
    )
    assert [find_hidden_spans(shared, i)[0] for i in (0, 1)] == [[(3.0, end)], [(0.0, end)]]


def test_labels_follow_the_time_and_the_episode():
    worlds = made(crowded())
    worlds.seed(1)
    worlds.reset()
    hidden = HiddenConditions(worlds)
    assert hidden.names == ("agents", "rivals", "reverse")
    seen = []
    for _ in range(45):
        seen.append(hidden.read_labels())
        worlds.step_batch(np.full(4, 5))
    assert all(one.shape == (4, 3) and one.dtype == np.float32 for one in seen)
    first, second = np.array(seen)[:, 0], np.array(seen)[:, 1]
    assert first[:10, 1].max() == 0 and first[10:20, 1].min() == 1 and first[20:40, 1].max() == 0
    assert first[:20, 2].max() == 0 and first[20:40, 2].min() == 1
    assert second[:, 1].max() == 0 and second[20:40, 2].min() == 1
    assert first[40:, 2].max() == 0, "a new episode began"
    np.testing.assert_array_equal(seen[0][:2], seen[0][2:])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["env=queue_threshold"], "algo.kwargs.guess_coef = 0.5, but task 'queue_threshold' names nothing hidden; valid: 0"),
        (
            ["experiment=worlds/congestion_window", "algo.policy_kwargs.lstm_hidden_size=2"],
            "lstm_hidden_size = 2; valid: 3 or more, a unit for each of agents, rivals, reverse (algo.kwargs.guess_coef)",
        ),
        (["experiment=worlds/congestion_window", "algo.kwargs.guess_coef=-1"], "algo.kwargs.guess_coef = -1.0"),
    ],
)
def test_nothing_is_learned_where_there_is_nothing_to_guess(words, message, tmp_path, capsys):
    run = tmp_path / "run"
    assert program.main(["train", "algo=ppo_lstm", "algo.kwargs.guess_coef=0.5", *words, f"run_dir={run}"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and message in error and not run.exists()


def learner(guess_coef):
    kwargs = {"n_steps": 40, "batch_size": 160, "n_epochs": 4, "seed": 0, "device": "cpu", "learning_rate": 3e-3}
    policy_kwargs = {"lstm_hidden_size": 16, "net_arch": [16]}
    return BatchRecurrentPPO("MlpLstmPolicy", made(crowded()), policy_kwargs=policy_kwargs, guess_coef=guess_coef, **kwargs)


def cross_entropy(model):
    """Of what a model's memory says of a rollout of its own, in the worlds that it learned in."""
    model.learn(320, reset_num_timesteps=False)
    rollout = model._rollout
    said = compute_guess_logits(rollout.actor[0][1:, -1], 3)
    return float(th.nn.functional.binary_cross_entropy_with_logits(said, rollout.hidden))


@pytest.mark.slow
def test_a_memory_learns_to_guess_what_it_is_not_told():
    model = learner(guess_coef=1.0)
    before = cross_entropy(model)
    model.learn(8000)
    assert cross_entropy(model) < 0.6 * before


@pytest.mark.slow
def test_the_guess_is_no_part_of_what_is_saved_observed_or_decided_by(tmp_path):
    for coefficient in (0.0, 0.5):
        run = tmp_path / f"run-{coefficient}"
        assert program.main(["train", *SHORT, f"algo.kwargs.guess_coef={coefficient}", f"run_dir={run}"]) == 0
    plain, guessing = (checkpoint.read_model(tmp_path / f"run-{coefficient}" / "model.zip") for coefficient in (0.0, 0.5))
    assert plain.env == guessing.env
    one, other = (nb.zoo.load(saved.path) for saved in (plain, guessing))
    sizes = [{name: tensor.shape for name, tensor in agent._model.policy.state_dict().items()} for agent in (one, other)]
    assert sizes[0] == sizes[1]
    same = [th.equal(a, b) for a, b in zip(*(agent._model.policy.parameters() for agent in (one, other)), strict=True)]
    assert not all(same), "the weight of guesses changes nothing"
