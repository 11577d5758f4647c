"""`netbuf-gym train`, `tune`, `evaluate` and `demo`: jobs configured by Hydra, with Hydra's options.

Help needs none of the extras that the jobs need, and arguments are checked before the learners are loaded.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from netbuf_gym.cli.program import JOBS, Parser, write_output
from netbuf_gym.errors import ConfigError, require_extra
from netbuf_gym.training import config_reference
from netbuf_gym.utils.interrupts import ExitOnInterrupt
from netbuf_gym.version import __version__

if TYPE_CHECKING:
    from netbuf_gym.training.jobs import Job

CONFIGURATION = {name: "train" if name == "demo" else name for name in JOBS}
"""Configuration that each job uses."""
EXPERIMENT = {"demo": "demo"}
"""Experiment that a job starts from."""
INFORMATION = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")

DESCRIPTION = {
    "train": """Trains an agent by its configuration, with checkpoints; resumes an earlier run.

  netbuf-gym train env=congestion_window algo=ppo seed=3
  netbuf-gym train algo=ppo_kl scenario=ppcc/4 total_timesteps=5000000 torch_threads=2
  netbuf-gym train -m seed=1,2,3 algo=ppo,ppo_kl
  netbuf-gym train resume=runs/congestion_window/ppo/20260101-120000-seed3

A run directory holds config.yaml, progress.csv, learning_curve.png, TensorBoard logs, checkpoint.zip while training goes
on and model.zip when it is done. Interrupting (Ctrl-C) leaves a checkpoint, and the command that goes on is printed.""",
    "tune": """Searches the settings with which a learner, or the parameters with which a controller does best on a task.

  netbuf-gym tune controller=brief_pulse hours=0.5 trials=5000 executor=joblib jobs=2
  netbuf-gym tune controller=cubic env=congestion_window scenario=ppcc/random search.hystart=null search.c.high=1
  netbuf-gym tune env=congestion_window algo=ppo total_timesteps=500000 trials=30 workers=2
  netbuf-gym tune env=host_buffers algo=dqn experiment=worlds/host_buffers hours=1
  netbuf-gym tune env=queue_threshold algo=a2c search.gamma.choices=[0.9,0.97] storage=sqlite:///study.db

A controller's parameters and their ranges are its own; what its name sets (brief_pulse:many=0) is not searched. All trials
play the same worlds, first few, then twice as many at each rung, if they are among the better half so far; percentiles are over
the flows of all worlds together. The best trials and the shipped settings then play worlds of validation, whose best is kept,
so that it is never worse there than what is shipped. tuned/best.yaml has it as a controller's name with settings, which all
commands take: "controller='brief_pulse:tail_ms=12'". A killed study goes on by the same command, and repeats the trials that
were under way.

Of a learner each trial trains with several seeds, all trials with the same ones, and is scored as the task's agents are, in
worlds of the study's own that no agent is trained, chosen or evaluated on; those that lag behind are given up. The first trial
is the learner's defaults, or what is nearest to them of what is searched. What the command line sets is not searched. The same
command goes on with a study, and may be started several times at once, on many machines with a database or a proxy as the
storage; a process that is killed costs its trial, which another one tries again.

The folder (run_dir) holds tuned/best.yaml, trials.csv, and history.png, importance.png and slice.png. The command that trains
with the best settings is printed; like best.yaml it has the steps, worlds and all else that scores were measured with. Settings
that come with the package: netbuf-gym train env=E algo=A tuned=E.""",
    "evaluate": """A trained agent beside baselines, over worlds that it was not trained on.

  netbuf-gym evaluate model=congestion_window/sender
  netbuf-gym evaluate model=runs/congestion_window/ppo/20260101-120000-seed3 scenario=ppcc/4
  netbuf-gym evaluate model=model.zip scenario=ppcc/random seeds=100 baselines=[cubic,bbr]
  netbuf-gym evaluate model=model.zip scenario=ppcc/2 scenario.kwargs.rate_mbps=20 senders=2 run_dir=runs/twenty
  netbuf-gym evaluate model=null env=queue_threshold scenario=rlbm/cubic-500-0.6 baselines=[naive,dt,abm,random]
  netbuf-gym evaluate model=null env=queue_threshold recipe=thesis-text baselines=[naive,random]

The agent acts greedily. Seeds start at 1000000, where training seeds end; every controller meets the same worlds (under a
distribution of scenarios, each seed draws its own), is run from its start to its end, and is measured alike. Prints a
table of means with 95 % t intervals over the seeds, and under a distribution what becomes of the score by properties of
the worlds, and writes them, result.json and plots into the run directory. Without a model the first baseline stands in
the agent's row, and `recipe` says by which one baselines that decide as agents do (`random`) play; with one, its own.""",
    "demo": """Trains an agent for two minutes, judges it on unseen seeds, draws a world, says in three sentences what was seen.

  netbuf-gym demo
  netbuf-gym demo max_minutes=5 seed=7 scenario=ppcc/4

Takes the arguments of `netbuf-gym train`; what they leave open, `experiment=queue_threshold` too, is in
conf/experiment/demo.yaml (and `env.threads` is 2 where there are two cores). A sender is trained in the worlds of
conf/experiment/worlds/demo.yaml, unless an environment, a scenario or an experiment is chosen, and judged on links that never
change, links whose rate changes, generated cellular links and links with a rival; agents of other tasks on the scenarios that
they are compared on. Everything lands under runs/demo/<time>-seed<seed>: the model, its training log, demo.png, and for each
scenario a table, result.json and plots.""",
}
GRAMMAR = """Arguments are overrides in Hydra's grammar: KEY=VALUE, lists in brackets, texts with commas, spaces or brackets in
quotes of their own inside those of the shell ("scenario='trace:a b.csv'"). Keys below kwargs may be new, e.g.
scenario.kwargs.rate_mbps=20. To zsh brackets, parentheses and stars are patterns: 'seeds=[1]' needs quotes there."""


def add(parser: Parser, name: str) -> None:
    """Add a job's arguments to its parser."""
    parser.description, parser.formatter_class = DESCRIPTION[name], argparse.RawDescriptionHelpFormatter
    parser.make_epilog = lambda: format_epilog(name)
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="overrides of the defaults below")
    parser.add_argument("--cfg", "-c", choices=["job", "hydra", "all"], help="print the composed configuration and exit")
    parser.add_argument("--resolve", action="store_true", help="with --cfg: fill in what refers to other keys")
    parser.add_argument("--package", "-p", metavar="KEY", help="with --cfg: this part of it only")
    parser.add_argument(
        "--info",
        "-i",
        nargs="?",
        const="all",
        choices=INFORMATION,
        help=f"print where the configuration comes from and exit: {', '.join(INFORMATION)} (default: all)",
    )
    if name != "demo":
        parser.add_argument(
            "--multirun",
            "-m",
            action="store_true",
            help="run every combination of values, in turn: key=1,2,3, key=range(1,4), key=choice(a,b), key=glob(*)",
        )
    parser.add_argument("--run", "-r", action="store_true", help="run a single job (the default)")
    parser.add_argument("--config-dir", "-cd", metavar="DIR", help="a folder of your own with further groups and files")
    parser.add_argument("--config-name", "-cn", metavar="NAME", help="the first file, e.g. one in DIR (default: the command's)")
    parser.add_argument("--config-path", "-cp", metavar="DIR", help="not available; see --config-dir")
    parser.add_argument("--hydra-help", action="store_true", help="print Hydra's own help and exit")
    parser.add_argument("--shell-completion", "-sc", action="store_true", help="see netbuf-gym completion")
    parser.add_argument("--version", action="version", version=f"netbuf-gym {__version__}")


def format_epilog(name: str) -> str:
    """Return the grammar of a job's arguments, and their reference."""
    text = f"{GRAMMAR}\n\n{config_reference.format_reference(CONFIGURATION[name], EXPERIMENT.get(name))}"
    if name == "tune":
        text += f"\n\nwith controller=NAME instead:\n\n{config_reference.format_reference('tune_controller')}"
    return text


def parse(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of a job; options may stand anywhere among the overrides.

    Raises:
        ConfigError: An option that is a key of the configuration.
    """
    words = list(argv)
    job = CONFIGURATION[parser.prog.split()[-1]]
    options = [one for action in parser._actions for one in action.option_strings]
    for word, value in zip(words, [*words[1:], ""], strict=False):
        name, equals, own = word.partition("=")
        if word.startswith("--") and word != "--" and not any(one.startswith(name) for one in options):
            key = import_training_module(parser.prog.split()[-1], "config_errors").find_meant_key(name[2:], job)
            if key is not None:
                given = own if equals else "" if value.startswith("-") or "=" in value else value
                meant = f"{key}={given or '...'}"
                raise ConfigError(f"there is no option {name}; settings are KEY=VALUE; did you mean {meant!r}?")
    for at, word in enumerate(argv):
        if word in ("--info", "-i") and (at + 1 == len(argv) or argv[at + 1] not in INFORMATION):
            words[at] = "--info=all"
    return parser.parse_intermixed_args(words)


def run(name: str, options: argparse.Namespace) -> int:
    """Run the job and return its exit status."""
    if options.config_path is not None:
        raise ConfigError("--config-path is not taken; valid: --config-dir DIR, which adds to the configuration that there is")
    if options.shell_completion:
        raise ConfigError("--shell-completion is not taken; valid: netbuf-gym completion bash|zsh|fish")
    several = getattr(options, "multirun", False) or "hydra.mode=MULTIRUN" in options.settings
    views = {"--cfg": options.cfg, "--info": options.info, "--multirun": several, "--hydra-help": options.hydra_help}
    if sum(bool(one) for one in views.values()) > 1:
        raise ConfigError(f"{' and '.join(key for key, one in views.items() if one)}; valid: one of them")
    if (options.package is not None or options.resolve) and options.cfg is None:
        raise ConfigError("--package and --resolve change what --cfg prints; valid: with --cfg job|hydra|all")
    if any(views.values()) and options.run:
        raise ConfigError("--run cannot be combined with --cfg, --info, --multirun or --hydra-help; valid: one of them")
    training = import_training_module(name, "jobs")
    name = training.find_job(name, options.settings)
    source = training.Source(options.config_dir, options.config_name)
    overrides = [one for one in options.settings if one != "hydra.mode=RUN"]
    if several:
        return import_training_module(name, "sweep").run_sweep(name, overrides, source, run_job)
    if any(views.values()):
        if name == "demo":
            overrides = training.expand_demo_overrides(overrides)
        shown = ["--hydra-help"] if options.hydra_help else ["--info", options.info] if options.info else ["--cfg", options.cfg]
        view = [*shown, *(["--resolve"] if options.resolve else [])]
        views_module = import_training_module(name, "hydra_views")
        write_output(views_module.format_view(CONFIGURATION.get(name, name), overrides, source, view, options.package))
        return 0
    return run_job(training.load_job(name, overrides, source))


def run_job(job: Job) -> int:
    """Run a job and return its exit status; raises as its module's `main` does, or MissingExtraError."""
    return import_training_module(job.name, job.name).main(job)


def import_training_module(name: str, module: str) -> ModuleType:
    """Import a module of `netbuf_gym.training` for a command.

    Raises:
        MissingExtraError: The extra that the module needs is not installed.
    """
    with require_extra(f"netbuf-gym {name}", "tune" if name.startswith("tune") else "train"), ExitOnInterrupt():
        return importlib.import_module(f"netbuf_gym.training.{module}")
