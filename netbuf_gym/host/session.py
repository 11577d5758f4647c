"""A tuner from its start to its end: alone on the host, what a former one left brought back first, and its own at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from netbuf_gym.errors import ConfigError
from netbuf_gym.host import journal_paths, locks
from netbuf_gym.host.journal import Journal, Place, Restored, default_path, restore
from netbuf_gym.host.settings import Setting
from netbuf_gym.host.targets import setting_of

Say = Callable[[str], object]


def journal_path(given: str | None) -> Path:
    """Where the journal is: as given, or where it is for this user in this network namespace.

    Raises:
        ConfigError: an empty name, or one of a folder.
    """
    if given is None:
        return default_path(Place.here())
    if not given.strip() or Path(given).is_dir():
        raise ConfigError(f"--journal {given!r} names no file; valid: a file, or nothing for the usual one")
    return Path(given).absolute()


def leftovers(path: Path) -> list[str]:
    """Names of settings that a run which did not end well has left changed; raises ConfigError for a damaged journal.

    Args:
        path: of the journal that is asked for; those that are known of otherwise are looked at as well.
    """
    here = Place.here()
    journals = [journal for one in journal_paths.journals(path) if (journal := _of_here(one, path)) is not None]
    return [name for journal in journals if not journal.place.gone(here) for name in journal.entries]


def restore_left(path: Path, make: Callable[[str], Setting] = setting_of) -> list[Restored]:
    """Brings back what journals tell of, see `leftovers`; nothing where there is none. The caller holds the lock."""
    found = []
    for one in journal_paths.journals(path):
        if one == path:
            found += _restored(one, path, make)
        elif os.path.exists(one) or os.path.exists(locks.beside(one)):
            with suppress(locks.Busy), locks.held(one):  # busy: another namespace's tuner, which found nothing of ours in it
                found += _restored(one, path, make)
    journal_paths.forget()
    return found


def _restored(one: Path, path: Path, make: Callable[[str], Setting]) -> list[Restored]:
    journal = _of_here(one, path)
    return [] if journal is None else restore(journal, make)


def _of_here(one: Path, path: Path) -> Journal | None:
    """A journal; None where there is none, or one of another namespace that was not asked for."""
    if one != path and not os.path.exists(one):  # nor where it may not be looked at
        return None
    journal, here = Journal.read(one), Place.here()
    if journal is None or one == path or journal.place.namespace == here.namespace or journal.place.gone(here):
        return journal
    return None


@contextmanager
def changing(path: Path, say: Say, make: Callable[[str], Setting] = setting_of) -> Iterator[Journal]:
    """A journal to change settings by: alone, after what a former run left, and with everything back at the end.

    Raises:
        Busy: somebody tunes already. ConfigError: a former run's settings cannot be brought back, or, at the end, one's own.
    """
    with locks.alone(path):
        _say_all(restore_left(path, make), say, "left by a former run: ")
        journal = Journal(path, Place.here())
        why = journal_paths.note(path)
        if why:
            note = f"{journal_paths.note_path()} cannot be written ({why})"
            say(f"a start that is not given --journal {path} will not find it: {note}")
        try:
            yield journal
        finally:
            try:
                if journal.entries:
                    _say_all(restore(journal, make), say)
            finally:
                journal_paths.forget()


def _say_all(found: Sequence[Restored], say: Say, before: str = "") -> None:
    for one in found:
        say(before + one.words)
    failed = [one.name for one in found if one.outcome == "failed"]
    if failed:
        raise ConfigError(f"not restored: {', '.join(failed)}; they stay in the journal, for netbuf-gym live restore")
