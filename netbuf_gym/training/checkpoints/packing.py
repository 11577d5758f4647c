"""A saved model for others: without what only its training needs, the paths of its machine, and pickles of whoever sent it.

Its readers elsewhere (`stable_baselines3.PPO.load`, a hub's, rl_zoo3's) unpickle the member `data`, and may trust the
files of parameters. We read neither as they do, so that a file which is harmless here could harm them. What is packed is
therefore written anew: the learner is built from the checked configuration, its parameters are the tensors that were
read, and nothing else of the file goes on but its description, which is JSON. The optimiser's state and the random
generators' are empty, which every reader takes for those of a learner that begins.
"""

from __future__ import annotations

from pathlib import Path

from omegaconf import DictConfig

from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SMALL, build, rules_of
from netbuf_gym.training.config import merged, plain
from netbuf_gym.utils.files import write_atomic


def began_with(saved: checkpoint.Saved) -> str | None:
    """The file of another agent that it began with; of an absolute path the last two names."""
    begun = saved.config.start_from
    if begun is None or not Path(begun).is_absolute():
        return begun
    return "/".join(Path(begun).parts[-2:])


def pack(saved: checkpoint.Saved, path: Path) -> DictConfig:
    """Writes a saved model where others find it.

    Where it was written and what it was resumed from are null; of another agent's file that it began with, if it is given
    by an absolute path, the last two names are left. It decides as it did; what a training would go on with is left out: the
    optimiser's state, those of the random generators, and the moment of a checkpoint.

    Returns:
        its configuration, as it is in the new file.

    Raises:
        CheckpointError: it was trained by other rules than today's, or its parameters do not fit.
        ConfigError, ScenarioError: its environment cannot be made.
        OSError: it cannot be written; nothing is left behind.
    """
    config = merged(saved.config, {"run_dir": None, "resume": None, "start_from": began_with(saved)})
    model = build(saved, rules_of(saved), config.env.num_envs)
    model.seed = config.seed
    for name in SMALL.keys() & config.algo.kwargs.keys():
        setattr(model, name, plain(config.algo.kwargs)[name])
    model.policy.optimizer.state.clear()
    file = checkpoint.written(model, config, saved.env, saved.progress, saved.versions, generators={})
    write_atomic(path, file.getvalue())
    return config
