"""Curricula: worlds that become others as a training goes on, and come back as they were after an interruption."""

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.training import curriculum
from netbuf_gym.training.checkpoints.replay import EpisodeRecorder
from netbuf_gym.training.config import load
from netbuf_gym.training.train import train

STAGES = "curriculum=[{until: 0.3, kwargs: {rate_mbps: 2}}, {until: 0.6, kwargs: {rate_mbps: 5, rtt_ms: 20}}]"
WORLDS = ("scenario=dumbbell", "scenario.kwargs.rate_mbps=10", "scenario.kwargs.duration_s=1", "scenario.kwargs.n=1")


def worlds_of(*overrides, num=3):
    config = load("train", [*WORLDS, *overrides])
    kwargs = {"scenario": {"name": "dumbbell", "rate_mbps": 10, "duration_s": 1, "n": 1}}
    worlds = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=num, **kwargs)
    return config, EpisodeRecorder(worlds, curriculum.build_stage_sources(config, worlds))


def rates(recorder):
    return [world.links[0].rate_mbps for world in recorder.native.engine.scenarios]


def steps(recorder, count):
    rng = np.random.default_rng(5)
    for _ in range(count):
        observations, *_ = recorder.step(rng.integers(12, size=recorder.num_envs))
    return observations


def test_further_worlds_are_of_the_stage_and_running_ones_go_on():
    config, recorder = worlds_of(STAGES)
    follow = curriculum.make_stage_setter(config, recorder.set_stage)
    recorder.reset(seed=1)
    assert rates(recorder) == [2, 2, 2]
    follow(0.29)
    steps(recorder, 11)  # an episode is ten decisions
    assert rates(recorder) == [2, 2, 2]
    follow(0.3)
    assert recorder.stage == 1 and rates(recorder) == [2, 2, 2]
    steps(recorder, 10)
    assert rates(recorder) == [5, 5, 5] and recorder.native.engine.scenarios[0].propagation_rtt_ms(0) == 20
    for share, stage in ((0.59, 1), (0.6, 2), (1.0, 2)):
        follow(share)
        assert recorder.stage == stage
    steps(recorder, 10)
    assert rates(recorder) == [10, 10, 10] and recorder.native.engine.scenarios[0].propagation_rtt_ms(0) != 20
    recorder.close()


def test_worlds_of_several_stages_come_back():
    _, recorder = worlds_of(STAGES)
    recorder.reset(seed=1)
    steps(recorder, 4)
    for stage, world in ((1, 1), (2, 2)):
        recorder.set_stage(stage)
        recorder.reset(options={"reset_mask": np.arange(3) == world})
    seen = steps(recorder, 3)
    assert rates(recorder) == [2, 5, 10]
    kept = recorder.get_running_episodes()
    assert kept.stages.tolist() == [0, 1, 2]
    _, other = worlds_of(STAGES)
    np.testing.assert_array_equal(other.replay(kept), seen)
    assert rates(other) == [2, 5, 10] and other.get_running_episodes().stages.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="stages that a curriculum of 0 does not have"):
        worlds_of()[1].replay(kept)


def test_nothing_is_recorded_of_stages_without_a_curriculum():
    _, recorder = worlds_of()
    recorder.reset(seed=1)
    steps(recorder, 12)
    assert recorder.get_running_episodes().stages is None and rates(recorder) == [10, 10, 10]


def test_arguments_of_a_stage_are_over_those_of_the_scenario():
    stage = "{until: 0.5, kwargs: {shares: {rivals: 0}, most_mbit: 50}}"
    config = load("train", ["scenario=paths/training", f"curriculum=[{stage}]"])
    worlds = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=1, scenario="paths/training")
    families = [
        {one.draw(np.random.default_rng(k)).name for k in range(40)} for one in curriculum.build_stage_sources(config, worlds)
    ]
    assert not any("rivals" in name for name in families[0]) and any("fixed" in name for name in families[0])
    assert any("rivals" in name for name in families[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ("[5]", r"curriculum\[0\] = 5; valid: \{until: SHARE, kwargs"),
        ("[{until: 0.5}]", r"curriculum\[0\] = \{'until': 0.5\}; valid"),
        ("[{until: 0.5, kwargs: 3}]", r"curriculum\[0\] = .*; valid"),
        ("[{until: 0.5, kwargs: {}, shares: {}}]", r"curriculum\[0\] = .*; valid"),
        ("[{until: x, kwargs: {}}]", r"curriculum\[0\]\.until = 'x' is not a number"),
        ("[{until: 1, kwargs: {}}]", r"curriculum\[0\]\.until = 1; valid: above 0, where it begins, and below 1"),
        ("[{until: 0.5, kwargs: {}}, {until: 0.5, kwargs: {}}]", r"curriculum\[1\]\.until = 0\.5; valid: above 0\.5"),
        ("[{until: 0.5, kwargs: {rat: 3}}]", r"curriculum\[0\]\.kwargs: dumbbell has no argument 'rat'; valid: "),
        ("[{until: 0.5, kwargs: {rate_mbps: -3}}]", r"curriculum\[0\]\.kwargs: .*rate_mbps = -3"),
    ],
)
def test_mistaken_stages_are_refused_by_name(stages, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        train([*WORLDS, f"curriculum={stages}", f"run_dir={tmp_path / 'run'}", "algo.num_envs=2"])
    assert not (tmp_path / "run").exists()
