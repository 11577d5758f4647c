"""Command-line interface of studies: `netbuf-gym reproduce STUDY ...`, equivalent to `python -m studies.STUDY ...`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from netbuf_gym.utils.plots import require_matplotlib
from netbuf_gym.utils.progress import ProgressBar
from studies.catalogue import EXPERIMENTS, get_experiment
from studies.common.campaign import Campaign

CHECKOUT = Path(__file__).resolve().parents[1]


def describe() -> str:
    """Return the help text that lists all studies with their settings."""
    own = list(EXPERIMENTS.values())
    width = max(len(one.name) for one in own)
    listed = "\n".join(f"  {one.name:{width}}  {one.summary}" for one in own)
    settings = "\n\n".join(f"settings of {one.name}, with their defaults:\n{one.help}" for one in own)
    examples = "\n".join(f"  netbuf-gym reproduce {f'{one.name} {words}'.strip()}" for one in own for words in one.examples)
    return f"""studies:
{listed}

{settings}

examples:
{examples}
"""


def run(name: str, words: Sequence[str], show: bool = False) -> int:
    """Run a study and return the exit status.

    Args:
        name: Name of the study.
        words: Settings as `key=value`.
        show: Print the settings instead of running.
    """
    own = get_experiment(name)
    order = own.parse(words)
    if show:
        apart = {"output": str(order.output), "jobs": order.jobs, "executor": order.executor.name, "figures": order.figures}
        print("\n".join(f"{key}: {json.dumps(value)}" for key, value in (order.settings.to_dict() | apart).items()))
        return 0
    if order.figures:
        require_matplotlib()  # fail before any work is done
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


def run_as_program(name: str) -> NoReturn:
    """Exit the interpreter with the status of `netbuf-gym reproduce NAME` for the program's command-line arguments."""
    from netbuf_gym.cli.program import main

    sys.exit(main(["reproduce", name, f"--studies={CHECKOUT}", *sys.argv[1:]]))
