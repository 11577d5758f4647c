"""Atomic file writing (a reader sees the whole new file or the old one, never a part), and reading of text and CSV."""

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

MAX_TEXT_BYTES = 2**28
"""Size of the largest text file that is read, also unpacked."""


class CsvError(ValueError):
    """Text that is not CSV; `line` is the first line of the malformed row, from 1."""

    def __init__(self, message: str, line: int):
        super().__init__(message)
        self.line = line


def write_atomic(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Write `data` to `path` through a temporary file in the same folder; on failure nothing is left behind.

    Lone surrogates in a text are escaped.
    A path that is not a regular file (a terminal, a pipe, /dev/null) is written directly.

    Raises:
        OSError: The file cannot be written; the error names the path as given.
    """
    raw, where = data.encode(errors="backslashreplace") if isinstance(data, str) else data, Path(path)
    with name_in_errors(path):
        if where.exists() and not where.is_file():
            where.write_bytes(raw)
            return
        with replace_file(where) as file:
            file.write(raw)


@contextmanager
def replace_file(path: Path, synced: bool = False) -> Iterator[BinaryIO]:
    """Yield a new file that replaces `path` when complete; `write_atomic` for data too large to hold in memory twice.

    Args:
        synced: Whether the file is flushed to disk before it replaces `path`, and the replacement itself before the return.
    """
    path = path.resolve()
    handle, temporary = tempfile.mkstemp(prefix=_temporary_prefix(path), dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            if synced:
                file.flush()
                os.fsync(file.fileno())
        os.chmod(temporary, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_read_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    if synced:
        sync_folder(path.parent)


def _temporary_prefix(path: Path) -> str:
    return f".{path.name[:50]}."


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries (creations, renames, removals) to disk; do nothing if there is no such folder."""
    if not folder.is_dir():
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def find_unfinished(path: Path) -> list[Path]:
    """Return the temporary files of `path`, left by killed processes or still being written by live ones."""
    path = path.resolve()
    return sorted(one for one in path.parent.glob(f"{glob.escape(_temporary_prefix(path))}????????") if one.is_file())


@contextmanager
def name_in_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make system errors in the `with` block (a full disk, no permission) name this file, whatever file they named."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def make_folder(path: Path, field: str) -> None:
    """Create a folder for results and test that it is writable, before any work is done; `field` is the argument's name.

    Raises:
        ConfigError: The path is not a folder, cannot become one, or cannot be written in.
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
def exclusive_lock(folder: Path, field: str) -> Iterator[None]:
    """Hold an exclusive lock on a folder, the file `.lock` in it; `field` is the argument's name.

    Raises:
        ConfigError: Another process holds the lock.
    """
    path = folder / ".lock"
    with name_in_errors(path):
        file = open(path, "w")
    with file:
        try:
            with name_in_errors(path):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())  # not removed by its holder
        except BlockingIOError:
            held = False
        if not held:
            raise ConfigError(f"{field} = '{folder}' is being written by another process; valid: one at a time")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a regular file, with every line ending as a line feed and without a byte order mark.

    Raises:
        OSError: As `check_text_file`, or the file cannot be read.
        UnicodeDecodeError: The file is not UTF-8 text.
    """
    path = Path(path)
    check_text_file(path)
    return path.read_text(encoding="utf-8-sig")


def check_text_file(path: Path) -> None:
    """Raise OSError for what is not to be read as text: a device or a pipe, which may never end, or more than 256 MiB."""
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "the name holds a null character")
    if not path.exists() or path.is_dir():
        return  # reading it says why not
    if not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file")
    if path.stat().st_size > MAX_TEXT_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MAX_TEXT_BYTES >> 20} MiB; valid: at most that")


def split_csv_rows(text: str) -> list[tuple[int, str]]:
    """Return the non-blank rows of CSV text, each with the number of its first line, from 1.

    A quoted field may hold commas and extend over several lines; `split_csv_fields` splits a row.

    Raises:
        CsvError: A quoted field does not end, or something follows its end.
    """
    lines = text.split("\n")
    if '"' not in text:
        return [(i, line) for i, line in enumerate(lines, 1) if line and not line.isspace()]
    found, reader, begins = [], _csv_reader([line + "\n" for line in lines]), 1
    try:
        for _ in reader:
            record = "\n".join(lines[begins - 1 : reader.line_num])
            if record and not record.isspace():
                found.append((begins, record))
            begins = reader.line_num + 1
    except csv.Error as error:
        raise CsvError(f"is not CSV: {error}", begins) from None
    return found


def split_csv_fields(record: str) -> list[str]:
    """Return the fields of a row from `split_csv_rows`, unquoted and stripped."""
    if '"' not in record:
        return [field.strip() for field in record.split(",")]
    return [field.strip() for field in next(_csv_reader([line + "\n" for line in record.split("\n")]))]


def _csv_reader(lines: list[str]) -> Any:
    return csv.reader(lines, skipinitialspace=True, strict=True)


def parse_number(text: str) -> float | int:
    """Return the number in a field of a file, as int if it is whole; digits must be ASCII, without separators.

    Raises:
        ValueError: The field holds no number.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is not a number")
    try:
        return int(text)
    except ValueError:
        return float(text)


def write_json(path: str | os.PathLike[str], value: object) -> None:
    """Write `value` as JSON through `write_atomic`; numbers that JSON lacks (NaN, infinities) become null."""
    write_atomic(path, json.dumps(to_plain_values(value), indent=1, allow_nan=False) + "\n")


def to_plain_values(value: object) -> object:
    """Return `value` with numpy arrays as lists, numpy scalars as Python's, and non-finite numbers as None."""
    if isinstance(value, dict):
        return {str(key): to_plain_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain_values(item) for item in value]
    if isinstance(value, np.ndarray):
        return to_plain_values(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _read_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
