"""State of a learner between two updates: everything that determines its next steps, to be saved and restored.

Networks and optimiser are stable-baselines3's part of a saved model; the rest is here: counters and schedules, random
generators, the worlds (`netbuf_gym.training.checkpoints.replay`), statistics of running and last finished episodes, the
observations that the next actions answer, recurrent states, and recorded values that are not yet in the log. DQN's replay
memory is a file of its own (`get_memory`), because it may be large.
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

from netbuf_gym.training.checkpoints.replay import EpisodeRecorder, RunningEpisodes
from netbuf_gym.training.models import get_worlds

COUNTERS = (
    "num_timesteps",
    "_n_updates",
    "_episode_num",
    "_n_calls",
    "_current_progress_remaining",
    "exploration_rate",
    "kl_coef",
)
"""Numbers of a learner that training changes; each learner has some of them."""
_MEMORY = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


@dataclass
class Moment:
    """State of a learner, as `take_moment` returns it.

    Attributes:
        numbers: JSON-able values.
        arrays: Arrays by name.
        networks: Parameters and optimiser state, if kept.
    """

    numbers: dict[str, Any]
    arrays: dict[str, np.ndarray]
    networks: tuple[dict[str, Any], dict[str, Any]] | None = field(default=None, repr=False)


def take_moment(model: BaseAlgorithm, recorder: EpisodeRecorder, networks: bool = False) -> Moment:
    """Return the state of the learner, which must be between an update and the next rollout.

    Args:
        model: Learner.
        recorder: Recorder of its worlds.
        networks: Whether to copy parameters and optimiser, so that `restore_learner` can undo what follows.
    """
    adapter, last = get_worlds(model), model.ep_info_buffer or ()
    names = list(dict.fromkeys(key for episode in last for key in episode))
    arrays = {
        "observations": np.array(model._last_obs),
        "starts": np.array(model._last_episode_starts),
        "last_episodes": np.array([[one.get(key, np.nan) for key in names] for one in last], float),
        "said": np.array([[key in one for key in names] for one in last], bool),
        **adapter.statistics(),
        **_get_critic_arrays(model),
        **{f"recurrent{index}": one.cpu().numpy().copy() for index, one in enumerate(_list_recurrent_states(model))},
    }
    episodes = recorder.get_running_episodes()
    if episodes is not None:
        arrays |= {"draws": episodes.draws, "lengths_run": episodes.lengths, "actions": episodes.actions}
        arrays |= {} if episodes.stages is None else {"stages": episodes.stages}
    logger = model.logger
    numbers = {
        "counters": {name: getattr(model, name) for name in COUNTERS if hasattr(model, name)},
        "episode_names": names,
        "generators": get_generator_states(),
        "action_space": copy.deepcopy(model.action_space.np_random.bit_generator.state),
        "pending": {
            key: [_to_plain_number(value), logger.name_to_count.get(key, 0), list(logger.name_to_excluded.get(key, ()))]
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


def restore_learner(moment: Moment, model: BaseAlgorithm) -> None:
    """Restore counters, generators and, if kept, networks: the learner's state apart from its worlds."""
    for name, value in moment.numbers["counters"].items():
        setattr(model, name, value)
    set_generator_states(moment.numbers["generators"])
    if moment.networks is not None:
        model.policy.load_state_dict(moment.networks[0])
        model.policy.optimizer.load_state_dict(moment.networks[1])


def resume_moment(moment: Moment, model: BaseAlgorithm, recorder: EpisodeRecorder) -> bool:
    """Restore a learner to a moment that was read from a file, after its networks.

    Returns:
        Whether the worlds are restored, too. If not (the replay ends in other observations, as with a simulator of another
        version, or is impossible), they must be reset, and start new episodes.

    Raises:
        KeyError, TypeError, ValueError: The moment is not one of this learner.
    """
    numbers, arrays, adapter = moment.numbers, moment.arrays, get_worlds(model)
    for name, value in numbers["counters"].items():
        if name not in COUNTERS or not hasattr(model, name) or isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"counter {name[:40]!r} is not this learner's")
    worlds_back = False
    if "draws" in arrays and recorder.recording:
        ran = RunningEpisodes(arrays["draws"], arrays["lengths_run"], arrays["actions"], arrays.get("stages"))
        observations = recorder.replay(ran)
        worlds_back = np.array_equal(observations, arrays["observations"])
    if worlds_back:
        model._last_obs = observations
        model._last_episode_starts = _require_alike(arrays["starts"], np.ones(adapter.num_envs, bool))
        adapter.set_statistics({key: _require_alike(arrays[key], one) for key, one in adapter.statistics().items()})
        recurrent = _list_recurrent_states(model)
        for index, one in enumerate(recurrent):
            one.copy_(th.as_tensor(_require_alike(arrays[f"recurrent{index}"], one.cpu().numpy())))
    model.ep_info_buffer = deque(maxlen=model._stats_window_size)
    names = [str(name) for name in numbers["episode_names"]]
    for row, said in zip(arrays["last_episodes"].tolist(), arrays["said"].tolist(), strict=True):
        model.ep_info_buffer.append({name: value for name, value, is_there in zip(names, row, said, strict=True) if is_there})
    model.ep_success_buffer = deque(maxlen=model._stats_window_size)
    model.action_space.np_random.bit_generator.state = numbers["action_space"]
    if (critic := _find_told_critic(model)) is not None:
        critic.load_arrays(arrays)
    restore_learner(moment, model)
    return worlds_back


def restore_pending_log(moment: Moment, model: BaseAlgorithm) -> None:
    """Record again the values that were recorded but not yet written to the log."""
    for key, (value, count, excluded) in moment.numbers["pending"].items():
        model.logger.name_to_value[key] = value
        model.logger.name_to_excluded[key] = tuple(excluded)
        if count:
            model.logger.name_to_count[key] = count


def get_memory(model: BaseAlgorithm) -> dict[str, np.ndarray] | None:
    """Return an off-policy learner's replay memory; None for other learners."""
    buffer = getattr(model, "replay_buffer", None)
    if buffer is None:
        return None
    filled = buffer.buffer_size if buffer.full else buffer.pos
    return {name: getattr(buffer, name)[:filled] for name in _MEMORY if hasattr(buffer, name)}


def set_memory(moment: Moment, model: BaseAlgorithm, remembered: dict[str, np.ndarray]) -> None:
    """Restore an off-policy learner's replay memory.

    Raises:
        KeyError, TypeError, ValueError: The memory is not one of this learner.
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
            own[:filled] = _require_alike(remembered[name], own[:filled])
    buffer.pos, buffer.full = int(said["position"]), said["full"] is True


def _find_told_critic(model: BaseAlgorithm) -> Any:
    """Return the critic that is told more than the policy (`BatchPPO.privileged_critic`); None without one."""
    learner: Any = model
    return learner.get_told_critic() if getattr(model, "privileged_critic", False) else None


def _get_critic_arrays(model: BaseAlgorithm) -> dict[str, np.ndarray]:
    critic = _find_told_critic(model)
    return {} if critic is None else critic.to_arrays()


def _list_recurrent_states(model: BaseAlgorithm) -> list[th.Tensor]:
    states = getattr(model, "_last_lstm_states", None)
    return [] if states is None else [one for part in states for one in part]


def _require_alike(array: np.ndarray, own: np.ndarray) -> np.ndarray:
    if array.shape != own.shape or array.dtype != own.dtype:
        raise ValueError(f"an array of {array.dtype} {array.shape}, not {own.dtype} {own.shape}")
    return array


def _to_plain_number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def get_generator_states() -> dict[str, Any]:
    """Return the states of the random generators of torch, numpy and Python, JSON-able."""
    of_numpy: Any = np.random.get_state()
    kind, keys, position, has_gauss, gauss = of_numpy
    version, state, gauss_next = random.getstate()
    return {
        "torch": th.get_rng_state().numpy().tobytes().hex(),
        "numpy": [kind, keys.tolist(), position, has_gauss, gauss],
        "python": [version, list(state), gauss_next],
    }


def set_generator_states(states: dict[str, Any]) -> None:
    """Set the random generators of torch, numpy and Python."""
    th.set_rng_state(th.frombuffer(bytearray.fromhex(states["torch"]), dtype=th.uint8))
    kind, keys, position, has_gauss, gauss = states["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, gauss))
    version, state, gauss_next = states["python"]
    random.setstate((version, tuple(state), gauss_next))
