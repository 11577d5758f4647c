"""Results of the controls and the sender on suites of the field: `python benchmarks/field.py SUITE [CONTROLLER ...]`.

Plays everybody, or the controllers that are named, whose kept results are then renewed and the others' stand. Keeps the results
(`netbuf_gym/suites/field/results`) and writes the report (`docs/field`). `python -m netbuf_gym.pages docs` then renews the
tables over all suites. Suites: `all`, or their names.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from netbuf_gym import cli
from netbuf_gym.suites import field
from netbuf_gym.suites.field import league
from netbuf_gym.suites.field.suite import FieldSuite

ROOT = Path(__file__).resolve().parents[1]
PAGES, FIGURES = ROOT / "docs" / "field", ROOT / "docs" / "figures" / "field"
EVERYBODY = (
    *("cubic", "newreno", "bbr", "bbr3", "bbrplus", "vegas", "westwood", "copa", "vivace", "ledbat", "ledbatpp", "dctcp"),
    *("inigo", "qtcp", "queue_target", "congestion_window/ppo"),
)
"""Every control of the linux stack that needs no receiver of its own, the hand-written rule, and the sender."""


def renew(suite: FieldSuite, controllers: list[str]) -> None:
    """Plays, keeps and tells."""
    slug = suite.name.replace("/", "-")
    output = ROOT / "runs" / "field" / slug
    words = ["suite", suite.name, f"controller=[{','.join(controllers or EVERYBODY)}]", f"output={output}"]
    if not controllers:
        words.append("beside=[]")
    if cli.main(words):
        raise SystemExit(f"{suite.name}: not done")
    league.keep(league.committed(suite), (output / "worlds.csv").read_text())
    text = (output / "report.md").read_text().replace(f" output={output}", "")
    for picture in sorted((output / "figures").glob("*.png")):
        FIGURES.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, FIGURES / f"{slug}-{picture.name}")
        text = text.replace(f"(figures/{picture.name})", f"(../figures/field/{slug}-{picture.name})")
    PAGES.mkdir(parents=True, exist_ok=True)
    (PAGES / f"{slug}.md").write_text(text)


def main() -> int:
    """Does what the command line says."""
    names, controllers = sys.argv[1:2], sys.argv[2:]
    known = {suite.name: suite for suite in field.SUITES}
    if not names or names[0] not in (*known, "all"):
        raise SystemExit(f"{__doc__}\n{', '.join(known)}")
    for suite in known.values() if names == ["all"] else [known[names[0]]]:
        renew(suite, controllers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
