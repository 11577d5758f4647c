"""KEY=VALUE in Hydra's grammar without Hydra: the reader of all commands, and a writer whose texts are read back unchanged.

A test compares the reader with Hydra's own.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Sequence
from typing import Any

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.utils.suggestions import suggest_valid

PLAIN = re.compile(r"[A-Za-z_./][\w./:%+@-]*", re.ASCII)
"""Texts that need no quotes."""
INT = re.compile(r"[+-]?(0|[1-9](_?\d)*)")
FLOAT = re.compile(
    r"[+-]?(((0|[1-9](_?\d)*)\.(\d(_?\d)*)?|\.\d(_?\d)*)([eE][+-]?\d(_?\d)*)?|(0|[1-9](_?\d)*)[eE][+-]?\d(_?\d)*|inf|nan)", re.I
)
WRITTEN_FLOAT = re.compile(
    r"(?<![\w.'\"+-])[+-]?(\d[\d_]*(\.\d*([eE][+-]?\d+)?|[eE][+-]?\d+)|\.\d+([eE][+-]?\d+)?)(?![\w.'\"])"
)
"""Floats in the text of a value."""
ESCAPED = re.compile(r"\\([\\()\[\]{}:=, \t])")
"""Characters that a backslash escapes in a text without quotes."""
BARE = re.compile(r"(?:[\w/\-+.$%*@?|:]|[^\S\n]|\\[\\()\[\]{}:=, \t]|\\)+", re.ASCII)


def quote_text(text: str) -> str:
    """Return a text in quotes that Hydra reads as this text."""
    text = text.replace("${", "\\${")
    return "'" + re.sub(r"(\\*)('|\Z)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text) + "'"


def format_override(key: str, value: object) -> str:
    """Return `key=value` as a word of a command line, quoted for Hydra and for the shell where needed."""
    text = str(value)
    if not PLAIN.fullmatch(text) or _parse_bare(text) != text:
        text = quote_text(text)
    written = f"{key}={text}"
    if "'" in written and not re.search(r'["$`\\!]', written):
        return f'"{written}"'
    return shlex.quote(written)


def unquote_text(text: str) -> str:
    """Return a text without the quotes that may enclose it, or without the backslashes that escape in a text without quotes."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        try:
            value = parse_value(text)
        except ValueError:
            return text
        return value if isinstance(value, str) else text
    return ESCAPED.sub(r"\1", text)


def split_override(argument: str) -> tuple[str, str]:
    """Return the key and the unread text of the value; raises ConfigError, in one line, without `=` or a key."""
    key, equals, text = argument.partition("=")
    if not equals:
        raise ConfigError(f"argument {quote(argument)} is not of the form key=value")
    if not key.strip():
        raise ConfigError(f"argument {quote(argument)} names no key; valid: key=value")
    return key.strip(), text


def read_override(argument: str) -> tuple[str, Any]:
    """Return the key and the value of an argument: null, a truth value, a number, a text, a list or a mapping.

    Raises:
        ConfigError: The argument is malformed; the message is one line.
    """
    key, text = split_override(argument)
    try:
        return key, parse_value(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"argument {quote(argument)} cannot be read: {str(error) or 'nested too deeply'}") from None


def read_overrides(arguments: Sequence[str], known: Collection[str], lists: Collection[str] = ()) -> dict[str, Any]:
    """Return the values of `key=value` arguments, by key.

    Args:
        arguments: The arguments, each with a key of its own.
        known: The keys that are valid.
        lists: Keys whose values are lists; a single value counts as a list of one, and brackets can be left out.

    Raises:
        ConfigError: An unknown key, a key given twice, or a malformed value.
    """
    found: dict[str, Any] = {}
    for argument in arguments:
        key, equals, text = argument.partition("=")
        key = key.strip()
        if not equals or key not in known:
            rest = suggest_valid(f"{key}=", [f"{one}=" for one in known])
            raise ConfigError(f"argument {quote(argument)} is unknown; {rest}")
        if key in found:
            raise ConfigError(f"{key} is given twice; valid: once")
        bare_list = key in lists and not text.lstrip().startswith("[")
        found[key] = read_override(f"{key}=[{text}]" if bare_list else argument)[1]
    return found


def select_overrides(arguments: Sequence[str], keys: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the arguments `key=value` with one of the keys, and the others, such as overrides of a configuration."""
    own = [argument for argument in arguments if "=" in argument and argument.partition("=")[0].strip() in keys]
    return own, [argument for argument in arguments if argument not in own]


def parse_value(text: str) -> Any:
    """Return the value that a text stands for; raises ValueError, with a one-line message, if it cannot be read."""
    if not text.strip():
        return ""
    value, rest = _parse_element(text.lstrip())
    if rest.lstrip().startswith(","):
        raise ValueError("it names several values; valid: one, or a list in brackets, e.g. [a,b]")
    if rest.strip():
        said = f"{quote(rest.strip(), 20)} is not expected behind {quote(text[: len(text) - len(rest)].strip(), 20)}"
        raise ValueError(f"{said}; valid: quotes around a text that holds it, and the shell's around those")
    return value


def read_whole(text: str) -> int:
    """Return the integer that a text stands for, 1e3 and 20.0 included; raises ValueError if it is none."""
    try:
        return int(text)
    except ValueError:
        value = float(text)
        if not value.is_integer():
            raise
        return int(value)


def make_value_whole(value: Any) -> Any:
    """Return an integer for a float that is whole, in a list too; any other value unchanged."""
    if isinstance(value, list):
        return [make_value_whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def write_whole(text: str) -> str:
    """Return the text of a value with integers for floats that are whole, in lists and sweeps too."""

    def rewrite(found: re.Match[str]) -> str:
        value = float(found[0])
        return str(int(value)) if value.is_integer() else found[0]

    return WRITTEN_FLOAT.sub(rewrite, text)


def _parse_element(text: str) -> tuple[Any, str]:
    """Return the first value in a text without leading space, and the remaining text."""
    if text[:1] == "[":
        return _parse_list(text[1:].lstrip())
    if text[:1] == "{":
        return _parse_mapping(text[1:].lstrip())
    if text[:1] in ("'", '"'):
        return _parse_quoted(text)
    found = BARE.match(text)
    if found is None:
        what = f"{quote(text[:1])} is not expected here" if text else "it ends too early"
        raise ValueError(what)
    bare = found[0].rstrip()
    if found[0][len(bare) :] and (len(bare) - len(bare.rstrip("\\"))) % 2:
        bare += found[0][len(bare)]  # escaped trailing space
    return _parse_bare(bare), text[found.end() :]


def _parse_list(text: str) -> tuple[list[Any], str]:
    items: list[Any] = []
    while text[:1] != "]":
        value, text = _parse_element(text)
        items.append(value)
        text = text.lstrip()
        if text[:1] == ",":
            text = text[1:].lstrip()
            if text[:1] in ("]", ","):
                raise ValueError("the list holds an empty value")
        elif not text:
            raise ValueError("the list has no end; valid: e.g. [a,b]")
        elif text[:1] != "]":
            said = f"{quote(text[:1])} is not expected behind {quote(value)} in a list"
            raise ValueError(f"{said}; valid: a comma or the list's end, or quotes around a text that holds it")
    return items, text[1:]


def _parse_mapping(text: str) -> tuple[dict[str, Any], str]:
    items: dict[str, Any] = {}
    while text[:1] != "}":
        found = re.match(r"\s*([\w/\-+.$%*@?|]+|'[^']*'|\"[^\"]*\")\s*:\s*", text)
        if found is None:
            raise ValueError("the mapping has no key or no end; valid: e.g. {a:1,b:2}")
        value, text = _parse_element(text[found.end() :])
        items[found[1].strip("'\"")] = value
        text = text.lstrip()
        if text[:1] == ",":
            text = text[1:].lstrip()
        elif text[:1] != "}":
            raise ValueError("the mapping has no end; valid: e.g. {a:1,b:2}")
    return items, text[1:]


def _parse_quoted(text: str) -> tuple[str, str]:
    quote, at = text[0], 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    if at >= len(text):
        raise ValueError(f"no closing {quote}")
    inner = text[1:at]
    inner = re.sub(rf"(\\+)({quote}|\Z)", lambda found: "\\" * (len(found[1]) // 2) + found[2], inner)
    return inner, text[at + 1 :]


def _parse_bare(text: str) -> Any:
    if text.lower() in ("null", "true", "false"):
        return json.loads(text.lower())
    if INT.fullmatch(text):
        return int(text.replace("_", ""))
    if FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    return ESCAPED.sub(r"\1", text)
