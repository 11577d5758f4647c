"""Completion candidates for a shell; run as a program, `python answer.py SHELL WORDS`, at each press of TAB.

Needs nothing but Python. The table is made by `netbuf_gym.cli.completion.table` the first time and after any change of the
package, and kept in the user's cache.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
PLAIN = re.compile(r"[\w./+@%:,=~\[\]{}-]*", re.ASCII)
"""Pattern of paths that need no quotes in Hydra's grammar."""


def find_candidates(table: Mapping[str, Any], words: Sequence[str]) -> dict[str, str]:
    """Return completions of the last word, with their meanings.

    Args:
        table: Table of `netbuf_gym.cli.completion.table`.
        words: Words behind the program's name; the last one is unfinished, or empty.
    """
    *before, word = words or [""]
    command = table["commands"][""]
    while command.get("commands") and before:
        name, *before = before
        if name in command["commands"]:
            command = command["commands"][name]
        elif not name.startswith("-"):
            return {}
    found = _complete_command(table, command, before, word)
    return {one: said for one, said in found.items() if one.startswith(word)}


def _complete_command(table: Mapping[str, Any], command: Mapping[str, Any], before: list[str], word: str) -> dict[str, str]:
    options = command["options"]
    asking = options.get(before[-1]) if before else None
    if asking is not None and asking["takes"] is not None:
        if not (asking["optional"] and word.startswith("-")):
            found = _complete_value(table, asking["takes"], word, before)
            if not asking["optional"] or any(one.startswith(word) for one in found):
                return found
    if word.startswith("-"):
        name, equals, value = word.partition("=")
        if equals and options.get(name, {}).get("takes") is not None:
            return {
                f"{name}={one}": said for one, said in _complete_value(table, options[name]["takes"], value, before).items()
            }
        return {name: option["help"] for name, option in options.items() if name not in before or option["repeated"]}
    if command.get("commands"):
        return {name: one["help"] for name, one in command["commands"].items()}
    given = _select_positionals(options, before)
    positionals = command["positionals"]
    if not positionals:
        return {}
    takes = positionals[min(len(given), len(positionals) - 1)]
    if len(given) >= len(positionals) and not command["endless"]:
        return {}
    return _complete_value(table, takes, word, before)


def _select_positionals(options: Mapping[str, Any], before: Sequence[str]) -> list[str]:
    given, skip = [], False
    for word in before:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = options.get(word, {}).get("takes") is not None and not options[word]["optional"]
        else:
            given.append(word)
    return given


def _complete_value(
    table: Mapping[str, Any], takes: str | Mapping[str, str], word: str, before: Sequence[str]
) -> dict[str, str]:
    """Return the values that an argument takes, from a mapping, or from `KIND:DETAIL` for values that depend on the input."""
    if not isinstance(takes, str):
        return dict(takes)
    what, _, detail = takes.partition(":")
    if what in ("file", "dir"):
        return _complete_path(word, what == "dir")
    if what == "one":
        return dict(table["names"][detail])
    if what == "named":  # names, some of which continue as paths
        return _complete_named(table, detail, word)
    if what == "list":
        return _complete_list(table["names"][detail], word, "")
    if what == "set":
        return _complete_arguments(table, detail, before)
    if what == "overrides":
        own = [f"{detail} {one}" for one in before if f"{detail} {one}" in table["jobs"]]  # jobs that a further word selects
        job = table["jobs"].get(own[0] if own else detail)
        return {} if job is None else _complete_override(job, table, word, before)
    return {}


def _complete_named(table: Mapping[str, Any], names: str, word: str) -> dict[str, str]:
    found = dict(table["names"][names])
    for name in table["names"][names]:
        if name.endswith(":") and word.startswith(name):
            found |= {f"{name}{path}": said for path, said in _complete_path(word[len(name) :], False).items()}
    if names == "agents":
        found |= _complete_path(word, False)
    return found


def _complete_list(names: Mapping[str, str], word: str, close: str) -> dict[str, str]:
    """Return completions of the last name of a comma-separated list."""
    done = word[: word.rfind(",") + 1] if "," in word else "[" * word.startswith("[")
    used = set(word.strip("[]").split(",")[:-1])
    found = {f"{done}{name}": said for name, said in names.items() if name not in used}
    if close and word.rpartition(",")[2].lstrip("[") in names:
        found[f"{word}{close}"] = ""
    return found


def _complete_arguments(table: Mapping[str, Any], option: str, before: Sequence[str]) -> dict[str, str]:
    """Return `NAME=` for the arguments of the thing that an option, or a positional word, has chosen."""
    chosen = [after for name, after in itertools.pairwise(before) if name == option]
    chosen += [name.partition("=")[2] for name in before if name.startswith(f"{option}=")]
    names = table["arguments"].get((chosen or [word for word in before if word in table["arguments"]] or ["dumbbell"])[-1], [])
    return {f"{name}=": "" for name in names}


def _complete_override(job: Mapping[str, Any], table: Mapping[str, Any], word: str, before: Sequence[str]) -> dict[str, str]:
    key, equals, value = word.partition("=")
    name = key.lstrip("+~")
    sign = key[: len(key) - len(name)]
    chosen = {one.partition("=")[0]: one.partition("=")[2].strip("'\"") for one in before if "=" in one}
    if not equals:
        found = _complete_keys(job, table, name, chosen)
        return {f"{sign}{one.rstrip('=') if sign == '~' else one}": said for one, said in found.items()}
    takes = job["values"].get(name)
    if takes is None:
        return {}
    what = takes if isinstance(takes, str) else ""
    if what.startswith("list:"):
        names = table["names"][what.removeprefix("list:")]
        found = {"[": ""} | {f"[{one}": said for one, said in names.items()} if not value else _complete_list(names, value, "]")
    elif what.startswith(("file", "dir")):
        found = _complete_path(value, what.startswith("dir"))
    else:
        names = _complete_value(table, takes, value, before) | (
            _find_group_files(name, before) if name in job["defaults"] else {}
        )
        found = names if "," not in value else _complete_list(names, value, "")
    if what.startswith(("file", "dir", "named")):
        found = {one: said for one, said in found.items() if PLAIN.fullmatch(one)}
    return {f"{key}={one}": said for one, said in found.items()}


def _find_group_files(group: str, before: Sequence[str]) -> dict[str, str]:
    """Return the choices of a group in the folder that `--config-dir` names."""
    found: dict[str, str] = {}
    for option, folder in itertools.pairwise(before):
        if option in ("--config-dir", "-cd"):
            own = Path(os.path.expanduser(folder), group)
            found |= {str(path.relative_to(own).with_suffix("")): str(path) for path in sorted(own.rglob("*.yaml"))}
    return found


def _complete_keys(job: Mapping[str, Any], table: Mapping[str, Any], typed: str, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return keys that continue the typed text, each up to its next dot."""
    known = dict(job["keys"])
    for group, choices in job["kwargs"].items():
        choice = chosen.get(group, job["defaults"].get(group) or "")
        own = choices.get(choice, {})
        known |= {name: said for name, said in own.items() if name not in known}
        name = chosen.get(f"{group}.name") or job["named"].get(group, {}).get(choice, choice)
        known |= {f"{group}.kwargs.{one}": "" for one in table["arguments"].get(name, [])}
    found = {}
    for key, said in known.items():
        if not key.startswith(typed):
            continue
        rest = key[len(typed) :]
        part, dot, _ = rest.partition(".")
        if dot:
            found[f"{typed}{part}."] = ""
        elif key not in chosen:
            found[f"{key}="] = said
    return found


def _complete_path(word: str, folders: bool) -> dict[str, str]:
    folder, name = os.path.split(word)
    try:
        entries = sorted(os.scandir(os.path.expanduser(folder) or "."), key=lambda one: one.name)
    except OSError:
        return {}
    found = {}
    for one in entries:
        if not one.name.startswith(name) or (one.name.startswith(".") and not name.startswith(".")):
            continue
        path = os.path.join(folder, one.name)
        if one.is_dir():
            found[f"{path}/"] = ""
        elif not folders:
            found[path] = ""
    return found


def load_table() -> dict[str, Any]:
    """Return the table, from the cache if it is current, otherwise made anew."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "netbuf-gym")
    path = cache / f"completion-{_compute_package_digest()}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        from netbuf_gym.cli.completion.table import make_table

        table = make_table()
        _write_cache(path, table)
        return table


def _write_cache(path: Path, table: Mapping[str, Any]) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob("completion-*.json"):
            old.unlink(missing_ok=True)
        temporary.write_text(json.dumps(table), encoding="utf-8")
        temporary.replace(path)
    except OSError:  # no folder, no permission or a full disk: the table is made again next time
        with suppress(OSError):
            temporary.unlink()


def _compute_package_digest() -> str:
    """Return a digest that changes with every file of the package, and of the studies of the checkout found from here."""
    digest = hashlib.sha1(sys.version.encode(), usedforsecurity=False)
    beside = ("zoo", "conf") if HERE.parent.joinpath("setup.cfg").is_file() else ()
    folders = {HERE, *(folder for name in beside if (folder := HERE.parent / name).is_dir())}
    here = Path.cwd()
    for folder in (here, *here.parents, HERE.parent):  # as `netbuf_gym.utils.checkout` finds them
        if folder.joinpath("studies", "__init__.py").is_file() and folder.joinpath("setup.cfg").is_file():
            folders.add(folder / "studies")
            break
    for folder in sorted(folders):
        for path, size, changed in _iterate_files(str(folder)):
            digest.update(f"{path}\0{size}\0{changed}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]


def _iterate_files(folder: str) -> Iterator[tuple[str, int, int]]:
    for one in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if one.is_dir():
            if one.name != "__pycache__":
                yield from _iterate_files(one.path)
        elif one.name.endswith((".py", ".yaml", ".so", "model.zip")):
            stat = one.stat()
            yield one.path, stat.st_size, stat.st_mtime_ns


def split_line(line: str) -> list[str]:
    """Split a command line into words; the last one is unfinished, and open quotes run to the end."""
    words, word, quote, began = [], "", "", False
    at = 0
    while at < len(line):
        letter = line[at]
        if quote:
            if letter == quote:
                quote = ""
            else:
                word += letter
        elif letter in "'\"":
            quote, began = letter, True
        elif letter == "\\" and at + 1 < len(line):
            at += 1
            word += line[at]
        elif letter.isspace():
            if word or began:
                words.append(word)
            word, began = "", False
        else:
            word += letter
        at += 1
    return [*words, word]


def main(argv: Sequence[str]) -> None:
    """Print one candidate per line: for bash the text to insert, for other shells followed by a tab and the meaning."""
    shell, *words = argv
    breaks = ""
    if shell == "bash":
        line, breaks = words[0], words[1] if len(words) > 1 else ""
        words = split_line(line)[1:]
    found = find_candidates(load_table(), words)
    word = words[-1] if words else ""
    cut = max((word.rfind(letter) + 1 for letter in "=:@" if letter in breaks), default=0)
    for one, said in found.items():
        said = " ".join(said.split())
        if shell == "bash":
            print(re.sub(r"([\s'\"\\$`!*?()<>|&;#{}])", r"\\\1", one[cut:]))
        else:
            print(f"{one}\t{said}" if said else one)


if __name__ == "__main__":
    sys.path.pop(0)  # this folder, whose modules are not top-level ones
    main(sys.argv[1:])
