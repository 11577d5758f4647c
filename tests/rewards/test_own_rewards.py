"""Rewards of one's own: which functions and objects are taken, what they are told, and which terms."""

import functools
import threading
from dataclasses import dataclass, fields

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym import rewards as package
from netbuf_gym import tasks
from netbuf_gym.envs.env import Env
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError
from netbuf_gym.rewards import AlphaFair, Telemetry, reward_of
from netbuf_gym.tasks.congestion_window import TELEMETRY

ID, TASK = "netbuf/CongestionWindow-v0", "congestion_window"
SHORT = {"name": "ppcc/4", "duration_s": 1.0}
SWITCH = {"name": "rlbm/default", "duration_s": 1.0}


def frugal(telemetry, price=0.1):
    """Mbit delivered, less a price for each packet lost."""
    mbit = telemetry["throughput_bps"] * telemetry["elapsed_s"] * 1e-6
    return {"delivered": mbit, "lost": -price * telemetry.packets_lost}


@dataclass(frozen=True)
class Frugal:
    """The same as an object."""

    price: float = 0.1

    def __call__(self, telemetry):
        return frugal(telemetry, self.price)


class Declared:
    """Says all of itself."""

    name, terms, requires = "said", ("b", "a"), ("rtt_mean_s",)

    def __init__(self, weight=1.0):
        self.weight, self.calls = weight, 0

    def __call__(self, telemetry):
        self.calls += 1
        return {"a": self.weight * telemetry.rtt_mean_s, "b": np.full(telemetry.rows, self.calls)}


class Change:
    """Throughput less that of the interval before, 0 in an episode's first one."""

    def __init__(self):
        self.before = None

    def __call__(self, telemetry):
        now = telemetry["throughput_bps"]
        change = np.zeros(telemetry.rows) if self.before is None else now - self.before
        self.before = now
        return np.where(telemetry.first, 0, change)

    def in_mbps(self, telemetry):
        return self(telemetry) * 1e-6


def one_step(reward, **kwargs):
    env = gym.make(ID, **{"scenario": SHORT, "reward": reward, **kwargs})
    env.reset(seed=1)
    env.step(10)
    _, value, *_, info = env.step(10)
    return value, info["reward_terms"], env.unwrapped


@pytest.mark.parametrize(
    ("reward", "name", "price"),
    [
        (frugal, "frugal", 0.1),
        (functools.partial(frugal, price=2.0), "frugal", 2.0),
        (Frugal, "Frugal", 0.1),
        (Frugal(2.0), "Frugal", 2.0),
        (lambda telemetry: frugal(telemetry, 3), "reward", 3),
        (Frugal(4.0).__call__, "__call__", 4.0),
    ],
)
def test_functions_objects_and_classes_are_taken(reward, name, price):
    value, terms, env = one_step(reward)
    measured = env.telemetry
    assert terms["delivered"] == pytest.approx(measured["throughput_bps"] * measured["elapsed_s"] * 1e-6)
    assert terms["lost"] == pytest.approx(-price * measured["packets_lost"])
    assert value == pytest.approx(sum(terms.values())) and env.engine.reward.name == name
    rows = gym.make_vec(ID, num_envs=3, scenario=SHORT, reward=reward)
    rows.reset(seed=[1, 1, 1])
    rows.step(np.full(3, 10))
    assert rows.step(np.full(3, 10))[1] == pytest.approx([value] * 3)


def test_one_array_is_one_term_by_the_rewards_name():
    value, terms, _ = one_step(lambda telemetry: telemetry.now["rtt_min_s"])
    assert terms == {"reward": value} and value > 0
    assert list(one_step(Change())[1]) == ["Change"]


def test_an_object_says_its_name_terms_and_order_and_is_not_called_beforehand():
    own = Declared(2.0)
    _, terms, env = one_step(own)
    assert list(terms) == ["b", "a"] and terms["b"] == 2 and env.engine.reward.name == "said"
    assert own.calls == 0 and env.engine.reward.rule.calls == 2
    assert terms["a"] == pytest.approx(2 * env.telemetry["rtt_mean_s"])


def test_made_up_telemetry_changes_no_state_that_an_object_has():
    class Counting(Declared):
        terms = requires = ()

    _, terms, _ = one_step(Counting())
    assert terms["b"] == 2 and list(terms) == ["a", "b"]


@pytest.mark.parametrize("kind", [Env, functools.partial(gym.make, ID)])
def test_state_is_not_shared(kind):
    def make(reward):
        return kind(scenario=SHORT, reward=reward).unwrapped

    own = Change()
    one, two = make(own), make(own)
    for env in (one, two):
        env.reset(seed=1)
    assert one.step(10)[1] == 0 != one.step(10)[1]
    assert own.before is None and two.engine.reward.rule.before is None
    assert two.step(10)[1] == 0
    method = make(own.in_mbps)
    method.reset(seed=1)
    method.step(10)
    assert own.before is None


def test_what_cannot_be_copied_is_refused():
    class Locked:
        def __init__(self):
            self.lock = threading.Lock()

        def __call__(self, telemetry):
            return telemetry.rtt_mean_s

    with pytest.raises(ConfigError, match="reward 'Locked' cannot be copied"):
        VectorEnv(2, reward=Locked())


def test_first_says_whose_episode_began_with_the_interval():
    seen = []

    def watching(telemetry):
        seen.append(telemetry.first.tolist())
        return np.zeros(telemetry.rows)

    env = VectorEnv(4, agents=2, scenario=SHORT, reward=watching, max_episode_steps=3)
    env.reset(seed=1)
    seen.clear()
    mask = np.array([False, False, True, True])
    for step in range(5):
        if step == 2:
            env.reset(options={"reset_mask": mask})
        env.step(np.full(4, 5))
    first, other = [True, False, False, True, False], [True, False, True, False, False]
    assert seen == [[a, a, b, b] for a, b in zip(first, other, strict=True)]


def test_what_telemetry_is():
    env = VectorEnv(4, agents=2, scenario=SHORT)
    env.reset(seed=1)
    env.step(np.full(4, 5))
    tracker = env.engine.tracker
    telemetry = Telemetry(tracker, TASK, 2)
    assert telemetry.fields == TELEMETRY.names and list(telemetry)[: len(TELEMETRY.names)] == list(TELEMETRY.names)
    assert {"throughput_ratio", "rtt_ratio", "queueing_s", "loss_ratio"} <= set(telemetry.quantities) <= set(telemetry)
    assert len(telemetry) == len(list(telemetry)) and telemetry.rows == 4 and telemetry.agents == 2
    for name in telemetry:
        values = telemetry[name]
        assert values.shape == (4,) and not np.isnan(values).any()
        np.testing.assert_array_equal(values, getattr(telemetry, name))
        values[:] = 7  # one's own
        assert (telemetry[name] != 7).any()
    for column, name in enumerate(TELEMETRY.names):
        np.testing.assert_array_equal(telemetry.now[name], tracker.now[column])
    assert np.isnan(telemetry.now.ssthresh_bytes).all() and telemetry.ssthresh_bytes[0] == np.inf
    assert "nope" not in telemetry and telemetry.get("nope") is None and not hasattr(telemetry, "nope")
    assert "rtt_ratio" not in telemetry.now and len(telemetry.now) == len(list(telemetry.now))
    with pytest.raises(KeyError, match="a reward needs nope, which task 'congestion_window' does not have; valid: elapsed_s"):
        telemetry["nope"]
    with pytest.raises(TypeError):
        telemetry["rtt_mean_s"] = 1
    assert "4 agents of task 'congestion_window'" in repr(telemetry)


@pytest.mark.parametrize("task", tasks.records(), ids=lambda record: record.name)
def test_all_quantities_are_finite_from_the_start_on(task):
    worlds = {"congestion_window": SHORT, "queue_threshold": SWITCH, "receiver_window": SHORT, "host_buffers": SHORT}
    env = VectorEnv(2, task=task.name, scenario=worlds[task.name])
    env.reset(seed=1)
    telemetry = Telemetry(env.engine.tracker)
    for _ in range(12):
        for name in telemetry.quantities:
            assert telemetry[name].shape == (2,) and np.isfinite(telemetry[name]).all(), name
        env.step(env.action_space.sample())


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (3, "reward = 3 cannot be called"),
        ("power", "reward = 'power' cannot be called"),
        (dict, "valid: a function, or a class of objects that can be called"),
        (lambda: 1, "no first parameter"),
        (lambda *, weight=1.0: 1, "no first parameter"),
        (lambda **kwargs: 1, "no first parameter"),
        (lambda telemetry, *args: 1, r"parameter '\*args'"),
        (lambda telemetry, **kwargs: 1, r"parameter '\*\*kwargs'"),
        (lambda telemetry, name="x": 1, "parameter 'name'"),
        (lambda telemetry, terms=1: 1, "parameter 'terms'"),
        (lambda telemetry, weight=1.0, /: 1, "parameter 'weight' cannot be given by its name"),
        (lambda telemetry, weight: 1, "parameter 'weight' has no default"),
        (functools.partial(lambda telemetry: 1), "valid: name="),
    ],
)
def test_what_is_no_reward_is_refused(rewards, reward, message):
    before = dict(rewards)
    with pytest.raises(ConfigError, match=message):
        tasks.register_reward(TASK, reward)
    assert rewards == before


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (3, "reward = 3 is neither a name nor a dict with a name, and cannot be called; valid: log_utility, "),
        ([frugal], "neither a name"),
        ({"price": 1}, "neither a name"),
        (int, "objects of this class cannot be called"),
        (lambda: 1, "no first parameter"),
        (lambda telemetry, price: 1, "parameter 'price' has no default; valid: price=..., or functools.partial"),
        (lambda telemetry: telemetry["rtt_s"], "reward 'reward' needs rtt_s, which task 'congestion_window' does not have"),
        (lambda telemetry: telemetry.rtt_s + telemetry.now["loss"] + telemetry.acks, "needs rtt_s, loss, which"),
        (lambda telemetry: 1 / 0, "cannot be called with made-up telemetry .*ZeroDivisionError"),
        (lambda telemetry: {}, "gave no terms"),
        (lambda telemetry: {1: telemetry.acks}, "a term of reward 'reward' is 1; valid: a string"),
        (lambda telemetry: {"": telemetry.acks}, "a term of reward 'reward' is ''"),
        (lambda telemetry: {"a": telemetry.acks, "b": 1.0}, r"term 'b' of reward 'reward' has shape \(\); valid: \(2,\)"),
        (lambda telemetry: {"a": telemetry.acks[:, None]}, r"term 'a' of reward 'reward' has shape \(2, 1\)"),
        (lambda telemetry: (x for x in (1, 2)), "is <generator object .*; valid: finite numbers"),
    ],
)
def test_what_cannot_reward_is_refused_when_the_environment_is_made(reward, message):
    with pytest.raises(ConfigError, match=message):
        VectorEnv(2, scenario=SHORT, reward=reward)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"name": 3}, "name of reward .* = 3; valid: a string"),
        ({"name": ""}, "valid: a string, not empty"),
        ({"terms": "ab"}, "terms of reward 'said' = 'ab'; valid: a tuple of names"),
        ({"terms": ("a", "a")}, "no two alike"),
        ({"terms": ("a", 1)}, "a term of reward 'said' is 1"),
        ({"terms": ("a", "c"), "requires": ()}, "gave terms a, b; valid: a, c"),
        ({"requires": ("rtt_mean_s", "worst_ratio", "rtt")}, "needs worst_ratio, rtt, which task 'congestion_window'"),
        ({"requires": 3}, "requires of reward 'said' = 3"),
    ],
)
def test_what_an_object_says_of_itself_is_checked(attributes, message):
    with pytest.raises(ConfigError, match=message):
        VectorEnv(2, scenario=SHORT, reward=type("Said", (Declared,), attributes)())


def test_a_field_that_a_reward_does_without_does_not_lack():
    def careful(telemetry):
        try:
            return telemetry["worst_ratio"]
        except KeyError:
            return telemetry["rtt_ratio"] if "worst_ratio" not in telemetry else telemetry.get("worst_ratio")

    assert one_step(careful)[0] >= 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.0, r"reward 'mine' has shape \(\); valid: \(2,\)"),
        ([[1.0, 2.0]], r"has shape \(1, 2\); valid: \(2,\)"),
        ([1.0], r"has shape \(1,\)"),
        ([1.0, [2.0]], "valid: finite numbers"),
        (["a", "b"], "valid: finite numbers"),
        ([None, 1], "valid: finite numbers"),
        ([1j, 1], "valid: finite numbers"),
        (None, "reward 'mine' is None; valid: finite numbers"),
        ([0.0, np.nan], "reward 'mine' is nan of row 1; valid: finite"),
        ([np.inf, -np.inf], "reward 'mine' is inf of row 0"),
        ([0.0, 1e300], "reward 'mine' is inf of row 1"),
        ({"a": [0, 0], "b": [0, np.nan]}, "term 'b' of reward 'mine' is nan of row 1"),
        ({"a": [3e38, 0], "b": [3e38, 0]}, "reward 'mine' is more than float32 holds, of row 0"),
        ({"c": [1, 1]}, "gave terms c; valid: "),
        ({"a": [1, 1], "b": [1, 1], "c": [1, 1]}, "gave terms a, b, c; valid: "),
    ],
)
@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.filterwarnings("error")
def test_a_wrong_value_is_refused(rewards, value, message, registered):
    made = []

    def mine(telemetry):
        ones = np.ones(telemetry.rows)
        first = {"a": ones, "b": ones} if isinstance(value, dict) else ones
        return value if made else first

    if registered:
        tasks.register_reward(TASK, mine)
    env = gym.make_vec(ID, num_envs=2, scenario=SHORT, reward="mine" if registered else mine)
    env.reset(seed=1)
    env.step(np.array([5, 5]))
    made.append(True)
    with pytest.raises(ConfigError, match=message):
        env.step(np.array([5, 5]))
    env.close()


def test_a_tensor_that_does_not_let_go_is_refused():
    class Tensor:
        def __array__(self, *args, **kwargs):
            raise RuntimeError("detach it first")

    with pytest.raises(ConfigError, match=r"reward 'reward' is <.*; valid: finite numbers"):
        VectorEnv(2, scenario=SHORT, reward=lambda telemetry: Tensor())


def test_large_values_whose_sum_over_rows_is_not_finite_are_taken(rewards):
    tasks.register_reward(TASK, lambda telemetry: np.full(telemetry.rows, 3e38), "mine")
    env = gym.make_vec(ID, num_envs=2, scenario=SHORT, reward="mine")
    env.reset(seed=1)
    assert (env.step(np.array([5, 5]))[1] == np.float32(3e38)).all()
    env.close()


@pytest.mark.parametrize(
    ("reward", "parameters", "changed"),
    [
        (frugal, ["price"], {"price": 2.0}),
        (functools.partial(frugal, price=9.0), ["price"], {"price": 2.0}),
        (Frugal, ["price"], {"price": 2.0}),
        (Frugal(2.0), [], {}),
    ],
)
def test_what_is_registered_is_known_by_name_with_its_parameters(rewards, reward, parameters, changed):
    tasks.register_reward(TASK, reward, "mine")
    assert [one.name for one in fields(rewards["mine"])] == parameters
    _, terms, env = one_step({"name": "mine", **changed})
    assert terms == one_step(Frugal(2.0))[1]
    assert env.spec is not None and '"mine"' in env.spec.to_json()
    valid = parameters[0] if parameters else "none"
    with pytest.raises(ConfigError, match=f"reward 'mine' has no parameter 'cost'; valid: {valid}"):
        one_step({"name": "mine", "cost": 1})
    with pytest.raises(ConfigError, match="reward 'mine' of task 'congestion_window' is registered already"):
        tasks.register_reward(TASK, Change, "mine")


def test_registered_objects_keep_their_state_to_each_environment(rewards):
    tasks.register_reward(TASK, Declared(3.0))
    tasks.register_reward(TASK, Declared, "classy")
    for name, weight in (("said", 3.0), ("classy", 1.0), ({"name": "classy", "weight": 5}, 5.0)):
        for _ in range(2):
            _, terms, env = one_step(name)
            assert terms["b"] == 2 and terms["a"] == pytest.approx(weight * env.telemetry["rtt_mean_s"])


def test_a_class_whose_parameters_have_no_default_is_refused(rewards):
    class Needy:
        def __init__(self, weight):
            self.weight = weight

        def __call__(self, telemetry):
            return telemetry.rtt_mean_s

    with pytest.raises(ConfigError, match="parameter 'weight' has no default"):
        tasks.register_reward(TASK, Needy)
    with pytest.raises(ConfigError, match=r"cannot be made: .*weight"):
        one_step(Needy)
    reward_of(Needy(1.0))


# ---- any reward on any task


def test_names_are_known_to_all_tasks_that_have_the_telemetry(rewards):
    def mbit(telemetry):
        return telemetry["elapsed_s"] * telemetry["throughput_ratio"]

    tasks.register_reward(TASK, mbit)
    tasks.register_reward(TASK, lambda telemetry: telemetry["rtt_mean_s"], "rtt")
    env = gym.make("netbuf/QueueThreshold-v0", scenario=SWITCH, reward="mbit")
    env.reset(seed=1)
    assert list(env.step(env.action_space.sample())[4]["reward_terms"]) == ["mbit"]
    with pytest.raises(ConfigError, match="reward 'rtt' needs rtt_mean_s, which task 'queue_threshold' does not have"):
        gym.make("netbuf/QueueThreshold-v0", scenario=SWITCH, reward="rtt")
    with pytest.raises(ConfigError, match="reward = 'nothing' is unknown; valid: switch_utility"):
        gym.make("netbuf/QueueThreshold-v0", scenario=SWITCH, reward="nothing")


@pytest.mark.parametrize(
    ("task", "reward", "lacks"),
    [
        (TASK, "thesis_text", "worst_difference_s, packets_received, flow_known, service_s"),
        (TASK, "thesis_code", "worst_ratio, delivered_bytes, flow_known"),
        (TASK, "switch_utility", "delivered_bytes, log_ratio_sum_0, .*queue_bytes_0"),
        ("queue_threshold", "log_utility", "rtt_ratio"),
        ("queue_threshold", {"name": "linear_utility", "cap": 3}, "rtt_ratio"),
        ("queue_threshold", "power", "rtt_ratio"),
        ("queue_threshold", "utility_sign", "throughput_bps, rtt_mean_s, previous_throughput_bps"),
        ("queue_threshold", frugal, "throughput_bps, packets_lost"),
    ],
)
def test_an_error_says_what_a_task_lacks(task, reward, lacks):
    with pytest.raises(ConfigError, match=f"needs {lacks}.*, which task '{task}' does not have; valid: elapsed_s, "):
        VectorEnv(2, task=task, reward=reward)


@pytest.mark.parametrize("name", ["alpha_fair", "range_normalized"])
def test_a_switch_has_throughput_delay_and_loss(name):
    env = gym.make("netbuf/QueueThreshold-v0", scenario={**SWITCH, "load": 0.8, "duration_s": 10.0}, reward=name)
    env.reset(seed=1)
    tracker, seen = env.unwrapped.engine.tracker, set()
    for _ in range(60):
        _, reward, *_, info = env.step(np.ones(2, np.float32))
        queue = tracker.queue
        seconds = float(queue.queue_bytes.sum()) * 8 / 10e6
        telemetry = Telemetry(tracker)
        assert telemetry.queueing_s[0] == pytest.approx(seconds)
        assert telemetry.throughput_ratio[0] == pytest.approx(float(tracker["delivered_bytes"][0]) * 8 / 10e6 / 0.1, rel=1e-5)
        assert telemetry.loss_ratio[0] == pytest.approx(
            float(tracker["packets_dropped"][0]) / max(1, float(queue.arrivals.sum())), rel=1e-6
        )
        assert np.isfinite(reward) and reward == pytest.approx(sum(info["reward_terms"].values()), abs=1e-6)
        seen |= {key for key, value in info["reward_terms"].items() if value}
    assert seen == {"throughput", "delay", "loss"} or seen == {"throughput", "delay"}


def test_a_name_of_several_rewards_of_other_tasks_is_refused(rewards):
    def same(telemetry):
        return telemetry["elapsed_s"]

    rules = type("Other", (tasks.QueueThreshold,), {"name": "another"})
    tasks.register_reward(TASK, same)
    tasks.register(tasks.TaskRecord(rules=rules, ids=("test/Another-v0",), summary="x", rewards={"same": reward_of(same)}))
    try:
        with pytest.raises(ConfigError, match="reward 'same' is ambiguous, tasks congestion_window, another"):
            gym.make("netbuf/QueueThreshold-v0", scenario=SWITCH, reward="same")
        gym.make(ID, reward="same")
    finally:
        tasks.unregister("another")


def test_the_form_in_which_tasks_have_theirs_is_taken_too():
    class InPlace:
        name, terms = "in_place", ("one", "two")

        def __call__(self, tracker, out):
            out[0], out[1] = tracker["acks"], tracker["packets_lost"]

    _, terms, env = one_step(InPlace())
    assert terms["one"] == env.telemetry["acks"]
    with pytest.raises(ConfigError, match="reward 'in_place' needs acks, which task 'queue_threshold' does not have"):
        gym.make("netbuf/QueueThreshold-v0", scenario=SWITCH, reward=InPlace())
    with pytest.raises(ConfigError, match="reward 'Bare' has no terms"):
        one_step(type("Bare", (), {"__call__": InPlace.__call__})())
    assert one_step(AlphaFair(alpha=2))[1] == one_step({"name": "alpha_fair", "alpha": 2})[1] == one_step(AlphaFair(2))[1]


def test_the_documentation_of_the_module_is_what_it_does():
    assert "telemetry.first" in package.__doc__
    space = {}
    code = package.__doc__.split("\n\n    def ")[1].split("\n\n    env")[0]
    exec("def " + code.replace("\n    ", "\n"), space)
    assert set(one_step(space["frugal"])[1]) == {"delivered", "lost"}
