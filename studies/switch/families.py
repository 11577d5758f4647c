"""Plays agents of the switch, rules, the best constant limits and what bounds them, family by family, in the same worlds.

    python -m studies.switch random|families|300_s [worlds=N] [families=A,B] [drops=tail,head] [slow=AGENT] [fast=AGENT]
        [threads=N] [duration_s=60] [output=DIR]

`random` plays 600 worlds of `rlbm/random`, `families` 150 of each family, `300_s` 100 of `rlbm/random` that last so long,
without rules. Worlds are those of the seeds 2000000, 2000001, ..., which neither training nor choosing has seen. `slow` decides
every 100 ms and `fast` every 10 ms, each a model's file or the name of an agent. Beside them stand the naive buffer, the
constant limits that are best for the family and the drop place, FQ-CoDel, which has a queue for each flow and drops as it
does, and rules: `brief_pulse` at both intervals, also with the settings that the agents begin with, that of 10 ms also with
those that a search found, `pulse` and `pulse_burst` every 10 ms, the best constants at 10 ms, Dynamic Thresholds, ABM, CoDel,
and fair queueing without an AQM, which drops only where the buffer is full.

A figure is the geometric mean over worlds of the 99th percentile of the slowdown of priority 0; its ratios to the naive
buffer, to the best constant and to FQ-CoDel have 95 % intervals, paired by world, and so has goodput over the naive buffer's.

`python -m studies.switch judging --help` tells of the section that judges controllers on seeds that nothing else reaches.

An interrupted command goes on when it is given again. The rows go to results/studies/switch below `output` (the checkout).
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller
from netbuf_gym.errors import CheckpointError, ConfigError, ReferenceDataError, quote, require_extra
from netbuf_gym.evaluation.rollout import evaluate
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.tasks.queue_threshold import BriefPulse, BufferScheme, Limits, Pulse, PulseBurst, QueueThreshold
from netbuf_gym.utils.arguments import check_choice, check_integer, check_real, check_text
from netbuf_gym.utils.overrides import read_overrides, select_overrides
from netbuf_gym.utils.progress import print_line
from studies.common import kept, replay
from studies.common.agents import compute_controller_digest
from studies.switch import switch_tables as tables
from studies.switch.switch_sections import FAMILIES as EACH
from studies.switch.switch_sections import LONG, RANDOM
from studies.switch.switch_settings import BEST_LIMITS_MS, FAMILIES, RESTING, SEARCHED, SPARING
from studies.switch.switch_tables import AGENTS, CONSTANT, CONTROLLERS, FAIR, FAST, NAIVE, SLOW, Measurements

NAME = "switch"
CHECKOUT = Path(__file__).resolve().parents[2]
FIRST_SEED = 2_000_000
SAMPLED = 60
"""Number of rows that a check for stale rows runs again, at most."""
NO_AQM = {"target_ms": 10_000.0, "interval_ms": 100_000.0}


@dataclass(frozen=True)
class SectionScope:
    """Scope of a section's rows."""

    worlds: int
    families: tuple[str, ...]
    duration_s: float = 60.0
    rules: bool = True


PARTS = {
    RANDOM: SectionScope(600, ("random",)),
    EACH: SectionScope(150, tuple(FAMILIES)),
    LONG: SectionScope(100, ("random",), 300.0, False),
}


def main(argv: Sequence[str]) -> int:
    """Run the command and return 0.

    Raises:
        ConfigError: An argument that is unknown or out of range.
        CheckpointError: An agent that cannot be read, or does not fit.
        OSError: A file cannot be written.
    """
    if not argv or any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    section, given = read_arguments(argv)
    part = PARTS[section]
    worlds, threads = (check_integer(name, given[name], low, 100_000) for name, low in (("worlds", 2), ("threads", 1)))
    duration_s = check_real("duration_s", given["duration_s"], 1, 3600)
    families = tuple(check_choice("families", name, FAMILIES) for name in given["families"])
    drops = [check_choice("drops", name, DROPS) for name in given["drops"]]
    agents = load_agents(given)
    own = SectionScope(worlds, families, duration_s, part.rules)
    own_words = " ".join([argv[0], *select_overrides(argv[1:], ("threads", "output"))[1]])
    path = keep_section(section, own, drops, agents, threads, Path(check_text("output", given["output"])), own_words)
    found = kept.read_rows(path.parents[3], NAME, section)
    assert found is not None
    print(
        tables.format_table(tables.parse_rows(found)),
        "",
        *tables.format_summary(tables.parse_rows(found)),
        f"written to {path}",
        sep="\n",
    )
    return 0


def read_arguments(argv: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return the section that a command names, and the values of its arguments, completed by the defaults.

    Raises:
        ConfigError: An argument that is unknown or malformed.
    """
    section = check_choice("section", argv[0].replace("_", " "), PARTS)
    part = PARTS[section]
    defaults: dict[str, Any] = {"worlds": part.worlds, "threads": len(os.sched_getaffinity(0)), "duration_s": part.duration_s}
    defaults |= {"slow": f"{QueueThreshold.name}/ppo", "fast": f"{QueueThreshold.name}/ppo-10ms", "output": str(CHECKOUT)}
    defaults |= {"families": part.families, "drops": DROPS}
    return section, defaults | read_overrides(argv[1:], defaults, lists=("families", "drops"))


def load_agents(given: Mapping[str, Any]) -> dict[str, Controller]:
    """Load the agents that arguments name, by their names in tables; raises as `load_agent`."""
    return {who: load_agent(key, check_text(key, given[key])) for who, key in ((SLOW, "slow"), (FAST, "fast")) if given[key]}


def keep_section(
    section: str, part: SectionScope, drops: Sequence[str], agents: dict[str, Controller], threads: int, root: Path, words: str
) -> Path:
    """Run what has not run yet, keep all rows of a section and return the path of the rows.

    Args:
        section: Name of the section.
        part: Scope of the rows.
        drops: Drop places.
        agents: Agents by their names among `CONTROLLERS`.
        threads: Number of threads.
        root: Root of the checkout; rows of an interrupted command are kept below `runs/studies` there.
        words: Arguments of this command, as the rows' header states them.
    """
    header = {"command": f"python -m studies.{NAME} {words}", "worlds": part.worlds, "duration_s": part.duration_s}
    header["agents"] = {who: compute_controller_digest(one) for who, one in agents.items()}
    begun = root / kept.DRAWN / "begun"
    found = _read_interrupted(begun, section, header)
    playing = [who for who in CONTROLLERS if (who in agents if who in AGENTS else part.rules or who in (NAIVE, CONSTANT, FAIR))]
    for drop, family, who in ((drop, family, who) for drop in drops for family in part.families for who in playing):
        if (drop, family, who) not in found:
            print_line(f"{drop} {family}: {who}")
            spec = {**FAMILIES[family], "drop": drop, "duration_s": part.duration_s}
            found[drop, family, who] = _measure_controller(who, agents, drop, family, spec, part.worlds, threads)
            kept.write_rows(begun, NAME, section, header, tables.format_rows(found))
    path = kept.write_rows(root, NAME, section, header, tables.format_rows(found))
    if section in tables.PICTURES:
        folder = kept.find_drawn_folder(root, NAME, section)
        folder.mkdir(parents=True, exist_ok=True)
        tables.draw_ratios(found, folder / tables.PICTURES[section])
        kept.mark_drawn(root, NAME, section)
    kept.build_path(begun, NAME, section).unlink(missing_ok=True)
    return path


def explain_staleness(found: kept.KeptRows) -> str:
    """Return why a section's rows are stale: a controller's first worlds of some families come out otherwise; "" if none do.

    The agents are those that the rows' command names.
    """
    try:
        agents = load_agents(read_arguments(found.header["command"].split()[3:])[1])  # behind "python -m studies.switch"
    except (ConfigError, CheckpointError) as error:
        return str(error)
    differing: dict[str, dict[str, tuple[float, str]]] = defaultdict(dict)
    played, measures = Counter[str](), ("slowdowns", "goodputs")
    rows = list(tables.parse_rows(found).items())
    for (drop, family, who), measured in rows[:: 1 + len(rows) // SAMPLED]:
        spec = {**FAMILIES[family], "drop": drop, "duration_s": float(found.header["duration_s"])}
        again = _measure_controller(who, agents, drop, family, spec, 1, 1)
        was, now = ({name: str(getattr(one, name)[0]) for name in measures} for one in (measured, again))
        played[who] += 1
        if difference := replay.find_largest_difference(was, now, measures):
            differing[who][f"{drop} {family} {who}"] = difference
    return "; ".join(said for who in played if (said := replay.describe_differences(differing[who], played[who])))


def _read_interrupted(root: Path, section: str, header: dict[str, Any]) -> tables.FoundMeasurements:
    """Return what an interrupted command has run of a section; nothing after a change of command, version or agent."""
    try:
        found = kept.read_rows(root, NAME, section)
        if found is not None and found.header == kept.make_header(NAME, section, header):
            return tables.parse_rows(found)
    except ReferenceDataError:  # damaged: run again
        pass
    return {}


def load_agent(key: str, name: str) -> Controller:
    """Load an agent of the task by name or file; errors name the argument `key`.

    Raises:
        ConfigError: There is no such agent, or the agent is of another task.
        CheckpointError: The agent cannot be read.
    """
    with require_extra("a trained agent", "train"):
        import torch

        from netbuf_gym.training.checkpoints import checkpoint
        from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
        from netbuf_gym.zoo import library
    torch.set_num_threads(1)
    try:
        saved = checkpoint.read_model(library.find_agent_path(name, key))
    except CheckpointError as error:
        said = str(error)
        raise CheckpointError(said if said.startswith(key) else f"{key} = {said}") from None
    if (task := tasks.find_task(saved.env["id"])) != QueueThreshold.name:
        raise ConfigError(f"{key} = {quote(name)} is an agent of {task}; valid: one of {QueueThreshold.name}")
    return SavedAgent(saved)


def _make_best_constant(drop: str, family: str) -> Limits:
    return Limits(list(BEST_LIMITS_MS[drop][family]))


def _ignore_cell(made: Callable[[], str | Controller]) -> Callable[[str, str], str | Controller]:
    return lambda drop, family: made()


SLOW_S, FAST_S = 0.1, 0.01
CONTROLLER_FACTORIES: dict[str, tuple[float, Callable[[str, str], str | Controller]]] = {
    **{name: (SLOW_S, _ignore_cell(partial(str, name))) for name in (NAIVE, "dt", "abm", "codel", FAIR)},
    CONSTANT: (SLOW_S, _make_best_constant),
    "best constant, 10 ms": (FAST_S, _make_best_constant),
    "brief_pulse, 100 ms": (SLOW_S, _ignore_cell(BriefPulse)),
    "brief_pulse, 10 ms": (FAST_S, _ignore_cell(BriefPulse)),
    "resting pulse, 100 ms": (SLOW_S, _ignore_cell(lambda: BriefPulse(**RESTING))),
    "sparing pulse, 10 ms": (FAST_S, _ignore_cell(lambda: BriefPulse(**SPARING))),
    "searched pulse, 10 ms": (FAST_S, _ignore_cell(lambda: BriefPulse(**SEARCHED))),
    "pulse, 10 ms": (FAST_S, _ignore_cell(Pulse)),
    "pulse_burst, 10 ms": (FAST_S, _ignore_cell(PulseBurst)),
    "fair queueing": (SLOW_S, _ignore_cell(lambda: BufferScheme(FAIR, **NO_AQM))),
}
"""Decision interval and factory `(drop, family)` of every controller but the agents."""


def _measure_controller(
    who: str, agents: dict[str, Controller], drop: str, family: str, spec: dict[str, Any], worlds: int, threads: int
) -> Measurements:
    controller: str | Controller
    if who in agents:
        interval_s, controller = FAST_S if who == FAST else SLOW_S, agents[who]
    else:
        interval_s, made = CONTROLLER_FACTORIES[who]
        controller = made(drop, family)
    seeds = range(FIRST_SEED, FIRST_SEED + worlds)
    reports = evaluate(controller, QueueThreshold.name, spec, seeds, threads=threads, interval_s=interval_s)
    return Measurements(*(np.array([one[key] for one in reports], float) for key in ("slowdown_p99_p0", "goodput_mbps")))
