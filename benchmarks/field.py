"""Results of the controls and the agents on suites of the field: `python benchmarks/field.py SUITE [CONTROLLER ...]`.

Plays everybody, or the controllers that are named, whose kept results are then renewed and the others' stand. Keeps the results
(`netbuf_gym/suites/field/results`) and writes the report (`docs/field`). `python -m netbuf_gym.pages docs` then renews the
tables over all suites. SUITE: `all`, or a name; CONTROLLER `none`: nobody is played, the report is written anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

from netbuf_gym import cli
from netbuf_gym.suites import field
from netbuf_gym.suites.field import league, overview
from netbuf_gym.suites.field.suite import FieldSuite
from netbuf_gym.suites.field.telling import Field
from netbuf_gym.suites.settings import read

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "field"
EVERYBODY = (
    *("cubic", "newreno", "bbr", "bbr3", "bbrplus", "vegas", "westwood", "copa", "vivace", "ledbat", "ledbatpp", "dctcp"),
    *("prague", "inigo", "qtcp", "queue_target"),
    *(f"congestion_window/{agent}" for agent in ("sender", "ppo", "a2c", "dqn", "ppo_lstm")),
)
"""Every control of the linux stack that needs no receiver of its own, the hand-written rule, and the agents that know no more
than a sender does."""


def renew(suite: FieldSuite, controllers: list[str]) -> None:
    """Plays, keeps and tells."""
    slug = suite.name.replace("/", "-")
    output = ROOT / "runs" / "field" / slug
    words = ["suite", suite.name, f"controller=[{','.join(controllers or EVERYBODY)}]", f"output={output}", "figures=false"]
    if cli.main([*words, *([] if controllers else ["beside=[]"])]):
        raise SystemExit(f"{suite.name}: not done")
    league.keep(league.committed(suite), (output / "worlds.csv").read_text())
    tell(suite)


def tell(suite: FieldSuite) -> None:
    """Writes the report of what is kept."""
    edition = suite.load()
    results = overview.kept(suite)
    if not results.names:
        print(f"{suite.name}: no results of these worlds are kept")
        return
    teller = Field(suite, edition, edition.families, read(suite, ["controller=kept"]))
    folder = PAGES / suite.name.replace("/", "-")
    teller.report(folder, results, results.names, {}, f"python benchmarks/field.py {suite.name}")


def main() -> int:
    """Does what the command line says."""
    names, controllers = sys.argv[1:2], sys.argv[2:]
    known = {suite.name: suite for suite in field.SUITES}
    if not names or names[0] not in (*known, "all"):
        raise SystemExit(f"{__doc__}\n{', '.join(known)}")
    for suite in known.values() if names == ["all"] else [known[names[0]]]:
        if controllers == ["none"]:
            tell(suite)
        else:
            renew(suite, controllers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
