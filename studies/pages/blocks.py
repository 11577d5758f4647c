"""Code blocks of tutorial pages: their files, scripts and commands, and the number of lines to write.

    python -m studies.pages.blocks docs/extending.md

prints a table of the files that the reader writes in each section, with their lines. In such a page a block of code belongs
to the file named in the line before it, `` `path/to/file.py`: ``; a `python` block without one is a script, and a `console`
block holds commands after `$ ` with their output, in which `...` stands for anything.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from netbuf_gym.tasks.tables import markdown_table

HEADING = r"^## (?P<section>[^\n]+)$"
FENCE = r"^(?P<indent> *)(?P<fence>```+|~~~+)(?P<language>[\w+-]*)[^\n]*\n(?P<text>.*?)^(?P=indent)(?P=fence) *$"
BLOCK = rf"(?:^ *`(?P<file>[^`\n]+)`:\n\n)?{FENCE}"
PARTS = re.compile(f"{HEADING}|{BLOCK}", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes:
        section: Heading of level 2 above the block; "": none.
        line: Number of the block's first line in the page.
        file: File whose text the block is; "": none.
        language: Language of the fence.
        text: Text without the page's indentation, with the last line break.
    """

    section: str
    line: int
    file: str
    language: str
    text: str

    @property
    def lines(self) -> int:
        """Number of non-empty lines."""
        return sum(bool(line.strip()) for line in self.text.splitlines())

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Commands of a `console` block, each with its expected output."""
        parts = re.split(r"^\$ (.*)\n", self.text, flags=re.M)[1:]
        return list(zip(parts[::2], parts[1::2], strict=True))


def parse_blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page in order."""
    section = ""
    for part in PARTS.finditer(page):
        if part["section"] is not None:
            section = part["section"]
        else:
            text = re.sub(rf"^{part['indent']}", "", part["text"], flags=re.M)
            line = page.count("\n", 0, part.start("text")) + 1
            yield Block(section, line, part["file"] or "", part["language"], text)


def files_table(page: str) -> str:
    """Return a Markdown table of the files to write in each section, with their number and their non-empty lines."""
    found: dict[str, list[Block]] = {}
    for block in parse_blocks(page):
        if block.file:
            found.setdefault(block.section, []).append(block)
    rows = []
    for section, files in found.items():
        names = ", ".join(f"`{block.file}` {block.lines}" for block in files)
        rows.append([section, str(len(files)), str(sum(block.lines for block in files)), names])
    return markdown_table(["Section", "Files", "Lines", "Lines of each file"], rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table of a page and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m studies.pages.blocks", description=__doc__.split("\n")[0])
    parser.add_argument("page", type=Path)
    page = parser.parse_args(argv).page
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        parser.error(f"PAGE = {str(page)!r} cannot be read ({error}); valid: a page in Markdown, e.g. docs/extending.md")
    print(files_table(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
