"""Saved models: stable-baselines3's zip file with what is needed to use it in one more member.

The member `netbuf_gym.json` holds the environment (id, arguments, what its observations and actions mean, telemetry
schema, spaces), the resolved configuration of the training job and how far it went; `netbuf_gym.rng` the states of the
random generators. Files are written under a temporary name and renamed, so that there is always a whole one. Reading
checks every byte against the zip's checksums before anything is built, and unpickles nothing: networks and optimiser
come from `torch.load(weights_only=True)`, everything else from the configuration.
"""

from __future__ import annotations

import io
import json
import random
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import stable_baselines3
import torch as th
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.save_util import load_from_zip_file

from netbuf_gym.errors import CheckpointError
from netbuf_gym.files import write_atomic
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.tasks import Task, require_schema
from netbuf_gym.version import __version__
from netbuf_gym.zoo.config import TrainConfig, plain

FORMAT = 1
META, RNG = "netbuf_gym.json", "netbuf_gym.rng"


@dataclass(frozen=True)
class Saved:
    """A saved model, checked but not yet built.

    Attributes:
        path: the file.
        config: resolved configuration of the training job.
        env: what `describe` said of its environment.
        progress: timesteps, seconds and updates so far, and whether training had finished.
        attributes: further numbers of the learner that training changed (KL coefficient).
    """

    path: Path
    config: DictConfig
    env: dict[str, Any]
    progress: dict[str, Any]
    attributes: dict[str, float]


def describe(env: VectorEnvAdapter, env_id: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """What a model must agree with, JSON-able: environment, meaning of its numbers, spaces."""
    native = env.env.unwrapped
    schema = native.schema() if hasattr(native, "schema") else None
    return {"id": env_id, "kwargs": kwargs, "schema": schema, **_spaces(env.observation_space, env.action_space)}


def _spaces(observation: gym.Space, action: gym.Space) -> dict[str, Any]:
    return {
        "observation_space": {
            "shape": list(observation.shape),
            "low": float(observation.low.min()),
            "high": float(observation.high.max()),
        },
        "action_space": {"n": int(action.n)} if hasattr(action, "n") else {"shape": list(action.shape)},
    }


def save(path: Path, model: BaseAlgorithm, config: DictConfig, env: dict[str, Any], progress: dict[str, Any]) -> None:
    """Writes a model, atomically.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    meta = {
        "format": FORMAT,
        "env": env,
        "config": plain(config),
        "progress": progress,
        "attributes": {name: getattr(model, name) for name in ("kl_coef",) if hasattr(model, name)},
        "versions": {
            "netbuf_gym": __version__,
            "stable_baselines3": stable_baselines3.__version__,
            "torch": th.__version__,
            "numpy": np.__version__,
        },
    }
    file = io.BytesIO()
    model.save(file)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(META, json.dumps(meta, indent=1))
        archive.writestr(RNG, json.dumps(_rng_states()))
    write_atomic(path, file.getvalue())


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
            names = archive.namelist()
            damaged = archive.testzip()
            if damaged is not None:
                raise CheckpointError(f"{path}: damaged: member {damaged!r} fails its checksum")
            if META not in names:
                raise CheckpointError(f"{path}: truncated, or not a model saved by netbuf-gym: it holds no {META}")
            for name in (RNG, "policy.pth", "policy.optimizer.pth"):
                if name not in names:
                    raise CheckpointError(f"{path}: damaged: member {name!r} is missing")
            meta = json.loads(archive.read(META))
        if not isinstance(meta, dict) or meta.get("format") != FORMAT:
            found = meta.get("format") if isinstance(meta, dict) else None
            raise CheckpointError(f"{path}: has format {found!r}; this version reads format {FORMAT}")
        return _checked(path, meta)
    except CheckpointError:
        raise
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise CheckpointError(f"{path}: truncated or not a zip file ({error})") from None
    except (ValueError, KeyError, TypeError, RecursionError, OmegaConfBaseException) as error:
        raise CheckpointError(f"{path}: damaged: {META} is not what was written ({_short(error)})") from None


def _checked(path: Path, meta: dict[str, Any]) -> Saved:
    """The contents of the description; ValueError, KeyError or TypeError where they cannot be used."""
    config = OmegaConf.merge(OmegaConf.structured(TrainConfig), OmegaConf.create(meta["config"]))
    missing = OmegaConf.missing_keys(config) - {"scenario.name"}
    if missing:
        raise ValueError(f"config lacks {', '.join(sorted(missing))}")
    env, progress = meta["env"], meta["progress"]
    if not isinstance(env["id"], str) or not isinstance(env["kwargs"], dict):
        raise ValueError("env")
    for key in ("timesteps", "updates", "seconds"):
        if not 0 <= progress[key] < 1e15:
            raise ValueError(f"progress: {key} = {progress[key]!r}")
    attributes = {name: float(value) for name, value in meta["attributes"].items()}
    return Saved(path, config, env, progress, attributes)


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


def restore(saved: Saved, model: BaseAlgorithm, rng: bool) -> None:
    """Puts a saved model's networks and optimiser into a model built from its configuration.

    Args:
        rng: also set the random generators as they were.

    Raises:
        CheckpointError: the parameters are not those of this model.
    """
    try:
        _, parameters, variables = load_from_zip_file(saved.path, load_data=False, device="cpu")
        model.set_parameters(parameters, exact_match=True, device="cpu")
        for name, value in model.policy.state_dict().items():
            if not th.isfinite(value).all():
                raise ValueError(f"{name} is not finite")
        for name, value in (variables or {}).items():
            setattr(model, name, value)
        for name, value in saved.attributes.items():
            setattr(model, name, value)
        model.num_timesteps = int(saved.progress["timesteps"])
        model._n_updates = int(saved.progress["updates"])
        if rng:
            with zipfile.ZipFile(saved.path) as archive:
                _set_rng_states(json.loads(archive.read(RNG)))
    except Exception as error:  # torch raises whatever its unpickler stumbles upon
        raise CheckpointError(f"{saved.path}: its parameters do not fit its configuration ({_short(error)})") from None


def _rng_states() -> dict[str, Any]:
    kind, keys, position, has_gauss, gauss = np.random.get_state()
    version, state, gauss_next = random.getstate()
    return {
        "torch": th.get_rng_state().numpy().tobytes().hex(),
        "numpy": [kind, keys.tolist(), position, has_gauss, gauss],
        "python": [version, list(state), gauss_next],
    }


def _set_rng_states(states: dict[str, Any]) -> None:
    th.set_rng_state(th.frombuffer(bytearray.fromhex(states["torch"]), dtype=th.uint8))
    kind, keys, position, has_gauss, gauss = states["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, gauss))
    version, state, gauss_next = states["python"]
    random.setstate((version, tuple(state), gauss_next))


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 160 else text[:157] + "..."
