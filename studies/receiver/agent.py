"""A receiver agent beside every other control, on real traces, and through what breaks paths.

    python -m studies.receiver agent MODEL --traces FOLDER [--part evaluation] [--survival] [...]

MODEL is a file that training wrote (`runs/.../checkpoint.zip`), the name of an agent of the package, or `constant:N`, which
always takes action N. FOLDER holds the measured traces by name, anywhere below it; the project's split
(netbuf_gym/traces/calibration.py) assigns them to validation and evaluation. Choose models and settings by
`--part validation` only.

Each trace is cut into windows of a minute, of which up to `--windows` are taken, evenly over its length; windows that are
outages throughout (no second with 0.3 Mbit/s) are left out. A unit is a window and a seed, which determines clocks (offset up
to 50 ms, drift up to 50 ppm, stamps of 1 ms and 1 us in turn) and shifts the window by a part of its length. Each unit is
played with every buffer and base RTT. All controllers play the same worlds, and are measured by the task's meter in intervals
of 100 ms.

Rows, one for each world and controller, are kept as the study's sections `worlds` and `survival`, and their tables printed.
"""

from __future__ import annotations

import argparse
import itertools
import re
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.errors import require_extra
from netbuf_gym.utils.overrides import read_whole
from netbuf_gym.zoo import library
from studies.common import agents, kept
from studies.common.campaign import describe_machine
from studies.common.showing import remove_local_paths
from studies.receiver import receiver_claims as claims
from studies.receiver import survival

CHECKOUT = Path(__file__).resolve().parents[2]
WORLDS, SURVIVAL = "worlds", "survival"
COMMAND = "python -m studies.receiver agent"
TASK = "receiver_window"
NETWORKS = ("4g", "5g")
BUFFERS: dict[str, dict[str, Any]] = {
    "1 BDP": {"buffer_bdp": 1.0},
    "4 BDP": {"buffer_bdp": 4.0},
    "250 packets": {"buffer_packets": 250},
}
CONTROLS = ("newreno", "cubic", "bbr", "bbrplus", "vegas", "westwood", "inigo", "vivace", "copa")
RECEIVERS = ("rledbat", *(f"nuwa_k{k}" for k in (1, 2, 7, 9)), *(f"nuwa_paper_k{k}" for k in (1, 2, 7, 9)))
CHANCE = ("random", "keep")
METRICS = ("utility", "share", "data_mb", "queue_delay_mean_ms", "queue_delay_p95_ms", "loss_rate", "timeouts")
WINDOW_S = 60.0


@dataclass(frozen=True)
class TraceWorld:
    """A world and its origin, as given in a row of the results."""

    network: str
    trace: str
    start_s: float
    seed: int
    rtt_ms: float
    buffer: str
    scenario: Any

    @property
    def unit(self) -> tuple[str, float, int]:
        """Identifier of the unit of resampling."""
        return self.trace, self.start_s, self.seed


def make_trace_worlds(
    folder: Path,
    network: str | None,
    part: str,
    windows: int,
    seeds: int,
    rtts_ms: Sequence[float],
    buffers: Sequence[str] = tuple(BUFFERS),
    duration_s: float = WINDOW_S,
    most_files: int | None = None,
) -> list[TraceWorld]:
    """Return the worlds over real traces.

    Args:
        folder: Folder of the traces.
        network: "4g" or "5g"; None: all files of the folder.
        part: Part of the traces: calibration, validation or evaluation.
        windows: Largest number of windows of each trace.
        seeds: Number of seeds of each window.
        rtts_ms: Base RTTs.
        buffers: Keys of `BUFFERS`.
        duration_s: Duration of a window.
        most_files: Largest number of traces; None: all.

    Raises:
        TraceError: A file cannot be read, or there is none.
    """
    from netbuf_gym.tasks.receiver_window.trace_paths import read_windows, trace_files, trace_world
    from netbuf_gym.traces.windows import cut_window, has_capacity

    found = []
    for path in trace_files(folder, network, part)[:most_files]:
        trace, starts_s = read_windows(path, duration_s)
        chosen = np.unique(np.linspace(0, len(starts_s) - 1, min(len(starts_s), windows)).round().astype(int))
        for start_s, seed in itertools.product([starts_s[i] for i in chosen], range(seeds)):
            u = np.random.default_rng((seed, int(start_s))).uniform(-1, 1, 2)
            shifted_s = start_s + duration_s * seed / (2 * seeds)
            window = cut_window(trace, shifted_s, duration_s)
            if window is None or not has_capacity(window):
                continue
            for rtt_ms, buffer in itertools.product(rtts_ms, buffers):
                world = trace_world(
                    window,
                    rtt_ms=rtt_ms,
                    clock_offset_ms=50 * u[0],
                    clock_drift_ppm=50 * u[1],
                    timestamp_resolution_us=(1000, 1)[seed % 2],
                    **BUFFERS[buffer],
                )
                found.append(TraceWorld(network or "traces", path.name, shifted_s, seed, rtt_ms, buffer, world))
    return found


def load_controllers(
    model: str, only: Sequence[str] | None, constants: bool
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Return the controllers by name, the agent first; the arguments of its environment; the names that this build lacks.

    Raises:
        ConfigError, CheckpointError: A model cannot be read.
    """
    from netbuf_gym import tasks
    from netbuf_gym.controllers import ConstantAction

    if model.startswith("constant:"):
        agent: Any = ConstantAction(int(model.partition(":")[2]), "agent")
        env: dict[str, Any] = {"acts_on": "bdp", "target_ms": 25.0}
    else:
        from netbuf_gym.training.checkpoints import checkpoint
        from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
        from netbuf_gym.zoo import library

        agent = SavedAgent(checkpoint.read_model(library.find_agent_path(model)), "agent")
        env = agent.env
    known = tasks.get(TASK).controllers
    asked = (*CONTROLS, *RECEIVERS, *CHANCE) if only is None else only
    made = {"agent": agent, **{name: known[name]() for name in asked if name in known}}
    if constants:
        options = {key: env[key] for key in ("acts_on", "actions") if key in env}
        rules = tasks.get(TASK).rules(env.get("recipe", "default"), **options)
        if hasattr(rules.action_space, "n"):
            made |= {f"constant_{i}": ConstantAction(i, f"constant_{i}") for i in range(int(rules.action_space.n))}
    return made, env, [name for name in asked if name not in known]


def play_worlds(found: Sequence[TraceWorld], players: dict[str, Any], env: dict[str, Any]) -> list[dict[str, Any]]:
    """Play all worlds with every controller and return one row of metrics for each world and controller."""
    from netbuf_gym import tasks
    from netbuf_gym.evaluation import rollout
    from netbuf_gym.evaluation.rollout import World

    rules = tasks.get(TASK).rules()
    worlds = [World(rules.control(one.scenario), one.seed, one.seed) for one in found]
    rows: list[dict[str, Any]] = []
    for name, controller in players.items():
        began = time.perf_counter()
        reports: dict[int, dict[str, Any]] = {}

        def keep(view: Any, reports: dict[int, dict[str, Any]] = reports) -> None:
            reports[view.index] = view.report()[0]

        rollout.play(controller, worlds, keep, task=TASK, **survival.make_env_arguments(controller, name, env))
        for i, one in enumerate(found):
            where = {key: getattr(one, key) for key in ("network", "trace", "start_s", "seed", "rtt_ms", "buffer")}
            rows.append({**where, "controller": name, **{metric: float(reports[i][metric]) for metric in METRICS}})
        print_progress(f"{found[0].network}: {name}, {len(found)} worlds, {time.perf_counter() - began:.0f} s")
    return rows


def print_progress(text: str) -> None:
    """Print a line of progress to standard error."""
    print(text, file=sys.stderr, flush=True)


def main(argv: Sequence[str]) -> int:
    """Run the command and return the exit status."""
    options = make_parser().parse_args(argv)
    words = [word for i, word in enumerate(argv) if not {"--out"} & {word, argv[i - 1]}]
    for path in play_and_keep(options, f"{COMMAND} {shlex.join(words)}", options.out):
        study, section = "receiver", path.name.partition(".")[0]
        found = kept.read_rows(options.out, study, section)
        assert found is not None
        print(claims.format_worlds(found) if section == WORLDS else claims.format_survival(found))
    return 0


def play_and_keep(options: argparse.Namespace, command: str, root: Path) -> list[Path]:
    """Play the worlds selected by the options, keep their rows as sections of the study and return the files.

    Args:
        options: Options of the command line, see `make_parser`.
        command: Command as recorded in headers.
        root: Root of the checkout.

    Raises:
        ConfigError, CheckpointError, TraceError: The model or the traces cannot be read.
    """
    with require_extra("a receiver's agent", "train"):
        import torch
    torch.set_num_threads(1)
    players, env, lacking = load_controllers(options.model, options.controllers, not options.no_constants)
    header = {
        "command": remove_local_paths(re.sub(r"--traces \S+", "--traces DIR", command)),
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": describe_machine(),
        "part": options.part,
        "lacking": lacking,
    }
    if options.model in library.names():
        header["agents"] = {"agent": agents.compute_controller_digest(players["agent"])}
    rows: list[dict[str, Any]] = []
    for network in [] if options.traces is None else options.networks or [None]:
        sizes = (options.windows, options.seeds, options.rtts)
        found = make_trace_worlds(options.traces, network, options.part, *sizes, most_files=options.files)
        rows += play_worlds(found, players, env)
    broken = survival.play_trials(players, env, options.survival_sizes) if options.survival else []
    return [
        kept.write_rows(root, "receiver", section, header, kept.format_rows(list(made[0]), made))
        for section, made in ((WORLDS, rows), (SURVIVAL, broken))
        if made
    ]


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").split("\n")[0])
    made.add_argument("model", help="a saved agent, or constant:N")
    made.add_argument("--traces", type=Path, metavar="FOLDER", help="the measured traces; without it only --survival is run")
    made.add_argument("--networks", nargs="*", default=list(NETWORKS), choices=NETWORKS, help="none: all files of the folder")
    made.add_argument("--part", default="evaluation", choices=("calibration", "validation", "evaluation"))
    made.add_argument("--windows", type=read_whole, default=4, help="of each trace, at most (%(default)s)")
    made.add_argument("--seeds", type=read_whole, default=2, help="of each window (%(default)s)")
    made.add_argument("--files", type=read_whole, help="of each network, at most")
    made.add_argument("--rtts", type=float, nargs="+", default=[40.0], metavar="MS", help="base RTTs (40)")
    made.add_argument("--controllers", nargs="*", metavar="NAME", help="besides the agent; all that are known")
    made.add_argument("--no-constants", action="store_true", help="leave out the agent's actions, each for ever")
    made.add_argument(
        "--survival", action="store_true", help="outages, steps of the delay, traffic on the way back, others beside it"
    )
    made.add_argument(
        "--survival-sizes", default="full", choices=("quick", "full"), help="how many worlds of each (%(default)s)"
    )
    made.add_argument(
        "--out", type=Path, default=CHECKOUT, metavar="DIR", help="keep rows in its results/studies (the checkout)"
    )
    return made
