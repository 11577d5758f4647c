"""Episodes of a controller as a Minari dataset, for learners that learn from data alone."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller, Decider, InWorld
from netbuf_gym.errors import ConfigError, quote, require_extra
from netbuf_gym.evaluation import rollout
from netbuf_gym.leaderboard.best import resolve_best
from netbuf_gym.leaderboard.controllers import resolve_task_controller
from netbuf_gym.utils.files import make_folder
from netbuf_gym.version import __version__

FOLLOWING_METRICS = (("goodput_mbps", "goodput"), ("mean_rtt_ms", "mean RTT"))
"""Report keys, with labels, that show how near an agent has come to the control that it follows."""
FOLDER_VARIABLE = "MINARI_DATASETS_PATH"


def record_dataset(
    task: str,
    controller: str,
    folder: Path,
    *,
    scenario: str | None = None,
    seeds: Sequence[int] = range(10),
    name: str | None = None,
    each: Callable[[int], None] = lambda done: None,
    tell: Callable[[str], None] = lambda said: None,
) -> str:
    """Write one episode per seed, and replay the first one from the file: observations and rewards must be the same.

    A congestion control is replaced by an agent that follows its window (`InWorld.make_follower`); its distance is reported,
    and part of the dataset's description.

    Args:
        task: Name of the task.
        controller: Controller by its name, `best`, `constant:ACTION`, agent, or model file; or a congestion control.
        folder: Folder of Minari's datasets.
        scenario: Scenario by its name; None: the task's default.
        seeds: Seeds of the episodes.
        name: Name of the dataset; None: `netbuf/TASK/CONTROLLER-v0`.
        each: Called with the number of finished episodes.
        tell: Called with how near the episodes are to those of a followed control, in words.

    Returns:
        Name of the dataset, for `minari.load_dataset`.

    Raises:
        ConfigError: An unknown controller, or one that acts in the world, or changes it, as no agent can; a name that Minari
            refuses, or that of an existing dataset; a replayed episode that differs.
        MissingExtraError: Minari is not installed.
    """
    with require_extra("recording", "minari"):
        import minari
        from minari.data_collector.episode_buffer import EpisodeBuffer
        from minari.dataset.minari_dataset import parse_dataset_id
    controller = resolve_best(controller, task)
    playing = resolve_task_controller(controller, task, f"env {tasks.get(task).ids[0]}")
    scenario = scenario or tasks.get(task).rules.default_scenario
    seeds = rollout.check_seeds(seeds)
    worlds = rollout.draw_worlds(task, scenario, seeds, **playing.env)
    interval_s = _read_interval_s(task, scenario, playing.env)
    players = [_resolve_decider(playing, world, interval_s, task) for world in worlds]
    plain = "".join(c if c.isalnum() or c in "-_" else "-" for c in controller.removeprefix(f"{task}/"))
    name = name or f"netbuf/{task}/{plain}-v0"
    try:
        parse_dataset_id(name)
    except (ValueError, TypeError):
        raise ConfigError(f"name = {quote(name)}; valid: NAME-v0, or NAMESPACE/NAME-v0 with more of it between") from None
    make_folder(folder, "folder")
    env = gym.make(tasks.get(task).ids[0], scenario=scenario, **players[0].env)
    try:
        with use_datasets_folder(folder):
            if (folder / name).exists():
                raise ConfigError(f"{folder / name}: is there already; valid: another name")
            buffers, reports = [], []
            for done, (seed, player) in enumerate(zip(seeds, players, strict=True), 1):
                episode, report = _play_episode(env, player, seed)
                buffers.append(EpisodeBuffer(id=done - 1, seed=seed, **episode))
                reports.append(report)
                each(done)
            said = f"{len(seeds)} episodes of {controller} on {scenario}, from seed {seeds[0]} on, by netbuf-gym {__version__}"
            if isinstance(playing, InWorld):
                near = _describe_nearness(playing, task, worlds, reports)
                tell(near)
                said += f"; {near}"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # missing author's address and the like
                minari.create_dataset_from_buffers(name, buffers, env=env, algorithm_name=controller, description=said)
            try:
                _require_same(minari.load_dataset(name)[0], env, seeds[0], folder / name)
            except BaseException:
                minari.delete_dataset(name)  # frees the name for another try
                raise
    finally:
        env.close()
    return name


def _read_interval_s(task: str, scenario: str, env: dict[str, Any]) -> float:
    with contextlib.closing(gym.make(tasks.get(task).ids[0], scenario=scenario, **env)) as made:
        own: Any = made.unwrapped
        return own.engine.interval_ns * 1e-9


def _resolve_decider(controller: Controller, world: rollout.World, interval_s: float, task: str) -> Decider:
    """Return the decider that plays for a controller in a world.

    Raises:
        ConfigError: The controller acts in the world, or changes it, as no agent can.
    """
    if isinstance(controller, InWorld):
        followed: Decider | None = controller.make_follower(world.scenario, world.seed, interval_s)
    else:
        changed = controller.place(world.scenario) is not world.scenario
        followed = controller if isinstance(controller, Decider) and not changed else None
    if followed is None:
        said = f"controller = {quote(controller.name)} acts in the world, or changes it, as no agent can"
        raise ConfigError(
            f"{said}; valid for {task}: {', '.join(_list_recordable(task))}, constant:ACTION, an agent, or its file"
        )
    return followed


def _list_recordable(task: str) -> list[str]:
    """Return the names of the task's controllers that can be recorded."""
    known = {name: resolve_task_controller(name, task, task) for name in tasks.get(task).controllers}
    return [
        name
        for name, one in known.items()
        if (isinstance(one, Decider) and type(one).place is Controller.place)
        or (isinstance(one, InWorld) and type(one).make_follower is not InWorld.make_follower)
    ]


def _describe_nearness(control: InWorld, task: str, worlds: Sequence[rollout.World], followed: Sequence[dict[str, Any]]) -> str:
    """Describe means of a following agent's reports over those of the followed control itself in the same worlds."""
    own: list[dict[str, Any]] = [{} for _ in worlds]
    rollout.play(control, worlds, lambda view: own[view.index].update(view.whole_report()[0]), task=task)
    shares = [
        f"{label} {np.nanmean([one[key] for one in followed]) / np.nanmean([one[key] for one in own]):.3f}"
        for key, label in FOLLOWING_METRICS
    ]
    who = f"an agent that follows {control.name}, its window standing still between decisions"
    return f"{who}: {', '.join(shares)} of its own"


def _play_episode(env: gym.Env, controller: Decider, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Play an episode; return its observations, actions, rewards and ends, and the report at its end."""
    own: Any = env.unwrapped
    policy = controller.start(own.engine.task, [seed])
    observation, _ = env.reset(seed=seed)
    observations, actions, rewards, ends = [observation], [], [], []
    state, starts, over = None, np.ones(1, bool), False
    info: dict[str, Any] = {}
    while not over:
        decided, state = policy(np.asarray(observation)[None], state, starts)
        action = own.engine.task.check_actions(decided, 1)[0]
        observation, reward, terminated, truncated, info = env.step(action)
        observations.append(observation)
        actions.append(action)
        rewards.append(float(reward))
        ends.append((terminated, truncated))
        over, starts = terminated or truncated, np.zeros(1, bool)
    found = {"observations": observations, "actions": actions, "rewards": rewards}
    found |= {"terminations": [one for one, _ in ends], "truncations": [other for _, other in ends]}
    return found, own.report() if "failure" not in info else info


def _require_same(episode: Any, env: gym.Env, seed: int, path: Path) -> None:
    """Raise ConfigError unless the actions of a written episode yield its observations and rewards again, to the bit."""
    seen, rewards = [env.reset(seed=seed)[0]], []
    for action in episode.actions:
        observation, reward, *_ = env.step(action)
        seen.append(observation)
        rewards.append(float(reward))
    for what, again, kept in (("earns", rewards, episode.rewards), ("sees", seen, episode.observations)):
        differ = (np.array(again) != np.asarray(kept)).reshape(len(again), -1)
        if differ.any():
            at = tuple(np.argwhere(differ)[0])
            now, then = (np.asarray(one).reshape(len(again), -1)[at] for one in (again, kept))
            said = f"{path}: decision {at[0]} {what} {now:g} when it is played again, not {then:g}"
            raise ConfigError(f"{said}; valid: an environment whose episodes are decided by their seeds")


def load_dataset(name: str, folder: Path) -> Any:
    """Load a Minari dataset from a folder.

    Raises:
        ConfigError: No readable dataset of this name in the folder.
        MissingExtraError: Minari is not installed.
    """
    with require_extra("a dataset", "minari"):
        import minari
    with use_datasets_folder(folder):
        try:
            return minari.load_dataset(name)
        except (OSError, ValueError, KeyError) as error:
            said = " ".join(str(error).split())
            raise ConfigError(f"dataset = {quote(name)} cannot be read from {folder} ({said}); valid: a recorded one") from None


@contextlib.contextmanager
def use_datasets_folder(folder: Path) -> Iterator[None]:
    """Set a folder as that of Minari's datasets within the context."""
    before = os.environ.get(FOLDER_VARIABLE)
    os.environ[FOLDER_VARIABLE] = str(folder.absolute())
    try:
        yield
    finally:
        if before is None:
            del os.environ[FOLDER_VARIABLE]
        else:
            os.environ[FOLDER_VARIABLE] = before
