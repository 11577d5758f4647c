"""The places that can be mutated: the pool of files, the operators, the places where they apply, and the fixed mutations.

A mutation changes one line of code: a comparison (`<` to `<=`, `==` to `!=`), an arithmetic operator (`+` to `-`,
`*` to `/`), a constant (n to n + 1, x to 1.5 x, true to false), or drops a statement. Comments, strings, includes,
assertions, annotations and decorators are left alone, and so are members of C++ classes that begin as 0, -1 or false.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OPERATORS = ("comparison", "arithmetic", "constant", "dropped statement")
CORE = ("cpp/src/**/*.cc", "cpp/src/**/*.h", "cpp/include/**/*.h")
RULES = (*(f"netbuf_gym/{place}/**/*.py" for place in ("tasks", "rewards", "plants", "scenarios")), "netbuf_gym/envs/engine.py")

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}


@dataclass(frozen=True, order=True)
class Mutation:
    """One line of a file, changed: `old` at column `column` of line `line` (from 1) becomes `new`."""

    path: str
    line: int
    column: int
    old: str
    new: str
    operator: str
    text: str

    @property
    def before(self) -> str:
        return self.text.strip()

    @property
    def after(self) -> str:
        return (self.text[: self.column] + self.new + self.text[self.column + len(self.old) :]).strip()

    @property
    def identity(self) -> str:
        """A name that stays when code around the mutation moves: its file's name, and the line before and after."""
        return f"{Path(self.path).name}: {self.before} => {self.after}"

    def apply(self, source: str) -> str:
        """The file's text with this one line changed."""
        lines = source.split("\n")
        found = lines[self.line - 1]
        if found != self.text or found[self.column : self.column + len(self.old)] != self.old:
            raise ValueError(f"{self.path}:{self.line} is not the line that the mutation was made for: {found.strip()}")
        lines[self.line - 1] = found[: self.column] + self.new + found[self.column + len(self.old) :]
        return "\n".join(lines)


def change_number(text: str) -> str | None:
    """Return the constant that a number becomes: an integer the next one, another number half more; None: left alone."""
    match = re.fullmatch(r"(0[xX][0-9a-fA-F']+|[\d_']*\.?[\d_']*(?:[eE][+-]?\d+)?)([uUlLzZfFj]*)", text)
    if not match or not match[1] or "j" in match[2]:
        return None
    digits = match[1].replace("'", "").replace("_", "")
    if re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", digits) and "f" not in match[2].lower():
        return f"{int(digits, 0 if digits[:2].lower() == '0x' else 10) + 1}{match[2]}"
    value = float(digits)
    return f"{value * 1.5 if value else 1.0!r}{match[2]}"


def list_pool(root: Path, files: list[str]) -> list[str]:
    """List those of the files that can be mutated."""
    found: set[str] = set()
    for pattern in (*CORE, *RULES):
        found |= {str(path.relative_to(root)) for path in root.glob(pattern)}
    return sorted(found & set(files))


def list_sites(root: Path, path: str) -> list[Mutation]:
    """Return every mutation of one file."""
    from tools.mutation.cpp import list_cpp_sites
    from tools.mutation.python import list_python_sites

    source = (root / path).read_text()
    return sorted((list_python_sites if path.endswith(".py") else list_cpp_sites)(path, source))


def draw_mutations(found: list[Mutation], seed: int) -> Iterator[Mutation]:
    """Draw the mutations in the order in which a seed draws them: an operator, each as likely, then one of its places."""
    rng = random.Random(seed)
    left = {operator: [one for one in found if one.operator == operator] for operator in OPERATORS}
    for places in left.values():
        rng.shuffle(places)
    while any(left.values()):
        operator = rng.choice([name for name in OPERATORS if left[name]])
        yield left[operator].pop()


@dataclass(frozen=True)
class Fixed:
    """A mutation that is always made, found by what its line looks like wherever that stands now.

    Attributes:
        name: what it breaks.
        pattern: of exactly one place in the pool, within a line.
        replacement: what the match becomes (as of `re.sub`).
        where: of the file's path.
    """

    name: str
    pattern: str
    replacement: str
    where: str = ""


FIXED = (
    Fixed("loss rate without random losses", r'(\["queue_drops"\]) \+ counters\["random_losses"\]', r"\1", r"\.py$"),
    Fixed("the last interval floored", r"-\(-(round\(duration_s \* 1e9\)) // interval_ns\)", r"\1 // interval_ns", r"\.py$"),
    Fixed("no byte limit in the window's bound", r"(\s)limits\.append\(link\.queue_bytes\b.*", r"\1pass", r"\.py$"),
    Fixed("idle restart 3/4", r"\bwindow /= 2;", "window = window * 3 / 4;", r"\.(cc|h)$"),
    Fixed("ACK gap of the first interval", r"\bi\.acks\(\) - 1 \+ earlier", "i.acks()", r"\.(cc|h)$"),
    Fixed("link uses 1", r"(\buse\(sender\.path, )2(\), use\(sender\.return_path, )2", r"\g<1>1\g<2>1", r"\.(cc|h)$"),
)


def find_fixed(root: Path, files: list[str]) -> list[Mutation]:
    """Find the fixed mutations.

    Raises:
        LookupError: a pattern fits no line of the pool, or several.
    """
    made = []
    for one in FIXED:
        hits = []
        for path in files:
            if not re.search(one.where, path):
                continue
            for number, text in enumerate((root / path).read_text().split("\n"), 1):
                for match in re.finditer(one.pattern, text):
                    new = match.expand(one.replacement)
                    hits.append(Mutation(path, number, match.start(), match[0], new, f"fixed: {one.name}", text))
        if len(hits) != 1:
            places = ", ".join(f"{hit.path}:{hit.line}" for hit in hits) or "nowhere"
            raise LookupError(f"fixed mutation {one.name!r}: {one.pattern!r} must stand in one place, and does: {places}")
        made += hits
    return made
