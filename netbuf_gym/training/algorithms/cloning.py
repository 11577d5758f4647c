"""Behaviour cloning of the episodes of a Minari dataset, as `netbuf-gym record` writes them: an agent from data alone.

    netbuf-gym record queue_threshold brief_pulse --scenario rlbm/default --episodes 20
    python -m netbuf_gym.training.algorithms.cloning netbuf/queue_threshold/brief_pulse-v0 run_dir=runs/cloned
    netbuf-gym evaluate model=runs/cloned scenario=rlbm/default baselines=[brief_pulse,naive,random]

`folder` (runs/datasets) is that of the datasets. `epochs` (200) are passes over all but the last tenth of the episodes, at
least one, on which the clone is then compared with the recorded controller. All other arguments are configuration of
`netbuf-gym train`. The environment is the dataset's. (d3rlpy and imitation require Gymnasium 1.0 and 0.29, which exclude
today's; newer libraries of their kind read Minari datasets.)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from omegaconf import OmegaConf

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.integrations.normalizing import normalize_by_observations
from netbuf_gym.training import train
from netbuf_gym.training.algorithms import imitation
from netbuf_gym.training.algorithms.ppo import BatchPPO
from netbuf_gym.training.checkpoints import checkpoint, versions
from netbuf_gym.training.config import load
from netbuf_gym.training.environment import build_env_kwargs, make_worlds
from netbuf_gym.utils import scripts
from netbuf_gym.utils.arguments import check_integer, check_text
from netbuf_gym.utils.files import write_atomic
from netbuf_gym.utils.overrides import format_override, read_overrides, select_overrides
from netbuf_gym.zoo import datasets


def clone_dataset(name: str, folder: Path, run_dir: Path, epochs: int = 200, overrides: Sequence[str] = ()) -> dict[str, float]:
    """Write a model that clones the episodes of a dataset into a run's folder.

    Args:
        name: Name of the dataset, of one of our environments.
        folder: Folder of Minari's datasets.
        run_dir: Output folder, made if missing.
        epochs: Passes over the data, 1 or more.
        overrides: Overrides of the training configuration; the learner must be PPO on an MLP.

    Returns:
        On the last tenth of the episodes, which are held out: `agreement`, the share of equal decisions, for discrete actions;
        `error`, the mean squared difference, for continuous ones. And `decisions`, the number learned from.

    Raises:
        ConfigError: No such dataset, none of our environments, fewer than two episodes, or a learner that cannot clone.
        MissingExtraError: Minari is not installed.
    """
    dataset = datasets.load_dataset(name, folder)
    spec, episodes = dataset.spec.env_spec, [dataset[k] for k in range(dataset.total_episodes)]
    if spec is None or (task := tasks.find_task(spec.id)) is None or len(episodes) < 2:
        raise ConfigError(f"dataset = {quote(name)} has {len(episodes)} episodes of {spec and spec.id}; valid: two, of ours")
    config = load("train", [f"env={task}", "algo=ppo", *overrides])
    own_kwargs = dict(spec.kwargs)
    scenario = own_kwargs.pop("scenario", None)
    own_scenario = scenario if isinstance(scenario, dict) else {"name": scenario}
    config.scenario.name, config.env.id = own_scenario.pop("name"), spec.id
    OmegaConf.update(config, "scenario.kwargs", own_scenario, merge=False)
    OmegaConf.update(config, "env.kwargs", own_kwargs, merge=False)
    kwargs = build_env_kwargs(config)
    worlds = make_worlds(spec.id, 1, 1, kwargs)
    try:
        model, _ = train.build_learner(config, worlds)
        if not isinstance(model, BatchPPO) or type(model).__module__ != BatchPPO.__module__:
            raise ConfigError(f"algo.name = {config.algo.name!r} cannot clone; valid: ppo, ppo_kl")
        cut = len(episodes) - max(len(episodes) // 10, 1)
        own, held = _collect_tensors(episodes[:cut], model), _collect_tensors(episodes[cut:], model)
        normalize_by_observations(model.policy, own[0])
        optimizer = th.optim.Adam(model.policy.parameters(), lr=imitation.LEARNING_RATE)
        imitation.fit_policy(model, optimizer, own[0], own[1], own[2], epochs)
        run_dir.mkdir(parents=True, exist_ok=True)
        write_atomic(run_dir / "config.yaml", OmegaConf.to_yaml(config))
        versions.write_versions(run_dir, config.seed)
        progress = {"timesteps": len(own[0]), "seconds": 0.0, "updates": epochs, "finished": True}
        checkpoint.save_model(run_dir / "model.zip", model, config, train.describe_env(model, config, kwargs), progress)
        return {"decisions": len(own[0]), **imitation.measure_agreement(model, *held[:2])}
    finally:
        worlds.close()


def _collect_tensors(episodes: Sequence[Any], model: BatchPPO) -> tuple[th.Tensor, ...]:
    """Return the observations, actions and discounted returns of all decisions."""
    observations = np.concatenate([one.observations[:-1] for one in episodes])
    actions = th.as_tensor(np.concatenate([one.actions for one in episodes])).to(model._head.action_type)
    returns = []
    for one in episodes:
        total, own = float(np.mean(one.rewards)) / (1 - model.gamma), np.zeros(len(one.rewards), np.float32)
        for k in reversed(range(len(own))):
            own[k] = total = float(one.rewards[k]) + model.gamma * total
        returns.append(own)
    found = (th.as_tensor(observations), actions, th.as_tensor(np.concatenate(returns)))
    return tuple(one.to(model.device) for one in found)


def main(argv: Sequence[str]) -> int:
    """Run the command and return 0. Raises as `clone_dataset`."""
    if not argv or any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    name, *words = argv
    if "=" in name:
        raise ConfigError(f"dataset is missing before {quote(name)}; valid: a dataset's name, then key=value")
    defaults = {"folder": "runs/datasets", "epochs": 200, "run_dir": f"runs/cloned/{name}"}
    own, others = select_overrides(words, defaults)
    given = defaults | read_overrides(own, defaults)
    folder, run_dir = (Path(check_text(key, given[key])) for key in ("folder", "run_dir"))
    epochs = check_integer("epochs", given["epochs"], 1, 10_000)
    found = clone_dataset(name, folder, run_dir, epochs, others)
    print(f"{run_dir}: " + ", ".join(f"{key} {value:.4g}" for key, value in found.items()))
    print(f"evaluate with: netbuf-gym evaluate {format_override('model', run_dir)}")
    return 0


if __name__ == "__main__":
    scripts.run("cloning", main)
