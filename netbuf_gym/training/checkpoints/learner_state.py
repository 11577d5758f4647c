"""A learner between two updates: everything that decides what it does next, to be written down and put back.

Networks and optimiser are stable-baselines3's part of a saved model; this is the rest: counters and schedules, random
generators, the worlds (`netbuf_gym.training.checkpoints.replay`), what was counted of running episodes and logged of the last
ones, the observations that the next actions answer, recurrent states, and values that are recorded but not yet in the log. What
DQN remembers is a file of its own (`memory`), because it may be large.
"""

from __future__ import annotations

import copy
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm

from netbuf_gym.training.checkpoints.replay import Episodes, Recorder
from netbuf_gym.training.models import worlds_of

COUNTERS = (
    "num_timesteps",
    "_n_updates",
    "_episode_num",
    "_n_calls",
    "_current_progress_remaining",
    "exploration_rate",
    "kl_coef",
)
"""Numbers of a learner that training changes; each has some of them."""
_MEMORY = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


@dataclass
class Moment:
    """What `take` saw.

    Attributes:
        numbers: JSON-able.
        arrays: by name.
        networks: parameters and optimiser, if they were kept too.
    """

    numbers: dict[str, Any]
    arrays: dict[str, np.ndarray]
    networks: tuple[dict[str, Any], dict[str, Any]] | None = field(default=None, repr=False)


def take(model: BaseAlgorithm, recorder: Recorder, networks: bool = False) -> Moment:
    """The learner as it is, which must be between an update and the next rollout.

    Args:
        networks: keep copies of parameters and optimiser, so that `put_back` can undo what follows.
    """
    adapter, last = worlds_of(model), model.ep_info_buffer or ()
    names = list(dict.fromkeys(key for episode in last for key in episode))
    arrays = {
        "observations": np.array(model._last_obs),
        "starts": np.array(model._last_episode_starts),
        "last_episodes": np.array([[one.get(key, np.nan) for key in names] for one in last], float),
        "said": np.array([[key in one for key in names] for one in last], bool),
        **adapter.statistics(),
        **{f"recurrent{index}": one.cpu().numpy().copy() for index, one in enumerate(_recurrent(model))},
    }
    episodes = recorder.episodes()
    if episodes is not None:
        arrays |= {"draws": episodes.draws, "lengths_run": episodes.lengths, "actions": episodes.actions}
        arrays |= {} if episodes.stages is None else {"stages": episodes.stages}
    logger = model.logger
    numbers = {
        "counters": {name: getattr(model, name) for name in COUNTERS if hasattr(model, name)},
        "episode_names": names,
        "generators": generators(),
        "action_space": copy.deepcopy(model.action_space.np_random.bit_generator.state),
        "pending": {
            key: [_plain(value), logger.name_to_count.get(key, 0), list(logger.name_to_excluded.get(key, ()))]
            for key, value in logger.name_to_value.items()
        },
    }
    memory = getattr(model, "replay_buffer", None)
    if memory is not None:
        numbers["memory"] = {"position": memory.pos, "full": bool(memory.full)}
    kept = None
    if networks:
        kept = copy.deepcopy((model.policy.state_dict(), model.policy.optimizer.state_dict()))
    return Moment(numbers, arrays, kept)


def put_back(moment: Moment, model: BaseAlgorithm) -> None:
    """Counters, generators and networks as they were, which is what a file holds of a learner beside its worlds."""
    for name, value in moment.numbers["counters"].items():
        setattr(model, name, value)
    set_generators(moment.numbers["generators"])
    if moment.networks is not None:
        model.policy.load_state_dict(moment.networks[0])
        model.policy.optimizer.load_state_dict(moment.networks[1])


def go_on(moment: Moment, model: BaseAlgorithm, recorder: Recorder) -> bool:
    """Puts a learner back to a moment that was read from a file; its networks are there already.

    Returns:
        Whether its worlds are back too. If they are not (other numbers come of them than came then, as from a simulator
        of another version, or they cannot be played again), they are to be reset, and start new episodes.

    Raises:
        KeyError, TypeError, ValueError: the moment is not one of this learner.
    """
    numbers, arrays, adapter = moment.numbers, moment.arrays, worlds_of(model)
    for name, value in numbers["counters"].items():
        if name not in COUNTERS or not hasattr(model, name) or isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"counter {name[:40]!r} is not this learner's")
    worlds_back = False
    if "draws" in arrays and recorder.recording:
        ran = Episodes(arrays["draws"], arrays["lengths_run"], arrays["actions"], arrays.get("stages"))
        observations = recorder.replay(ran)
        worlds_back = np.array_equal(observations, arrays["observations"])
    if worlds_back:
        model._last_obs = observations
        model._last_episode_starts = _like(arrays["starts"], np.ones(adapter.num_envs, bool))
        adapter.set_statistics({key: _like(arrays[key], one) for key, one in adapter.statistics().items()})
        recurrent = _recurrent(model)
        for index, one in enumerate(recurrent):
            one.copy_(th.as_tensor(_like(arrays[f"recurrent{index}"], one.cpu().numpy())))
    model.ep_info_buffer = deque(maxlen=model._stats_window_size)
    names = [str(name) for name in numbers["episode_names"]]
    for row, said in zip(arrays["last_episodes"].tolist(), arrays["said"].tolist(), strict=True):
        model.ep_info_buffer.append({name: value for name, value, is_there in zip(names, row, said, strict=True) if is_there})
    model.ep_success_buffer = deque(maxlen=model._stats_window_size)
    model.action_space.np_random.bit_generator.state = numbers["action_space"]
    put_back(moment, model)
    return worlds_back


def set_pending(moment: Moment, model: BaseAlgorithm) -> None:
    """Records again what was recorded and not yet written to the log."""
    for key, (value, count, excluded) in moment.numbers["pending"].items():
        model.logger.name_to_value[key] = value
        model.logger.name_to_excluded[key] = tuple(excluded)
        if count:
            model.logger.name_to_count[key] = count


def memory(model: BaseAlgorithm) -> dict[str, np.ndarray] | None:
    """What an off-policy learner remembers; None of others."""
    buffer = getattr(model, "replay_buffer", None)
    if buffer is None:
        return None
    filled = buffer.buffer_size if buffer.full else buffer.pos
    return {name: getattr(buffer, name)[:filled] for name in _MEMORY if hasattr(buffer, name)}


def set_memory(moment: Moment, model: BaseAlgorithm, remembered: dict[str, np.ndarray]) -> None:
    """Gives an off-policy learner its memories back.

    Raises:
        KeyError, TypeError, ValueError: they are not of this learner.
    """
    buffer, said = getattr(model, "replay_buffer", None), moment.numbers["memory"]
    if buffer is None:
        raise ValueError(f"{type(model).__name__} remembers nothing")
    filled = buffer.buffer_size if said["full"] is True else int(said["position"])
    if not 0 <= said["position"] < buffer.buffer_size:
        raise ValueError(f"position {said['position']!r} in a memory of {buffer.buffer_size}")
    for name in _MEMORY:
        if hasattr(buffer, name):
            own = getattr(buffer, name)
            own[:filled] = _like(remembered[name], own[:filled])
    buffer.pos, buffer.full = int(said["position"]), said["full"] is True


def _recurrent(model: BaseAlgorithm) -> list[th.Tensor]:
    states = getattr(model, "_last_lstm_states", None)
    return [] if states is None else [one for part in states for one in part]


def _like(array: np.ndarray, own: np.ndarray) -> np.ndarray:
    if array.shape != own.shape or array.dtype != own.dtype:
        raise ValueError(f"an array of {array.dtype} {array.shape}, not {own.dtype} {own.shape}")
    return array


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def generators() -> dict[str, Any]:
    """The states of the random generators of torch, numpy and Python, JSON-able."""
    of_numpy: Any = np.random.get_state()
    kind, keys, position, has_gauss, gauss = of_numpy
    version, state, gauss_next = random.getstate()
    return {
        "torch": th.get_rng_state().numpy().tobytes().hex(),
        "numpy": [kind, keys.tolist(), position, has_gauss, gauss],
        "python": [version, list(state), gauss_next],
    }


def set_generators(states: dict[str, Any]) -> None:
    """Sets the random generators of torch, numpy and Python."""
    th.set_rng_state(th.frombuffer(bytearray.fromhex(states["torch"]), dtype=th.uint8))
    kind, keys, position, has_gauss, gauss = states["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, gauss))
    version, state, gauss_next = states["python"]
    random.setstate((version, tuple(state), gauss_next))
