"""Parameters of controllers by their names: what words mean, that settings reach the world, and what is refused."""

import pytest

from netbuf_gym import scenarios, tasks
from netbuf_gym.cli import simulate
from netbuf_gym.cli.program import build_parser
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.leaderboard.controllers import resolve_task_controller
from netbuf_gym.utils import parameters
from netbuf_gym.utils.parameters import TunableParameter

TUNABLE = [(record.name, name) for record in tasks.records() for name, make in record.controllers.items() if make().parameters]


@pytest.mark.parametrize(("task", "name"), TUNABLE)
def test_default_settings_in_a_name_change_nothing_but_the_name(task, name):
    plain = rollout.get_controller(name, task)
    shipped = {one.name: one.default for one in plain.parameters if one.default is not None}
    made = rollout.get_controller(parameters.format_settings(name, shipped), task)
    assert type(made) is type(plain) and made.recipes == plain.recipes and made.env == plain.env
    assert made.parameters == plain.parameters
    assert made.name == parameters.format_settings(name, shipped)
    for one in plain.parameters:  # what is searched is valid
        found = one.search_range
        for value in [] if found is None else found.get("choices", [found.get("low"), found.get("high")]):
            made.with_parameters({one.name: one.check(value)})


@pytest.mark.parametrize(
    ("task", "scenario", "word", "same"),
    [
        (
            "congestion_window",
            {"name": "ppcc/4", "duration_s": 20},
            "cubic:beta=0.9:hystart=false",
            "cubic:beta=0.7:hystart=true",
        ),
        ("receiver_window", {"name": "nuwa/4g", "duration_s": 20}, "nuwa:k=9", "nuwa:k=2"),
        ("queue_threshold", "rlbm/cubic-100-0.6", "dt:alpha_0=0.005", "dt:alpha_0=0.03125"),
        ("queue_threshold", "rlbm/cubic-100-0.6", "codel:target_ms=0.5", "codel:target_ms=5"),
        ("queue_threshold", "rlbm/cubic-100-0.6", "pulse_burst:target_ms=2:flows=1", "pulse_burst:flows=5"),
        ("congestion_window", {"name": "ppcc/4", "duration_s": 20}, "queue_target:segments=30", "queue_target:gain=0.6"),
    ],
)
def test_settings_reach_the_world(task, scenario, word, same):
    score = tasks.get(task).measures.score
    plain, changed, alike = (
        rollout.evaluate(one, task, scenario, [1])[0][score] for one in (word.partition(":")[0], word, same)
    )
    assert changed != plain and alike == plain
    assert resolve_task_controller(word, task, "here").name == word


@pytest.mark.parametrize(
    ("task", "word", "said"),
    [
        ("congestion_window", "cubic:x=1", "'x=1' is unknown; valid: cubic:SETTING=VALUE:..., with settings of beta, c, "),
        ("congestion_window", "cubic:beta=2", "beta = 2.0 is out of range; valid: 0.1"),
        ("congestion_window", "cubic:hystart=yes", "'hystart=yes' is neither true nor false"),
        ("queue_threshold", "dt:alpha_0=0", "alpha_0 = 0.0 is out of range"),
        ("queue_threshold", "naive:alpha_0=1", "'naive:alpha_0=1' is unknown; valid: naive, "),
        ("queue_threshold", "pulse_burst:flows=1.5", "flows = 1.5 is not a whole number"),
        ("host_buffers", "bpftune:near=0", "near = 0.0 is out of range"),
    ],
)
def test_invalid_settings_are_refused(task, word, said):
    with pytest.raises(ConfigError, match=said):
        rollout.get_controller(word, task)


def test_a_settings_value_is_read_as_it_was_written():
    for one, value in (
        (TunableParameter(name="a", low=0, high=1), 0.1234567891),
        (TunableParameter(name="a", kind="whole", low=0, high=10**9), 123456789),
        (TunableParameter(name="a", kind="truth"), False),
        (TunableParameter(name="a", kind="named", words=("x", "y")), "y"),
        (TunableParameter(name="a", low=0, high=1, optional=True), None),
    ):
        text = parameters.format_settings("name", {"a": value})
        assert parameters.read_settings("name", text.partition(":")[2], [one]) == {"a": value}


def test_simulate_takes_the_same_names():
    parser = build_parser(["simulate"])
    words = parser.parse_args(["simulate", "--senders", "cubic:beta=0.8"])
    assert str(simulate.resolve_scenario(words).flows[0].cc) == "cubic(beta=0.8)"
    world = scenarios.get("rlbm/default")
    assert world.with_scheme("dt:alpha_0=2") == world.with_scheme({"name": "dt", "alphas": [2, scenarios.DT_ALPHAS[1]]})
    with pytest.raises(ConfigError, match="'alpha=2' is unknown; valid: dt:SETTING"):
        world.with_scheme("dt:alpha=2")
