"""How long suites of the field take on this machine.

    python benchmarks/suites.py [--runs N] [--json FILE] [--update docs/appendix/benchmarks.md]

Ten to fifteen minutes, on a machine that should have nothing else to do. Each figure is of a command of its own, started as
one would start it: the processor's time of ccBench's two leagues for some classic controls, the time from saving a C++ file,
the first one of docs/own_control.md, to its score in the solo league, and that of the longest suites for CUBIC.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import Row, parser, report

COMMAND = "python benchmarks/suites.py"
GUIDE = Path(__file__).resolve().parents[1] / "docs" / "own_control.md"
LEAGUES, CLASSIC = ("ccbench/solo", "ccbench/friendly"), ("cubic", "bbr", "vegas")
LONGEST = ("rfc9743", "testbed/2025")


def seconds(suite: str, controller: str, folder: str) -> dict[str, float]:
    """What a suite takes: seconds, and those of processors."""
    used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    words = ["netbuf_gym", "suite", suite, f"controller={controller}", "figures=false", f"output={folder}"]
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    processors = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return {"wall": time.perf_counter() - began, "processors": processors}


def fresh(suite: str, controller: str) -> dict[str, float]:
    """The same of what nobody has played before."""
    with TemporaryDirectory() as folder:
        return seconds(suite, controller, folder)


def saved(number: int) -> float:
    """Seconds from saving a control in C++ that was never compiled to its score in the solo league."""
    found = re.search(r"```cpp\n(// Shy.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    if found is None:
        raise SystemExit(f"{GUIDE}: the control is gone")
    with TemporaryDirectory() as folder:
        path, began = Path(folder, "shy.cc"), time.perf_counter()
        path.write_text(f"// {time.time_ns()} {number}\n{found[1]}", encoding="utf-8")
        seconds(LEAGUES[0], str(path), str(Path(folder, "out")))
        return time.perf_counter() - began


def rows(runs: int) -> list[Row]:
    """The figures."""
    made = []
    for name in CLASSIC:
        both = [sum(fresh(suite, name)["processors"] for suite in LEAGUES) for _ in range(runs)]
        made.append(Row(f"{' and '.join(LEAGUES)}, {name}", "s of processors", both, 20.0, at_most=True))
    after = [saved(number) for number in range(runs)]
    made.append(Row("a C++ file is saved, until its score in ccbench/solo", "s", after, 15.0, at_most=True))
    for suite in LONGEST:
        long = [fresh(suite, "cubic") for _ in range(runs)]
        spent = f"{max(one['processors'] for one in long):.0f} s of processors at most"
        made.append(Row(f"{suite}, cubic", "s", [one["wall"] for one in long], 600.0, at_most=True, note=spent))
    return made


def main() -> None:
    """Measures, and reports."""
    options = parser(__doc__.split(":")[0], runs=1).parse_args()
    report("suites", COMMAND, rows(options.runs), options, [])


if __name__ == "__main__":
    main()
