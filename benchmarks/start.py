"""Time of a processor from the import of the package to a first observation, and of one environment's steps and resets.

    python benchmarks/start.py [--runs N] [--json FILE] [--update FILE] [--beside CHECKOUT]

Each figure is of processes of their own. `--beside` measures another checkout, with its native module, in turns with this one,
and says how many times as long as there everything takes here. Where bytecode is not written (`PYTHONDONTWRITEBYTECODE`),
modules are compiled anew in every process, and starts take about twice as long.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

from measure import Row, parser, report

COMMAND = "python benchmarks/start.py"
ROOT = Path(__file__).parents[1]
IDS = ("CongestionWindow", "ReceiverWindow", "QueueThreshold", "HostBuffers")
MAKE = """
import gymnasium as gym, time
started = time.process_time()
import netbuf_gym
gym.make("netbuf/{name}-v0").reset(seed=1)
print(1e3 * (time.process_time() - started))
"""
REPEAT = """
import gymnasium as gym, netbuf_gym, time
env = gym.make("netbuf/CongestionWindow-v0", scenario="{scenario}", recipe="{recipe}")
env.reset(seed=1)
def one():
    {one}
spent = []
for _ in range(20):
    started = time.process_time()
    for _ in range(200): one()
    spent.append(1e6 * (time.process_time() - started) / 200)
print(min(spent))
"""
STEP, RESET = "env.reset() if env.step(4)[3] else None", "env.reset()"


def list_figures() -> dict[str, tuple[str, str, float | None]]:
    """Return unit, program and greatest value aimed at of each figure."""
    figures: dict[str, tuple[str, str, float | None]] = {
        f"gym.make and a first reset of {name}-v0, once Gymnasium is imported": ("ms", MAKE.format(name=name), None)
        for name in IDS
    }
    for recipe in ("ppcc", "default"):
        program = REPEAT.format(scenario="ppcc/4", recipe=recipe, one=STEP)
        figures[f"a step of one world of ppcc/4, recipe {recipe}"] = "us", program, 25.0
    program = REPEAT.format(scenario="ppcc/random", recipe="ppcc", one=RESET)
    figures["a reset of one world of ppcc/random, recipe ppcc"] = "us", program, 50.0
    return figures


def measure(program: str, checkout: Path) -> float:
    """Run a program with a checkout's package; returns the number that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True, env=environment, cwd=checkout
    )
    return float(done.stdout)


def main() -> None:
    arguments = parser(__doc__.split("\n")[0], runs=9)
    arguments.add_argument("--beside", type=Path, metavar="CHECKOUT", help="another checkout, measured in turns with this one")
    options = arguments.parse_args()
    rows = []
    for name, (unit, program, target) in list_figures().items():
        places = [ROOT, *([options.beside.resolve()] if options.beside else [])]
        for place in places:
            measure(program, place)  # writes bytecode
        runs = [[measure(program, place) for place in places] for _ in range(options.runs)]
        own, *others = zip(*runs, strict=True)
        note = f"{statistics.median(own) / statistics.median(others[0]):.2f} times {options.beside.name}" if others else ""
        rows.append(Row(name, unit, list(own), target, at_most=True, note=note))
    report("start", COMMAND, rows, options, [])


if __name__ == "__main__":
    main()
