"""Agents of the switch, rules, the best constant limits and what bounds them, family by family, in the same worlds.

    python -m studies.rlbm.families [worlds=150] [families=A,B] [drops=tail,head] [slow=AGENT] [fast=AGENT]
        [rules=true|false] [threads=N] [duration_s=60] [output=FILE] [figure=FILE]
    python -m studies.rlbm.families page=docs/switch.md

Worlds are those of the seeds 2000000, 2000001, ..., which neither training nor choosing has seen. `slow` decides every 100 ms
and `fast` every 10 ms, each a model's file or the name of an agent (queue_threshold/ppo and queue_threshold/ppo-10ms; an empty
value: none). Beside them stand the naive buffer, the constant limits that `tune_limits` found best for the family and the drop
place, FQ-CoDel, which has a queue for each flow and drops as it does, and, but for `rules=false`: the rules `brief_pulse` at
both intervals, also with the settings of `resting` that the agents begin with, that of 10 ms also with those that `tune_pulse`
found, `pulse` and `pulse_burst` every 10 ms, the best constants at 10 ms, Dynamic Thresholds, ABM, CoDel, and fair queueing
without an AQM, which drops only where the buffer is full.

A figure is the geometric mean over worlds of the 99th percentile of the slowdown of priority 0; its ratios to the naive
buffer, to the best constant and to FQ-CoDel have 95 % intervals, paired by world, and so has goodput over the naive buffer's.
Below the table stand the agents' geometric means over all its families, each of which counts alike (a seed's worlds are one
observation), and where an agent is worse than the naive buffer by more than 3 %.

Keeps every world in FILE (by default studies/rlbm/families.csv.gz), a contender as soon as it has played;
another run with as many worlds takes it up from there: `again=WHO` plays one anew, whose model has changed. `figure` draws what
the table has. `page` writes what the page says of `PARTS` between their lines, and draws its pictures.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import scripts, sections, tasks
from netbuf_gym.arguments import choice, real, whole
from netbuf_gym.contenders import Contender
from netbuf_gym.errors import CheckpointError, ConfigError, needing, one_line, shown
from netbuf_gym.files import write_atomic
from netbuf_gym.progress import say
from netbuf_gym.rollout import evaluate
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.tasks.queue_threshold import BriefPulse, BufferScheme, Limits, Pulse, PulseBurst, QueueThreshold
from studies.rlbm import families_table as tables
from studies.rlbm import tune_pulse
from studies.rlbm.families_table import AGENTS, CONSTANT, CONTENDERS, FAIR, FAST, NAIVE, SLOW, Measured
from studies.rlbm.resting import RESTING, SPARING
from studies.rlbm.tune_limits import FAMILIES, LEAST_GOODPUT, best, table_rows

FIRST_SEED = 2_000_000
HERE = Path(__file__).resolve().parent
TABLE = HERE / "families.csv.gz"
PARTS = {"random": ("families_random", 600, 60), "families": ("families", 150, 60), "300 s": ("families_300s", 100, 300)}
"""Of the page: the file of each, how many worlds it has, and how many seconds these last."""
NO_AQM = {"target_ms": 10_000.0, "interval_ms": 100_000.0}


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns 0.

    Raises:
        ConfigError: an argument that is unknown or out of range; a file of another version, or of other worlds.
        CheckpointError: an agent that cannot be read, or does not fit.
        OSError: a file cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    words = {"worlds": "150", "threads": str(len(os.sched_getaffinity(0))), "duration_s": "60", "figure": ""}
    words |= {"output": str(TABLE), "slow": f"{QueueThreshold.name}/ppo", "fast": f"{QueueThreshold.name}/ppo-10ms"}
    words |= {"families": ",".join(FAMILIES), "drops": ",".join(DROPS), "rules": "true", "again": "", "page": ""}
    given = scripts.given(argv, words)
    if given["page"]:
        write_page(Path(given["page"]))
        return 0
    worlds, threads = (whole(name, scripts.number(given[name]), low, 100_000) for name, low in (("worlds", 2), ("threads", 1)))
    duration_s = real("duration_s", scripts.number(given["duration_s"]), 1, 3600)
    families = [choice("families", name, FAMILIES) for name in given["families"].split(",")]
    drops = [choice("drops", name, DROPS) for name in given["drops"].split(",")]
    if (again := given["again"]) and again not in CONTENDERS:
        raise ConfigError(f"again = {shown(again)}; valid: {'; '.join(CONTENDERS)}")
    rules = choice("rules", given["rules"], ("true", "false")) == "true"
    agents = {who: agent_of(key, given[key]) for who, key in ((SLOW, "slow"), (FAST, "fast")) if given[key]}
    playing = [who for who in CONTENDERS if (who in agents if who in AGENTS else rules or who in (NAIVE, CONSTANT, FAIR))]
    if given["figure"]:
        _require_drawable(given["figure"])

    output, comment = scripts.to_write("output", given["output"]), comment_of(worlds, duration_s)
    found = {key: one for key, one in tables.read(output, comment, worlds).items() if key[2] != again}
    tables.write(output, found, comment)  # refuses what could not be written before the work
    for drop, family, who in ((drop, family, who) for drop in drops for family in families for who in playing):
        if (drop, family, who) not in found:
            say(f"{drop} {family}: {who}")
            spec = {**FAMILIES[family], "drop": drop, "duration_s": duration_s}
            found[drop, family, who] = _measure(who, agents, drop, family, spec, worlds, threads)
            tables.write(output, found, comment)
    asked = {key: one for key, one in found.items() if key[0] in drops and key[1] in families}
    print(tables.table(asked), "", *tables.summary(asked), sep="\n")
    if given["figure"]:
        tables.draw(asked, Path(given["figure"]))
    return 0


def comment_of(worlds: int, duration_s: float) -> str:
    """The first line of a file, which says what it holds."""
    return f"python -m studies.rlbm.families worlds={worlds} duration_s={duration_s:g}"


def kept(part: str) -> tables.Found:
    """What the package keeps for a part of the page; raises ConfigError where it is damaged or lacks."""
    name, worlds, duration_s = PARTS[part]
    path = HERE / f"{name}.csv.gz"
    found = tables.read(path, comment_of(worlds, duration_s), worlds)
    if not found:
        raise ConfigError(f"{path} is not there; valid: what `{comment_of(worlds, duration_s)} output={path}` writes")
    return found


def written(page: Path, text: str) -> str:
    """A page's text with what its parts say now."""
    found = {part: kept(part) for part in PARTS}
    said = {f"families of switches, {part}": tables.table(one) for part, one in found.items()}
    said["families of switches, together"] = "\n".join(tables.summary(found["families"]))
    said["families of switches, asked"] = tables.musts(found["random"], found["families"], found["300 s"])
    for name, new in said.items():
        text = sections.replaced(page, text, f"<!-- {name}: begin -->", f"<!-- {name}: end -->", new)
    return text


def write_page(page: Path) -> None:
    """Writes a page's parts, and the pictures beside it; raises ConfigError where the page has no place for one."""
    figures = page.parent / "figures" / "rlbm"
    try:
        said = page.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"page = {shown(str(page))} cannot be read ({one_line(error)}); valid: docs/switch.md") from None
    text = written(page, said)
    for part in ("random", "families"):
        tables.draw(kept(part), figures / f"{PARTS[part][0]}.svg")
    write_atomic(page, text)


def _require_drawable(path: str) -> None:
    """Before the work, as what would be written after it."""
    from netbuf_gym import plots

    plots.require()
    file = scripts.to_write("figure", path)
    try:
        plots.format_of(file)
    except ConfigError as error:
        raise ConfigError(f"figure = {error}") from None


def agent_of(key: str, name: str) -> Contender:
    """An agent of the task by its name or file, as the argument `key` gives it.

    Raises:
        ConfigError: there is none, or it is of another task.
        CheckpointError: it cannot be read.
    """
    with needing("a trained agent", "train"):
        import torch

        from netbuf_gym.zoo import checkpoint, library
        from netbuf_gym.zoo.saved import SavedAgent
    torch.set_num_threads(1)
    try:
        saved = checkpoint.read(library.path_of(name, key))
    except CheckpointError as error:
        said = str(error)
        raise CheckpointError(said if said.startswith(key) else f"{key} = {said}") from None
    if (task := tasks.task_of(saved.env["id"])) != QueueThreshold.name:
        raise ConfigError(f"{key} = {shown(name)} is an agent of {task}; valid: one of {QueueThreshold.name}")
    return SavedAgent(saved)


def _constant(drop: str, family: str) -> Limits:
    row = best(table_rows(), drop, family, LEAST_GOODPUT)
    return Limits([row["limit_0_ms"], row["limit_1_ms"]])


def _always(made: Callable[[], str | Contender]) -> Callable[[str, str], str | Contender]:
    return lambda drop, family: made()


SLOW_S, FAST_S = 0.1, 0.01
PLAYERS: dict[str, tuple[float, Callable[[str, str], str | Contender]]] = {
    **{name: (SLOW_S, _always(partial(str, name))) for name in (NAIVE, "dt", "abm", "codel", FAIR)},
    CONSTANT: (SLOW_S, _constant),
    "best constant, 10 ms": (FAST_S, _constant),
    "brief_pulse, 100 ms": (SLOW_S, _always(BriefPulse)),
    "brief_pulse, 10 ms": (FAST_S, _always(BriefPulse)),
    "resting pulse, 100 ms": (SLOW_S, _always(lambda: BriefPulse(**RESTING))),
    "sparing pulse, 10 ms": (FAST_S, _always(lambda: BriefPulse(**SPARING))),
    "searched pulse, 10 ms": (FAST_S, _always(lambda: BriefPulse(**tune_pulse.best()))),
    "pulse, 10 ms": (FAST_S, _always(Pulse)),
    "pulse_burst, 10 ms": (FAST_S, _always(PulseBurst)),
    "fair queueing": (SLOW_S, _always(lambda: BufferScheme(FAIR, **NO_AQM))),
}
"""Of everybody but the agents: how often it decides, and who it is, by drop place and family."""


def _measure(
    who: str, agents: dict[str, Contender], drop: str, family: str, spec: dict[str, Any], worlds: int, threads: int
) -> Measured:
    contender: str | Contender
    if who in agents:
        interval_s, contender = FAST_S if who == FAST else SLOW_S, agents[who]
    else:
        interval_s, made = PLAYERS[who]
        contender = made(drop, family)
    seeds = range(FIRST_SEED, FIRST_SEED + worlds)
    reports = evaluate(contender, QueueThreshold.name, spec, seeds, threads=threads, interval_s=interval_s)
    return Measured(*(np.array([one[key] for one in reports], float) for key in ("slowdown_p99_p0", "goodput_mbps")))


if __name__ == "__main__":
    scripts.run("families", main)
