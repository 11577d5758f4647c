"""How much of one worker's time two workers need for a study.

    python benchmarks/study_workers.py [--trials 12] [--steps 30000] [--pairs 3] [--json FILE]

Each pair is the same study twice in new folders, with one worker and with two, in turn who goes first: PPO on ppcc/4, three
seeds a trial, the random sampler, nothing given up, and only settings searched that cost no time, so that both do the same
work. Beside the wall clock stands what it would be if no process had ever waited for a core, which the kernel tells of each
(schedstat): on a machine that is busy with other things that is the time that counts; what waits for a lock or a disk is in
it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

COSTLESS = ("gamma", "gae_lambda", "ent_coef", "learning_rate", "clip_range", "vf_coef")
POLL_S = 0.1


def waited(process: int) -> float | None:
    """Seconds that a process has waited for a core so far; None: it has ended."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) * 1e-9
    except (OSError, IndexError):
        return None


def children(process: int) -> list[int]:
    """Processes that it has started and that have not ended."""
    try:
        return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def study(folder: str, workers: int, trials: int, steps: int) -> dict[str, float]:
    """Seconds of a study: `wall`, and `alone`, without those in which the process that mattered waited for a core."""
    from netbuf_gym.training.config import load

    searched = load("tune", ["env=congestion_window", "algo=ppo"]).search
    words = [f"search.{name}=null" for name in searched if name not in COSTLESS]
    words += ["env=congestion_window", "algo=ppo", "scenario=ppcc/4", "algo.num_envs=64", "algo.kwargs.n_steps=32"]
    words += ["algo.kwargs.batch_size=512", "sampler=random", "pruner=none", "rungs=2", "worlds=4", "progress=false"]
    words += [f"trials={trials}", f"total_timesteps={steps}", f"workers={workers}", f"run_dir={folder}"]
    begun = time.monotonic()
    main = subprocess.Popen([sys.executable, "-m", "netbuf_gym", "tune", *words], stdout=subprocess.DEVNULL)
    seen: dict[int, list[tuple[float, float]]] = {}
    own: list[tuple[float, float]] = []
    while main.poll() is None:
        now = time.monotonic() - begun
        if (waiting := waited(main.pid)) is not None:
            own.append((now, waiting))
        for child in children(main.pid) if workers > 1 else []:
            if (waiting := waited(child)) is not None:
                seen.setdefault(child, []).append((now, waiting))
        time.sleep(POLL_S)
    wall = time.monotonic() - begun
    if main.returncode:
        raise SystemExit(f"the study ended with status {main.returncode}")
    working = {child: marks for child, marks in seen.items() if marks[-1][0] - marks[0][0] > 1}  # not what asks for versions
    if not working:
        return {"wall": wall, "alone": wall - own[-1][1]}
    first, last = min(marks[0][0] for marks in working.values()), max(marks[-1][0] for marks in working.values())
    before = max((waiting for at, waiting in own if at <= first), default=0.0)
    after = own[-1][1] - max(waiting for at, waiting in own if at <= last)
    longest = max(marks[-1][0] - marks[0][0] - (marks[-1][1] - marks[0][1]) for marks in working.values())
    return {"wall": wall, "alone": first - before + longest + (wall - last) - after}


def main() -> int:
    """Measures pairs and prints them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for pair in range(given.pairs):
        row: dict[str, Any] = {}
        for workers in ((1, 2), (2, 1))[pair % 2]:
            with tempfile.TemporaryDirectory() as folder:
                row[str(workers)] = study(f"{folder}/study", workers, given.trials, given.steps)
        row["ratio"] = {key: row["2"][key] / row["1"][key] for key in ("wall", "alone")}
        rows.append(row)
        one, two, ratio = row["1"], row["2"], row["ratio"]
        print(
            f"pair {pair + 1}: one worker {one['wall']:.1f} s ({one['alone']:.1f} alone), two {two['wall']:.1f} s "
            f"({two['alone']:.1f} alone); ratio {ratio['wall']:.3f} ({ratio['alone']:.3f} alone)",
            flush=True,
        )
    for key in ("wall", "alone"):
        print(f"median ratio, {key}: {statistics.median(row['ratio'][key] for row in rows):.3f}")
    if given.json:
        given.json.write_text(json.dumps({"trials": given.trials, "steps": given.steps, "pairs": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
