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

An interrupted command goes on when it is given again. The rows go to results/studies/switch below `output` (the checkout).
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller
from netbuf_gym.errors import CheckpointError, ConfigError, ReferenceDataError, needing, shown
from netbuf_gym.evaluation.rollout import evaluate
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.tasks.queue_threshold import BriefPulse, BufferScheme, Limits, Pulse, PulseBurst, QueueThreshold
from netbuf_gym.utils import scripts
from netbuf_gym.utils.arguments import choice, real, whole
from netbuf_gym.utils.progress import say
from studies.common import kept, replay
from studies.common.agents import digest_of
from studies.switch import tables
from studies.switch.sections import FAMILIES as EACH
from studies.switch.sections import LONG, RANDOM
from studies.switch.settings import BEST_LIMITS_MS, FAMILIES, RESTING, SEARCHED, SPARING
from studies.switch.tables import AGENTS, CONSTANT, CONTROLLERS, FAIR, FAST, NAIVE, SLOW, Measured

NAME = "switch"
CHECKOUT = Path(__file__).resolve().parents[2]
FIRST_SEED = 2_000_000
SAMPLED = 60
"""Controllers of a family and drop place that are played again, or hardly fewer."""
NO_AQM = {"target_ms": 10_000.0, "interval_ms": 100_000.0}


@dataclass(frozen=True)
class Part:
    """What a section's rows are of."""

    worlds: int
    families: tuple[str, ...]
    duration_s: float = 60.0
    rules: bool = True


PARTS = {RANDOM: Part(600, ("random",)), EACH: Part(150, tuple(FAMILIES)), LONG: Part(100, ("random",), 300.0, False)}


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns 0.

    Raises:
        ConfigError: An argument that is unknown or out of range.
        CheckpointError: An agent that cannot be read, or does not fit.
        OSError: A file cannot be written.
    """
    if not argv or any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    section = choice("section", argv[0].replace("_", " "), PARTS)
    part = PARTS[section]
    words = {"worlds": str(part.worlds), "threads": str(len(os.sched_getaffinity(0))), "duration_s": f"{part.duration_s:g}"}
    words |= {"slow": f"{QueueThreshold.name}/ppo", "fast": f"{QueueThreshold.name}/ppo-10ms", "output": str(CHECKOUT)}
    words |= {"families": ",".join(part.families), "drops": ",".join(DROPS)}
    given = scripts.given(argv[1:], words)
    worlds, threads = (whole(name, scripts.number(given[name]), low, 100_000) for name, low in (("worlds", 2), ("threads", 1)))
    duration_s = real("duration_s", scripts.number(given["duration_s"]), 1, 3600)
    families = tuple(choice("families", name, FAMILIES) for name in given["families"].split(","))
    drops = [choice("drops", name, DROPS) for name in given["drops"].split(",")]
    agents = {who: agent_of(key, given[key]) for who, key in ((SLOW, "slow"), (FAST, "fast")) if given[key]}
    own = Part(worlds, families, duration_s, part.rules)
    own_words = [word for word in argv[1:] if word.partition("=")[0] not in ("threads", "output")]
    path = keep(section, own, drops, agents, threads, Path(given["output"]), " ".join([argv[0], *own_words]))
    found = kept.read(path.parents[3], NAME, section)
    assert found is not None
    print(tables.table(tables.read(found)), "", *tables.summary(tables.read(found)), f"written to {path}", sep="\n")
    return 0


def keep(
    section: str, part: Part, drops: Sequence[str], agents: dict[str, Controller], threads: int, root: Path, words: str
) -> Path:
    """Plays what is not played yet and keeps all rows of a section; returns their file.

    Args:
        agents: By who they are among the controllers.
        root: The checkout; rows of a command that was interrupted stand in its `runs/studies`.
        words: Of the command that this is.
    """
    header = {"command": f"python -m studies.{NAME} {words}", "worlds": part.worlds, "duration_s": part.duration_s}
    header["agents"] = {who: digest_of(one) for who, one in agents.items()}
    begun = root / kept.DRAWN / "begun"
    found = _begun(begun, section, header)
    playing = [who for who in CONTROLLERS if (who in agents if who in AGENTS else part.rules or who in (NAIVE, CONSTANT, FAIR))]
    for drop, family, who in ((drop, family, who) for drop in drops for family in part.families for who in playing):
        if (drop, family, who) not in found:
            say(f"{drop} {family}: {who}")
            spec = {**FAMILIES[family], "drop": drop, "duration_s": part.duration_s}
            found[drop, family, who] = _measure(who, agents, drop, family, spec, part.worlds, threads)
            kept.write(begun, NAME, section, header, tables.text_of(found))
    path = kept.write(root, NAME, section, header, tables.text_of(found))
    if section in tables.PICTURES:
        folder = kept.drawn_folder(root, NAME, section)
        folder.mkdir(parents=True, exist_ok=True)
        tables.draw(found, folder / tables.PICTURES[section])
        kept.mark_drawn(root, NAME, section)
    kept.path_of(begun, NAME, section).unlink(missing_ok=True)
    return path


def why_stale(found: kept.Kept) -> str:
    """Reason why a section's rows are stale: a controller's first worlds of some families come out otherwise; "": none do."""
    agents = {who: agent_of("agent", f"{QueueThreshold.name}/{name}") for who, name in ((SLOW, "ppo"), (FAST, "ppo-10ms"))}
    differing: dict[str, dict[str, tuple[float, str]]] = defaultdict(dict)
    played, measures = Counter[str](), ("slowdowns", "goodputs")
    rows = list(tables.read(found).items())
    for (drop, family, who), measured in rows[:: 1 + len(rows) // SAMPLED]:
        spec = {**FAMILIES[family], "drop": drop, "duration_s": float(found.header["duration_s"])}
        again = _measure(who, agents, drop, family, spec, 1, 1)
        was, now = ({name: str(getattr(one, name)[0]) for name in measures} for one in (measured, again))
        played[who] += 1
        if difference := replay.largest_difference(was, now, measures):
            differing[who][f"{drop} {family} {who}"] = difference
    return "; ".join(said for who in played if (said := replay.describe(differing[who], played[who])))


def _begun(root: Path, section: str, header: dict[str, Any]) -> tables.Found:
    """What an interrupted command has played of a section; nothing where it was another command, version or agent."""
    try:
        found = kept.read(root, NAME, section)
        if found is not None and found.header == kept.header_of(NAME, section, header):
            return tables.read(found)
    except ReferenceDataError:  # damaged: played again
        pass
    return {}


def agent_of(key: str, name: str) -> Controller:
    """An agent of the task by its name or file, as the argument `key` gives it.

    Raises:
        ConfigError: There is none, or it is of another task.
        CheckpointError: It cannot be read.
    """
    with needing("a trained agent", "train"):
        import torch

        from netbuf_gym.training.checkpoints import checkpoint
        from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
        from netbuf_gym.zoo import library
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
    return Limits(list(BEST_LIMITS_MS[drop][family]))


def _always(made: Callable[[], str | Controller]) -> Callable[[str, str], str | Controller]:
    return lambda drop, family: made()


SLOW_S, FAST_S = 0.1, 0.01
PLAYERS: dict[str, tuple[float, Callable[[str, str], str | Controller]]] = {
    **{name: (SLOW_S, _always(partial(str, name))) for name in (NAIVE, "dt", "abm", "codel", FAIR)},
    CONSTANT: (SLOW_S, _constant),
    "best constant, 10 ms": (FAST_S, _constant),
    "brief_pulse, 100 ms": (SLOW_S, _always(BriefPulse)),
    "brief_pulse, 10 ms": (FAST_S, _always(BriefPulse)),
    "resting pulse, 100 ms": (SLOW_S, _always(lambda: BriefPulse(**RESTING))),
    "sparing pulse, 10 ms": (FAST_S, _always(lambda: BriefPulse(**SPARING))),
    "searched pulse, 10 ms": (FAST_S, _always(lambda: BriefPulse(**SEARCHED))),
    "pulse, 10 ms": (FAST_S, _always(Pulse)),
    "pulse_burst, 10 ms": (FAST_S, _always(PulseBurst)),
    "fair queueing": (SLOW_S, _always(lambda: BufferScheme(FAIR, **NO_AQM))),
}
"""Of everybody but the agents: how often it decides, and who it is, by drop place and family."""


def _measure(
    who: str, agents: dict[str, Controller], drop: str, family: str, spec: dict[str, Any], worlds: int, threads: int
) -> Measured:
    controller: str | Controller
    if who in agents:
        interval_s, controller = FAST_S if who == FAST else SLOW_S, agents[who]
    else:
        interval_s, made = PLAYERS[who]
        controller = made(drop, family)
    seeds = range(FIRST_SEED, FIRST_SEED + worlds)
    reports = evaluate(controller, QueueThreshold.name, spec, seeds, threads=threads, interval_s=interval_s)
    return Measured(*(np.array([one[key] for one in reports], float) for key in ("slowdown_p99_p0", "goodput_mbps")))
