"""Environments of every task that is registered: options, resets and actions, good and bad, in all three interfaces."""

from __future__ import annotations

import warnings
from dataclasses import fields, is_dataclass
from typing import Any

import gymnasium as gym
import numpy as np

import netbuf_gym
from netbuf_gym import scenarios, tasks
from netbuf_gym.envs import parallel_env
from netbuf_gym.errors import NetbufError
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks import TaskRecord
from tools.fuzz import random_worlds
from tools.fuzz.case import ACCEPTED, REFUSED, Case, Finding, spoil
from tools.fuzz.server import Kind

STEPS = 12
PACKETS = 2000
"""About so many a world may send before its episode ends: each step of several rows may play it anew."""
OPTIONS = {
    "per_ack": (True, False),
    "actions": ("continuous", "grid", "limits"),
    "betas": (None, None, [1, 1], [0.5, 1.0]),
    "scheduler": ("agent", "weighted", "strict_priority"),
    "victims": ("agent", "any", "large"),
    "flow_slots": (0, 1, 64),
    "flow_service": ("drr", "fifo"),
}
"""Good values of the options of tasks; of options that are not here, odd ones are tried."""


def run(case: Case) -> str:
    """Run an environment of some task."""
    warnings.simplefilter("ignore")
    record = case.pick(tasks.records())
    kwargs = draw_arguments(case, record)
    how = case.pick((run_scalar, run_scalar, run_vector, run_vector, run_vector, run_parallel))
    case.tell(f"{how.__name__} {record.name} {kwargs!r}")
    try:
        return how(case, record, kwargs)
    except Unplayable:
        return REFUSED


class Unplayable(Exception):
    """A world that the simulator refuses when it is to start."""


def reset_first(env: Any, **how: Any) -> Any:
    """Reset an environment for the first time, and return its observations. Raises `Unplayable`."""
    try:
        return env.reset(**how)[0]
    except NetbufError as error:
        raise Unplayable(str(error)) from None


def draw_arguments(case: Case, record: TaskRecord) -> dict[str, Any]:
    """Draw the arguments that an environment of a task is made with."""
    rules = record.rules
    kwargs: dict[str, Any] = {"scenario": draw_world(case, record)}
    if case.chance(0.5):
        kwargs["recipe"] = case.pick(rules.recipes)
    if case.chance(0.3):
        kwargs["history"] = case.pick((1, 2, 64))
    if case.chance(0.4):
        named = case.pick(list(record.rewards))
        kwargs["reward"] = case.pick((named, named, named, {"name": named}, elapsed, several_terms))
    if case.chance(0.5):
        kwargs["interval_s"] = case.pick((0.001, 0.01, 0.1, 0.1, 1.0, case.log(0.001, 1)))
    for option in case.some(rules.options, 2):
        kwargs[option] = case.pick(OPTIONS[option]) if option in OPTIONS else case.weird()
    if "duration_s" in kwargs["scenario"]:  # made short, so that a decision that takes longer would be a long one
        kwargs["interval_s"] = min(kwargs.get("interval_s", 0.1), kwargs["scenario"]["duration_s"])
    if case.chance(0.2):
        kwargs["max_episode_steps"] = case.pick((1, 2, 5))
    if case.chance(0.15):
        return spoil(case, kwargs)
    if "links" in kwargs["scenario"] and case.chance(0.4):
        made = Scenario.from_dict(kwargs["scenario"])
        kwargs["scenario"] = case.pick((made, lambda rng: made))
    return kwargs


def elapsed(telemetry: Any) -> np.ndarray:
    """A reward of one's own, of one term."""
    return telemetry["elapsed_s"]


def several_terms(telemetry: Any) -> dict[str, np.ndarray]:
    """And one of more."""
    return {"first": np.where(telemetry.first, 1.0, 0.0), "other": -telemetry["elapsed_s"]}


def draw_world(case: Case, record: TaskRecord) -> Any:
    """Draw a scenario that a task may be played in: one of its own made short, or a random one."""
    if case.chance(0.5):
        for _ in range(8):
            try:
                scenario = random_worlds.shorten(Scenario.from_dict(random_worlds.draw_world(case, switch=0.5)), PACKETS)
                record.rules(**record.rules.world_arguments(scenario)).control(scenario)
            except (NetbufError, AttributeError):
                continue
            if scenario.duration_s > 0.001:
                return scenario.to_dict()
    name = case.pick((record.rules.default_scenario, *record.benchmark, *record.scenarios))
    spec: dict[str, Any] = {"name": name}
    if "duration_s" in scenarios.parameters_of(name):
        spec["duration_s"] = case.log(0.01, 3)
        try:
            world = scenarios.get(name, duration_s=spec["duration_s"])
        except NetbufError:  # too short for it
            return spec
        shorter = random_worlds.shorten(world, PACKETS) if isinstance(world, Scenario) else None
        if shorter is not None:
            spec["duration_s"] = shorter.duration_s
    return spec


def draw_agents(case: Case, record: TaskRecord) -> dict[str, int]:
    """Draw the number of agents under one of its names, or nothing."""
    return {} if case.chance(0.6) else {case.pick(("agents", record.rules.agents_argument)): case.pick((1, 1, 2, 3))}


def draw_action(case: Case, space: gym.Space, rows: int | None) -> np.ndarray:
    """Draw an action of the space, or of its corners; `rows`: for so many agents."""
    shape = space.shape if rows is None else (rows, *space.shape)
    if isinstance(space, gym.spaces.Box):
        if case.chance(0.2):
            return np.full(shape, case.pick((-1.0, 0.0, 1.0, 5.0, np.inf, -np.inf, 1e308)))
        return case.rng.uniform(space.low, space.high, shape)
    if isinstance(space, gym.spaces.Discrete):
        least, most = int(space.start), int(space.start + space.n) - 1
        if case.chance(0.2):
            return np.full(shape, case.pick((least, most)))
        return case.rng.integers(least, most, shape, endpoint=True)
    space.seed(case.whole(0, 10**6))
    return space.sample() if rows is None else np.stack([space.sample() for _ in range(rows)])


def draw_bad_action(case: Case, good: np.ndarray) -> Any:
    """Draw something that is no action."""
    options = (
        None, "x", [], [[]], np.nan, {}, np.full(np.shape(good), np.nan), np.append(good, 0), np.asarray(good)[..., None],
        np.full(np.shape(good), -1), np.full(np.shape(good), 2**62), np.asarray(good).astype(object), np.array("x"),
        np.full(np.shape(good), "1"), np.zeros(np.shape(good), bool), [[1], [1, 2]], np.zeros(np.shape(good), complex),
    )  # fmt: skip
    return case.pick(options)


# ---- the interfaces


def run_scalar(case: Case, record: TaskRecord, kwargs: dict[str, Any]) -> str:
    """Play `gym.make` twice from one seed."""
    mode = case.pick((None, None, "ansi", "rgb_array"))
    try:
        env = gym.make(case.pick(record.ids), render_mode=mode, disable_env_checker=True, **kwargs)
    except (NetbufError, gym.error.Error):
        return REFUSED
    except (AssertionError, ValueError, TypeError):  # Gymnasium's own, of max_episode_steps
        if "max_episode_steps" in kwargs:
            return REFUSED
        raise
    seed = case.pick((0, 1, 2**31, case.whole(0, 2**63 - 1)))
    first = play_episode(case, env, seed, None)
    again = play_episode(case, env, seed, first)
    if mode == "rgb_array" and case.chance(0.2):
        picture = env.render()
        if picture.dtype != np.uint8 or picture.ndim != 3:
            raise Finding(f"render gave {picture.dtype} {picture.shape}")
    elif mode == "ansi" and not isinstance(env.render(), str):
        raise Finding("render gave no text")
    lasting = is_stateful(env.unwrapped.engine)
    require_equal_steps(first, again, "one seed gives two episodes", lasting)
    env.close()
    env.close()
    if case.chance(0.3):  # a closed environment is opened by a reset
        require_equal_steps(first, play_episode(case, env, seed, first), "closing changes an episode", lasting)
    return ACCEPTED


def play_episode(case: Case, env: gym.Env, seed: int, like: list | None) -> list[tuple]:
    """Play an episode with random actions, or those of another one: (action, observation, reward, terminated, truncated)."""
    observation = reset_first(env, seed=seed)
    require_within(env.observation_space, observation, "after a reset")
    steps: list[tuple] = [(None, observation, 0.0, False, False)]
    while len(steps) <= (STEPS if like is None else len(like) - 1) and not (steps[-1][3] or steps[-1][4]):
        action = draw_action(case, env.action_space, None) if like is None else like[len(steps)][0]
        if like is None and case.chance(0.1):
            bad = draw_bad_action(case, action)
            require_refusal(lambda bad=bad: env.step(bad), env.action_space)
            if env.unwrapped.engine.ended[0]:
                break  # it was one after all
            return play_episode(case, env, seed, None) if case.chance(0.5) else steps
        observation, reward, terminated, truncated, info = env.step(action)
        require_within(env.observation_space, observation, f"after step {len(steps)}")
        if not np.isfinite(reward) or not isinstance(reward, float):
            raise Finding(f"reward {reward!r} in step {len(steps)}")
        if abs(sum(info["reward_terms"].values()) - reward) > 1e-3 * max(1, abs(reward)):
            raise Finding(f"reward {reward!r} of terms {info['reward_terms']!r}")
        steps.append((action, observation, reward, terminated, truncated))
    return steps


def run_vector(case: Case, record: TaskRecord, kwargs: dict[str, Any]) -> str:
    """Play `gym.make_vec` with one thread and with several, and beside scalar environments of the same seeds."""
    agents = draw_agents(case, record)
    rows = case.whole(1, 4) * next(iter(agents.values()), 1)
    if case.chance(0.05):
        rows = case.pick((0, -1, 3, 2**30))
    name, copy = case.pick(record.ids), case.chance(0.7)
    options = {"num_envs": rows, "vectorization_mode": "vector_entry_point", **agents, **kwargs}
    try:
        envs = [gym.make_vec(name, threads=n, copy=c, **options) for n, c in ((1, True), (case.pick((1, 2, 3)), copy))]
    except (NetbufError, gym.error.Error, MemoryError):
        return REFUSED
    rows, seed = envs[0].num_envs, case.pick((0, case.whole(0, 2**31), None))
    worlds = envs[0].unwrapped.worlds
    if seed is None or case.chance(0.3):
        seed = [case.whole(0, 2**31) for _ in range(worlds)]
    first = play_steps(case, envs[0], rows, seed, None)
    require_equal_steps(first, play_steps(case, envs[1], rows, seed, first), "threads or copies change the results")
    shared = is_stateful(envs[0].unwrapped.engine) and rows > 1
    if isinstance(seed, list) and "max_episode_steps" not in kwargs and worlds == rows and not shared:
        compare_with_scalars(record, kwargs, seed, first)
    for env in envs:
        env.close()
    return ACCEPTED


def play_steps(case: Case, env: gym.vector.VectorEnv, rows: int, seed: Any, like: list | None) -> list[tuple]:
    """Play some steps of a vector environment, with a partial reset among them."""
    observation = reset_first(env, seed=seed)
    require_within(env.observation_space, observation, "after a reset")
    steps: list[tuple] = [(None, observation.copy(), None, None, None)]
    for i in range(1, STEPS + 1 if like is None else len(like)):
        kind, given = draw_step(case, env, rows, i) if like is None else like[i][0]
        if kind == "mask":
            observation, _ = env.reset(seed=None, options={"reset_mask": given})
            zero = np.zeros(rows)
            reward, terminated, truncated = zero, zero, zero
        elif kind == "bad":
            require_refusal(lambda given=given: env.step(given), env.single_action_space)
            break
        else:
            observation, reward, terminated, truncated, info = env.step(given)
            ended = terminated | truncated
            if bool(ended.any()) != ("final_obs" in info):
                raise Finding(f"ended {ended!r}, info has {sorted(info)}")
            if ended.any():
                for row in np.flatnonzero(ended):
                    require_within(env.single_observation_space, info["final_obs"][row], f"at the end of row {row}")
        require_within(env.observation_space, observation, f"after step {i}")
        if not np.isfinite(reward).all():
            raise Finding(f"rewards {reward!r} in step {i}")
        steps.append(((kind, given), observation.copy(), reward.copy(), terminated.copy(), truncated.copy()))
    return steps


def draw_step(case: Case, env: gym.vector.VectorEnv, rows: int, i: int) -> tuple[str, Any]:
    """Draw what is done next: actions, something bad, or a reset of some worlds."""
    actions = draw_action(case, env.single_action_space, rows)
    if case.chance(0.03):
        return "bad", draw_bad_action(case, actions)
    if case.chance(0.1):
        mask = np.repeat(case.rng.random(env.unwrapped.worlds) < 0.5, rows // env.unwrapped.worlds)
        if mask.any():
            return "mask", mask
        require_refusal(lambda: env.reset(options={"reset_mask": case.pick((mask, mask[:0], mask.astype(float), "x"))}), None)
    return "step", actions


def compare_with_scalars(record: TaskRecord, kwargs: dict[str, Any], seeds: list[int], steps: list[tuple]) -> None:
    """Compare scalar environments with the rows of a vector environment until an episode or a partial reset ends them."""
    for row, seed in enumerate(seeds[:2]):
        env = gym.make(record.ids[0], disable_env_checker=True, **kwargs)
        observation, _ = env.reset(seed=seed)
        for i, (given, seen, reward, terminated, truncated) in enumerate(steps):
            if given is not None:
                if given[0] != "step":
                    break
                observation, ours, over, _, _ = env.step(given[1][row])
                if abs(ours - reward[row]) > 1e-6 * max(1, abs(ours)) or over != terminated[row]:
                    raise Finding(f"step {i}: reward {ours!r} alone, {reward[row]!r} as row {row}")
                if terminated[row] or truncated[row]:
                    break
            if not np.array_equal(observation, seen[row]):
                raise Finding(f"step {i}: observation {observation!r} alone, {seen[row]!r} as row {row}")
        env.close()


def run_parallel(case: Case, record: TaskRecord, kwargs: dict[str, Any]) -> str:
    """Play PettingZoo's interface."""
    try:
        env = parallel_env.parallel_env(task=record.name, agents=case.pick((1, 2, 2, 3)), **kwargs)
    except NetbufError:
        return REFUSED
    told = []
    seed = case.whole(0, 2**31)
    for like in (None, 0):
        observations = reset_first(env, seed=seed)
        steps: list[tuple] = []
        for i in range(STEPS):
            if not env.agents:
                break
            for agent, observation in observations.items():
                require_within(env.observation_space(agent), observation, f"of {agent} after step {i}")
            if like is None:
                actions = {agent: draw_action(case, env.action_space(agent), None) for agent in env.agents}
            else:
                actions = told[0][i][0]
            observations, rewards, terminated, truncated, _ = env.step(actions)
            if not np.isfinite(list(rewards.values())).all():
                raise Finding(f"rewards {rewards!r} in step {i}")
            seen = np.stack(list(observations.values()))
            over = [any(ends.values()) for ends in (terminated, truncated)]
            steps.append((actions, seen, np.array(list(rewards.values())), *over))
        told.append(steps)
    require_equal_steps(*told, "one seed gives two episodes of several agents", is_stateful(env.engine))
    env.close()
    return ACCEPTED


# ---- what must hold


def require_within(space: gym.Space, observation: Any, when: str) -> None:
    """Raise `Finding` unless the space contains an observation."""
    if not space.contains(observation):
        raise Finding(f"an observation {when} is not in the space: {observation!r}")


def require_refusal(act: Any, space: gym.Space | None) -> None:
    """Raise `Finding` unless something bad is refused by one of our errors; some odd values are actions after all."""
    try:
        act()
    except NetbufError as error:
        if not str(error).strip():
            raise Finding("a refusal without words") from None
        return
    if space is None:
        raise Finding("a mask that is none was taken")


def is_stateful(engine: Any) -> bool:
    """Whether an environment's reward keeps what it has seen from one episode to the next, and for all rows."""
    if not is_dataclass(engine.reward):
        return True  # one of a user's, for all that is known
    return bool(vars(engine.reward).keys() - {entry.name for entry in fields(engine.reward)})


def require_equal_steps(first: list[tuple], again: list[tuple], what: str, lasting: bool = False) -> None:
    """Raise `Finding` where two runs of the same actions differ; `lasting`: rewards may."""
    for i, (a, b) in enumerate(zip(first, again, strict=False)):
        for column, (x, y) in enumerate(zip(a[1:], b[1:], strict=True)):
            if x is not None and not np.array_equal(x, y) and not (lasting and column == 1):
                raise Finding(f"{what}: step {i}: {x!r} and {y!r}")


def prepare(folder: Any) -> None:
    """The registry's tasks are there with the package."""
    assert netbuf_gym.__name__ and len(tasks.records()) >= 2


KIND = Kind("environments", run, prepare=prepare, share=3.0)
