"""Saved models: stable-baselines3's zip file, with one more member for everything else that is needed to use them.

The member `netbuf_gym.json` holds the environment (id, arguments, what its observations and actions mean, telemetry
schema, spaces), the resolved configuration of the training job and its progress; `netbuf_gym.rng` the states of the
random generators, {} if no training is to resume. A checkpoint also holds the `Moment` to resume from, in
`netbuf_gym.moment`; the replay memory of an off-policy learner is in a file beside it, which the moment names. Files are
written under a temporary name and renamed, so that there is always a whole one. Reading bounds every size before unpacking,
checks every byte against the zip's checksums before anything is built, and unpickles nothing: networks and optimiser come
from `torch.load(weights_only=True)`, everything else from the configuration, which is checked like one from the command
line.
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
from netbuf_gym.envs.engine import check_arguments
from netbuf_gym.errors import CheckpointError, ConfigError, one_line, quote
from netbuf_gym.tasks import Task, require_schema
from netbuf_gym.training.checkpoints import archive as archives
from netbuf_gym.training.checkpoints import versions as made_with
from netbuf_gym.training.checkpoints.archive import META, PARAMETERS
from netbuf_gym.training.config import merge_configs, to_plain
from netbuf_gym.training.config_reference import make_whole
from netbuf_gym.training.ranges import check_algo, check_training
from netbuf_gym.training.schema import NORMALIZE, TrainConfig
from netbuf_gym.utils.files import name_in_errors, replace_file, write_atomic
from netbuf_gym.utils.yaml_text import read_yaml_text

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
"""Attributes that stable-baselines3 would pickle into its own member, and that `Moment` holds."""


@dataclass(frozen=True)
class SavedModel:
    """A saved model, checked but not yet built.

    Attributes:
        path: File of the model.
        config: Resolved configuration of the training job.
        env: Description of its environment, as `describe_env` returns it.
        progress: Timesteps, seconds and updates so far, and whether training had finished.
        attributes: Further numbers of the learner that training changed (KL coefficient).
        has_moment: Whether the file holds the moment to resume from, as checkpoints do.
        versions: Versions recorded in the file, as `netbuf_gym.training.checkpoints.versions.collect_file_versions` names them.
    """

    path: Path
    config: DictConfig
    env: dict[str, Any]
    progress: dict[str, Any]
    attributes: dict[str, float]
    has_moment: bool = False
    versions: dict[str, str] = field(default_factory=dict)


def describe_env(env: VectorEnvAdapter, env_id: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Describe an environment, JSON-able: what a model must agree with, i.e. id, arguments, schema and spaces."""
    native = env.env.unwrapped
    schema = native.schema() if hasattr(native, "schema") else None
    return {"id": env_id, "kwargs": kwargs, "schema": schema, **_describe_spaces(env.observation_space, env.action_space)}


def _describe_spaces(observation: gym.Space, action: gym.Space) -> dict[str, Any]:
    box = cast(gym.spaces.Box, observation)
    return {
        "observation_space": {
            "shape": list(box.shape),
            "low": float(box.low.min()),
            "high": float(box.high.max()),
        },
        "action_space": {"n": int(action.n)} if hasattr(action, "n") else {"shape": list(action.shape or ())},
    }


def save_model(
    path: Path,
    model: BaseAlgorithm,
    config: DictConfig,
    env: dict[str, Any],
    progress: dict[str, Any],
    moment: Moment | None = None,
) -> None:
    """Write a model, atomically; with a moment, as a checkpoint to resume from.

    Raises:
        OSError: The file cannot be written; nothing is left behind.
    """
    from netbuf_gym.training.checkpoints import learner_state as moments

    generators = moments.get_generator_states() if moment is None else moment.numbers["generators"]
    file = build_archive(model, config, env, progress, made_with.collect_file_versions(), generators)
    remembered = None if moment is None else moments.get_memory(model)
    with zipfile.ZipFile(file, "a") as archive:
        if moment is not None:
            name = None if remembered is None else f"memory-{model.num_timesteps}.zip"
            numbers = {key: value for key, value in moment.numbers.items() if key != "generators"}
            archive.writestr(f"{MOMENT}.json", json.dumps(numbers | {"memory_file": name}), zipfile.ZIP_DEFLATED)
            archives.write_arrays(archive, MOMENT, moment.arrays)
    with name_in_errors(path):
        if remembered is not None:
            with replace_file(path.parent / f"memory-{model.num_timesteps}.zip") as part, zipfile.ZipFile(part, "w") as archive:
                archives.write_arrays(archive, "memory", remembered, compress=False)
        write_atomic(path, file.getvalue())
    if remembered is not None:
        remove_leftovers(path.parent, keep=f"memory-{model.num_timesteps}.zip")


def build_archive(
    model: BaseAlgorithm,
    config: DictConfig,
    env: dict[str, Any],
    progress: dict[str, Any],
    versions: Mapping[str, str],
    generators: dict[str, Any],
) -> io.BytesIO:
    """Return a model's file: stable-baselines3's members for this learner, and those of this package.

    Args:
        model: Learner.
        config: Resolved configuration of the training job.
        env: Description of the environment.
        progress: Progress of the training.
        versions: Versions of the training's software, as `SavedModel.versions`.
        generators: States as `learner_state.get_generator_states` returns them; {} for a model that no training resumes.
    """
    meta = {
        "format": FORMAT,
        "env": env,
        "config": to_plain(config),
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


def remove_leftovers(run_dir: Path, keep: str | None = None) -> None:
    """Remove leftovers from a run directory: replay memories other than `keep`, and temporary files of a killed writer."""
    for path in run_dir.iterdir():
        part = PART.fullmatch(path.name)
        if part or (MEMORY.fullmatch(path.name) and path.name != keep):
            path.unlink(missing_ok=True)


def read_model(path: str | Path) -> SavedModel:
    """Read and check a file that `save_model` wrote.

    A run directory stands for its checkpoint, if there is one, or else for its model.

    Raises:
        CheckpointError: Missing, truncated, damaged, not one of ours, or of a newer format.
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
            versions = made_with.parse_system_info(archive.read(made_with.TEXT)) if made_with.TEXT in names else {}
            room = archive.getinfo(PARAMETERS).file_size
        if not isinstance(meta, dict) or meta.get("format") != FORMAT:
            form = meta.get("format") if isinstance(meta, dict) else None
            raise CheckpointError(f"{path}: has format {quote(form)}; this version reads format {FORMAT}")
        saved = _check_description(path, meta, room, f"{MOMENT}.json" in names)
        return replace(saved, versions=versions | made_with.select_known_versions(meta.get("versions")))
    except CheckpointError:
        raise
    except archives.RefusedError as error:
        raise CheckpointError(f"{path}: refused: {error}") from None
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise CheckpointError(f"{path}: truncated or damaged, no whole zip file ({_shorten(error)})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OmegaConfBaseException) as error:
        raise CheckpointError(f"{path}: damaged: {META} is not what was written ({_shorten(error)})") from None


def _check_description(path: Path, meta: dict[str, Any], room: int, has_moment: bool) -> SavedModel:
    """Check the description in a model's file; ValueError, KeyError or TypeError if it cannot be used.

    Args:
        path: File of the model.
        meta: Description of the model.
        room: Bytes of the parameters, which the layers that the configuration asks for cannot exceed.
        has_moment: Whether the file holds a moment.
    """
    config = _check_config(meta["config"])
    env, progress = meta["env"], meta["progress"]
    if not isinstance(env["id"], str) or not isinstance(env["kwargs"], dict):
        raise ValueError("env")
    task = tasks.find_task(env["id"])  # not Gymnasium's registry, which imports the module of a `module:Name-v0`
    if task is None:
        ids = ", ".join(name for record in tasks.records() for name in record.ids)
        valid = f"{ids}, or one that a script has registered before"
        raise CheckpointError(f"{path}: its environment {quote(env['id'])} is registered by no task; valid: {valid}")
    if config.env.id != env["id"]:
        raise ValueError(f"env.id = {quote(config.env.id)} and {quote(env['id'])}")
    if env["kwargs"].get("task", task) != task:
        raise ConfigError(f"task = {quote(env['kwargs']['task'])} is not that of {env['id']}")
    check_arguments(task, set(env["kwargs"]) - {"task"})
    if count_least_parameters(config.algo) * 4 > room:
        widths = quote(to_plain(config.algo.net_arch))
        raise ValueError(f"algo.net_arch = {widths} needs more than the {room} bytes of {PARAMETERS}")
    for key in ("timesteps", "updates", "seconds"):
        if not 0 <= progress[key] < 1e15:
            raise ValueError(f"progress: {key} = {quote(progress[key])}")
    attributes = {name: float(meta["attributes"][name]) for name in ATTRIBUTES if name in meta["attributes"]}
    return SavedModel(path, config, env, progress, attributes, has_moment)


def _check_config(values: Any) -> DictConfig:
    """Check a saved configuration of a training job, like one from the command line."""
    if "${" in json.dumps(values):  # saved ones are resolved; it could read environment variables
        raise ValueError("it holds an interpolation, ${...}")
    if isinstance(values, dict):
        make_whole(values)
    config = merge_configs(OmegaConf.structured(TrainConfig), OmegaConf.create(values))
    missing = OmegaConf.missing_keys(config) - {"scenario.name"}
    if missing:
        raise ValueError(f"config lacks {', '.join(sorted(missing))}")
    check_training(config)
    check_algo(config.algo)
    return config


def read_config(path: Path) -> DictConfig:
    """Return the configuration in a run directory's `config.yaml`.

    Raises:
        CheckpointError: The file holds no valid configuration.
    """
    try:
        return _check_config(OmegaConf.to_container(OmegaConf.load(io.StringIO(read_yaml_text(path))), resolve=False))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, OmegaConfBaseException, YAMLError) as error:
        raise CheckpointError(f"{path}: not a run's configuration ({_shorten(error)})") from None


def count_least_parameters(algo: DictConfig) -> int:
    """Return a lower bound of the number of a learner's parameters: those between its hidden layers."""
    widths = list(algo.net_arch)
    hidden = algo.policy_kwargs.get("lstm_hidden_size", 256) if algo.name == "ppo_lstm" else 0
    return sum(one * other for one, other in pairwise(widths)) + 4 * hidden * hidden


def require_same_env(saved: SavedModel, env: dict[str, Any]) -> None:
    """Raise CheckpointError unless a model fits an environment, as `describe_env` describes it, apart from its arguments."""
    owner = str(saved.path)
    if saved.env.get("id") != env["id"]:
        raise CheckpointError(f"{owner}: was trained on {saved.env.get('id')!r}, not on {env['id']!r}")
    if env["schema"] is not None:
        require_schema(saved.env.get("schema"), env["schema"], owner)
    _require_same_spaces(saved, env)


def require_same_rules(saved: SavedModel, rules: Task) -> None:
    """Raise CheckpointError unless a model fits the rules of a task, apart from the decision interval."""
    _require_rules(saved, rules.to_dict(), rules, _describe_spaces(rules.observation_space, rules.action_space))


def _require_rules(saved: SavedModel, said: dict[str, Any], rules: Task, spaces: dict[str, Any]) -> None:
    schema = saved.env.get("schema")
    interval_s = schema.get("interval_s") if isinstance(schema, dict) else None
    current = {"telemetry": rules.telemetry.to_dict(), **said, "interval_s": interval_s}
    require_schema(schema, current, str(saved.path))
    _require_same_spaces(saved, spaces)


def _find_narrow_width(saved: SavedModel, rules: Task) -> int | None:
    """Return the number of features of a model of the recipe that the rules' recipe widens (`Task.widened_recipes`).

    None for a model of any other recipe. Except for the recipe, the model must have been trained by the same rules.

    Raises:
        CheckpointError: It was not.
    """
    schema = saved.env.get("schema")
    narrow = rules.widened_recipes.get(rules.recipe)
    if narrow is None or not isinstance(schema, dict) or schema.get("recipe") != narrow:
        return None
    features = rules.recipe_features[narrow]
    said = rules.to_dict() | {"recipe": narrow, "features": [feature.to_dict() for feature in features]}
    least, shape = min(feature.floor for feature in features), (rules.history * len(features),)
    space = gym.spaces.Box(least, 1.0, shape, rules.observation_space.dtype)
    _require_rules(saved, said, rules, _describe_spaces(space, rules.action_space))
    return len(features)


def _require_same_spaces(saved: SavedModel, env: dict[str, Any]) -> None:
    for key in ("observation_space", "action_space"):
        if saved.env.get(key) != env[key]:
            raise CheckpointError(f"{saved.path}: has {key} {saved.env.get(key)}, this environment {env[key]}")


def restore_model(saved: SavedModel, model: BaseAlgorithm, rng: bool) -> bool:
    """Load a saved model's networks and optimiser into a model built from its configuration.

    Args:
        saved: Saved model.
        model: Model built from its configuration.
        rng: Whether to restore the random generators, too, if the file has their states.

    Returns:
        Whether the file has their states; a packed model has neither those nor the optimiser's state.

    Raises:
        CheckpointError: The parameters do not fit this model.
    """
    from netbuf_gym.training.checkpoints.learner_state import set_generator_states

    try:
        with zipfile.ZipFile(saved.path) as archive:
            states = archives.read_json(archive, RNG)
        _set_optimizer(model.policy.optimizer, _load_networks(saved, model))
        for name, value in saved.attributes.items():
            setattr(model, name, value)
        model.num_timesteps = int(saved.progress["timesteps"])
        model._n_updates = int(saved.progress["updates"])
        if rng and states:
            set_generator_states(states)
        return bool(states)
    except Exception as error:  # any error of torch's unpickler
        raise CheckpointError(f"{saved.path}: its parameters do not fit its configuration ({_shorten(error)})") from None


def load_start_networks(saved: SavedModel, model: BaseAlgorithm, rules: Task) -> None:
    """Load a saved model's networks and optimiser state into a model that is to be trained; all else of the model is new.

    A model of a recipe that the rules' recipe widens (`Task.widened_recipes`) gets weights 0 for the further features, and so
    begins with the decisions that it takes on its own. The optimiser starts anew if the file has no state for it, as in packed
    models, or that of another kind of optimiser.

    Raises:
        CheckpointError: The saved model was trained by other rules or with another normalisation, or with statistics of fewer
            features, or its parameters do not fit this model.
    """
    from netbuf_gym.integrations.normalizing import find_extractors

    narrow = _find_narrow_width(saved, rules)
    if narrow is None:
        require_same_rules(saved, rules)
    own = NORMALIZE[bool(find_extractors(model.policy))]
    if saved.config.algo.normalize != own:
        its = f"was trained with algo.normalize = {saved.config.algo.normalize!r}, this training has {own!r}"
        raise CheckpointError(f"start_from = {saved.path}: {its}; valid: the same")
    if narrow is not None and own != NORMALIZE[False]:
        its = f"has statistics of the {narrow} features of its recipe, {rules.recipe!r} has {rules.width}"
        raise CheckpointError(f"start_from = {saved.path}: {its}; valid: the same recipe")
    try:
        state = _load_networks(saved, model, None if narrow is None else (rules.history, narrow, rules.width))
        names = _list_state_names(model.policy.optimizer)
        if all(set(values) == names for values in state.values()):
            _set_optimizer(model.policy.optimizer, state)
    except Exception as error:  # any error of torch's unpickler
        algo = saved.config.algo
        its = f"algo.net_arch = {quote(to_plain(algo.net_arch))}, algo.policy_kwargs = {quote(to_plain(algo.policy_kwargs))}"
        why = f"start_from = {saved.path}: its networks are not of this shape ({_shorten(error)})"
        raise CheckpointError(f"{why}; valid: {its}, which are its own") from None


def _load_networks(
    saved: SavedModel, model: BaseAlgorithm, widening: tuple[int, int, int] | None = None
) -> dict[int, dict[str, Any]]:
    """Load a saved model's networks into a model and return its optimiser's state; raises any error of torch's unpickler.

    Args:
        saved: Saved model.
        model: Model.
        widening: Feature vectors in an observation, features of the saved model, and those of the model, where they are more;
            None: as many.
    """
    import torch as th

    with zipfile.ZipFile(saved.path) as archive:
        parameters = archives.read_parameters(archive, PARAMETERS)
        state: dict[int, dict[str, Any]] = archives.read_parameters(archive, OPTIMIZER)["state"]
    if widening is not None:
        own, ordered = model.policy.state_dict(), list(model.policy.parameters())
        parameters = {name: _widen_inputs(value, own[name], *widening) for name, value in parameters.items()}
        state = {
            index: {name: _widen_inputs(value, ordered[index], *widening) for name, value in values.items()}
            for index, values in state.items()
        }
    model.policy.load_state_dict(parameters, strict=True)
    for name, value in model.policy.state_dict().items():
        if not th.isfinite(value).all():
            raise ValueError(f"{name} is not finite")
    return state


def _widen_inputs(value: Any, own: Any, history: int, narrow: int, width: int) -> Any:
    """Return what is kept of each weight of a layer that reads observations, with zeros for further features.

    Args:
        value: Tensor `(outputs, history * narrow)`. Anything else is returned as it is.
        own: The model's parameter in its place, `(outputs, history * width)`; with another shape `value` is returned as it is.
        history, narrow, width: See `_load_networks`.
    """
    import torch as th

    shapes = ((*own.shape[:1], history * narrow), (*own.shape[:1], history * width))
    if not isinstance(value, th.Tensor) or (value.shape, own.shape) != shapes:
        return value
    vectors = value.reshape(-1, history, narrow)
    return th.nn.functional.pad(vectors, (0, width - narrow)).flatten(1)


def _list_state_names(optimizer: Any) -> set[str]:
    """Return the names of the values that an optimiser of this kind keeps for each parameter."""
    import torch as th

    one = th.nn.Parameter(th.zeros(1))
    one.grad = th.zeros(1)
    trial = type(optimizer)([one], **optimizer.defaults)
    trial.step()
    return set(trial.state[one])


def _set_optimizer(optimizer: Any, state: dict[int, dict[str, Any]]) -> None:
    """Load an optimiser's state; its settings stay those of the configuration, and shapes must be those of the parameters."""
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
                raise ValueError(f"optimiser state {quote(name)} of parameter {index} has another shape or type")
            if not th.isfinite(value).all():
                raise ValueError(f"optimiser state {name!r} of parameter {index} is not finite")
    optimizer.load_state_dict({"state": state, "param_groups": own["param_groups"]})


def read_moment(saved: SavedModel) -> tuple[Moment, dict[str, Any] | None]:
    """Return a checkpoint's moment, and its learner's replay memory, if any.

    Raises:
        CheckpointError: No moment, a damaged one, or a missing or damaged memory file.
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
            raise ValueError(f"memory_file = {quote(name)}")
        path = saved.path.parent / name
        if not path.is_file():
            raise CheckpointError(f"{path}: no such file; {saved.path} goes on from what it remembers")
        with zipfile.ZipFile(path) as archive:
            archives.check_members(archive, path.stat().st_size)
            return moment, archives.read_arrays(archive, "memory")
    except CheckpointError:
        raise
    except Exception as error:  # any error that a damaged file causes
        raise CheckpointError(f"{path}: damaged ({_shorten(error)})") from None


def _shorten(value: Any) -> str:
    text = one_line(value)
    return text if len(text) <= 160 else text[:157] + "..."
