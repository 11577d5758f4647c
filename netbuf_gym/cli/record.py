"""`netbuf-gym record`: episodes of a controller as a Minari dataset."""

from __future__ import annotations

import argparse
from operator import methodcaller
from pathlib import Path

from netbuf_gym import tasks
from netbuf_gym.cli.common import make_whole_parser
from netbuf_gym.errors import require_extra
from netbuf_gym.utils.progress import ProgressBar


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    valid = f"{', '.join(tasks.names())}; also env=TASK"
    parser.add_argument("task", metavar="TASK", type=methodcaller("removeprefix", "env="), choices=tasks.names(), help=valid)
    valid = "rule, congestion control, random, best, constant:ACTION, agent of the zoo, model file; also controller=CONTROLLER"
    parser.add_argument("controller", metavar="CONTROLLER", type=methodcaller("removeprefix", "controller="), help=valid)
    parser.add_argument("--scenario", metavar="NAME", help="netbuf-gym list scenarios (default: the task's)")
    parser.add_argument(
        "--episodes", type=make_whole_parser(1, 100_000), default=10, metavar="N", help="number of episodes (default: 10)"
    )
    parser.add_argument(
        "--seed", type=make_whole_parser(0, 2**62), default=1, metavar="N", help="seed of the first episode (default: 1)"
    )
    parser.add_argument("--folder", default="runs/datasets", metavar="DIR", help="folder of datasets (default: runs/datasets)")
    parser.add_argument("--name", metavar="NAME", help="name of the dataset (default: netbuf/TASK/CONTROLLER-v0)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    with require_extra("recording", "train"):
        from netbuf_gym.training.ranges import check_seeds
        from netbuf_gym.training.schema import FIRST_JUDGING_SEED
        from netbuf_gym.zoo.datasets import FOLDER_VARIABLE, record_dataset
    check_seeds("--seed", arguments.seed, arguments.seed + arguments.episodes - 1, 0, FIRST_JUDGING_SEED - arguments.episodes)
    seeds = range(arguments.seed, arguments.seed + arguments.episodes)
    with ProgressBar("recording") as bar:
        name = record_dataset(
            arguments.task,
            arguments.controller,
            Path(arguments.folder),
            scenario=arguments.scenario,
            seeds=seeds,
            name=arguments.name,
            each=lambda done: bar(done, arguments.episodes),
            tell=print,
        )
    folder = arguments.folder
    print(f'written to {folder}; {FOLDER_VARIABLE}={folder} python -c "import minari; minari.load_dataset({name!r})"')
    return 0
