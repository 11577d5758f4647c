"""Writing files so that a reader sees the whole new file or the old one, never a part."""

from __future__ import annotations

import errno
import json
import math
import os
import tempfile
from pathlib import Path

import numpy as np


def write_atomic(path: str | os.PathLike, data: str | bytes) -> None:
    """Writes `data` to `path` through a temporary file beside it; on failure nothing is left behind.

    A path that is not a regular file (a terminal, a pipe, /dev/null) is written directly.

    Raises:
        OSError: The file cannot be written.
    """
    path = Path(path)
    raw = data.encode() if isinstance(data, str) else data
    if path.exists() and not path.is_file():
        path.write_bytes(raw)
        return
    path = path.resolve()
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
        os.chmod(temporary, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_text(path: str | os.PathLike, encoding: str = "utf-8") -> str:
    """The text of a regular file, its lines ended by a line feed whatever they were ended by.

    Raises:
        OSError: The file cannot be read, or is a device or a pipe, which may never end.
        UnicodeDecodeError: It is not text.
    """
    path = Path(path)
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "the name holds a null character")
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "not a regular file")
    return path.read_text(encoding=encoding)


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


def write_json(path: str | os.PathLike, value: object) -> None:
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
