"""Puts the tables and figures of finished campaigns into the page about their experiment.

    python -m studies.page EXPERIMENT docs/EXPERIMENT.md SECTION=DIR [...]

DIR are the folders that `netbuf-gym reproduce EXPERIMENT` wrote (and, of rlbm's section compare, the one of
`python -m studies.rlbm.compare`). What stands between the page's marks for a section is replaced; figures, with
fewer colours, and the means over seeds of every cell go to figures/EXPERIMENT/ beside the page; of sender, ppcc and live also
every run (rows-SECTION.csv.gz: what it was and its measures, eight digits), from which the page's tables follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netbuf_gym import scripts, sections
from netbuf_gym.errors import ConfigError
from netbuf_gym.files import write_atomic
from studies.catalogue import experiment


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns 0.

    Raises:
        ConfigError: An unknown experiment or section, a page without marks, a folder without a finished campaign.
        OSError: A file cannot be read or written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    if len(argv) < 2 or "=" in argv[0] or "=" in argv[1]:
        raise ConfigError("no page is given; valid: EXPERIMENT, PAGE, then SECTION=DIR")
    own, page, sources = experiment(argv[0]), Path(argv[1]), {}
    for argument in argv[2:]:
        key, equals, value = argument.partition("=")
        if not equals or key not in own.sections or key in sources:
            raise ConfigError(f"argument {argument!r} is unknown, or given twice; valid: {'=, '.join(own.sections)}=")
        sources[key] = Path(value)
    text = page.read_text(encoding="utf-8")
    for key in sources:
        replaced(text, key, "", page)  # refuses a page without marks before anything is written
    folder = page.parent / "figures" / own.name
    folder.mkdir(parents=True, exist_ok=True)
    for key, source in sources.items():
        text = replaced(text, key, own.sections[key](source, folder), page)
    write_atomic(page, text)
    return 0


def replaced(text: str, key: str, new: str, page: Path) -> str:
    """The page with what stands between the marks of `key` replaced; raises ConfigError where it lacks them."""
    begin, end = f"<!-- {key}: written by python -m studies.page -->", f"<!-- end of {key} -->"
    return sections.replaced(page, text, begin, end, new)


if __name__ == "__main__":
    scripts.run("page", main)
