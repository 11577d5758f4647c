"""A reader of the plain part of YAML that `conf/` is written in, so that help and completion need no YAML library.

Mappings and lists by indentation, lists and mappings in brackets on one line, quoted and bare scalars, comments. What it reads
of our own files is what OmegaConf reads, which a test checks file by file.
"""

from __future__ import annotations

import re
from typing import Any

NUMBER = re.compile(r"[-+]?(\d[\d_]*)")
FLOAT = re.compile(r"[-+]?(\d[\d_]*)?\.?\d+([eE][-+]?\d+)?|[-+]?\d+\.")
WORDS = {"null": None, "~": None, "": None, "true": True, "false": False}
TOKEN = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[\[\]{},]|(?:\$\{[^}]*\}|[^\[\]{},"'\s])(?:\$\{[^}]*\}|[^\[\]{},])*)""")


def read(text: str) -> dict[str, Any]:
    """The mapping that a file holds.

    Raises:
        ValueError: it is not written in this part of YAML.
    """
    lines = []
    for line in text.splitlines():
        bare = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        if bare.strip():
            lines.append((len(bare) - len(bare.lstrip()), bare.strip()))
    value, rest = _block(lines, lines[0][0]) if lines else ({}, [])
    if rest or not isinstance(value, dict):
        raise ValueError("not a mapping by indentation")
    return value


def comment(text: str) -> str:
    """The comment that a file begins with, but for `@package`, in one line."""
    said = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith("# @package"):
            said.append(line.lstrip("# ").strip())
    return " ".join(said)


def _block(lines: list[tuple[int, str]], indent: int) -> tuple[Any, list[tuple[int, str]]]:
    """The mapping or list whose lines stand at `indent`, and the lines after it."""
    mapping: dict[str, Any] = {}
    items: list[Any] = []
    while lines and lines[0][0] >= indent:
        at, line = lines[0]
        if at > indent:
            raise ValueError(f"{line!r}: indented by {at}, not {indent}")
        if items and not line.startswith("- "):
            break  # what follows a list that stands where its key does
        lines = lines[1:]
        if line.startswith("- "):
            key, colon, value = line[2:].partition(": ")
            items.append({key: scalar(value)} if colon else scalar(line[2:]))
            continue
        key, colon, value = line.partition(":")
        if not colon or (value and not value.startswith(" ")):
            raise ValueError(f"{line!r}: not `key: value`")
        if value.strip():
            mapping[key] = scalar(value.strip())
        elif lines and (lines[0][0] > indent or (lines[0][0] == indent and lines[0][1].startswith("- "))):
            mapping[key], lines = _block(lines, lines[0][0])
        else:
            mapping[key] = None
    return items or mapping, lines


def scalar(text: str) -> Any:
    """A value on one line.

    Raises:
        ValueError: brackets or quotes that do not close.
    """
    tokens, at = [], 0
    text = text.strip()
    if text[:1] not in ("[", "{", '"', "'"):
        return _bare(text)
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"{text!r} cannot be read")
        tokens.append(found[1].strip())
        at = found.end()
    value, rest = _flow(tokens)
    if rest:
        raise ValueError(f"{text!r} goes on behind its end")
    return value


def _flow(tokens: list[str]) -> tuple[Any, list[str]]:
    if not tokens:
        raise ValueError("ends too early")
    first, tokens = tokens[0], tokens[1:]
    if first not in ("[", "{"):
        return _bare(first), tokens
    close, items, mapping = ("]" if first == "[" else "}"), [], {}
    while tokens and tokens[0] != close:
        if first == "[":
            value, tokens = _flow(tokens)
            items.append(value)
        else:
            key, colon, inline = tokens[0].partition(":")
            if not colon:
                raise ValueError(f"{tokens[0]!r}: not `key: value`")
            value, tokens = (_bare(inline.strip()), tokens[1:]) if inline.strip() else _flow(tokens[1:])
            mapping[key.strip("\"' ")] = value
        if tokens and tokens[0] == ",":
            tokens = tokens[1:]
    if not tokens:
        raise ValueError(f"no {close!r}")
    return (items if first == "[" else mapping), tokens[1:]


def _bare(text: str) -> Any:
    if text[:1] in ("'", '"') and text[-1:] == text[0] and len(text) > 1:
        return text[1:-1]
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    if NUMBER.fullmatch(text):
        return int(text.replace("_", ""))
    return float(text) if FLOAT.fullmatch(text) else text
