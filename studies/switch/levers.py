"""Measures what the levers of a switch are worth to the rule `brief_pulse`: the scheduler, and a table of flows.

    python -m studies.switch.levers [worlds=25] [families=A,B] [rules=A,B] [drops=tail,head] [first_seed=7000000] [threads=N]

Plays rules by name in the worlds of the families of `python -m studies.switch`, deciding every 100 ms, beside the naive
buffer and FQ-CoDel, which drops as it does. Prints for each family and drop place geometric means over worlds of the 99th
percentile of slowdowns of priority 0 over FQ-CoDel's, and of priority 1's and of goodput over naive's, paired by world, with
95 % intervals over all families. Seeds from 7,000,000 on are for judging; choose by others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from netbuf_gym.evaluation.rollout import evaluate
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.tasks.queue_threshold import QueueThreshold
from netbuf_gym.training.schema import FIRST_JUDGING_SEED
from netbuf_gym.utils.arguments import check_choice, check_integer
from netbuf_gym.utils.overrides import read_overrides
from studies.switch.switch_settings import FAMILIES

NAIVE, FAIR = "naive", "fq_codel"
RULES = ("brief_pulse", "brief_pulse-strict", "brief_pulse-sparing", "brief_pulse-flows")
METRICS = ("slowdown_p99_p0", "slowdown_p99_p1", "goodput_mbps")
RATIOS = (("p99 / FQ-CoDel's", 0, FAIR), ("p99 of long flows / naive's", 1, NAIVE), ("goodput / naive's", 2, NAIVE))


def main(argv: Sequence[str]) -> int:
    """Run the command and return 0; raises ConfigError for an argument that is unknown or out of range."""
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    defaults = {"worlds": 25, "families": tuple(FAMILIES), "rules": RULES, "drops": DROPS, "first_seed": FIRST_JUDGING_SEED}
    defaults["threads"] = len(os.sched_getaffinity(0))
    given: dict[str, Any] = defaults | read_overrides(argv, defaults, lists=("families", "rules", "drops"))
    worlds, threads = (check_integer(name, given[name], 1, 100_000) for name in ("worlds", "threads"))
    first = check_integer("first_seed", given["first_seed"], 0, 2**62)
    families = [check_choice("families", name, FAMILIES) for name in given["families"]]
    for drop in given["drops"]:
        spec = {"drop": check_choice("drops", drop, DROPS)}
        logs: dict[str, list[np.ndarray]] = {who: [] for who in (NAIVE, FAIR, *given["rules"])}
        for family in families:
            for who, own in logs.items():
                seeds = range(first, first + worlds)
                reports = evaluate(who, QueueThreshold.name, {**FAMILIES[family], **spec}, seeds, threads=threads)
                own.append(np.log([[one[metric] for metric in METRICS] for one in reports]))
            print_row(drop, family, {who: own[-1] for who, own in logs.items()})
        print_row(drop, f"all {len(families)} families", {who: np.concatenate(own) for who, own in logs.items()}, True)
    return 0


def print_row(drop: str, family: str, logs: Mapping[str, np.ndarray], interval: bool = False) -> None:
    """Print each controller's ratios in worlds, given logarithms of `METRICS`, `(worlds, metrics)`."""
    for who, own in logs.items():
        said = []
        for label, column, rival in RATIOS:
            ratio = own[:, column] - logs[rival][:, column]
            ratio = ratio[np.isfinite(ratio)]  # worlds in which such flows completed
            middle, half = ratio.mean(), 1.96 * ratio.std(ddof=1) / np.sqrt(len(ratio)) if len(ratio) > 1 else np.inf
            around = f" [{np.exp(middle - half):.3f}, {np.exp(middle + half):.3f}]" if interval else ""
            said.append(f"{label} {np.exp(middle):.3f}{around}")
        print(f"{drop}, {family}: {who}: {', '.join(said)}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
