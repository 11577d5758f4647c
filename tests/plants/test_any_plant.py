"""Every environment on a plant and a task that have nothing to do with networks (`heating.py`)."""

import gc
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import netbuf_gym
from netbuf_gym import plants, tasks
from netbuf_gym.envs.engine import Engine
from netbuf_gym.envs.env import Env
from netbuf_gym.envs.parallel_env import ParallelEnv
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError, PlantFault
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.plants import Advance, Plant
from tests.plants.heating import HEATER, Rooms, record

ID = "test/Heating-v0"
FAILS = {"name": "test/room", "fails_at_s": 0.55}


@pytest.fixture(autouse=True)
def heating():
    tasks.register(record())
    plants.register("rooms", Rooms)
    Rooms.made.clear()
    yield
    plants.unregister("rooms")
    tasks.unregister("heating")


def rooms(**kwargs):
    return {"task": "heating", "plant": "rooms", **kwargs}


def test_it_is_known_to_all_who_ask():
    assert "rooms" in plants.names() and plants.get("rooms") is Rooms
    assert tasks.find_task(ID) == "heating" and ID in gym.registry and "test/room" in netbuf_gym.scenarios.names()
    tasks.register(tasks.get("heating"))  # again: nothing
    with pytest.raises(ConfigError, match="task 'heating' is registered already"):
        tasks.register(record())
    with pytest.raises(ConfigError, match="plant 'sim' is registered already"):
        plants.register("sim", Rooms)
    with pytest.raises(ConfigError, match="class derived from"):
        plants.register("other", dict)
    assert "| 1   | power       | W               | 0: 0 | 1: 2000 |" in tasks.get("heating").rules.__doc__
    tasks.unregister("heating")
    assert ID not in gym.registry and "test/room" not in netbuf_gym.scenarios.names()


def test_listings_have_it(capsys):
    from netbuf_gym.cli.program import main

    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert "heaters: their power" in out and "comfort" in out and "rooms" in out and "test/room" in out


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        ("linux2", "plant = 'linux2' is unknown; did you mean 'linux'\\? valid: linux, rooms, sim"),
        (3, "plant = 3 is neither a name nor a dict with a name; valid: linux, rooms, sim"),
        ({"jitter": 1}, "neither a name nor a dict"),
        (
            {"name": "rooms", "jiter": 1},
            "plant 'rooms' has no argument 'jiter'; did you mean 'jitter'\\? valid: jitter, broken, shape",
        ),
        ("sim", "plant 'sim' carries no agents of kind 'heater'; those that it carries: sender, receiver, switch"),
        ({"name": "rooms", "shape": [1, 1, 2]}, r"telemetry of float64 \(1, 1, 2\); valid: float64, \(1, 1, 3\)"),
    ],
)
def test_plants_that_cannot_be_had_are_said(plant, message):
    with pytest.raises(ConfigError, match=message):
        gym.make(ID, plant=plant)
    assert all(made.closings == 1 for made in Rooms.made)


def test_a_plant_without_the_tasks_agents_or_events_says_so():
    with pytest.raises(ConfigError, match="carries no agents of kind 'sender'; those that it carries: heater"):
        gym.make("netbuf/CongestionWindow-v0", plant="rooms")

    class Senders(Rooms):
        kinds = ("sender",)

    plants.register("senders", Senders)
    try:
        with pytest.raises(ConfigError, match=r"cannot wait for an event, as task 'congestion_window' asks here; .*: interval"):
            gym.make("netbuf/CongestionWindow-v0", plant="senders", per_ack=True)
        assert [made.closings for made in Rooms.made] == [1]
        gym.make("netbuf/CongestionWindow-v0", plant="senders").close()
    finally:
        plants.unregister("senders")


@pytest.mark.parametrize("actions", ["steps", "share", "digits"])
def test_the_scalar_environment_passes_gymnasiums_checker(actions):
    check_env(gym.make(ID, plant="rooms", actions=actions).unwrapped, skip_render_check=True)


@pytest.mark.parametrize(
    ("actions", "good", "watts", "bad"),
    [
        ("steps", 2, 1000, 5),
        ("share", np.array([0.5]), 1500, [np.nan]),
        ("share", np.array([9.0]), 2000, np.zeros(2)),
        ("digits", np.array([1, 9]), 2000, np.array([1, 10])),
        ("digits", np.array([0, 0]), 0, np.array([0.5, 1])),
    ],
)
def test_actions_of_every_space_reach_the_plant_or_are_refused(actions, good, watts, bad):
    env = gym.make(ID, plant="rooms", actions=actions, disable_env_checker=True)
    env.reset(seed=1)
    env.step(good)
    assert env.unwrapped.telemetry["power_w"] == watts
    with pytest.raises(ConfigError, match=r"action(s)? "):
        env.step(bad)


def test_episodes_end_by_the_measured_clock():
    env = gym.make(ID, plant={"name": "rooms", "jitter": 0.5})
    assert "<DurationLimit<" in str(env)
    env.reset(seed=1)
    seconds, steps, truncated = 0.0, 0, False
    while not truncated:
        _, reward, terminated, truncated, info = env.step(4)
        assert not terminated
        elapsed = env.unwrapped.telemetry["elapsed_s"]
        assert 0.1 <= elapsed <= 0.15  # as measured, and rewarded by
        assert reward == pytest.approx(-abs(env.unwrapped.telemetry["temperature_c"] - 20) * elapsed, rel=1e-5)
        seconds, steps = seconds + elapsed, steps + 1
        assert truncated == (seconds >= 2.0)
    assert 13 < steps < 20  # 20, had intervals been taken as asked for
    assert info["seconds"] == pytest.approx(seconds) and info["energy_j"] == pytest.approx(2000 * seconds)


def test_gymnasiums_time_limit_holds_too():
    env = gym.make(ID, plant="rooms", max_episode_steps=3)
    env.reset(seed=1)
    assert [env.step(0)[3] for _ in range(3)] == [False, False, True]


def test_a_task_terminates_its_worlds():
    env = gym.make(ID, plant="rooms", too_hot_c=12.0)
    env.reset(seed=1)
    terminated = False
    while not terminated:
        _, _, terminated, truncated, info = env.step(4)
        assert not truncated
    assert info["temperature_c"] > 12 and "failure" not in info
    worlds = VectorEnv(2, **rooms(too_hot_c=12.0))
    worlds.reset(seed=[1, 2])
    for _ in range(10):
        _, _, ended, truncated, info = worlds.step(np.array([4, 0]))
        if ended.any():
            break
    assert ended.tolist() == [True, False] and not truncated.any() and info["_final_obs"].tolist() == [True, False]


def test_a_world_that_fails_truncates_its_own_episode_only():
    env = VectorEnv(3, **rooms())
    engine = env.engine
    draws = iter([0.55, np.inf, 0.95])
    engine.source._control = lambda room: room
    engine.source.draw = lambda rng: type(engine.source._fixed)(fails_at_s=next(draws, np.inf))
    env.reset(seed=1)
    before, failed = None, {}
    for step in range(9):
        observations, rewards, terminated, truncated, info = env.step(np.full(3, 4))
        assert not terminated.any() and np.isfinite(rewards).all() and np.isfinite(observations).all()
        for row in np.flatnonzero(truncated):
            failed[int(row)] = step
            assert info["final_info"]["failure"][row] == "the window broke"
            assert info["final_info"]["_failure"].tolist() == truncated.tolist() == info["_final_info"].tolist()
            assert rewards[row] == 0 and info["final_info"]["seconds"][row] < (0.55, 0, 0.95)[row]
            np.testing.assert_array_equal(info["final_obs"][row], before[row])  # nothing was measured
            assert engine.time_ns[row] == 0 and not engine.failures  # and it has begun again
        before = observations
    assert set(failed) == {0, 2} and failed[0] < failed[2]
    assert engine.time_ns[1] > 0.9e9


def test_final_infos_of_failed_and_of_whole_worlds_have_masks_of_their_own():
    env = VectorEnv(2, **rooms(max_episode_steps=4))
    engine = env.engine
    draws = iter([0.35, np.inf])
    engine.source.draw = lambda rng: type(engine.source._fixed)(fails_at_s=next(draws, np.inf))
    env.reset(seed=1)
    seen = {}
    for _ in range(4):
        *_, truncated, info = env.step(np.zeros(2, int))
        for row in np.flatnonzero(truncated):
            final = info["final_info"]
            seen.setdefault(int(row), (bool(final["_failure"][row]) if "_failure" in final else False, final["_seconds"][row]))
    assert seen[0] == (True, True) and seen[1] == (False, True)


def test_the_scalar_environment_fails_with_its_world_and_starts_again():
    env = gym.make(ID, plant="rooms", scenario=FAILS)
    env.reset(seed=1)
    truncated = False
    while not truncated:
        _, reward, terminated, truncated, info = env.step(4)
    assert info["failure"] == "the window broke" and reward == 0 and not terminated and 0 < info["seconds"] < 0.55
    with pytest.raises(gym.error.ResetNeeded, match="the window broke"):
        env.unwrapped.step(4)
    env.reset()
    assert "failure" not in env.step(4)[4]


def test_two_agents_in_one_world():
    env = ParallelEnv(2, **rooms(actions="share"))
    assert env.metadata["name"] == "netbuf_heating_v0" and env.possible_agents == ["heater_0", "heater_1"]
    observations, _ = env.reset(seed=1)
    truncations = {"heater_0": False}
    energy = {}
    while env.agents:
        actions = {"heater_0": np.array([-1.0], np.float32), "heater_1": np.array([0.0], np.float32)}
        observations, rewards, terminations, truncations, infos = env.step(actions)
        assert not any(terminations.values()) and all(env.observation_space(a).contains(o) for a, o in observations.items())
        energy = {agent: info.get("energy_j") for agent, info in infos.items()}
    assert all(truncations.values()) and energy["heater_0"] == 0 and energy["heater_1"] > 1900
    env = ParallelEnv(agents=2, **rooms(scenario=FAILS))
    env.reset(seed=1)
    while env.agents:
        _, rewards, terminations, truncations, infos = env.step(dict.fromkeys(env.agents, 4))
    assert {info["failure"] for info in infos.values()} == {"the window broke"} and set(rewards.values()) == {0.0}
    assert all(truncations.values()) and not any(terminations.values())


def test_agents_are_the_rows_of_a_vector_environment():
    env = gym.make_vec(ID, num_envs=6, plant="rooms", agents=2)
    assert env.unwrapped.worlds == 3
    env.reset(seed=1)
    env.step(np.array([0, 1, 2, 3, 4, 0]))
    assert env.unwrapped.engine.plant.telemetry[:, :, 2].tolist() == [[0, 500], [1000, 1500], [2000, 0]]
    with pytest.raises(ConfigError, match="num_envs = 5 is no multiple of agents = 2"):
        gym.make_vec(ID, num_envs=5, plant="rooms", agents=2)
    with pytest.raises(ConfigError, match="unexpected keyword argument 'senders'"):
        gym.make_vec(ID, num_envs=4, plant="rooms", senders=2)
    with pytest.raises(ConfigError, match="agents and senders are given"):
        gym.make_vec("netbuf/CongestionWindow-v0", num_envs=4, agents=2, senders=2)
    assert gym.make_vec("netbuf/CongestionWindow-v0", num_envs=4, agents=2).unwrapped.worlds == 2


@pytest.mark.parametrize("actions", ["steps", "share", "digits"])
def test_stable_baselines3_learns_on_it(actions):
    from stable_baselines3 import PPO

    env = VectorEnvAdapter(VectorEnv(4, **rooms(scenario=FAILS, actions=actions)))
    model = PPO("MlpPolicy", env, n_steps=16, batch_size=32, n_epochs=1, seed=1)
    model.learn(128)
    env.reset()
    ended = []
    for _ in range(8):
        _, _, dones, infos = env.step(np.array([env.action_space.sample() for _ in range(4)]))
        ended += [info for done, info in zip(dones, infos, strict=True) if done]
    assert ended and all(info["failure"] == "the window broke" and info["TimeLimit.truncated"] for info in ended)
    env.close()
    assert Rooms.made[-1].closings == 1


MAKERS = {
    "scalar": lambda **kwargs: Env(**rooms(**kwargs)),
    "vector": lambda **kwargs: VectorEnv(2, **rooms(**kwargs)),
    "parallel": lambda **kwargs: ParallelEnv(2, **rooms(**kwargs)),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_plants_are_closed_once_by_close_by_errors_and_by_being_dropped(make):
    env = make()
    env.reset(seed=1)
    (plant,) = Rooms.made
    env.close()
    env.close()
    assert plant.closings == 1
    dropped = make()
    del dropped
    gc.collect()
    assert [one.closings for one in Rooms.made] == [1, 1]
    broken = make(plant={"name": "rooms", "broken": True})
    broken.reset(seed=1)
    action = dict.fromkeys(broken.possible_agents, 0) if hasattr(broken, "possible_agents") else np.zeros(2, int)
    action = 0 if isinstance(broken, Env) else action
    with pytest.raises(PlantFault, match="the fuse has blown"):
        broken.step(action)
    assert Rooms.made[-1].closings == 1
    with pytest.raises(gym.error.ClosedEnvironmentError, match="reset"):
        broken.step(action)
    broken.close()
    assert Rooms.made[-1].closings == 1
    broken.reset(seed=1)  # opens it again
    broken.close()
    assert len(Rooms.made) == 4 and all(one.closings == 1 for one in Rooms.made)


def test_a_world_that_does_not_start_raises():
    with pytest.raises(PlantFault, match="does not start"):
        gym.make(ID, plant="rooms", scenario={"name": "test/room", "starts": False}).reset(seed=1)


def test_a_world_that_does_not_start_again_stops_no_other():
    env = VectorEnv(2, **rooms(max_episode_steps=3))
    engine = env.engine
    starts = iter([True, True, False, True, False, True])
    engine.source.draw = lambda rng: type(engine.source._fixed)(starts=next(starts, True))
    env.reset(seed=1)
    ends, failed = [], []
    for _ in range(6):
        observations, rewards, terminated, truncated, info = env.step(np.full(2, 4))
        assert not terminated.any() and np.isfinite(observations).all() and np.isfinite(rewards).all()
        ends.append(truncated.tolist())
        if truncated.any() and "failure" in info["final_info"]:
            failed.append((info["final_info"]["failure"].tolist(), info["final_info"]["_failure"].tolist(), rewards[0]))
    # both end with the third step, of which the first does not start; it is truncated, and its second try does not start either
    both, first, none = [True, True], [True, False], [False, False]
    assert ends == [none, none, both, first, first, [False, True]]
    why = "room test/room does not start"
    assert failed == [([why, None], first, 0.0)] * 2
    assert engine.time_ns[0] > 0 and not engine.failures
    engine.source.draw = lambda rng: type(engine.source._fixed)(starts=False)
    with pytest.raises(PlantFault, match="does not start"):
        env.reset()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "advance gave None; valid: a netbuf_gym.plants.Advance"),
        ((np.ones(2, np.int64), {}), "advance gave .*; valid: a netbuf_gym.plants.Advance"),
        (Advance([1, 1], {}), r"elapsed_ns = \[1, 1\]; valid: an int64 array of shape \(2,\)"),
        (Advance(np.ones(2), {}), r"elapsed_ns = float64 \(2,\); valid: an int64"),
        (Advance(np.ones(3, np.int64), {}), r"elapsed_ns = int64 \(3,\); valid: an int64"),
        (Advance(np.array([1, 0]), {}), r"elapsed_ns\[1\] = 0; valid: at least 1"),
        (Advance(np.array([-1, 1]), {0: "gone"}), r"elapsed_ns\[0\] = -1; valid: at least 0"),
        (Advance(np.array([1, 1]), {2: "gone"}), r"failures has world 2; valid: 0\.\.1"),
        (Advance(np.array([1, 1]), {"1": "gone"}), r"failures has world '1'; valid: 0\.\.1"),
        (Advance(np.array([1, 1]), None), "failures = None; valid: a mapping"),
        (Advance(np.array([1, 0]), {1: "gone"}), None),
    ],
)
def test_what_an_advance_gives_is_checked(result, message):
    env = VectorEnv(2, **rooms())
    env.reset(seed=1)
    env.engine.plant.advance = lambda *args: result
    if message is None:
        assert env.step(np.zeros(2, int))[3].tolist() == [False, True]
        return
    with pytest.raises(PlantFault, match=f"plant 'rooms': {message}"):
        env.step(np.zeros(2, int))
    assert Rooms.made[-1].closings == 1


def test_other_worlds_are_refused_by_the_task():
    with pytest.raises(ConfigError, match="'ppcc/1' is no room"):
        gym.make(ID, plant="rooms", scenario="ppcc/1")


def test_endless_worlds_do_not_end():
    engine = Engine(1, **rooms(scenario={"name": "test/room", "duration_s": np.inf}))
    assert engine.episode_steps() is None
    engine.reset_world(0, np.random.default_rng(0))
    engine.start_history([0])
    for _ in range(50):
        engine.decide(np.zeros(1, int))
    assert not engine.ended.any() and engine.time_ns[0] > 5e9


def test_a_plant_may_be_named_by_where_it_is():
    plants.register("lazy", "tests.plants.heating:Rooms")
    try:
        assert plants.get("lazy") is Rooms
        made = plants.make("lazy", 2, 3, HEATER)
        assert made.telemetry.shape == (2, 3, 3) and np.isnan(made.control).all()
    finally:
        plants.unregister("lazy")


@pytest.mark.parametrize(
    ("name", "plant", "message"),
    [
        (3, Rooms, "plant name = 3; valid: a string, not empty"),
        ("", Rooms, "plant name = ''; valid: a string"),
        ("other", Plant, "is abstract; valid: a class that has advance, apply, report, reset"),
        ("other", Rooms.reset, "valid: a class derived from"),
        ("other", "heating", "plant = 'heating'; valid: .*module:Class"),
        ("other", ":Rooms", "plant = ':Rooms'; valid: .*module:Class"),
        ("other", "no_such_module:Rooms", "plant 'other' = 'no_such_module:Rooms' cannot be imported .*no_such_module"),
        ("other", "tests.plants.heating:Roms", "plant 'other' = 'tests.plants.heating:Roms' cannot be imported .*Roms"),
        ("other", ".heating:Rooms", "plant 'other' = '.heating:Rooms' cannot be imported"),
        ("other", "tests.plants.heating:Room", "plant 'other' = 'tests.plants.heating:Room'; valid: a class derived from"),
        ("other", "netbuf_gym.plants:Plant", "plant 'other' = 'netbuf_gym.plants:Plant' is abstract"),
    ],
)
def test_what_is_no_plant_is_refused(name, plant, message):
    try:
        with pytest.raises(ConfigError, match=message):
            plants.register(name, plant)
            plants.get(name)
    finally:
        plants.unregister(name)


def test_arguments_that_a_plant_needs_are_named():
    class Cellars(Rooms):
        def __init__(self, worlds, agents, kind, threads=1, *, depth_m, **kwargs):
            super().__init__(worlds, agents, kind, threads)

    plants.register("cellars", Cellars)
    try:
        with pytest.raises(ConfigError, match="plant 'cellars' needs argument 'depth_m'"):
            gym.make(ID, plant="cellars")
        gym.make(ID, plant={"name": "cellars", "depth_m": 2}).close()
    finally:
        plants.unregister("cellars")


@pytest.mark.parametrize("name", [3, "", None])
def test_a_task_is_called_by_a_string(name):
    rules = type("Nameless", (tasks.get("heating").rules,), {"name": name})
    with pytest.raises(ConfigError, match=f"name of Nameless = {name!r}; valid: a string, not empty"):
        tasks.register(replace(record(), rules=rules, ids=("test/Nameless-v0",)))
    assert "test/Nameless-v0" not in gym.registry


class Wires(Plant):
    """Senders on a wire of their own: a window of w bytes brings w bytes in 50 ms, up to 10 Mbit/s."""

    kinds = ("sender",)

    def reset(self, world, scenario, seed):
        self.passed_ns = self.delivered = 0
        self.window = 14480.0

    def apply(self, control):
        self.window = np.where(np.isnan(control[0, 0, 0]), self.window, control[0, 0, 0])

    def advance(self, interval_ns, until="interval", left_ns=None):
        seconds = interval_ns * 1.25e-9  # it is slow
        rate_bps = min(self.window * 8 / 0.05, 10e6)
        self.delivered += rate_bps * seconds / 8
        self.passed_ns += interval_ns * 1.25
        measured = {"elapsed_s": seconds, "cwnd_bytes": self.window, "mss_bytes": 1448, "throughput_bps": rate_bps, "acks": 9}
        measured |= {"rtt_mean_s": 0.05, "rtt_min_s": 0.05, "packets_lost": 0, "segments_acked_sum": rate_bps * seconds / 11584}
        for name, value in measured.items():
            self.telemetry[0, 0, self.kind.telemetry.index(name)] = value
        return Advance(np.array([round(interval_ns * 1.25)]), {})

    def report(self, world):
        counted = {"delivered_bytes": self.delivered, "packets_sent": self.delivered / 1448, "now_s": self.passed_ns * 1e-9}
        counted |= {"rtt_count": 2, "rtt_sum_s": 0.1, "rtt_min_s": 0.05, "sojourn_sum_s": 0.0, "sojourn_count": 0}
        return [{**counted, "start_s": 0.0, "queue_drops": 0, "random_losses": 0, "timeouts": 0}]


def test_a_plant_of_ones_own_carries_a_task_of_the_package():
    plants.register("wires", Wires)
    try:
        env = gym.make("netbuf/CongestionWindow-v0", plant="wires", scenario={"name": "ppcc/1", "duration_s": 2})
        env.reset(seed=1)
        rewards, truncated = [], False
        while not truncated:
            observation, reward, _, truncated, info = env.step(9)
            assert env.observation_space.contains(observation)
            rewards.append(reward)
        assert len(rewards) == 16  # of 125 ms each
        assert rewards[-1] == pytest.approx(-0.5 * np.log(0.05 / env.unwrapped.engine.tracker.base_rtt_s[0]) * 0.125, rel=1e-4)
        assert info["duration_s"] == pytest.approx(2) and info["mean_rtt_ms"] == 50 and 5 < info["goodput_mbps"] < 10
    finally:
        plants.unregister("wires")
