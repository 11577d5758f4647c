"""Judges controllers of the switch in worlds that nothing is trained, tuned or chosen in, beside FQ-CoDel and the naive buffer.

    python -m studies.switch judging [worlds=20] [families=A,B] [drops=tail,head] [controllers=[A,B]] [threads=N]
        [duration_s=60] [output=DIR]

Plays each controller in `worlds` worlds of each of 23 families, whose parameters lie beside those of `switch/families`, on
the seeds from 7000000 on, at both drop places. Controllers are those of the task by name, agents by name or file; each
decides at its own interval. `naive` and `fq_codel` are always played.

Figures are geometric means of ratios in the same worlds, families weighing the same, with 95 % intervals of a bootstrap that
draws the worlds of each family anew: the 99th percentile of the slowdown of priority 0 over FQ-CoDel's, in all families and
in those of incast; that of priority 1 over the naive buffer's; goodput over the naive buffer's, over all families and in the
worst one. The last column says which bounds the figures miss: slowdown at most FQ-CoDel's, in incast at most 1.1 of it, that
of long flows at most 1.1 of the naive buffer's, goodput at least 0.99 of its in every family.

An interrupted command goes on when it is given again. The rows go to results/studies/switch below `output` (the checkout).
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.controllers import Controller
from netbuf_gym.errors import CheckpointError, ConfigError, ReferenceDataError
from netbuf_gym.evaluation.rollout import evaluate, get_controller
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.queue_threshold import QueueThreshold
from netbuf_gym.tasks.queue_threshold.families import draw_world
from netbuf_gym.training.schema import FIRST_JUDGING_SEED
from netbuf_gym.utils.arguments import check_choice, check_integer, check_real, check_text
from netbuf_gym.utils.overrides import read_overrides, select_overrides
from netbuf_gym.utils.progress import print_line
from studies.common import kept, replay
from studies.common.agents import compute_controller_digest
from studies.switch.families import CHECKOUT, NAME, SAMPLED, load_agent
from studies.switch.judging_tables import FAIR, FAMILIES, METRICS, NAIVE, Key, Measured, format_rows, format_tables, parse_rows
from studies.switch.switch_sections import JUDGING

FIRST_SEED, SPACING = FIRST_JUDGING_SEED, 10_000
"""First seed of the first family, and the distance to that of the next."""
MOST_MBIT = 3000.0
"""What a port can send in a world at most, in Mbit."""
AGENTS = tuple(f"{QueueThreshold.name}/{name}" for name in ("ppo", "ppo-10ms", "ppo_lstm", "dqn", "a2c"))
CONTROLLERS = (NAIVE, FAIR, "brief_pulse", "brief_pulse-10ms", *AGENTS)


def main(argv: Sequence[str]) -> int:
    """Run the command and return 0.

    Raises:
        ConfigError: An argument that is unknown or out of range.
        CheckpointError: An agent that cannot be read.
        OSError: A file cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    given = read_arguments(argv)
    worlds, threads = (
        check_integer(name, given[name], 2 if name == "worlds" else 1, SPACING) for name in ("worlds", "threads")
    )
    duration_s = check_real("duration_s", given["duration_s"], 1, 3600)
    families = [check_choice("families", name, FAMILIES) for name in given["families"]]
    drops = [check_choice("drops", name, DROPS) for name in given["drops"]]
    players = {name: resolve_player(name) for name in dict.fromkeys((NAIVE, FAIR, *given["controllers"]))}
    root = Path(check_text("output", given["output"]))
    words = " ".join([argv[0], *select_overrides(argv[1:], ("threads", "output"))[1]])
    header = {"command": f"python -m studies.{NAME} {words}", "worlds": worlds, "duration_s": duration_s}
    header["agents"] = {name: compute_controller_digest(one) for name, one in players.items() if is_agent(name)}
    begun = root / kept.DRAWN / "begun"
    found = _read_interrupted(begun, header)
    for drop, family, who in ((drop, family, who) for drop in drops for who in players for family in families):
        if (drop, family, who) not in found:
            print_line(f"{drop} {family}: {who}")
            found[drop, family, who] = measure(players[who], drop, family, range(worlds), duration_s, threads)
            kept.write_rows(begun, NAME, JUDGING, header, format_rows(found))
    path = kept.write_rows(root, NAME, JUDGING, header, format_rows(found))
    kept.build_path(begun, NAME, JUDGING).unlink(missing_ok=True)
    print(format_tables(found), f"written to {path}", sep="\n\n")
    return 0


def read_arguments(argv: Sequence[str]) -> dict[str, Any]:
    """Return the values of a command's arguments, completed by the defaults.

    Raises:
        ConfigError: An argument that is unknown or malformed.
    """
    defaults: dict[str, Any] = {"worlds": 20, "threads": len(os.sched_getaffinity(0)), "duration_s": 60.0}
    defaults |= {"families": tuple(FAMILIES), "drops": DROPS, "controllers": CONTROLLERS, "output": str(CHECKOUT)}
    return defaults | read_overrides(argv[1:], defaults, lists=("families", "drops", "controllers"))


def is_agent(name: str) -> bool:
    """Return whether a name is an agent's, or a file's."""
    return name.startswith(f"{QueueThreshold.name}/") or Path(name).exists()


def resolve_player(name: str) -> Controller:
    """Return a controller of the task by its name, or an agent by name or file.

    Raises:
        ConfigError, CheckpointError: There is none, or it cannot be read.
    """
    return load_agent("controllers", name) if is_agent(name) else get_controller(name, QueueThreshold.name)


def draw_judged_world(family: str, drop: str, duration_s: float, rng: np.random.Generator) -> Scenario:
    """Draw a world of a family; those of both drop places are the same otherwise."""
    name = f"judged/{family}"
    return draw_world(name, FAMILIES[family], rng.random(6), drop=drop, duration_s=duration_s, most_mbit=MOST_MBIT)


def measure(
    player: Controller, drop: str, family: str, numbers: Iterable[int], duration_s: float, threads: int = 1
) -> Measured:
    """Play a controller in the worlds of these numbers of a family."""
    first = FIRST_SEED + SPACING * list(FAMILIES).index(family)
    draw: Callable[[np.random.Generator], Scenario] = partial(draw_judged_world, family, drop, duration_s)
    reports = evaluate(player, QueueThreshold.name, draw, [first + number for number in numbers], threads=threads)
    return Measured(*(np.array([one[metric] for one in reports], float) for metric in METRICS))


def explain_staleness(found: kept.KeptRows) -> str:
    """Return why the rows are stale: a controller's first worlds of some families come out otherwise; "" if none do."""
    differing: dict[str, dict[str, tuple[float, str]]] = defaultdict(dict)
    played, rows = Counter[str](), list(parse_rows(found).items())
    for (drop, family, who), measured in rows[:: 1 + len(rows) // SAMPLED]:
        try:
            again = measure(resolve_player(who), drop, family, range(1), float(found.header["duration_s"]))
        except (ConfigError, CheckpointError) as error:
            return str(error)
        was, now = ({metric: f"{getattr(one, metric)[0]:.6g}" for metric in METRICS} for one in (measured, again))
        played[who] += 1
        if difference := replay.find_largest_difference(was, now, METRICS):
            differing[who][f"{drop} {family} {who}"] = difference
    return "; ".join(said for who in played if (said := replay.describe_differences(differing[who], played[who])))


def _read_interrupted(root: Path, header: dict[str, Any]) -> dict[Key, Measured]:
    """Return what an interrupted command has run; nothing after a change of command, version or agent."""
    try:
        found = kept.read_rows(root, NAME, JUDGING)
        if found is not None and found.header == kept.make_header(NAME, JUDGING, header):
            return parse_rows(found)
    except ReferenceDataError:  # damaged: run again
        pass
    return {}
