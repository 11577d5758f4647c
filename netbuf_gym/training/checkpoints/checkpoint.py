"""Saved models: stable-baselines3's zip file with what is needed to use it in one more member.

The member `netbuf_gym.json` holds the environment (id, arguments, what its observations and actions mean, telemetry
schema, spaces), the resolved configuration of the training job and how far it went; `netbuf_gym.rng` the states of the
random generators, {} where no training is to go on. A checkpoint also holds the `Moment` to go on from, in
`netbuf_gym.moment`; what an off-policy learner remembers lies beside it, in the file that it names. Files are written under
a temporary name and renamed, so that there is always a whole one. Reading bounds every size before it unpacks anything,
checks every byte against the zip's checksums before anything is built, and unpickles nothing: networks and optimiser come
from `torch.load(weights_only=True)`, everything else from the configuration, which is checked as one from the command line
is.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import gymnasium as gym
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from netbuf_gym import tasks
from netbuf_gym.envs.engine import check_names
from netbuf_gym.errors import CheckpointError, ConfigError, shown
from netbuf_gym.tasks import Task, require_schema
from netbuf_gym.training.checkpoints import archive as archives
from netbuf_gym.training.checkpoints import versions as made_with
from netbuf_gym.training.checkpoints.archive import META, PARAMETERS
from netbuf_gym.training.config import TrainConfig, check_training, merged, plain
from netbuf_gym.training.ranges import check_algo
from netbuf_gym.training.schema import NORMALIZE
from netbuf_gym.utils.files import naming, replacing, write_atomic

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

    from netbuf_gym.integrations.sb3 import VectorEnvAdapter
    from netbuf_gym.training.checkpoints.learner_state import Moment

FORMAT = 1
RNG, MOMENT, OPTIMIZER = "netbuf_gym.rng", "netbuf_gym.moment", "policy.optimizer.pth"
ATTRIBUTES = ("kl_coef",)
MEMORY = re.compile(r"memory-[0-9]{1,15}\.zip")
PART = re.compile(r"\.(config\.yaml|versions\.json|progress\.csv|model\.zip|checkpoint\.zip|memory-\d+\.zip)\..{8}")
_UNUSED = ["_last_obs", "_last_episode_starts", "_last_original_obs", "ep_info_buffer", "ep_success_buffer"]
_UNUSED += ["_update_current_progress_remaining"]
"""What stable-baselines3 would pickle into its own member, and we have in `Moment`."""


@dataclass(frozen=True)
class Saved:
    """A saved model, checked but not yet built.

    Attributes:
        path: the file.
        config: resolved configuration of the training job.
        env: what `describe` said of its environment.
        progress: timesteps, seconds and updates so far, and whether training had finished.
        attributes: further numbers of the learner that training changed (KL coefficient).
        has_moment: whether it holds the moment to go on from, as checkpoints do.
        versions: of some of what it was made with, as far as its file has them (`netbuf_gym.training.checkpoints.versions.of`).
    """

    path: Path
    config: DictConfig
    env: dict[str, Any]
    progress: dict[str, Any]
    attributes: dict[str, float]
    has_moment: bool = False
    versions: dict[str, str] = field(default_factory=dict)


def describe(env: VectorEnvAdapter, env_id: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """What a model must agree with, JSON-able: environment, meaning of its numbers, spaces."""
    native = env.env.unwrapped
    schema = native.schema() if hasattr(native, "schema") else None
    return {"id": env_id, "kwargs": kwargs, "schema": schema, **_spaces(env.observation_space, env.action_space)}


def _spaces(observation: gym.Space, action: gym.Space) -> dict[str, Any]:
    box = cast(gym.spaces.Box, observation)
    return {
        "observation_space": {
            "shape": list(box.shape),
            "low": float(box.low.min()),
            "high": float(box.high.max()),
        },
        "action_space": {"n": int(action.n)} if hasattr(action, "n") else {"shape": list(action.shape or ())},
    }


def save(
    path: Path,
    model: BaseAlgorithm,
    config: DictConfig,
    env: dict[str, Any],
    progress: dict[str, Any],
    moment: Moment | None = None,
) -> None:
    """Writes a model, atomically; with a moment, one to go on from.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    from netbuf_gym.training.checkpoints import learner_state as moments

    generators = moments.generators() if moment is None else moment.numbers["generators"]
    file = written(model, config, env, progress, made_with.of_file(), generators)
    remembered = None if moment is None else moments.memory(model)
    with zipfile.ZipFile(file, "a") as archive:
        if moment is not None:
            name = None if remembered is None else f"memory-{model.num_timesteps}.zip"
            numbers = {key: value for key, value in moment.numbers.items() if key != "generators"}
            archive.writestr(f"{MOMENT}.json", json.dumps(numbers | {"memory_file": name}), zipfile.ZIP_DEFLATED)
            archives.write_arrays(archive, MOMENT, moment.arrays)
    with naming(path):
        if remembered is not None:
            with replacing(path.parent / f"memory-{model.num_timesteps}.zip") as part, zipfile.ZipFile(part, "w") as archive:
                archives.write_arrays(archive, "memory", remembered, compress=False)
        write_atomic(path, file.getvalue())
    if remembered is not None:
        tidy(path.parent, keep=f"memory-{model.num_timesteps}.zip")


def written(
    model: BaseAlgorithm,
    config: DictConfig,
    env: dict[str, Any],
    progress: dict[str, Any],
    versions: Mapping[str, str],
    generators: dict[str, Any],
) -> io.BytesIO:
    """A model's file: stable-baselines3's members as it writes them of this learner, and ours.

    Args:
        versions: of what it was trained by, as `Saved.versions`.
        generators: as `moment.generators` gives them; {} of a model that no training goes on with.
    """
    meta = {
        "format": FORMAT,
        "env": env,
        "config": plain(config),
        "progress": progress,
        "attributes": {name: getattr(model, name) for name in ATTRIBUTES if hasattr(model, name)},
        "versions": dict(versions),
    }
    file = io.BytesIO()
    model.save(file, exclude=_UNUSED)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(META, json.dumps(meta, indent=1))
        archive.writestr(RNG, json.dumps(generators))
    return file


def tidy(run_dir: Path, keep: str | None = None) -> None:
    """Removes what a run directory no longer needs: memories other than `keep`, and parts that a killed writer left."""
    for path in run_dir.iterdir():
        part = PART.fullmatch(path.name)
        if part or (MEMORY.fullmatch(path.name) and path.name != keep):
            path.unlink(missing_ok=True)


def read(path: str | Path) -> Saved:
    """Reads and checks a file that `save` wrote; a run directory stands for its checkpoint while training is under
    way or to be resumed, or else for its model.

    Raises:
        CheckpointError: missing, truncated, damaged, not one of ours, or of a newer format.
    """
    path = Path(path)
    if path.is_dir():
        found = [path / name for name in ("checkpoint.zip", "model.zip") if (path / name).is_file()]
        if not found:
            raise CheckpointError(f"{path}: holds neither model.zip nor checkpoint.zip")
        path = found[0]
    if not path.is_file():
        raise CheckpointError(f"{path}: no such file")
    try:
        with zipfile.ZipFile(path) as archive:
            archives.check_members(archive)
            names = archive.namelist()
            damaged = archive.testzip()
            if damaged is not None:
                raise CheckpointError(f"{path}: damaged: member {damaged!r} fails its checksum")
            if META not in names:
                raise CheckpointError(f"{path}: not a model saved by netbuf-gym: it holds no {META}")
            for name in (RNG, PARAMETERS, OPTIMIZER):
                if name not in names:
                    raise CheckpointError(f"{path}: damaged: member {name!r} is missing")
            meta = archives.read_json(archive, META)
            versions = made_with.in_text(archive.read(made_with.TEXT)) if made_with.TEXT in names else {}
            room = archive.getinfo(PARAMETERS).file_size
        if not isinstance(meta, dict) or meta.get("format") != FORMAT:
            form = meta.get("format") if isinstance(meta, dict) else None
            raise CheckpointError(f"{path}: has format {shown(form)}; this version reads format {FORMAT}")
        saved = _checked(path, meta, room, f"{MOMENT}.json" in names)
        return replace(saved, versions=versions | made_with.in_names(meta.get("versions")))
    except CheckpointError:
        raise
    except archives.RefusedError as error:
        raise CheckpointError(f"{path}: refused: {error}") from None
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise CheckpointError(f"{path}: truncated or damaged, no whole zip file ({_short(error)})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OmegaConfBaseException) as error:
        raise CheckpointError(f"{path}: damaged: {META} is not what was written ({_short(error)})") from None


def _checked(path: Path, meta: dict[str, Any], room: int, has_moment: bool) -> Saved:
    """The contents of the description; ValueError, KeyError or TypeError where they cannot be used.

    Args:
        room: bytes of the parameters, which the layers that the configuration asks for cannot exceed.
    """
    config = _config(meta["config"])
    env, progress = meta["env"], meta["progress"]
    if not isinstance(env["id"], str) or not isinstance(env["kwargs"], dict):
        raise ValueError("env")
    task = tasks.task_of(env["id"])  # never Gymnasium's registry, which imports the module of a `module:Name-v0`
    if task is None:
        ids = ", ".join(name for record in tasks.records() for name in record.ids)
        valid = f"{ids}, or one that a script has registered before"
        raise CheckpointError(f"{path}: its environment {shown(env['id'])} is registered by no task; valid: {valid}")
    if config.env.id != env["id"]:
        raise ValueError(f"env.id = {shown(config.env.id)} and {shown(env['id'])}")
    if env["kwargs"].get("task", task) != task:
        raise ConfigError(f"task = {shown(env['kwargs']['task'])} is not that of {env['id']}")
    check_names(task, set(env["kwargs"]) - {"task"})
    if least_parameters(config.algo) * 4 > room:
        widths = shown(plain(config.algo.net_arch))
        raise ValueError(f"algo.net_arch = {widths} needs more than the {room} bytes of {PARAMETERS}")
    for key in ("timesteps", "updates", "seconds"):
        if not 0 <= progress[key] < 1e15:
            raise ValueError(f"progress: {key} = {shown(progress[key])}")
    attributes = {name: float(meta["attributes"][name]) for name in ATTRIBUTES if name in meta["attributes"]}
    return Saved(path, config, env, progress, attributes, has_moment)


def _config(values: Any) -> DictConfig:
    """A training job's configuration from what was saved of it, held to what one from the command line is held to."""
    if "${" in json.dumps(values):  # it was resolved before it was saved: this would read the environment, or worse
        raise ValueError("it holds an interpolation, ${...}")
    config = merged(OmegaConf.structured(TrainConfig), OmegaConf.create(values))
    missing = OmegaConf.missing_keys(config) - {"scenario.name"}
    if missing:
        raise ValueError(f"config lacks {', '.join(sorted(missing))}")
    check_training(config)
    check_algo(config.algo)
    return config


def read_config(path: Path) -> DictConfig:
    """The configuration in a run directory's `config.yaml`.

    Raises:
        CheckpointError: it is none.
    """
    try:
        if path.stat().st_size > archives.MAX_JSON_BYTES:
            raise ValueError("too large")
        return _config(OmegaConf.to_container(OmegaConf.load(path), resolve=False))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, OmegaConfBaseException, YAMLError) as error:
        raise CheckpointError(f"{path}: not a run's configuration ({_short(error)})") from None


def least_parameters(algo: DictConfig) -> int:
    """A lower bound of a learner's parameters: those between its hidden layers."""
    widths = list(algo.net_arch)
    hidden = algo.policy_kwargs.get("lstm_hidden_size", 256) if algo.name == "ppo_lstm" else 0
    return sum(one * other for one, other in pairwise(widths)) + 4 * hidden * hidden


def require_same_env(saved: Saved, env: dict[str, Any]) -> None:
    """Raises CheckpointError unless a model fits an environment as `describe` puts it, arguments aside."""
    owner = str(saved.path)
    if saved.env.get("id") != env["id"]:
        raise CheckpointError(f"{owner}: was trained on {saved.env.get('id')!r}, not on {env['id']!r}")
    if env["schema"] is not None:
        require_schema(saved.env.get("schema"), env["schema"], owner)
    _require_same_spaces(saved, env)


def require_same_rules(saved: Saved, rules: Task) -> None:
    """Raises CheckpointError unless a model fits the rules of a task; how often it is asked is not theirs."""
    schema = saved.env.get("schema")
    interval_s = schema.get("interval_s") if isinstance(schema, dict) else None
    current = {"telemetry": rules.telemetry.to_dict(), **rules.to_dict(), "interval_s": interval_s}
    require_schema(schema, current, str(saved.path))
    _require_same_spaces(saved, _spaces(rules.observation_space, rules.action_space))


def _require_same_spaces(saved: Saved, env: dict[str, Any]) -> None:
    for key in ("observation_space", "action_space"):
        if saved.env.get(key) != env[key]:
            raise CheckpointError(f"{saved.path}: has {key} {saved.env.get(key)}, this environment {env[key]}")


def restore(saved: Saved, model: BaseAlgorithm, rng: bool) -> bool:
    """Puts a saved model's networks and optimiser into a model built from its configuration.

    Args:
        rng: also set the random generators as they were, where the file has their states.

    Returns:
        whether it has them; a packed model, which has no state of its optimiser either, has not.

    Raises:
        CheckpointError: the parameters are not those of this model.
    """
    import torch as th

    from netbuf_gym.training.checkpoints.learner_state import set_generators

    try:
        with zipfile.ZipFile(saved.path) as archive:
            parameters = archives.read_parameters(archive, PARAMETERS)
            optimizer = archives.read_parameters(archive, OPTIMIZER)
            states = archives.read_json(archive, RNG)
        model.policy.load_state_dict(parameters, strict=True)
        for name, value in model.policy.state_dict().items():
            if not th.isfinite(value).all():
                raise ValueError(f"{name} is not finite")
        _set_optimizer(model.policy.optimizer, optimizer["state"])
        for name, value in saved.attributes.items():
            setattr(model, name, value)
        model.num_timesteps = int(saved.progress["timesteps"])
        model._n_updates = int(saved.progress["updates"])
        if rng and states:
            set_generators(states)
        return bool(states)
    except Exception as error:  # torch raises whatever its unpickler stumbles upon
        raise CheckpointError(f"{saved.path}: its parameters do not fit its configuration ({_short(error)})") from None


def start_from(saved: Saved, model: BaseAlgorithm, rules: Task) -> None:
    """Gives a model that is to be trained the networks of a saved one, and the state of its optimiser; all else of it is new.

    The optimiser begins anew where the file has no state of it, as packed ones do, or that of another kind of optimiser.

    Raises:
        CheckpointError: it was trained by other rules or with another normalisation, or its parameters are not those of
            this model.
    """
    import torch as th

    from netbuf_gym.integrations.normalizing import extractors

    require_same_rules(saved, rules)
    own = NORMALIZE[bool(extractors(model.policy))]
    if saved.config.algo.normalize != own:
        its = f"was trained with algo.normalize = {saved.config.algo.normalize!r}, this training has {own!r}"
        raise CheckpointError(f"start_from = {saved.path}: {its}; valid: the same")
    try:
        with zipfile.ZipFile(saved.path) as archive:
            parameters = archives.read_parameters(archive, PARAMETERS)
            state = archives.read_parameters(archive, OPTIMIZER)["state"]
        model.policy.load_state_dict(parameters, strict=True)
        for name, value in model.policy.state_dict().items():
            if not th.isfinite(value).all():
                raise ValueError(f"{name} is not finite")
        names = _state_names(model.policy.optimizer)
        if all(set(values) == names for values in state.values()):
            _set_optimizer(model.policy.optimizer, state)
    except Exception as error:  # torch raises whatever its unpickler stumbles upon
        algo = saved.config.algo
        its = f"algo.net_arch = {shown(plain(algo.net_arch))}, algo.policy_kwargs = {shown(plain(algo.policy_kwargs))}"
        why = f"start_from = {saved.path}: its networks are not of this shape ({_short(error)})"
        raise CheckpointError(f"{why}; valid: {its}, which are its own") from None


def _state_names(optimizer: Any) -> set[str]:
    """The names of what an optimiser of this kind keeps of each parameter."""
    import torch as th

    one = th.nn.Parameter(th.zeros(1))
    one.grad = th.zeros(1)
    trial = type(optimizer)([one], **optimizer.defaults)
    trial.step()
    return set(trial.state[one])


def _set_optimizer(optimizer: Any, state: dict[int, dict[str, Any]]) -> None:
    """Gives an optimiser its state; its settings are the configuration's, and shapes are those of the parameters."""
    import torch as th

    own = optimizer.state_dict()
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    for index, values in state.items():
        if not 0 <= index < len(parameters):
            raise ValueError(f"optimiser state of parameter {index}, of {len(parameters)}")
        for name, value in values.items():
            if name == "step" and isinstance(value, int):
                continue
            shape = th.Size([]) if name == "step" else parameters[index].shape
            if not isinstance(value, th.Tensor) or value.shape != shape or value.dtype != th.float32:
                raise ValueError(f"optimiser state {shown(name)} of parameter {index} has another shape or type")
            if not th.isfinite(value).all():
                raise ValueError(f"optimiser state {name!r} of parameter {index} is not finite")
    optimizer.load_state_dict({"state": state, "param_groups": own["param_groups"]})


def moment_of(saved: Saved) -> tuple[Moment, dict[str, Any] | None]:
    """The moment that a checkpoint was taken at, and what its learner remembered.

    Raises:
        CheckpointError: it holds none, or a damaged one, or the file of memories is missing or damaged.
    """
    from netbuf_gym.training.checkpoints.learner_state import Moment

    path = saved.path
    try:
        with zipfile.ZipFile(path) as archive:
            archives.check_members(archive)
            numbers = archives.read_json(archive, f"{MOMENT}.json")
            moment = Moment(numbers | {"generators": archives.read_json(archive, RNG)}, archives.read_arrays(archive, MOMENT))
        name = numbers["memory_file"]
        if name is None:
            return moment, None
        if not isinstance(name, str) or not MEMORY.fullmatch(name):
            raise ValueError(f"memory_file = {shown(name)}")
        path = saved.path.parent / name
        if not path.is_file():
            raise CheckpointError(f"{path}: no such file; {saved.path} goes on from what it remembers")
        with zipfile.ZipFile(path) as archive:
            archives.check_members(archive, path.stat().st_size)
            return moment, archives.read_arrays(archive, "memory")
    except CheckpointError:
        raise
    except Exception as error:  # whatever a damaged file leads to
        raise CheckpointError(f"{path}: damaged ({_short(error)})") from None


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 160 else text[:157] + "..."
