"""Writing files so that a reader sees the whole new file or the old one, never a part; reading text and CSV."""

from __future__ import annotations

import csv
import errno
import fcntl
import glob
import json
import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from netbuf_gym.errors import ConfigError


class CsvError(ValueError):
    """Text that is not CSV; `line` is where the row begins that is not, from 1."""

    def __init__(self, message: str, line: int):
        super().__init__(message)
        self.line = line


def write_atomic(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Writes `data` to `path` through a temporary file beside it; on failure nothing is left behind.

    A path that is not a regular file (a terminal, a pipe, /dev/null) is written directly.

    Raises:
        OSError: The file cannot be written; it is named as it was given.
    """
    with naming(path):
        _write(Path(path), data.encode() if isinstance(data, str) else data)


def _write(path: Path, raw: bytes) -> None:
    if path.exists() and not path.is_file():
        path.write_bytes(raw)
        return
    with replacing(path) as file:
        file.write(raw)


@contextmanager
def replacing(path: Path, synced: bool = False) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when it is whole; `write_atomic` for what is too large to hold twice.

    Args:
        synced: it is on the disk, too, when it takes the place, and that it did when this ends.
    """
    path = path.resolve()
    handle, temporary = tempfile.mkstemp(prefix=_prefix(path), dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            if synced:
                file.flush()
                os.fsync(file.fileno())
        os.chmod(temporary, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    if synced:
        sync_folder(path.parent)


def _prefix(path: Path) -> str:
    return f".{path.name[:50]}."


def sync_folder(folder: Path) -> None:
    """Has what was made, renamed and taken away in a folder on the disk; nothing where there is none."""
    if not folder.is_dir():
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def unfinished(path: Path) -> list[Path]:
    """What killed processes have left of files that were to take the place of `path`; or living ones are still writing."""
    path = path.resolve()
    return sorted(one for one in path.parent.glob(f"{glob.escape(_prefix(path))}????????") if one.is_file())


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Makes an error of the system's (a full disk, no permission) name this file, whatever it named."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def make_folder(path: Path, field: str) -> None:
    """Makes a folder for results, and writes in it, before any work is done; `field`: what it was given as.

    Raises:
        ConfigError: It is none, cannot become one, or cannot be written in.
    """
    said = "is no folder and cannot become one"
    try:
        path.mkdir(parents=True, exist_ok=True)
        said = "cannot be written in"
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        why = f"{field} = '{path}' {said}: {error.strerror or error}"
        raise ConfigError(f"{why}; valid: a folder, new or not") from None


@contextmanager
def alone(folder: Path, field: str) -> Iterator[None]:
    """Holds a lock of a folder, a file `.lock` in it; `field`: what the folder was given as.

    Raises:
        ConfigError: Another process holds it.
    """
    path = folder / ".lock"
    with naming(path):
        file = open(path, "w")
    with file:
        try:
            with naming(path):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())  # not one that its holder took away
        except BlockingIOError:
            held = False
        if not held:
            raise ConfigError(f"{field} = '{folder}' is being written by another process; valid: one at a time")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a regular file, its lines ended by a line feed whatever they were ended by, without a byte order mark.

    Raises:
        OSError: The file cannot be read, or is a device or a pipe, which may never end.
        UnicodeDecodeError: It is not text.
    """
    path = Path(path)
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "the name holds a null character")
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "not a regular file")
    return path.read_text(encoding="utf-8-sig")


def csv_records(text: str) -> list[tuple[int, str]]:
    """The rows of CSV text that are not blank, each with the number of its first line, from 1. A quoted field may hold
    commas, and go on over several lines; `csv_fields` takes a row apart.

    Raises:
        CsvError: A quoted field does not end, or something follows its end.
    """
    lines = text.split("\n")
    if '"' not in text:
        return [(i, line) for i, line in enumerate(lines, 1) if line and not line.isspace()]
    found, reader, begins = [], _reader([line + "\n" for line in lines]), 1
    try:
        for _ in reader:
            record = "\n".join(lines[begins - 1 : reader.line_num])
            if record and not record.isspace():
                found.append((begins, record))
            begins = reader.line_num + 1
    except csv.Error as error:
        raise CsvError(f"is not CSV: {error}", begins) from None
    return found


def csv_fields(record: str) -> list[str]:
    """The fields of a row that `csv_records` gave, unquoted and stripped."""
    if '"' not in record:
        return [field.strip() for field in record.split(",")]
    return [field.strip() for field in next(_reader([line + "\n" for line in record.split("\n")]))]


def _reader(lines: list[str]) -> Any:
    return csv.reader(lines, skipinitialspace=True, strict=True)


def parsed(text: str) -> float | int:
    """The number that a field of a file holds, whole ones as int; digits are ASCII's and stand together.

    Raises:
        ValueError: It holds none.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is not a number")
    try:
        return int(text)
    except ValueError:
        return float(text)


def write_json(path: str | os.PathLike[str], value: object) -> None:
    """Writes `value` as JSON through `write_atomic`; numbers that JSON lacks (NaN, infinities) become null."""
    write_atomic(path, json.dumps(plain(value), indent=1, allow_nan=False) + "\n")


def plain(value: object) -> object:
    """`value` with numpy arrays as lists, numpy scalars as Python's, and numbers that are not finite as None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
