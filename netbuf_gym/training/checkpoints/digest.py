"""Digests of models: equal where files decide alike, whenever and wherever they were written. Needs no learner."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from netbuf_gym import tasks
from netbuf_gym.errors import CheckpointError
from netbuf_gym.training.checkpoints import archive
from netbuf_gym.training.schema import AlgoConfig
from netbuf_gym.zoo.library import NOT_ITS_OWN

OF_NETWORKS = ("name", "policy", "activation", "normalize", "normalize_clip", "policy_kwargs")
"""Of a learner's configuration what its networks are made by; their widths are the shapes of the parameters."""
OF_LEARNING = ("optimizer_kwargs", "ortho_init", "log_std_init")
"""Arguments of a policy that only its training depends on."""
_DEFAULTS = {one.name: one.default for one in fields(AlgoConfig) if one.default is not MISSING} | {"policy_kwargs": {}}


def of_model(path: Path) -> str:
    """What a model decides by, as 16 hexadecimal digits of a SHA-256: parameters, networks, and what its environment shows.

    Optimiser, seeds, configuration of the training, versions, times and places of writing make no other model.

    Raises:
        CheckpointError: it is no model of ours, or damaged.
    """
    try:
        with zipfile.ZipFile(path) as file:
            archive.check_members(file)
            meta = archive.read_json(file, archive.META)
            digest = hashlib.sha256(json.dumps(_described(meta), sort_keys=True).encode())
            for name, values in sorted(archive.read_tensors(file, archive.PARAMETERS).items()):
                digest.update(json.dumps([name, values.dtype.str, values.shape]).encode())
                digest.update(values.tobytes())
    except Exception as error:  # whatever a damaged file leads to
        raise CheckpointError(f"{path}: no model saved by netbuf-gym, or damaged ({type(error).__name__})") from None
    return digest.hexdigest()[:16]


def _described(meta: dict[str, Any]) -> list[Any]:
    """What a file's description says of networks and environment."""
    algo, env = _DEFAULTS | meta["config"]["algo"], meta["env"]
    networks = {key: algo[key] for key in OF_NETWORKS}
    networks["policy_kwargs"] = {key: value for key, value in algo["policy_kwargs"].items() if key not in OF_LEARNING}
    task = tasks.task_of(env["id"])
    dropped = (*NOT_ITS_OWN, None if task is None else tasks.get(task).rules.agents_argument)
    kwargs = {key: value for key, value in env["kwargs"].items() if key not in dropped}
    return [networks, {**env, "kwargs": kwargs}]
