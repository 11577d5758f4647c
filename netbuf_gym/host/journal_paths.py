"""Paths of the journals of a network namespace: the default path, the requested one, and that of a former run.

A run whose journal is elsewhere leaves a note of its path beside the default path for as long as that journal may record
something, so that the next run, whatever journal it asks for, finds what is left changed.
"""

from __future__ import annotations

import os
from pathlib import Path

from netbuf_gym.host.journal import Place, default_path
from netbuf_gym.utils.files import replace_file

SUFFIX = ".elsewhere"


def note_path() -> Path:
    """Return the path of the note, a file that exists while a journal is, or was left, elsewhere than at the default path."""
    path = default_path(Place.read_current())
    return path.with_name(path.name + SUFFIX)


def write_note(journal: Path) -> str:
    """Write a note of a journal that is not at the default path; return why that fails, else "". The caller holds the lock."""
    if journal == default_path(Place.read_current()):
        return ""
    path = note_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path, synced=True) as file:
            file.write(os.fsencode(journal))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def read_note() -> Path | None:
    """Return the journal path in the note; None: there is no note."""
    try:
        text = os.fsdecode(note_path().read_bytes())
    except OSError:
        return None
    return Path(text) if text and "\0" not in text else None


def remove_note() -> None:
    """Remove the note, unless its journal still exists."""
    path, journal = note_path(), read_note()
    if journal is None or not os.path.exists(journal):
        try:
            path.unlink(missing_ok=True)
        except OSError:
            return


def list_journals(asked: Path) -> list[Path]:
    """Return the paths of journals that may record settings left changed here, beginning with the requested one."""
    found = [asked, default_path(Place.read_current())]
    other = read_note()
    return list(dict.fromkeys(found if other is None else [*found, other]))
