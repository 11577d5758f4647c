"""Judgement of receivers by the goal: no less data than CUBIC at a third of its queueing, and a utility above `keep`.

    python -m studies.receiver goal --traces FOLDER [--more NAME=FOLDER ...] [--part evaluation] [...]

Worlds are windows of a minute of measured traces, as in `studies.receiver.agent`, with round trips of 30 and 90 ms and buffers
of 1 and 4 bandwidth-delay products; all controllers play the same. FOLDER holds the traces of the project's split, of 4G and
5G. NAME=FOLDER adds a network: every file of that folder is a trace of it. Rows, one for each world and controller, are kept as
the study's section `goal`, and their table printed.
"""

from __future__ import annotations

import argparse
import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError, quote, require_extra
from netbuf_gym.utils.overrides import read_whole
from netbuf_gym.utils.statistics import Interval
from netbuf_gym.utils.tables import markdown_table
from netbuf_gym.zoo import library
from studies.common import agents, kept
from studies.common.campaign import describe_machine
from studies.common.kept import KeptRows
from studies.common.showing import remove_local_paths
from studies.receiver import agent
from studies.receiver.receiver_claims import NetworkTable, divide, parse_rows, subtract

SECTION = "goal"
COMMAND = "python -m studies.receiver goal"
BUFFERS, RTTS_MS = ("1 BDP", "4 BDP"), (30.0, 90.0)
AGENT = "receiver_window/ppo_lstm"
RIVALS = ("refill", "refill-data", "keep", "cubic", "vegas")
LEAST_DATA, MOST_QUEUEING = 1.0, 1 / 3
"""Data and queueing delay over CUBIC's that the goal asks for."""


def make_worlds(options: argparse.Namespace) -> dict[str, list[agent.TraceWorld]]:
    """Return the worlds by network, those of the project's split and those of further folders.

    Raises:
        ConfigError: A further network is not NAME=FOLDER.
        TraceError: A file cannot be read, or there is none.
    """
    folders: dict[str, tuple[Path, str | None]] = {}
    if options.traces is not None:
        folders |= {network: (options.traces, network) for network in agent.NETWORKS}
    for one in options.more:
        name, separator, folder = one.partition("=")
        if not (name and separator and folder):
            raise ConfigError(f"--more = {quote(one)}; valid: NAME=FOLDER")
        folders[name] = Path(folder), None
    sizes = (options.part, options.windows, options.seeds, RTTS_MS, BUFFERS)
    return {
        name: [replace(world, network=name) for world in agent.make_trace_worlds(folder, network, *sizes)]
        for name, (folder, network) in folders.items()
    }


def format_goal(found: KeptRows) -> str:
    """Return a table for each network: controllers' ratios to CUBIC and margins over `keep`, and whether they meet the goal."""
    rows, lines = parse_rows(found), [f"`{found.header['command']}`, {found.header['date']}.", ""]
    for network in dict.fromkeys(row["network"] for row in rows):
        table = NetworkTable([row for row in rows if row["network"] == network])
        worlds = len(table.units) * len(table.parts)
        lines += [f"### {network}, {found.header['part']}: {len(table.units)} units, {worlds} worlds", ""]
        lines += [_format_table(table), ""]
    return "\n".join(lines)


def meets_goal(data: Interval, queueing: Interval, margin: Interval | None) -> bool:
    """Return whether mean data and queueing over CUBIC's are as asked for, and the margin's whole interval is above 0."""
    return data.mean >= LEAST_DATA and queueing.mean <= MOST_QUEUEING and margin is not None and margin.low > 0


def _format_table(table: NetworkTable) -> str:
    head = ("controller", "data over CUBIC's", "queueing over CUBIC's", "utility over `keep`", "data over `keep`", "goal")
    cells = []
    for name in table.names:
        data = table.compare("share", name, "cubic", divide)
        queueing = table.compare("queue_delay_mean_ms", name, "cubic", divide)
        margin = None if name == "keep" else table.compare("utility", name, "keep", subtract)
        of_keep = table.compare("share", name, "keep", divide)
        met = "yes" if meets_goal(data, queueing, margin) else "no"
        cells.append([name, str(data), str(queueing), "" if margin is None else str(margin), str(of_keep), met])
    return markdown_table(head, cells)


def main(argv: Sequence[str]) -> int:
    """Play the worlds, keep their rows, print the table and return 0."""
    options = make_parser().parse_args(argv)
    with require_extra("a receiver's agent", "train"):
        import torch
    torch.set_num_threads(1)
    controllers = list(dict.fromkeys((*options.controllers, "keep", "cubic")))
    players, env, lacking = agent.load_controllers(options.model, controllers, options.constants)
    rows: list[dict[str, Any]] = []
    for worlds in make_worlds(options).values():
        rows += agent.play_worlds(worlds, players, env)
    if not rows:
        raise ConfigError("neither --traces nor --more gives a world; valid: folders with traces")
    words = [word for i, word in enumerate(argv) if "--out" not in (word, argv[i - 1])]
    command = re.sub(r"--traces \S+", "--traces DIR", re.sub(r"=\S*/\S*", "=DIR", f"{COMMAND} {shlex.join(words)}"))
    header: dict[str, Any] = {
        "command": remove_local_paths(command),
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": describe_machine(),
        "part": options.part,
        "lacking": lacking,
    }
    if options.model in library.names():
        header["agents"] = {"agent": agents.compute_controller_digest(players["agent"])}
    kept.write_rows(options.out, "receiver", SECTION, header, kept.format_rows(list(rows[0]), rows))
    found = kept.read_rows(options.out, "receiver", SECTION)
    assert found is not None
    print(format_goal(found))
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").split("\n")[0])
    made.add_argument("--model", default=AGENT, help="a saved agent (%(default)s)")
    made.add_argument("--traces", type=Path, metavar="FOLDER", help="the measured traces of 4G and 5G")
    made.add_argument("--more", nargs="*", default=[], metavar="NAME=FOLDER", help="further networks")
    made.add_argument("--part", default="evaluation", choices=("calibration", "validation", "evaluation"))
    made.add_argument("--windows", type=read_whole, default=4, help="of each trace, at most (%(default)s)")
    made.add_argument("--seeds", type=read_whole, default=1, help="of each window (%(default)s)")
    made.add_argument("--controllers", nargs="*", default=list(RIVALS), metavar="NAME", help="besides the agent")
    made.add_argument("--constants", action="store_true", help="the agent's actions, each for ever, as well")
    made.add_argument("--out", type=Path, default=agent.CHECKOUT, metavar="DIR", help="keep rows in its results/studies")
    return made
