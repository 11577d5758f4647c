"""`netbuf-gym reproduce`: a paper's own experiments, run again."""

from __future__ import annotations

import argparse
import json
import sys

from netbuf_gym import executors
from netbuf_gym.plots import require
from netbuf_gym.progress import ProgressBar
from netbuf_gym.reproduce.campaign import Campaign
from netbuf_gym.reproduce.catalogue import EXPERIMENTS, experiment

HELP = "run a paper's own experiments again, and draw its figures"


INTERMIXED = True
"""Options may stand among the settings."""


def _epilog() -> str:
    own = list(EXPERIMENTS.values())
    width = max(len(one.name) for one in own)
    listed = "\n".join(f"  {one.name:{width}}  {one.summary}" for one in own)
    settings = "\n\n".join(f"settings of {one.name}, with their defaults:\n{one.help}" for one in own)
    examples = "\n".join(f"  netbuf-gym reproduce {f'{one.name} {words}'.strip()}" for one in own for words in one.examples)
    return f"""experiments:
{listed}

executors:
{executors.listed()}

settings are KEY=VALUE in the grammar of `netbuf-gym train`, lists in brackets, but no sweeps. Those of every experiment:
  output=DIR               default: runs/reproduce/EXPERIMENT-DIGEST
  jobs=N                   of them at once; default: one for each core
  executor=NAME            where the runs are made; default: local
  figures=true             whether to draw

{settings}

DIR gets runs.csv (a row a run, its first line the command), campaign.json and figures/. An interrupted campaign goes on
when the command is given again; a runs.csv whose end was cut is completed, one that is damaged otherwise is refused.

Exit status: 0 done, 2 bad input, 3 a fault of the simulator, 130 interrupted.

examples:
{examples}
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    parser.epilog, parser.formatter_class = _epilog(), argparse.RawDescriptionHelpFormatter
    parser.add_argument("experiment", metavar="EXPERIMENT", help=f"one of: {', '.join(EXPERIMENTS)}")
    parser.add_argument("settings", metavar="KEY=VALUE", nargs="*", help="what differs from the defaults, see below")
    parser.add_argument("--cfg", "-c", choices=["job"], help="print the settings and exit")


def run(arguments: argparse.Namespace) -> int:
    """Does it."""
    own = experiment(arguments.experiment)
    order = own.parse(arguments.settings)
    if arguments.cfg:
        apart = {"output": str(order.output), "jobs": order.jobs, "executor": order.executor.name, "figures": order.figures}
        print("\n".join(f"{key}: {json.dumps(value)}" for key, value in (order.settings.to_dict() | apart).items()))
        return 0
    if order.figures:
        require()  # refuses, before any work is done, where there is none
    campaign = Campaign(own, order.settings, order.output, order.jobs, order.executor)
    print(f"{order.settings.command()}: {campaign.runs} runs into {order.output}", flush=True)
    try:
        with ProgressBar("reproduce") as bar:
            table = campaign.run(bar)
        if campaign.lost:
            print(f"{table}: its end was cut; {campaign.lost} of its runs were made again")
        drawn = campaign.draw(order.output / "figures") if order.figures else []
    except KeyboardInterrupt:
        print("netbuf-gym: interrupted; the same command goes on", file=sys.stderr)
        return 130
    print(f"{table}: {campaign.runs} runs in {campaign.seconds:.0f} s")
    if drawn:
        print(f"{drawn[0].parent}: {len(drawn)} figures")
    return 0
