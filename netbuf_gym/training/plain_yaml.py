"""Parser of the subset of YAML that `conf/` is written in, so that help and completion need no YAML library.

Mappings and lists by indentation, flow lists and mappings on one line, quoted and bare scalars, comments. A test checks for
every file of `conf/` that the result is OmegaConf's.
"""

from __future__ import annotations

import re
from typing import Any

NUMBER = re.compile(r"[-+]?(\d[\d_]*)")
FLOAT = re.compile(r"[-+]?(\d[\d_]*)?\.?\d+([eE][-+]?\d+)?|[-+]?\d+\.")
WORDS = {"null": None, "~": None, "": None, "true": True, "false": False}
TOKEN = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[\[\]{},]|(?:\$\{[^}]*\}|[^\[\]{},"'\s])(?:\$\{[^}]*\}|[^\[\]{},])*)""")


def parse_mapping(text: str) -> dict[str, Any]:
    """Parse a file's text into a mapping.

    Raises:
        ValueError: The text is outside of this subset of YAML.
    """
    lines = []
    for line in text.splitlines():
        bare = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        if bare.strip():
            lines.append((len(bare) - len(bare.lstrip()), bare.strip()))
    value, rest = _parse_block(lines, lines[0][0]) if lines else ({}, [])
    if rest or not isinstance(value, dict):
        raise ValueError("not a mapping by indentation")
    return value


def read_leading_comment(text: str) -> str:
    """Return a file's leading comment in one line, without `@package`."""
    said = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith("# @package"):
            said.append(line.lstrip("# ").strip())
    return " ".join(said)


def _parse_block(lines: list[tuple[int, str]], indent: int) -> tuple[Any, list[tuple[int, str]]]:
    """Parse the mapping or list whose lines are indented by `indent`; return it and the remaining lines."""
    mapping: dict[str, Any] = {}
    items: list[Any] = []
    while lines and lines[0][0] >= indent:
        at, line = lines[0]
        if at > indent:
            raise ValueError(f"{line!r}: indented by {at}, not {indent}")
        if items and not line.startswith("- "):
            break  # end of a list indented like its key
        lines = lines[1:]
        if line.startswith("- "):
            key, colon, value = line[2:].partition(": ")
            items.append({key: parse_scalar(value)} if colon else parse_scalar(line[2:]))
            continue
        key, colon, value = line.partition(":")
        if not colon or (value and not value.startswith(" ")):
            raise ValueError(f"{line!r}: not `key: value`")
        if value.strip():
            mapping[key] = parse_scalar(value.strip())
        elif lines and (lines[0][0] > indent or (lines[0][0] == indent and lines[0][1].startswith("- "))):
            mapping[key], lines = _parse_block(lines, lines[0][0])
        else:
            mapping[key] = None
    return items or mapping, lines


def parse_scalar(text: str) -> Any:
    """Parse a value on one line.

    Raises:
        ValueError: Unbalanced brackets or quotes.
    """
    tokens, at = [], 0
    text = text.strip()
    if text[:1] not in ("[", "{", '"', "'"):
        return _parse_bare_scalar(text)
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"{text!r} cannot be read")
        tokens.append(found[1].strip())
        at = found.end()
    value, rest = _parse_flow(tokens)
    if rest:
        raise ValueError(f"{text!r} goes on behind its end")
    return value


def _parse_flow(tokens: list[str]) -> tuple[Any, list[str]]:
    if not tokens:
        raise ValueError("ends too early")
    first, tokens = tokens[0], tokens[1:]
    if first not in ("[", "{"):
        return _parse_bare_scalar(first), tokens
    close, items, mapping = ("]" if first == "[" else "}"), [], {}
    while tokens and tokens[0] != close:
        if first == "[":
            value, tokens = _parse_flow(tokens)
            items.append(value)
        else:
            key, colon, inline = tokens[0].partition(":")
            if not colon:
                raise ValueError(f"{tokens[0]!r}: not `key: value`")
            value, tokens = (_parse_bare_scalar(inline.strip()), tokens[1:]) if inline.strip() else _parse_flow(tokens[1:])
            mapping[key.strip("\"' ")] = value
        if tokens and tokens[0] == ",":
            tokens = tokens[1:]
    if not tokens:
        raise ValueError(f"no {close!r}")
    return (items if first == "[" else mapping), tokens[1:]


def _parse_bare_scalar(text: str) -> Any:
    if text[:1] in ("'", '"') and text[-1:] == text[0] and len(text) > 1:
        return text[1:-1]
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    if NUMBER.fullmatch(text):
        return int(text.replace("_", ""))
    return float(text) if FLOAT.fullmatch(text) else text
