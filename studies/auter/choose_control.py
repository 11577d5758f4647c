"""Judge hosts that choose their congestion control on fresh worlds: rates, rises, rivals and fast paths they were not made for.

    python -m studies.auter.choose_control [controllers=[adaptive,...]] [families=[...]] [worlds=N] [first_seed=N] [output=DIR]

Every controller meets the same worlds, drawn under world seeds from `first_seed` on (7,000,000: those that judge; nothing is
made or chosen on them). A row a world and controller is kept in `output`, and those that are there are not played again. The
table has, by family, the mean difference of utility and the geometric mean of throughput against `autotuning` and against
`autotuning+vegas`, with 95 % intervals over worlds, and in how many worlds throughput is below 0.85 of `default`. Where a rate
changes, throughput is that after the change.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Distribution, RateTrace, Scenario
from netbuf_gym.tasks.host_buffers.random_paths import HostPaths, make_host_world
from netbuf_gym.tasks.host_buffers.task import HostBuffers
from netbuf_gym.training.schema import FIRST_JUDGING_SEED
from netbuf_gym.utils import files, scripts
from netbuf_gym.utils.arguments import check_choice, check_integer, check_sequence
from netbuf_gym.utils.overrides import read_overrides
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.utils.statistics import mean_interval
from netbuf_gym.utils.tables import markdown_table

TASK = HostBuffers.name
FIRST_SEED = FIRST_JUDGING_SEED
KERNEL, VEGAS, DEFAULT = "autotuning", "autotuning+vegas", "default"
CONTROLLERS = (DEFAULT, KERNEL, VEGAS, "autotuning+bbr", "host_buffers/dqn", "adaptive")
COLUMNS = ("family", "world", "controller", "utility", "throughput_mbps", "after_mbps", "rtt_ratio", "memory_mb", "loss_rate")
LEAST = 0.85
TOGETHER = 10
"""Number of worlds that are played at a time."""


def long_flow(seed: int) -> Scenario:
    """Return the world of one connection over 100 Mbit/s and 160 ms."""
    return make_host_world(rate_mbps=100, rtt_ms=160, duration_s=90, name="one flow")


@dataclass(frozen=True)
class Family:
    """Worlds of one kind.

    Attributes:
        worlds: Number of worlds by default.
        source: Distribution, or function of a world's seed.
    """

    worlds: int
    source: Distribution | Callable[[int], Scenario]

    def draw(self, seed: int) -> Scenario:
        """Return the world of a seed, its host an agent's."""
        drawn = self.source
        return HostBuffers().control(
            drawn.sample(np.random.default_rng(seed)) if isinstance(drawn, Distribution) else drawn(seed)
        )


_paths = partial(HostPaths, relay_probability=0.3, polls_probability=0.5, duration_s=90.0)
FAMILIES: dict[str, Family] = {
    "paths": Family(
        120,
        _paths(
            rate_mbps=(1.5, 80.0),
            rtt_ms=(4.0, 240.0),
            buffer_bdp=(0.4, 10.0),
            traffic=("long", "long", "long", "mixed", "short"),
            connections=(1, 20),
            change_probability=0.15,
            slow_nic_probability=0.1,
        ),
    ),
    "rises": Family(
        50, _paths(rate_mbps=(2.0, 30.0), rtt_ms=(12.0, 240.0), traffic=("long",), rise_probability=1.0, duration_s=120.0)
    ),
    "rivals": Family(
        60,
        _paths(
            rate_mbps=(3.0, 80.0),
            rtt_ms=(6.0, 240.0),
            buffer_bdp=(0.4, 6.0),
            traffic=("long", "long", "mixed"),
            rival_probability=1.0,
            rivals=(1, 3),
            duration_s=120.0,
        ),
    ),
    "fast": Family(40, _paths(rate_mbps=(100.0, 250.0), rtt_ms=(30.0, 150.0), traffic=("long",), loss=(1e-7, 1e-4))),
    "many": Family(
        20,
        _paths(
            rate_mbps=(100.0, 900.0),
            rtt_ms=(5.0, 120.0),
            traffic=("long",),
            loss=(1e-7, 1e-4),
            connections=(20, 500),
            nic_mbps=None,
            duration_s=45.0,
        ),
    ),
    "one flow": Family(10, long_flow),
}


def main(argv: Sequence[str]) -> int:
    """Run the command and return 0.

    Raises:
        ConfigError: An argument is unknown or out of range.
        OSError: The rows cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    defaults: dict[str, Any] = {
        "controllers": list(CONTROLLERS),
        "families": list(FAMILIES),
        "worlds": 0,
        "first_seed": FIRST_SEED,
        "output": "runs/choose_control",
    }
    given = defaults | read_overrides(argv, defaults)
    families = [check_choice("families", name, FAMILIES) for name in check_sequence("families", given["families"], "families")]
    named = check_sequence("controllers", given["controllers"], "controllers")
    controllers = list(dict.fromkeys((KERNEL, *named)))  # what all others are judged by
    worlds = check_integer("worlds", given["worlds"], 0, 100_000)
    first = check_integer("first_seed", given["first_seed"], 0, 2**62)
    counts = {name: worlds or FAMILIES[name].worlds for name in families}
    table = Path(given["output"]) / f"rows-{first}.csv"
    rows = _read_rows(table)
    total = len(controllers) * sum(counts.values())
    with ProgressBar("choose_control") as bar:
        done = 0
        for family, count in counts.items():
            for controller in controllers:
                have = {int(row["world"]) for row in rows if (row["family"], row["controller"]) == (family, controller)}
                lacking = [seed for seed in range(first, first + count) if seed not in have]
                for start in range(0, len(lacking), TOGETHER):
                    rows += play(family, controller, lacking[start : start + TOGETHER])
                    _write_rows(table, rows)
                    bar(done + start, total)
                done += count
    wanted = [row for row in rows if row["family"] in counts and int(row["world"]) < first + counts[row["family"]]]
    print(build_table(wanted, controllers))
    print(f"{table}: {len(rows)} rows")
    return 0


def play(family: str, controller: str, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Play worlds of a family with a controller, and return a row of `COLUMNS` for each."""
    worlds = [rollout.World(FAMILIES[family].draw(seed), seed % 2**31, seed) for seed in seeds]
    shown: dict[int, list[tuple[float, float]]] = {index: [] for index in range(len(worlds))}
    rows: dict[int, dict[str, Any]] = {}

    def watch(view: rollout.View) -> None:
        seen = view.show()
        shown[view.index].append((seen["time_s"], seen["throughput_mbps"]))

    def keep(view: rollout.View) -> None:
        report, after_s = view.whole_report()[0], _find_rise_s(view.scenario)
        after = [mbps for time_s, mbps in shown[view.index] if time_s > after_s]
        rows[view.index] = {
            "family": family,
            "world": seeds[view.index],
            "controller": controller,
            "after_mbps": float(np.mean(after)),
            **{name: report[name] for name in COLUMNS if name in report},
        }

    rollout.play(_make_controller(controller), worlds, keep, task=TASK, watch=dict.fromkeys(shown, watch))
    return [rows[index] for index in range(len(worlds))]


def _make_controller(name: str) -> Any:
    if not name.startswith(f"{TASK}/"):
        return rollout.get_controller(name, TASK)
    from netbuf_gym import zoo

    return rollout.as_controller(zoo.load(name), TASK)


def _find_rise_s(scenario: Scenario) -> float:
    """Return when the rate of a world rises; 0 where it has one rate."""
    trace = scenario.links[1].trace
    return float(trace.time_s[-1]) if isinstance(trace, RateTrace) else 0.0


def build_table(rows: Sequence[Mapping[str, Any]], controllers: Sequence[str]) -> str:
    """Return the Markdown table of controllers by family."""
    by_world: dict[tuple[str, int], dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        by_world.setdefault((row["family"], int(row["world"])), {})[row["controller"]] = row
    families = list(dict.fromkeys(family for family, _ in by_world))
    lines = []
    for family in (*families, "all"):
        played = [one for (name, _), one in by_world.items() if family in (name, "all")]
        for controller in controllers:
            pairs = [one for one in played if controller in one and KERNEL in one]
            if not pairs:
                continue
            cells = [family, controller, str(len(pairs))]
            for rival in (KERNEL, VEGAS):
                beside = [one for one in pairs if rival in one]
                gains = [float(one[controller]["utility"]) - float(one[rival]["utility"]) for one in beside]
                rates = [np.log(float(one[controller]["after_mbps"]) / float(one[rival]["after_mbps"])) for one in beside]
                cells += [_format_mean(gains, "+.3f"), _format_mean(rates, ".3f", np.exp)]
            cells.append(f"{np.mean([float(one[controller]['rtt_ratio']) for one in pairs]):.2f}")
            ratios = [
                float(one[controller]["throughput_mbps"]) / float(one[DEFAULT]["throughput_mbps"])
                for one in pairs
                if DEFAULT in one
            ]
            cells.append(f"{sum(ratio < LEAST for ratio in ratios)} ({min(ratios):.2f})" if ratios else "")
            lines.append(cells)
    head = ["worlds", "controller", "number", f"utility over {KERNEL}", "throughput over it"]
    head += [f"utility over {VEGAS}", "throughput over it", "RTT / base", f"below {LEAST} of {DEFAULT} (least)"]
    return markdown_table(head, lines)


def _format_mean(values: Sequence[float], form: str, undo: Callable[[Any], Any] = lambda value: value) -> str:
    """Format the mean of values with its 95 % interval."""
    if not values:
        return ""
    mean, low, high = (undo(value) for value in mean_interval(np.array(values)))
    return f"{mean:{form}} [{low:{form}}, {high:{form}}]"


def _read_rows(path: Path) -> list[dict[str, Any]]:
    return list(csv.DictReader(io.StringIO(path.read_text()))) if path.exists() else []


def _write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(path, text.getvalue())


if __name__ == "__main__":
    scripts.run("choose_control", main)
