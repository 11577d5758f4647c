"""Archives from untrusted sources: every size is bounded before reading, and nothing in them is executed.

`check_members` checks the sizes that a zip file declares; only then are bytes unpacked, and never more than declared. Arrays
are members of their own as plain bytes, with a table of their types and shapes, and both must agree before memory is
allocated. Parameters are torch's files, read by `torch.load(weights_only=True)`, or without torch as plain arrays.
"""

from __future__ import annotations

import io
import json
import math
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_MEMBERS = 64
MAX_BYTES = 1 << 30
MAX_JSON_BYTES = 1 << 24
META, PARAMETERS = "netbuf_gym.json", "policy.pth"
"""Members of a model's file: its description, and its networks."""
_PLAIN = "biuf"
"""Valid kinds of array elements, as in `numpy.dtype.kind`."""
_STORAGES = {"DoubleStorage": "<f8", "FloatStorage": "<f4", "HalfStorage": "<f2", "LongStorage": "<i8", "IntStorage": "<i4"}
_STORAGES |= {"ShortStorage": "<i2", "CharStorage": "|i1", "ByteStorage": "|u1", "BoolStorage": "|b1"}
"""Types of numbers, by the names of torch's storages."""


class RefusedError(ValueError):
    """An archive that is rejected before unpacking."""


def check_members(archive: zipfile.ZipFile, max_bytes: int = MAX_BYTES, max_members: int = MAX_MEMBERS) -> None:
    """Raise RefusedError for an archive with too many or too large members, duplicate names, or features never written.

    Sizes are those that the archive declares: Python's zipfile unpacks no more of a member than that. In a file that lacks
    its end zipfile takes the last archive that was a member for the whole one, whose first member does not begin where the
    file does.

    Raises:
        zipfile.BadZipFile: The archive is such a member.
    """
    infos = archive.infolist()
    if infos and min(info.header_offset for info in infos) > 0:
        raise zipfile.BadZipFile("its end is missing")
    if len(infos) > max_members:
        raise RefusedError(f"it has {len(infos)} members; valid: at most {max_members}")
    if len({info.filename for info in infos}) != len(infos):
        raise RefusedError("two members have the same name")
    total = 0
    for info in infos:
        total += info.file_size
        if info.file_size > max_bytes or total > max_bytes:
            raise RefusedError(f"member {info.filename[:60]!r} makes it larger than {max_bytes:,} bytes")
        if info.flag_bits & 1:
            raise RefusedError(f"member {info.filename[:60]!r} is encrypted")
        if info.filename.endswith(".pth") and info.compress_type != zipfile.ZIP_STORED:
            raise RefusedError(f"member {info.filename[:60]!r} is compressed; parameters are stored as they are")


def read_json(archive: zipfile.ZipFile, name: str) -> Any:
    """Return the value of a JSON member.

    Raises:
        KeyError: The member is missing.
        ValueError: The member is too large, nested too deeply, or not JSON.
    """
    if archive.getinfo(name).file_size > MAX_JSON_BYTES:
        raise ValueError(f"member {name!r} is larger than {MAX_JSON_BYTES:,} bytes")
    try:
        return json.loads(archive.read(name))
    except RecursionError:
        raise ValueError(f"member {name!r} is nested too deeply") from None


def read_parameters(archive: zipfile.ZipFile, name: str) -> Any:
    """Return the tensors, in dictionaries and lists, that torch saved in a member.

    Raises:
        ValueError: The storages are larger than the member, or it holds anything else.
        Exception: Any error of torch's unpickler of weights.
    """
    import torch as th

    data = archive.read(name)
    with zipfile.ZipFile(io.BytesIO(data)) as inner:  # torch's own format is a zip file, too
        for info in inner.infolist():
            if info.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{name!r} holds compressed parameters")
        check_members(inner, len(data), 100_000)
    try:
        return th.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise ValueError(f"{name!r} holds more than tensors, or something damaged; valid: what training wrote") from None


def read_tensors(archive: zipfile.ZipFile, name: str) -> dict[str, np.ndarray]:
    """Return the tensors of a `state_dict` that torch saved in a member, by name; needs no torch.

    Raises:
        ValueError: The member holds anything else, or tensors that do not fit their storages.
        Exception: Any error that a damaged member causes.
    """
    data = archive.read(name)
    with zipfile.ZipFile(io.BytesIO(data)) as inner:
        check_members(inner, len(data), 100_000)
        (table,) = (one for one in inner.namelist() if one.count("/") == 1 and one.endswith("/data.pkl"))
        folder = table.removesuffix("data.pkl")
        if f"{folder}byteorder" in inner.namelist() and inner.read(f"{folder}byteorder") != b"little":
            raise ValueError(f"{name!r} holds numbers that are not little-endian")
        try:
            found = _TensorUnpickler(io.BytesIO(inner.read(table))).load()
        except pickle.UnpicklingError:
            raise ValueError(f"{name!r} holds more than tensors, or something damaged; valid: what training wrote") from None
        if not isinstance(found, dict) or not all(isinstance(one, _TensorRecord) for one in found.values()):
            raise ValueError(f"{name!r} holds more than tensors; valid: what training wrote")
        return {str(key): one.read(inner, folder) for key, one in found.items()}


@dataclass(frozen=True)
class _TensorRecord:
    """A tensor as torch's pickle describes it: its storage, the offset there, its shape and strides."""

    storage: tuple[str, str]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def read(self, inner: zipfile.ZipFile, folder: str) -> np.ndarray:
        kind, key = self.storage
        numbers = np.frombuffer(inner.read(f"{folder}data/{key}"), _STORAGES[kind])
        sizes = (self.offset, *self.shape, *self.strides)
        if len(self.shape) != len(self.strides) or not all(isinstance(size, int) and size >= 0 for size in sizes):
            raise ValueError(f"a tensor of shape {self.shape} has strides {self.strides}")
        last = self.offset + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        if 0 not in self.shape and (last >= len(numbers) or math.prod(self.shape) > len(numbers)):
            raise ValueError(f"a tensor of shape {self.shape} is larger than its storage of {len(numbers)} numbers")
        strides = [stride * numbers.itemsize for stride in self.strides]
        return np.ascontiguousarray(np.ndarray(self.shape, numbers.dtype, numbers, self.offset * numbers.itemsize, strides))


class _TensorUnpickler(pickle.Unpickler):
    """Unpickler of tensor descriptions; calls only functions defined here, and OrderedDict."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, *_: _TensorRecord(storage, offset, shape, strides)
        if module == "torch" and name in _STORAGES:
            return name
        raise pickle.UnpicklingError(f"{module}.{name}"[:80])

    def persistent_load(self, pid: Any) -> tuple[str, str]:
        _, kind, key, *_ = pid
        return str(kind), str(key)


def write_arrays(archive: zipfile.ZipFile, folder: str, arrays: Mapping[str, np.ndarray], compress: bool = True) -> None:
    """Write arrays as members `folder/name`, and their types and shapes as `folder/arrays.json`."""
    kind = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    table = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    archive.writestr(f"{folder}/arrays.json", json.dumps(table))
    for name, array in arrays.items():
        info = zipfile.ZipInfo(f"{folder}/{name}")
        info.compress_type = kind
        with archive.open(info, "w", force_zip64=True) as member:
            member.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")


def read_arrays(archive: zipfile.ZipFile, folder: str) -> dict[str, np.ndarray]:
    """Return the arrays that `write_arrays` wrote.

    Raises:
        KeyError: A member is missing.
        ValueError: The table is invalid, or does not agree with the members' sizes.
    """
    found = {}
    for name, (kind, shape) in dict(read_json(archive, f"{folder}/arrays.json")).items():
        dtype = np.dtype(str(kind))
        if dtype.kind not in _PLAIN or not all(isinstance(size, int) and 0 <= size < 1 << 40 for size in shape):
            raise ValueError(f"array {name[:60]!r} is of type {str(kind)[:20]!r} and shape {str(shape)[:60]}")
        member = f"{folder}/{name}"
        if archive.getinfo(member).file_size != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"array {name[:60]!r} has another size than its shape {shape}")
        found[name] = np.frombuffer(bytearray(archive.read(member)), dtype).reshape(shape)
    return found
