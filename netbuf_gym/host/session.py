"""Session of a tuner: exclusive on the host, with a former run's changes undone first, and its own at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from netbuf_gym.errors import ConfigError
from netbuf_gym.host import journal_paths, locks
from netbuf_gym.host.journal import Journal, Place, RestoreOutcome, default_path, restore_settings
from netbuf_gym.host.targets import make_setting

Say = Callable[[str], object]


def resolve_journal_path(given: str | None) -> Path:
    """Return the journal's path: the given one, or the default for this user in this network namespace.

    Raises:
        ConfigError: an empty name, or one of a folder.
    """
    if given is None:
        return default_path(Place.read_current())
    if not given.strip() or Path(given).is_dir():
        raise ConfigError(f"--journal {given!r} names no file; valid: a file, or nothing for the usual one")
    return Path(given).absolute()


def find_leftovers(path: Path) -> list[str]:
    """Return names of settings that a run which did not end well has left changed; raises ConfigError for a damaged journal.

    Args:
        path: the requested journal; journals that are known otherwise are looked at as well.
    """
    here = Place.read_current()
    journals = [journal for one in journal_paths.list_journals(path) if (journal := _read_local_journal(one, path)) is not None]
    return [name for journal in journals if not journal.place.explain_gone(here) for name in journal.entries]


def restore_leftovers(path: Path) -> list[RestoreOutcome]:
    """Restore what journals record, see `find_leftovers`; empty where there is nothing. The caller holds the lock."""
    found = []
    for one in journal_paths.list_journals(path):
        if one == path:
            found += _restore_journal(one, path)
        elif os.path.exists(one) or os.path.exists(locks.lock_path(one)):
            with (
                suppress(locks.LockedError),
                locks.lock_journal(one),
            ):  # busy: another namespace's tuner, which found nothing of ours in it
                found += _restore_journal(one, path)
    journal_paths.remove_note()
    return found


def _restore_journal(one: Path, path: Path) -> list[RestoreOutcome]:
    journal = _read_local_journal(one, path)
    return [] if journal is None else restore_settings(journal, make_setting)


def _read_local_journal(one: Path, path: Path) -> Journal | None:
    """Read a journal; None where there is none, or one of another namespace that was not asked for."""
    if one != path and not os.path.exists(one):  # False too where there is no permission
        return None
    journal, here = Journal.read(one), Place.read_current()
    if journal is None or one == path or journal.place.namespace == here.namespace or journal.place.explain_gone(here):
        return journal
    return None


@contextmanager
def open_journal(path: Path, say: Say) -> Iterator[Journal]:
    """Provide a journal to change settings by, exclusively; a former run's changes are undone first, and all others at the end.

    Raises:
        LockedError: somebody tunes already. ConfigError: a former run's settings cannot be restored, or, at the end, one's own.
    """
    with locks.lock_host_tuning(path):
        _report_outcomes(restore_leftovers(path), say, "left by a former run: ")
        journal = Journal(path, Place.read_current())
        why = journal_paths.write_note(path)
        if why:
            note = f"{journal_paths.note_path()} cannot be written ({why})"
            say(f"a start that is not given --journal {path} will not find it: {note}")
        try:
            yield journal
        finally:
            try:
                if journal.entries:
                    _report_outcomes(restore_settings(journal, make_setting), say)
            finally:
                journal_paths.remove_note()


def _report_outcomes(found: Sequence[RestoreOutcome], say: Say, before: str = "") -> None:
    for one in found:
        say(before + one.words)
    failed = [one.name for one in found if one.outcome == "failed"]
    if failed:
        raise ConfigError(f"not restored: {', '.join(failed)}; they stay in the journal, for netbuf-gym live restore")
