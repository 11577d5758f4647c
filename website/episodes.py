"""Draws an episode of an agent for each environment's page: `python website/episodes.py [TASK...]`.

Writes `docs/figures/episodes/TASK.gif`: the panels of `env.render()`, decision after decision. What was played stands in the
picture's comment, with what it came to, so that anybody can play it again. Needs netbuf-gym[train].
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

import netbuf_gym as nb
from netbuf_gym.tasks import Panel
from netbuf_gym.zoo import library

FOLDER = Path(__file__).parents[1] / "docs" / "figures" / "episodes"
SEED = 1
EPISODES: dict[str, tuple[str, dict[str, Any], int, int]] = {
    "congestion_window": (library.SENDER, {"name": "ppcc/fluctuating", "duration_s": 30}, 5, 8),
    "host_buffers": ("host_buffers/dqn", {"name": "auter/training"}, 1, 4),
    "queue_threshold": ("queue_threshold/ppo", {"name": "rlbm/incast", "duration_s": 15}, 5, 4),
    "receiver_window": ("receiver_window/ppo_lstm", {"name": "nuwa/4g", "duration_s": 20}, 5, 6),
}
"""By task: who plays, where, how many decisions there are to a frame, and frames a second."""
SHADES = (1.0, 0.6, 0.3)
"""Of each colour of a picture: as it is, and nearer to white, for the edges of lines and letters."""
LAST_MS = 3000
"""How long the last frame stays."""


def played(task: str, render_mode: str | None = None) -> Iterator[tuple[Any, float]]:
    """The environment and the reward of each decision of a task's episode."""
    name, scenario, _, _ = EPISODES[task]
    agent = nb.zoo.load(name)
    env = agent.make_env(scenario=scenario, render_mode=render_mode)
    observation, _ = env.reset(seed=SEED)
    state, ended = None, False
    while not ended:
        action, state = agent.predict(observation, state)
        observation, reward, terminated, truncated, _ = env.step(action)
        ended = terminated or truncated
        yield env, float(reward)
    env.close()


def about(task: str, rewards: list[float]) -> dict[str, Any]:
    """What was played, and what it came to."""
    agent, scenario, _, _ = EPISODES[task]
    return {"agent": agent, "scenario": scenario, "seed": SEED, "decisions": len(rewards), "return": round(sum(rewards), 6)}


def palette(panels: Sequence[Panel]) -> Image.Image:
    """A picture whose palette has the colours of panels in all shades, black and white."""
    colours = {(0, 0, 0), *(one.color for one in panels), *(one.limit_color for one in panels)}
    shades = [255 - shade * (255 - part) for colour in sorted(colours) for shade in SHADES for part in colour]
    made = Image.new("P", (1, 1))
    made.putpalette([255, 255, 255, 235, 235, 235, *(round(part) for part in shades)])
    return made


def draw(task: str) -> Path:
    """Plays a task's episode, and writes its picture."""
    _, _, stride, per_second = EPISODES[task]
    frames = []
    rewards: list[float] = []
    for env, reward in played(task, "rgb_array"):
        rewards.append(reward)
        if len(rewards) % stride == 0:
            frames.append(env.render())
    colours = palette(nb.tasks.get(task).rules().panels)
    pictures = [Image.fromarray(frame).quantize(palette=colours, dither=Image.Dither.NONE) for frame in frames]
    shown_ms = [1000 // per_second] * (len(pictures) - 1) + [LAST_MS]
    path = FOLDER / f"{task}.gif"
    path.parent.mkdir(parents=True, exist_ok=True)
    comment = json.dumps(about(task, rewards)).encode()
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=shown_ms, loop=0, comment=comment)
    return path


if __name__ == "__main__":
    for task in sys.argv[1:] or sorted(EPISODES):
        path = draw(task)
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
