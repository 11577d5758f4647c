"""Episodes of whoever decides as a Minari dataset, for learners that learn from data alone."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym import rollout, tasks
from netbuf_gym.contenders import Decider
from netbuf_gym.errors import ConfigError, needing, shown
from netbuf_gym.version import __version__
from netbuf_gym.zoo import contending, scores

WHERE = "MINARI_DATASETS_PATH"


def record(
    task: str,
    controller: str,
    folder: Path,
    *,
    scenario: str | None = None,
    seeds: Sequence[int] = range(10),
    name: str | None = None,
    each: Callable[[int], None] = lambda done: None,
) -> str:
    """Writes one episode for each seed, and plays the first one again from the file: it must come to the same rewards.

    Args:
        controller: whoever decides: a contender by its name, `constant:ACTION`, an agent, or a model's file.
        folder: of Minari's datasets.
        scenario: by its name; None: the task's default.
        seeds: of the episodes.
        name: of the dataset; None: `netbuf/TASK/CONTROLLER-v0`.
        each: is told how many episodes are done.

    Returns:
        the dataset's name, for `minari.load_dataset`.

    Raises:
        ConfigError: there is no such contender, or it acts in the world, or changes it, so that its actions are none; a name
            that Minari refuses, or of a dataset that is there already; the episode does not come to the same again.
        MissingExtraError: Minari is not installed.
    """
    with needing("recording", "minari"):
        import minari
        from minari.data_collector.episode_buffer import EpisodeBuffer
        from minari.dataset.minari_dataset import parse_dataset_id
    contender = contending.contender(controller, scores.ranked_by(task))
    scenario = scenario or tasks.get(task).rules.default_scenario
    seeds = rollout.checked_seeds(seeds)
    world = rollout.draw(task, scenario, seeds[:1], **contender.env)[0].scenario
    if not isinstance(contender, Decider) or contender.place(world) is not world:
        raise ConfigError(f"controller = {shown(controller)} acts in the world, or changes it; valid: one that decides alone")
    plain = "".join(c if c.isalnum() or c in "-_" else "-" for c in controller.removeprefix(f"{task}/"))
    name = name or f"netbuf/{task}/{plain}-v0"
    try:
        parse_dataset_id(name)
    except (ValueError, TypeError):
        raise ConfigError(f"name = {shown(name)}; valid: NAME-v0, or NAMESPACE/NAME-v0 with more of it between") from None
    env = gym.make(tasks.get(task).ids[0], scenario=scenario, **contender.env)
    try:
        with _datasets_in(folder):
            if (folder / name).exists():
                raise ConfigError(f"{folder / name}: is there already; valid: another name")
            buffers = []
            for done, seed in enumerate(seeds, 1):
                buffers.append(EpisodeBuffer(id=done - 1, seed=seed, **_episode(env, contender, seed)))
                each(done)
            said = f"{len(seeds)} episodes of {controller} on {scenario}, from seed {seeds[0]} on, by netbuf-gym {__version__}"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about an author's address and the like
                minari.create_dataset_from_buffers(name, buffers, env=env, algorithm_name=controller, description=said)
            _require_same(minari.load_dataset(name)[0], env, seeds[0], folder / name)
    finally:
        env.close()
    return name


def _episode(env: gym.Env, contender: Decider, seed: int) -> dict[str, Any]:
    """What was seen, done and earned in an episode."""
    own: Any = env.unwrapped
    policy = contender.start(own.engine.task, [seed])
    observation, _ = env.reset(seed=seed)
    observations, actions, rewards, ends = [observation], [], [], []
    state, starts, over = None, np.ones(1, bool), False
    while not over:
        decided, state = policy(np.asarray(observation)[None], state, starts)
        action = own.engine.task.check_actions(decided, 1)[0]
        observation, reward, terminated, truncated, _ = env.step(action)
        observations.append(observation)
        actions.append(action)
        rewards.append(float(reward))
        ends.append((terminated, truncated))
        over, starts = terminated or truncated, np.zeros(1, bool)
    found = {"observations": observations, "actions": actions, "rewards": rewards}
    return found | {"terminations": [one for one, _ in ends], "truncations": [other for _, other in ends]}


def _require_same(episode: Any, env: gym.Env, seed: int, path: Path) -> None:
    """Raises ConfigError unless the actions of a written episode earn again what it says."""
    env.reset(seed=seed)
    again = np.array([float(env.step(action)[1]) for action in episode.actions])
    if not np.array_equal(again, np.asarray(episode.rewards)):
        first = int(np.argmax(again != np.asarray(episode.rewards)))
        said = f"{path}: decision {first} earns {again[first]:g} when it is played again, not {episode.rewards[first]:g}"
        raise ConfigError(f"{said}; valid: an environment whose episodes are decided by their seeds")


@contextlib.contextmanager
def _datasets_in(folder: Path) -> Iterator[None]:
    """Lets Minari keep its datasets in a folder for a while."""
    before = os.environ.get(WHERE)
    os.environ[WHERE] = str(folder.absolute())
    try:
        yield
    finally:
        if before is None:
            del os.environ[WHERE]
        else:
            os.environ[WHERE] = before
