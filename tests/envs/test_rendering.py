"""Pictures of episodes: frames of one shape by Matplotlib or numpy, videos as fast as the worlds, a picture a row."""

import builtins
import math
import pickle

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym import tasks
from netbuf_gym.envs import rendering
from netbuf_gym.envs.rendering import CHART_PANEL, CHART_WIDTH, PANEL, WIDTH, Recorder, draw_strips, frames_per_second
from netbuf_gym.tasks import Panel
from tests.helpers.release_cases import for_release

IDS = ["netbuf/CongestionWindow-v0", "netbuf/QueueThreshold-v0", "netbuf/ReceiverWindow-v0", "netbuf/HostBuffers-v0"]


def without_matplotlib(monkeypatch):
    load = builtins.__import__

    def imported(name, *rest):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", imported)


@pytest.mark.slow
@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("matplotlib", [True, False])
def test_frames_have_one_shape_and_change(name, matplotlib, monkeypatch):
    if not matplotlib:
        without_matplotlib(monkeypatch)
    env = gym.make(name, render_mode="rgb_array")
    env.reset(seed=1)
    frames = [env.render()]
    env.action_space.seed(1)
    for _ in range(25):
        env.step(env.action_space.sample())
        frames.append(env.render())
    env.reset(seed=2)
    frames.append(env.render())
    panels = len(env.unwrapped.engine.task.panels)
    shape = (CHART_PANEL * panels, CHART_WIDTH, 3) if matplotlib else (PANEL * panels, WIDTH, 3)
    assert {frame.shape for frame in frames} == {shape} and {frame.dtype for frame in frames} == {np.dtype(np.uint8)}
    assert shape[0] % 2 == shape[1] % 2 == 0  # as videos want them
    assert not np.array_equal(frames[1], frames[-2])
    assert np.array_equal(frames[0], frames[-1])  # a new episode shows nothing of the old one
    kept = frames[5].copy()
    env.step(env.action_space.sample())
    env.render()
    assert np.array_equal(frames[5], kept)  # frames are their own


def shown(panels, states):
    class Own:
        pass

    own = Own()
    own.panels = panels
    recorder = Recorder(own)
    for state in states:
        recorder.add(state)
    return recorder.rgb_array()


STATES = {
    "nothing": [],
    "one": [{"time_s": 0.1, "a": 1.0, "b": 2.0}],
    "NaN": [{"time_s": 0.1 * k, "a": math.nan, "b": math.nan} for k in range(3)],
    "zero": [{"time_s": 0.1 * k, "a": 0.0, "b": 0.0} for k in range(3)],
    "below zero": [{"time_s": 0.1 * k, "a": -float(k), "b": 3.0} for k in range(9)],
    "infinite": [{"time_s": 0.1 * k, "a": math.inf if k == 2 else 1.0, "b": 1e300} for k in range(5)],
    "some": [{"time_s": 0.1 * k, "a": math.nan if k % 2 else float(k), "b": 3.0} for k in range(500)],
}


@pytest.mark.parametrize("states", STATES.values(), ids=STATES)
def test_whatever_is_shown_is_drawn(states, monkeypatch):
    panels = (Panel("a", "A", (255, 0, 0), "b", "LIMIT"), Panel("b", "B", (0, 0, 255)))
    assert shown(panels, states).shape == (2 * CHART_PANEL, CHART_WIDTH, 3)
    with np.errstate(invalid="raise"):
        assert draw_strips(panels, states[-rendering.SHOWN_DECISIONS :]).shape == (2 * PANEL, WIDTH, 3)


@pytest.mark.slow
def test_axes_are_drawn_anew_only_when_their_limits_change(monkeypatch):
    env = gym.make(IDS[0], render_mode="rgb_array", scenario="ppcc/2")
    env.reset(seed=1)
    env.render()
    canvas = env.unwrapped._recorder._draw._canvas
    drawn, draw = [], canvas.draw
    monkeypatch.setattr(canvas, "draw", lambda: (drawn.append(1), draw()))
    for _ in range(150):
        env.step(5)
        env.render()
    assert 1 <= len(drawn) < 20


def test_a_recorder_can_be_pickled_after_it_has_drawn():
    recorder = Recorder(tasks.get("congestion_window").rules())
    before = recorder.rgb_array()
    assert np.array_equal(pickle.loads(pickle.dumps(recorder)).rgb_array(), before)


@pytest.mark.parametrize(("interval_s", "fps"), [(0.1, 10), (0.25, 4), (0.02, 50)])
def test_a_video_is_as_fast_as_the_world(interval_s, fps):
    assert gym.make(IDS[0], interval_s=interval_s).metadata["render_fps"] == pytest.approx(fps)
    assert gym.make_vec(IDS[0], num_envs=2, interval_s=interval_s).metadata["render_fps"] == pytest.approx(fps)
    assert frames_per_second(interval_s, False) == 30
    assert gym.make(IDS[0]).unwrapped.metadata["render_modes"] == ["ansi", "rgb_array"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [IDS[0], *for_release(*IDS[1:])])
def test_record_video_writes_an_episode(name, tmp_path):
    moviepy = pytest.importorskip("moviepy")
    env = gym.make(name, render_mode="rgb_array", max_episode_steps=12, interval_s=0.25)
    env = gym.wrappers.RecordVideo(env, str(tmp_path), disable_logger=True)
    env.reset(seed=1)
    over = False
    while not over:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        over = terminated or truncated
    env.close()
    (file,) = tmp_path.glob("*.mp4")
    with moviepy.VideoFileClip(str(file)) as clip:
        assert clip.fps == 4 and clip.size == [CHART_WIDTH, 3 * CHART_PANEL] and clip.duration == pytest.approx(3, abs=0.51)


@pytest.mark.slow
def test_vector_environments_draw_a_picture_a_row():
    worlds = gym.make_vec(IDS[0], num_envs=3, render_mode="rgb_array", max_episode_steps=4, slow_start=False)
    worlds.reset(seed=1)
    first = worlds.render()
    assert isinstance(first, tuple) and len(first) == 3 and first[0].shape == (3 * CHART_PANEL, CHART_WIDTH, 3)
    for _ in range(3):  # the first decision is before the first ACK
        worlds.step(np.array([0, 5, 10]))
    second = worlds.render()
    assert not np.array_equal(second[0], second[2])
    alone = gym.make(IDS[0], render_mode="rgb_array", slow_start=False)
    seeds = [7, 8, 9]
    worlds.reset(seed=seeds)
    worlds.step(np.array([3, 5, 10]))
    alone.reset(seed=8)
    alone.step(5)
    assert np.array_equal(alone.render(), worlds.render()[1])
    for _ in range(3):
        worlds.step(np.array([3, 5, 10]))
    assert np.array_equal(worlds.render()[1], first[1])  # a new episode has begun in the same step


def test_vector_environments_render_text_and_nothing():
    worlds = gym.make_vec(IDS[1], num_envs=2, render_mode="ansi")
    worlds.reset(seed=1)
    worlds.step(worlds.action_space.sample())
    assert [text.startswith("t ") for text in worlds.render()] == [True, True] and worlds.render_mode == "ansi"
    plain = gym.make_vec(IDS[1], num_envs=2)
    plain.reset(seed=1)
    with pytest.warns(UserWarning, match="render_mode"):
        assert plain.render() is None
    assert not plain.unwrapped._recorders


def test_agents_of_one_world_have_pictures_of_their_own():
    worlds = gym.make_vec(IDS[0], num_envs=4, senders=2, render_mode="ansi")
    worlds.reset(seed=1)
    worlds.step(np.array([0, 10, 5, 5]))
    texts = worlds.render()
    assert len(texts) == 4 and texts[0] != texts[1]
    mask = np.array([True, True, False, False])
    worlds.reset(options={"reset_mask": mask})
    assert ["nothing" in text for text in worlds.render()] == mask.tolist()
