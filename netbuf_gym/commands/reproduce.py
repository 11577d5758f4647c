"""`netbuf-gym reproduce`: a paper's own experiments, run again."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable

from netbuf_gym.errors import ConfigError
from netbuf_gym.nearest import did_you_mean
from netbuf_gym.plots import require
from netbuf_gym.progress import ProgressBar
from netbuf_gym.reproduce.campaign import Campaign
from netbuf_gym.reproduce.settings import (
    DEFAULT_SCHEMES,
    INTERVALS_S,
    LOADS,
    NAMES,
    TRAFFIC,
    parse,
)
from netbuf_gym.tasks.queue_threshold import QUEUE_PACKETS
from netbuf_gym.zoo.schema import FIRST_EVALUATION_SEED

HELP = "run a paper's own experiments again, and draw its figures"
EXPERIMENTS = ("rlbm",)


INTERMIXED = True
"""Options may stand among the settings."""


def _listed(values: Iterable[object]) -> str:
    return f"[{','.join(f'{value:g}' if isinstance(value, float) else str(value) for value in values)}]"


EPILOG = f"""experiments:
  rlbm  the thesis on learned queue thresholds: schemes x congestion controls x sizes x loads x seeds, 60 s each

settings (KEY=VALUE in the grammar of `netbuf-gym train`, lists in brackets, but no sweeps), with their defaults:
  schemes={_listed(DEFAULT_SCHEMES)}
      also {", ".join(name for name in NAMES if name not in DEFAULT_SCHEMES)}; or all.
      rlbm is a trained agent; random takes its decisions by chance, random_no_beta without the thesis' weights
  agent=FILE               the trained agent: a model.zip, a run directory or a name (netbuf-gym list agents; default:
                           queue_threshold/ppo, which comes with the package); a file that exists goes before a name
  traffic=thesis-code      {", ".join(TRAFFIC)}: the thesis as coded, as described, or a sane offered load
  ccs=[cubic,newreno]
  sizes={_listed(QUEUE_PACKETS)}
      packets a queue; the two queues share twice that
  loads={_listed(LOADS)}
  seeds=10                 runs of each cell, from first_seed={FIRST_EVALUATION_SEED} on (no agent was trained on those)
  duration_s=60
  interval_s=0.1           between the decisions of random and rlbm
  intervals={_listed(INTERVALS_S)}
      the same for the interval sweep, which goes over CUBIC and sizes 100, 500, 1000; []: none
  output=DIR               default: runs/reproduce/rlbm-TRAFFIC-DIGEST
  jobs=N                   threads; default: one for each core
  figures=true             whether to draw

DIR gets runs.csv (a row a run, its first line the command), campaign.json and figures/. An interrupted campaign goes on
when the command is given again; a runs.csv whose end was cut is completed, one that is damaged otherwise is refused.

Exit status: 0 done, 2 bad input, 3 a fault of the simulator, 130 interrupted.

examples:
  netbuf-gym reproduce rlbm
  netbuf-gym reproduce rlbm schemes=[naive,dt,codel] traffic=default seeds=3 loads=[0.4,0.8] sizes=[100,1000] output=out
  netbuf-gym reproduce rlbm schemes=all agent=zoo/agents/queue_threshold/ppo/model.zip
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    parser.add_argument("experiment", metavar="EXPERIMENT", help=f"one of: {', '.join(EXPERIMENTS)}")
    parser.add_argument("settings", metavar="KEY=VALUE", nargs="*", help="what differs from the defaults, see below")
    parser.add_argument("--cfg", "-c", choices=["job"], help="print the settings and exit")


def run(arguments: argparse.Namespace) -> int:
    """Does it."""
    if arguments.experiment not in EXPERIMENTS:
        hint = did_you_mean(arguments.experiment, EXPERIMENTS)
        raise ConfigError(f"experiment {arguments.experiment!r} is unknown; {hint}valid: {', '.join(EXPERIMENTS)}")
    order = parse(arguments.settings)
    if arguments.cfg:
        own = {"output": str(order.output), "jobs": order.jobs, "figures": order.figures}
        print("\n".join(f"{key}: {json.dumps(value)}" for key, value in (order.settings.to_dict() | own).items()))
        return 0
    if order.figures:
        require()  # refuses, before any work is done, where there is none
    campaign = Campaign(order.settings, order.output, order.jobs)
    print(f"{order.settings.command()}: {campaign.runs} runs into {order.output}", flush=True)
    try:
        with ProgressBar("reproduce") as bar:
            table = campaign.run(bar)
        if campaign.lost:
            print(f"{table}: its end was cut; {campaign.lost} of its runs were made again")
        drawn = []
        if order.figures:
            from netbuf_gym.reproduce.figures import draw_campaign

            drawn = draw_campaign(campaign, order.output / "figures")
    except KeyboardInterrupt:
        print("netbuf-gym: interrupted; the same command goes on", file=sys.stderr)
        return 130
    print(f"{table}: {campaign.runs} runs in {campaign.seconds:.0f} s")
    if drawn:
        print(f"{drawn[0].parent}: {len(drawn)} figures")
    return 0
