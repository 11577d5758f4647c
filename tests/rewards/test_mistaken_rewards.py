"""What users do by mistake with rewards of their own, and with their names: shown, or taken as it is meant."""

import functools

import pytest

from netbuf_gym import tasks
from netbuf_gym.envs.env import Env
from netbuf_gym.errors import ConfigError

TASK = "congestion_window"


def frugal(telemetry, price=0.1):
    return -price * telemetry["packets_lost"]


class Frugal:
    def __init__(self, price=0.1):
        self.price = price

    def __call__(self, telemetry):
        return frugal(telemetry, self.price)


def terms_of(reward):
    env = Env(scenario={"name": "ppcc/4", "duration_s": 1.0}, reward=reward)
    env.reset(seed=1)
    return env.step(5)[4]["reward_terms"]


@pytest.mark.parametrize(("wrong", "shown"), [(None, "None"), ("good", "'good'"), ({"a": None}, "None"), (object, "class")])
def test_what_is_no_number_is_shown_and_not_its_shape(wrong, shown):
    with pytest.raises(ConfigError, match=rf"is .*{shown}.*; valid: finite numbers \(1,\), one for each agent"):
        terms_of(lambda telemetry: wrong)


def test_a_reward_may_be_registered_again_and_anew(rewards):
    def defined(price):
        def mine(telemetry):
            return price * telemetry["elapsed_s"]

        return mine

    first = defined(1.0)
    partial, made = functools.partial(frugal, price=2.0), Frugal(2.0)
    for name, reward in (("first", first), ("partial", partial), ("made", made), ("class", Frugal)):
        tasks.register_reward(TASK, reward, name)
        tasks.register_reward(TASK, reward, name)
    tasks.register_reward(TASK, defined(2.0), "first")  # as when a cell of a notebook is run again
    assert terms_of("first")["first"] == pytest.approx(0.2)
    for name, other in (("first", frugal), ("partial", functools.partial(frugal, price=3.0)), ("made", Frugal(3.0))):
        with pytest.raises(ConfigError, match="registered already; valid: another name"):
            tasks.register_reward(TASK, other, name)
    tasks.register_reward(TASK, lambda telemetry: telemetry["elapsed_s"], "short")
    with pytest.raises(ConfigError, match="registered already"):
        tasks.register_reward(TASK, lambda telemetry: -telemetry["elapsed_s"], "short")
