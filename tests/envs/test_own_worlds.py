"""What `scenario` takes beside names and dicts: scenarios, distributions, and functions that make the world of each episode."""

import functools
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

import netbuf_gym as nb
from netbuf_gym.envs.env import Env
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError, ScenarioError, ScenarioTypeError
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Flow, Link, Mixture, RandomDumbbell, Scenario, sources

ID = "netbuf/CongestionWindow-v0"


def two_bottlenecks(rate_mbps=8.0, duration_s=1.0):
    links = (
        Link(name="first", rate_mbps=20, delay_ms=5, queue_packets=50),
        Link(name="bottleneck", rate_mbps=rate_mbps, delay_ms=10, queue_packets=40),
        Link(name="back", delay_ms=15),
    )
    flows = (
        Flow(cc="cubic", path=("first", "bottleneck"), return_path=("back",)),
        Flow(cc="bbr", path=("first",), return_path=("back",)),
    )
    return Scenario(links=links, flows=flows, duration_s=duration_s, name="two")


def at_random(rng):
    return two_bottlenecks(float(rng.uniform(5, 15)), float(rng.uniform(0.5, 1.5)))


FORMS = {
    "scenario": two_bottlenecks(),
    "its dict": two_bottlenecks().to_dict(),
    "with an agent": two_bottlenecks().with_agents(1),
    "distribution": RandomDumbbell(duration_s=1.0),
    "mixture": Mixture(parts=(two_bottlenecks(), two_bottlenecks(4.0, 2.0))),
    "function": at_random,
    "partial": functools.partial(lambda rng, low: two_bottlenecks(float(rng.uniform(low, 9))), low=6),
    "of names": lambda rng: "ppcc/4",
    "of dicts": lambda rng: {"name": "ppcc/4", "rate_mbps": int(rng.integers(5, 9)), "duration_s": 1.0},
    "of dicts of scenarios": lambda rng: at_random(rng).to_dict(),
    "of distributions": lambda rng: RandomDumbbell(duration_s=1.0),
}


def episode(env, seed=None, action=5):
    _, info = env.reset(seed=seed)
    rewards, over = [], False
    while not over:
        _, reward, terminated, truncated, _ = env.step(action)
        rewards.append(reward)
        over = terminated or truncated
        if len(rewards) == 60:
            break
    return info["scenario"], rewards, env.unwrapped.engine.scenarios[0]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_makes_worlds_that_repeat_by_seed(form):
    env, again = (gym.make(ID, scenario=FORMS[form]) for _ in range(2))
    first, other = episode(env, 1), episode(env)
    assert first == episode(again, 1) and other == episode(again)
    assert len(first[1]) == min(60, round(np.ceil(first[2].duration_s * 10)))
    assert first[2].agents == 1
    rows = gym.make_vec(ID, num_envs=3, scenario=FORMS[form])
    rows.reset(seed=[1, 2, 1])
    assert rows.unwrapped.engine.scenarios[0] == first[2] == rows.unwrapped.engine.scenarios[2]
    rewards = [rows.step(np.full(3, 5))[1][0] for _ in range(min(5, len(first[1])))]
    np.testing.assert_array_equal(rewards, np.array(first[1][:5], np.float32)[: len(rewards)])


def test_a_function_makes_another_world_for_each_episode_and_row():
    rows = gym.make_vec(ID, num_envs=8, scenario=at_random)
    rows.reset(seed=1)
    seen = [world.capacity_mbps for world in rows.unwrapped.engine.scenarios]
    for _ in range(40):
        rows.step(np.full(8, 5))
    now = [world.capacity_mbps for world in rows.unwrapped.engine.scenarios]
    assert len({*seen, *now}) == 16


@pytest.mark.parametrize("form", ["scenario", "distribution", "function", "of dicts"])
def test_the_checker_passes_without_a_warning(form):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(ID, scenario=FORMS[form]).unwrapped)


def test_a_scenario_is_json_in_the_spec():
    from netbuf_gym.rewards import AlphaFair

    for make in (gym.make, functools.partial(gym.make_vec, num_envs=2)):
        env = make(ID, scenario=two_bottlenecks(), reward=AlphaFair(alpha=2))
        again = make(EnvSpec.from_json(env.spec.to_json())).unwrapped.engine
        assert again.source.world == two_bottlenecks() and again.reward == AlphaFair(alpha=2)


@pytest.mark.parametrize(
    ("scenario", "error", "message"),
    [
        (3, ConfigError, "scenario = 3; valid: a name, .* a Scenario, a Distribution, or a function"),
        ([two_bottlenecks()], ConfigError, "valid: a name"),
        (Scenario, ConfigError, "scenario = <class .*valid: a name"),
        (lambda: two_bottlenecks(), ConfigError, "cannot be called with a generator alone"),
        (lambda *, rng: two_bottlenecks(), ConfigError, "cannot be called with a generator alone"),
        (lambda rng: 3, ConfigError, "what scenario <lambda> gave: scenario = 3; valid: a name"),
        (lambda rng: None, ConfigError, "what scenario <lambda> gave: scenario = None"),
        (lambda rng: {"n": 3}, ConfigError, "what scenario <lambda> gave: .* has neither a name nor links"),
        (lambda rng: at_random, ConfigError, "scenario <lambda> gave <function at_random"),
        (lambda rng: "ppcc/x", ScenarioError, "'ppcc/x' is unknown"),
        (lambda rng: "rlbm/default", ConfigError, "scenario 'rlbm/default' has 0 flows, 0 of them an agent's, and senders = 1"),
        (two_bottlenecks().with_agents(2), ConfigError, "scenario 'two' has 2 flows, 2 of them an agent's, and senders = 1"),
    ],
)
def test_what_makes_no_world_is_refused_when_the_environment_is_made(scenario, error, message):
    for make in (gym.make, functools.partial(gym.make_vec, num_envs=2)):
        with pytest.raises(error, match=message):
            make(ID, scenario=scenario)


def test_what_a_function_gives_later_is_checked_too():
    def turns_bad(rng):
        return two_bottlenecks() if rng.random() < 0.7 else 7

    assert np.random.default_rng(0).random() < 0.7
    env = Env(scenario=turns_bad)
    with pytest.raises(ConfigError, match="what scenario turns_bad gave: scenario = 7"):
        for seed in range(20):
            env.reset(seed=seed)


def test_several_agents():
    pytest.importorskip("pettingzoo")
    from netbuf_gym.envs.parallel_env import ParallelEnv

    for scenario in (two_bottlenecks(), at_random, lambda rng: "ppcc/3"):
        env = ParallelEnv(2, scenario=scenario)
        env.reset(seed=1)
        assert env.engine.scenarios[0].agents == 2
    with pytest.raises(ConfigError, match="scenario 'two' has 2 flows, 0 of them an agent's, and senders = 3"):
        ParallelEnv(3, scenario=at_random)
    rows = VectorEnv(4, senders=2, scenario=at_random)
    rows.reset(seed=1)
    assert [world.agents for world in rows.engine.scenarios] == [2, 2]


def test_switches():
    def loads(rng):
        return nb.scenarios.get("rlbm/default", load=float(rng.uniform(0.2, 0.8)), duration_s=1.0)

    env = gym.make("netbuf/QueueThreshold-v0", scenario=loads)
    assert env.unwrapped.engine.task.queues == 2
    env.reset(seed=1)
    env.step(env.action_space.sample())
    gym.make("netbuf/QueueThreshold-v0", scenario=nb.scenarios.get("rlbm/default"))
    with pytest.raises(ConfigError, match="scenario 'two' has 0 switches"):
        gym.make("netbuf/QueueThreshold-v0", scenario=at_random)


@pytest.mark.parametrize("controller", ["cubic", "keep"])
@pytest.mark.parametrize("form", ["scenario", "distribution", "function", "of dicts"])
def test_controllers_play_them(form, controller):
    on = {"task": "congestion_window", "scenario": FORMS[form], "seeds": [1, 2]}
    reports = rollout.evaluate(controller, **on)
    assert reports == rollout.evaluate(controller, **on, threads=2) and len(reports) == 2
    drawn = rollout.draw_worlds("congestion_window", FORMS[form], [1])
    assert drawn[0].scenario == episode(gym.make(ID, scenario=FORMS[form]), 1)[2]
    seen = []
    rollout.play(nb.baselines.make(controller), drawn, lambda view: seen.extend(view.report()), task="congestion_window")
    assert seen == reports[:1]


@pytest.mark.parametrize("form", [form for form in FORMS if form != "with an agent"])
def test_simulate_takes_them(form):
    result = nb.simulate(FORMS[form], seed=3, sample_interval_s=None)
    again = nb.simulate(result.scenario, seed=3, sample_interval_s=None)
    sent = [[(flow.packets_sent, flow.delivered_bytes) for flow in one.flows] for one in (result, again)]
    assert sent[0] == sent[1] and sent[0][0][1] > 0
    assert result.scenario == sources.resolve_world(FORMS[form], 3)


def test_simulate_takes_names_and_draws_by_the_seed():
    assert nb.simulate("ppcc/3", sample_interval_s=None).scenario == nb.scenarios.get("ppcc/3")
    one, two = (nb.simulate(at_random, seed, sample_interval_s=None).scenario.capacity_mbps for seed in (1, 2))
    assert one != two
    with pytest.raises(ScenarioTypeError, match=r"is not a Scenario, nor stands for one: what scenario <lambda> gave"):
        nb.simulate(lambda rng: 3)
    with pytest.raises(ScenarioError, match="'ppcc/x' is unknown"):
        nb.simulate("ppcc/x")
