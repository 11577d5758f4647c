"""Where journals of a network namespace are: in its default place, where a start asks for it, and where a former one did.

A start whose journal is elsewhere leaves a note of it beside the default place for as long as that journal may tell of
something, so that the next start, whatever journal it asks for, finds what is left changed.
"""

from __future__ import annotations

import os
from pathlib import Path

from netbuf_gym.host.journal import Place, default_path
from netbuf_gym.utils.files import replacing

SUFFIX = ".elsewhere"


def note_path() -> Path:
    """Of the note, which is there while a journal is, or was left, in another place than the default one."""
    path = default_path(Place.here())
    return path.with_name(path.name + SUFFIX)


def note(journal: Path) -> str:
    """Says where the journal is, where that is not the default place; why it cannot, else "". The caller holds the lock."""
    if journal == default_path(Place.here()):
        return ""
    path = note_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, synced=True) as file:
            file.write(os.fsencode(journal))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def noted() -> Path | None:
    """The journal that a note tells of; None: there is no note."""
    try:
        text = os.fsdecode(note_path().read_bytes())
    except OSError:
        return None
    return Path(text) if text and "\0" not in text else None


def forget() -> None:
    """Takes the note away, unless its journal is there still."""
    path, journal = note_path(), noted()
    if journal is None or not os.path.exists(journal):
        try:
            path.unlink(missing_ok=True)
        except OSError:
            return


def journals(asked: Path) -> list[Path]:
    """The journals that may tell of what is left changed here, the one that is asked for first."""
    found = [asked, default_path(Place.here())]
    other = noted()
    return list(dict.fromkeys(found if other is None else [*found, other]))
