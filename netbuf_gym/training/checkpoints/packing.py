"""Saved models for publication: without the state that only training needs, paths of the machine, and the sender's pickles.

Other readers of such files (`stable_baselines3.PPO.load`, a hub's, rl_zoo3's) unpickle the member `data`, and may trust the
files of parameters. This package does neither, so that a file which is harmless here could harm them. A packed file is
therefore written anew: the learner is built from the checked configuration, its parameters are the tensors that were
read, and of the rest of the file only the description, which is JSON, is kept. The states of the optimiser and of the
random generators are empty, as in a learner that has not begun.
"""

from __future__ import annotations

from pathlib import Path

from omegaconf import DictConfig

from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SMALL_ARGUMENTS, build_model, make_rules
from netbuf_gym.training.config import merge_configs, to_plain
from netbuf_gym.utils.files import write_atomic


def get_start_agent(saved: checkpoint.SavedModel) -> str | None:
    """Return the agent that training started from; of an absolute path the last two parts."""
    begun = saved.config.start_from
    if begun is None or not Path(begun).is_absolute():
        return begun
    return "/".join(Path(begun).parts[-2:])


def pack_model(saved: checkpoint.SavedModel, path: Path) -> DictConfig:
    """Write a saved model for publication.

    Its run directory and the run it was resumed from are null; of an absolute path to the agent that it started from, the last
    two parts are kept. Its decisions are unchanged; the state that training resumes from is left out: the optimiser's, the
    random generators', and the moment of a checkpoint.

    Returns:
        The configuration in the new file.

    Raises:
        CheckpointError: The model was trained by other rules than today's, or its parameters do not fit.
        ConfigError, ScenarioError: Its environment cannot be made.
        OSError: The file cannot be written; nothing is left behind.
    """
    config = merge_configs(saved.config, {"run_dir": None, "resume": None, "start_from": get_start_agent(saved)})
    model = build_model(saved, make_rules(saved), config.env.num_envs)
    model.seed = config.seed
    for name in SMALL_ARGUMENTS.keys() & config.algo.kwargs.keys():
        setattr(model, name, to_plain(config.algo.kwargs)[name])
    model.policy.optimizer.state.clear()
    file = checkpoint.build_archive(model, config, saved.env, saved.progress, saved.versions, generators={})
    write_atomic(path, file.getvalue())
    return config
