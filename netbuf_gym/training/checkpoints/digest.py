"""Digests of models, equal for files that decide alike, whenever and wherever they were written, and sketches of parameters.

Needs no learner.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.errors import CheckpointError
from netbuf_gym.training.checkpoints import archive
from netbuf_gym.training.schema import AlgoConfig
from netbuf_gym.zoo.library import NEUTRAL_ARGUMENTS

NETWORK_KEYS = ("name", "policy", "activation", "normalize", "normalize_clip", "policy_kwargs")
"""Keys of a learner's configuration that determine its networks; their widths are the shapes of the parameters."""
TRAINING_ONLY_ARGUMENTS = ("optimizer_kwargs", "ortho_init", "log_std_init")
"""Arguments of a policy that affect only its training."""
NOT_DECIDING = ("value_net", "critic", "q_net_target", "log_std")
"""Parts of the names of parameters that no greedy decision depends on."""
SKETCH, SAME_PARAMETERS = 32, 1e-3
"""Numbers of a sketch, and the relative distance below which two sketches are of the same parameters."""
_DEFAULTS = {one.name: one.default for one in fields(AlgoConfig) if one.default is not MISSING} | {"policy_kwargs": {}}


def compute_model_digest(path: Path) -> str:
    """Return a digest of a model's behaviour, 16 hexadecimal digits of a SHA-256 over parameters, networks and environment.

    Optimiser, seeds, training configuration, versions, and times and places of writing do not change it.

    Raises:
        CheckpointError: The file is not one of our models, or damaged.
    """
    try:
        with zipfile.ZipFile(path) as file:
            archive.check_members(file)
            meta = archive.read_json(file, archive.META)
            digest = hashlib.sha256(json.dumps(_describe_behaviour(meta), sort_keys=True).encode())
            for name, values in sorted(archive.read_tensors(file, archive.PARAMETERS).items()):
                digest.update(json.dumps([name, values.dtype.str, values.shape]).encode())
                digest.update(values.tobytes())
    except Exception as error:  # any error that a damaged file causes
        raise CheckpointError(f"{path}: no model saved by netbuf-gym, or damaged ({type(error).__name__})") from None
    return digest.hexdigest()[:16]


def _describe_behaviour(meta: dict[str, Any]) -> list[Any]:
    """Return the parts of a file's description that determine networks and environment."""
    algo, env = _DEFAULTS | meta["config"]["algo"], meta["env"]
    networks = {key: algo[key] for key in NETWORK_KEYS}
    networks["policy_kwargs"] = {
        key: value for key, value in algo["policy_kwargs"].items() if key not in TRAINING_ONLY_ARGUMENTS
    }
    task = tasks.find_task(env["id"])
    dropped = (*NEUTRAL_ARGUMENTS, None if task is None else tasks.get(task).rules.agents_argument)
    kwargs = {key: value for key, value in env["kwargs"].items() if key not in dropped}
    return [networks, {**env, "kwargs": kwargs}]


def sketch_parameters(path: Path) -> list[float]:
    """Return the number of the parameters that decide, and `SKETCH` sums of them, by which near copies are known.

    Each tensor is divided by its norm and added, with random signs, into random places: the distance of two sketches is about
    that of the parameters.

    Raises:
        CheckpointError: The file is not one of our models, or damaged.
    """
    try:
        with zipfile.ZipFile(path) as file:
            archive.check_members(file)
            tensors = archive.read_tensors(file, archive.PARAMETERS)
    except Exception as error:  # any error that a damaged file causes
        raise CheckpointError(f"{path}: no model saved by netbuf-gym, or damaged ({type(error).__name__})") from None
    generator, sums, size = np.random.default_rng(0), np.zeros(SKETCH), 0
    for name, values in sorted(tensors.items()):
        if not any(part in name for part in NOT_DECIDING):
            flat = values.ravel().astype(np.float64)
            signed = flat * generator.choice([-1.0, 1.0], len(flat)) / max(float(np.linalg.norm(flat)), 1e-30)
            sums += np.bincount(generator.integers(SKETCH, size=len(flat)), signed, SKETCH)
            size += len(flat)
    return [float(size), *(float(f"{one:.6g}") for one in sums)]


def is_same_sketch(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether two sketches are of the same parameters, or of nearly the same."""
    if len(one) != len(other) or one[0] != other[0]:
        return False
    ours, theirs = np.array(one[1:]), np.array(other[1:])
    return float(np.linalg.norm(ours - theirs)) <= SAME_PARAMETERS * float(np.linalg.norm(theirs))
