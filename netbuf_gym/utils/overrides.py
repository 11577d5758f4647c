"""KEY=VALUE in Hydra's grammar, for those who lack Hydra: writing values that are read back as they are, and reading them.

A test sets the reader beside Hydra's own.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from netbuf_gym.errors import ConfigError, shown

PLAIN = re.compile(r"[A-Za-z_./][\w./:%+@-]*", re.ASCII)
"""Texts that need no quotes."""
INT = re.compile(r"[+-]?(0|[1-9](_?\d)*)")
FLOAT = re.compile(
    r"[+-]?(((0|[1-9](_?\d)*)\.(\d(_?\d)*)?|\.\d(_?\d)*)([eE][+-]?\d(_?\d)*)?|(0|[1-9](_?\d)*)[eE][+-]?\d(_?\d)*|inf|nan)", re.I
)
BARE = re.compile(r"(?:[\w/\-+.$%*@?|:]|[^\S\n]|\\[\\()\[\]{}:=, \t]|\\)+", re.ASCII)


def quoted(text: str) -> str:
    """A text in quotes, which Hydra reads as this text."""
    text = text.replace("${", "\\${")
    return "'" + re.sub(r"(\\*)('|\Z)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text) + "'"


def word(key: str, value: object) -> str:
    """`key=value` as a word of a command line: in quotes for Hydra, and for the shell, where they are needed."""
    text = str(value)
    if not PLAIN.fullmatch(text) or _bare(text) != text:
        text = quoted(text)
    written = f"{key}={text}"
    if "'" in written and not re.search(r'["$`\\!]', written):
        return f'"{written}"'
    return shlex.quote(written)


def unquoted(text: str) -> str:
    """A text as it is meant: without the quotes that it may be in."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        try:
            value = value_of(text)
        except ValueError:
            return text
        return value if isinstance(value, str) else text
    return text


def read(argument: str) -> tuple[str, Any]:
    """The key and the value of an argument: null, a truth value, a number, a text, a list or a mapping.

    Raises:
        ConfigError: it is no such thing; in one line.
    """
    key, equals, text = argument.partition("=")
    if not equals:
        raise ConfigError(f"argument {shown(argument)} is not of the form key=value")
    if not key.strip():
        raise ConfigError(f"argument {shown(argument)} names no key; valid: key=value")
    try:
        return key.strip(), value_of(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"argument {shown(argument)} cannot be read: {str(error) or 'nested too deeply'}") from None


def value_of(text: str) -> Any:
    """What a value's text says; raises ValueError, in one line, where it cannot be read."""
    if not text.strip():
        return ""
    value, rest = _element(text.lstrip())
    if rest.lstrip().startswith(","):
        raise ValueError("it names several values; valid: one, or a list in brackets, e.g. [a,b]")
    if rest.strip():
        said = f"{shown(rest.strip(), 20)} is not expected behind {shown(text[: len(text) - len(rest)].strip(), 20)}"
        raise ValueError(f"{said}; valid: quotes around a text that holds it, and the shell's around those")
    return value


def _element(text: str) -> tuple[Any, str]:
    """The first value in a text without space in front, and the rest of it."""
    if text[:1] == "[":
        return _list(text[1:].lstrip())
    if text[:1] == "{":
        return _mapping(text[1:].lstrip())
    if text[:1] in ("'", '"'):
        return _quoted(text)
    found = BARE.match(text)
    if found is None:
        what = f"{shown(text[:1])} is not expected here" if text else "it ends too early"
        raise ValueError(what)
    bare = found[0].rstrip()
    if found[0][len(bare) :] and (len(bare) - len(bare.rstrip("\\"))) % 2:
        bare += found[0][len(bare)]  # an escaped space
    return _bare(bare), text[found.end() :]


def _list(text: str) -> tuple[list[Any], str]:
    items: list[Any] = []
    while text[:1] != "]":
        value, text = _element(text)
        items.append(value)
        text = text.lstrip()
        if text[:1] == ",":
            text = text[1:].lstrip()
            if text[:1] in ("]", ","):
                raise ValueError("the list holds an empty value")
        elif not text:
            raise ValueError("the list has no end; valid: e.g. [a,b]")
        elif text[:1] != "]":
            said = f"{shown(text[:1])} is not expected behind {shown(value)} in a list"
            raise ValueError(f"{said}; valid: a comma or the list's end, or quotes around a text that holds it")
    return items, text[1:]


def _mapping(text: str) -> tuple[dict[str, Any], str]:
    items: dict[str, Any] = {}
    while text[:1] != "}":
        found = re.match(r"\s*([\w/\-+.$%*@?|]+|'[^']*'|\"[^\"]*\")\s*:\s*", text)
        if found is None:
            raise ValueError("the mapping has no key or no end; valid: e.g. {a:1,b:2}")
        value, text = _element(text[found.end() :])
        items[found[1].strip("'\"")] = value
        text = text.lstrip()
        if text[:1] == ",":
            text = text[1:].lstrip()
        elif text[:1] != "}":
            raise ValueError("the mapping has no end; valid: e.g. {a:1,b:2}")
    return items, text[1:]


def _quoted(text: str) -> tuple[str, str]:
    quote, at = text[0], 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    if at >= len(text):
        raise ValueError(f"no closing {quote}")
    inner = text[1:at]
    inner = re.sub(rf"(\\+)({quote}|\Z)", lambda found: "\\" * (len(found[1]) // 2) + found[2], inner)
    return inner, text[at + 1 :]


def _bare(text: str) -> Any:
    if text.lower() in ("null", "true", "false"):
        return json.loads(text.lower())
    if INT.fullmatch(text):
        return int(text.replace("_", ""))
    if FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    return re.sub(r"\\([\\()\[\]{}:=, \t])", r"\1", text)
