"""Text of a trace file: plain or compressed by gzip, UTF-8 or UTF-16, of bounded size."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import zlib
from pathlib import Path

from netbuf_gym.errors import ScenarioTypeError, TraceError, quote
from netbuf_gym.utils.files import MAX_TEXT_BYTES, check_text_file

GZIP = b"\x1f\x8b"


def read_trace_text(path: str | os.PathLike[str], valid: str) -> str:
    """Return the text of a trace file, with every line ending as a line feed.

    Args:
        path: Path of the file.
        valid: Formats to name in the message about a file that is no text.

    Raises:
        TraceError: No such file, a device, a broken archive, more than 256 MiB (unpacked), or no text.
        ScenarioTypeError: A `path` that is no file name.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ScenarioTypeError(f"path = {quote(path)}; valid: the name of a trace file")
    try:
        check_text_file(Path(path))
        raw = Path(path).read_bytes()
    except OSError as error:
        raise TraceError(f"cannot be read: {error.strerror or error}", path) from None
    if raw.startswith(GZIP):
        raw = _unpack(raw, path)
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif len(raw) > 3 and not len(raw) % 2 and 0 in raw[:2] and raw[:64].count(0) == len(raw[:64]) // 2:
        encoding = "utf-16-be" if raw[0] == 0 else "utf-16-le"  # without a byte order mark
    else:
        encoding = "utf-8-sig"
        null = raw.find(b"\0")
        if null >= 0:
            raise TraceError(f"is not text; valid: {valid}", path, raw.count(b"\n", 0, null) + 1)
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = bytes(error.object[: error.start]).count(b"\n") + 1
        raise TraceError(f"is not text; valid: UTF-8 or UTF-16, {valid}", path, line) from None
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _unpack(raw: bytes, path: str | os.PathLike[str]) -> bytes:
    """Unpack a gzip archive, no further than a trace file may be long."""
    try:
        with gzip.open(io.BytesIO(raw)) as file:
            text = file.read(MAX_TEXT_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"cannot be unpacked: {error}", path) from None
    if len(text) > MAX_TEXT_BYTES:
        raise TraceError(f"unpacks to more than {MAX_TEXT_BYTES >> 20} MiB; valid: at most that", path)
    return text
