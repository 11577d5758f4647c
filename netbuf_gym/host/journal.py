"""Journal of a tuner's changes to a host, with the original values, written before each change, so that nothing that ends
the tuner leaves the host changed for good.

The journal is a small file that exists while something is changed. Each write of the file is complete and on the disk before
the change that it records is made; of two values that a setting may then have, the one before and the one meant, both are ours.
"""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError, prefix_location
from netbuf_gym.host.settings import Setting, SettingError, Value, format_value
from netbuf_gym.utils.files import name_in_errors, replace_file, sync_folder

VERSION = 1
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SO_NETNS_COOKIE = 71
SYSTEM_FOLDER = Path("/var/lib/netbuf-gym")


@dataclass(frozen=True)
class Place:
    """Location of settings: the boot of the machine, and the network namespace, by inode and (from Linux 5.14) cookie."""

    boot_id: str
    namespace: int
    cookie: int

    @classmethod
    def read_current(cls) -> Place:
        """Return the place of this process."""
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                cookie = int.from_bytes(probe.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8), "little")
            except OSError:
                cookie = 0
        return cls(BOOT_ID.read_text().strip(), os.stat("/proc/self/ns/net").st_ino, cookie)

    def explain_gone(self, here: Place) -> str:
        """Return why settings of this place no longer exist, as far as can be told from another; "": they may exist.

        The kernel gives the inode of a namespace that has ended to a new one, and never a cookie.
        """
        if self.boot_id != here.boot_id:
            return "the machine was started anew since, with its own settings"
        if self.namespace == here.namespace and self.cookie != here.cookie:
            return "its network namespace is gone, and its settings with it; this is another one of the same number"
        return ""


@dataclass(frozen=True)
class Entry:
    """One setting that was changed.

    Attributes:
        original: the value before the first change.
        ours: the values that the setting may have through us; the last one is meant. Two values of a setting that is not exact:
            the setting may have any value through us, for what was made of the last one was not read back, or not seen to be in
            force yet.
        foreign: the value that somebody else has set; None: nobody did.
    """

    original: Value
    ours: tuple[Value, ...]
    foreign: Value | None = None


def default_path(place: Place) -> Path:
    """Return the path of a place's journal: below /var/lib for root, else in the user's state folder; one file a namespace."""
    if os.geteuid() == 0 and _can_hold(SYSTEM_FOLDER):
        folder = SYSTEM_FOLDER
    else:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        folder = Path(state) / "netbuf-gym"
    return folder / f"live-{place.namespace}.json"


def _can_hold(folder: Path) -> bool:
    there = folder if folder.exists() else folder.parent
    return there.is_dir() and os.access(there, os.W_OK) and not os.statvfs(there).f_flag & os.ST_RDONLY


@dataclass
class Journal:
    """A journal and its file, which is kept up to date; `read` loads an existing file.

    Attributes:
        path: the journal's file.
        place: the place whose settings are recorded.
        entries: entries by the settings' names.
        pid: the process that writes the journal.
    """

    path: Path
    place: Place
    entries: dict[str, Entry] = field(default_factory=dict)
    pid: int = field(default_factory=os.getpid)

    @classmethod
    def read(cls, path: Path) -> Journal | None:
        """Load the journal of a file; None where there is no file. Raises ConfigError for what is no journal."""
        try:
            if path.exists() and not stat.S_ISREG(path.stat().st_mode):
                raise ConfigError(prefix_location("is no journal of netbuf-gym live: not a regular file", path, None))
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            text = ""
        try:
            data = json.loads(text)
            if data["version"] != VERSION:
                raise ConfigError(prefix_location(f"version = {data['version']!r}; valid: {VERSION}", path, None))
            entries = {str(name): _parse_entry(one) for name, one in data["settings"].items()}
            place = Place(str(data["boot_id"]), int(data["namespace"]), int(data["cookie"]))
            return cls(path, place, entries, int(data["pid"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, ConfigError):
                raise
            what = "is no journal of netbuf-gym live, or a damaged one"
            raise ConfigError(
                prefix_location(f"{what}; valid: one that was not touched, or no file there", path, None)
            ) from None

    def write(self) -> None:
        """Write the journal to the disk; removes the file where nothing is changed any more. Raises OSError."""
        if not self.entries:
            with name_in_errors(self.path):
                self.path.unlink(missing_ok=True)
                sync_folder(self.path.parent)
            return
        settings = {
            name: {"original": one.original, "ours": one.ours, "foreign": one.foreign} for name, one in self.entries.items()
        }
        data = {
            "what": "settings that netbuf-gym live tune has changed; 'netbuf-gym live restore' brings them back",
            "version": VERSION,
            "pid": self.pid,
            "boot_id": self.place.boot_id,
            "namespace": self.place.namespace,
            "cookie": self.place.cookie,
            "settings": settings,
        }
        with name_in_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(self.path, synced=True) as file:
                file.write(json.dumps(data, indent=1).encode())

    def set(self, setting: Setting, value: Value) -> Value:
        """Set a setting, recorded beforehand, and return its resulting value.

        Raises:
            SettingError: the setting cannot be read or set, or somebody else has changed it (`ForeignChangeError`).
            OSError: the journal cannot be written; nothing is changed.
        """
        now = setting.read()
        before = self.entries.get(setting.name)
        entry = before or Entry(original=now, ours=(now,))
        if entry.foreign is not None or now not in entry.ours:
            self.entries[setting.name] = replace(entry, foreign=now)
            self.write()
            raise ForeignChangeError(setting.name, entry.ours[-1], now)
        self.entries[setting.name] = replace(entry, ours=(now, value))
        self.write()
        try:
            setting.write(value)
            became = setting.read()
        except SettingError:
            self._undo_record(setting, now, before)
            raise
        if not setting.exact or became != value:  # where drivers round, two values say that it was not read back yet
            old = became == now != value
            self.entries[setting.name] = replace(entry, ours=(now, value) if old else (became,))
            self.write()
        return became

    def _undo_record(self, setting: Setting, was: Value, before: Entry | None) -> None:
        """Undo the record of a failed change, unless the setting is seen to have changed all the same, or cannot be read."""
        try:
            if setting.read() != was:
                return
        except SettingError:
            return
        if before is None:
            del self.entries[setting.name]
        else:
            self.entries[setting.name] = before
        self.write()

    def changed_by_others(self, setting: Setting) -> bool:
        """Return whether somebody else has changed a recorded setting, whose entry is then marked."""
        entry = self.entries.get(setting.name)
        if entry is None or entry.foreign is not None:
            return entry is not None
        now = setting.read()
        if now in entry.ours:
            return False
        self.entries[setting.name] = replace(entry, foreign=now)
        self.write()
        return True


class ForeignChangeError(SettingError):
    """Error for a setting that somebody else has changed since we set it."""

    def __init__(self, name: str, ours: Value, now: Value):
        super().__init__(
            f"{name} is {format_value(now)}, where we had set {format_value(ours)}: "
            "somebody else has changed it; it is left alone"
        )


@dataclass(frozen=True)
class RestoreOutcome:
    """Outcome for one setting: `"restored"`, `"as it was"`, `"left"` (set by somebody else) or `"failed"`, and in words."""

    name: str
    outcome: str
    words: str


def restore_settings(journal: Journal, make: Callable[[str], Setting]) -> list[RestoreOutcome]:
    """Restore every setting that a journal records, last changed first, and remove the journal.

    What cannot be set stays in the journal. The caller holds the lock (`netbuf_gym.host.locks`).

    Args:
        make: creates the setting of a name.

    Raises:
        ConfigError: the journal is of another network namespace that may still be there. OSError: the journal cannot be
            written.
    """
    here = Place.read_current()
    gone = journal.place.explain_gone(here)
    if gone:
        found = [RestoreOutcome(name, "as it was", f"{name}: {gone}") for name in journal.entries]
        journal.entries.clear()
        journal.write()
        return found
    if journal.place.namespace != here.namespace:
        raise ConfigError(
            f"{journal.path}: is of network namespace {journal.place.namespace}, and this is {here.namespace}; valid: restore "
            "in that one, or remove the file where that one is gone, and its settings with it"
        )
    found = []
    for name in reversed(list(journal.entries)):
        done = _restore_one(name, journal.entries[name], make)
        found.append(done)
        if done.outcome != "failed":
            del journal.entries[name]
    journal.write()
    return found


def _restore_one(name: str, entry: Entry, make: Callable[[str], Setting]) -> RestoreOutcome:
    original = format_value(entry.original)
    try:
        setting = make(name)
        now = setting.read()
        if now == entry.original:
            return RestoreOutcome(name, "as it was", f"{name} is {original}, as it was")
        rounding = not setting.exact and len(entry.ours) > 1
        if entry.foreign is not None or not (now in entry.ours or rounding):
            words = f"{name} is {format_value(now)}, which somebody else has set (it was {original}); it is left alone"
            return RestoreOutcome(name, "left", words)
        setting.write(entry.original)
        return RestoreOutcome(name, "restored", f"{name} is {format_value(setting.read())} again, after {format_value(now)}")
    except ConfigError as error:
        return RestoreOutcome(name, "failed", f"{name} is not {original} again: {error}")


def _parse_entry(data: Mapping[str, Any]) -> Entry:
    foreign = data["foreign"]
    ours = tuple(_parse_value(one) for one in data["ours"])
    if not ours:
        raise ValueError("a setting without a value of ours")
    return Entry(_parse_value(data["original"]), ours, None if foreign is None else _parse_value(foreign))


def _parse_value(data: Sequence[int]) -> Value:
    if not isinstance(data, list) or not data or not all(type(one) is int for one in data):
        raise ValueError("a value that is none")
    return tuple(data)
