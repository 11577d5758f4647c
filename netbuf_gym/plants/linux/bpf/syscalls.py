"""The bpf(2) system call, as far as it is needed here (uapi/linux/bpf.h)."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Sequence

_NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_LIBC = ctypes.CDLL(None, use_errno=True)
_LOG_BYTES = 1 << 18

MAP_CREATE, MAP_LOOKUP, MAP_UPDATE, MAP_DELETE, MAP_NEXT_KEY = 0, 1, 2, 3, 4
PROG_LOAD, OBJ_PIN, OBJ_GET, PROG_TEST_RUN = 5, 6, 7, 10
PROG_BY_ID, MAP_BY_ID, OBJ_INFO, BTF_LOAD, LINK_CREATE, LINK_BY_ID, LINK_NEXT_ID, LINK_DETACH = 13, 14, 15, 18, 28, 30, 31, 34
MAP_SK_STORAGE, MAP_STRUCT_OPS = 24, 26
LINK_STRUCT_OPS = 9
PROG_STRUCT_OPS, PROG_SYSCALL, ATTACH_STRUCT_OPS = 27, 31, 44
F_SLEEPABLE = 1 << 4
F_LINK = 1 << 13
PSEUDO_MAP_FD = 1


class BpfError(OSError):
    """Error of the bpf(2) system call; `log` is the output of the kernel's verifier."""

    def __init__(self, number: int, what: str, log: str = ""):
        super().__init__(number, f"{what}: {os.strerror(number)}")
        self.log = log


def call_bpf(command: int, attributes: bytes, what: str) -> int:
    """Call bpf(2).

    Args:
        attributes: `union bpf_attr`, up to the last field that is used.
        what: description of the failure, for messages.

    Returns:
        The call's result, often a descriptor.

    Raises:
        BpfError: the call failed.
    """
    if platform.machine() not in _NUMBERS:
        raise BpfError(errno.ENOSYS, f"{what}: on {platform.machine()}")
    result = _call(command, ctypes.create_string_buffer(attributes, len(attributes)))
    if result < 0:
        raise BpfError(ctypes.get_errno(), what)
    return result


def _call(command: int, attributes: ctypes.Array) -> int:
    """Call bpf(2), which may write into the attributes; return its result, negative with an errno."""
    number = ctypes.c_long(_NUMBERS[platform.machine()])
    return int(_LIBC.syscall(number, ctypes.c_int(command), attributes, ctypes.c_uint(len(attributes))))


def _address(data: ctypes.Array) -> int:
    return ctypes.addressof(data)


def create_map(
    kind: int,
    name: str,
    key: int,
    value: int,
    entries: int,
    flags: int = 0,
    struct_type: int = 0,
    btf: int = 0,
    types: tuple[int, int] = (0, 0),
) -> int:
    """Create a map and return its descriptor.

    Args:
        struct_type: type of the kernel's structure, for struct_ops.
        btf: descriptor of the programs' types, for struct_ops and socket storage.
        types: types of key and value in those, for socket storage.
    """
    attributes = struct.pack(
        "<IIIIIII16sIIIIIQ", kind, key, value, entries, flags, 0, 0, name.encode()[:15], 0, btf, *types, struct_type, 0
    )
    return call_bpf(MAP_CREATE, attributes, f"BPF map {name!r} cannot be made")


def update_element(fd: int, key: bytes, value: bytes, what: str = "BPF map cannot be written") -> None:
    """Write an element of a map."""
    held, given = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(value, len(value))
    call_bpf(MAP_UPDATE, struct.pack("<I4xQQQ", fd, _address(held), _address(given), 0), what)


def delete_element(fd: int, key: bytes) -> None:
    """Remove an element of a map."""
    held = ctypes.create_string_buffer(key, len(key))
    call_bpf(MAP_DELETE, struct.pack("<I4xQQQ", fd, _address(held), 0, 0), "BPF map cannot be written")


def read_element(fd: int, key: bytes, value_bytes: int) -> bytes | None:
    """Return an element of a map; None if there is none of this key."""
    held, found = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(value_bytes)
    try:
        call_bpf(MAP_LOOKUP, struct.pack("<I4xQQQ", fd, _address(held), _address(found), 0), "BPF map cannot be read")
    except BpfError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    return found.raw


def list_keys(fd: int, key_bytes: int) -> list[bytes]:
    """Return the keys of a hash map; some may be missing or listed twice while others write it."""
    keys: list[bytes] = []
    found = ctypes.create_string_buffer(key_bytes)
    before = 0
    while True:
        try:
            call_bpf(MAP_NEXT_KEY, struct.pack("<I4xQQ", fd, before, _address(found)), "BPF map cannot be read")
        except BpfError as error:
            if error.errno == errno.ENOENT:
                return keys
            raise
        keys.append(found.raw)
        held = ctypes.create_string_buffer(keys[-1], key_bytes)
        before = _address(held)


def read_info(fd: int, length: int, given: bytes = b"") -> bytes:
    """Return so many bytes of what the kernel tells of an object (`struct bpf_map_info` ..); `given`: its beginning."""
    info = ctypes.create_string_buffer(given, length)
    call_bpf(OBJ_INFO, struct.pack("<IIQ", fd, length, _address(info)), "a BPF object cannot be read")
    return info.raw


def list_program_maps(fd: int) -> list[int]:
    """Return the ids of the maps that a program uses."""
    count_at, length = 52, 80
    (count,) = struct.unpack_from("<I", read_info(fd, length), count_at)
    ids = (ctypes.c_uint32 * max(1, count))()
    asked = bytearray(length)
    struct.pack_into("<IQ", asked, count_at, count, ctypes.addressof(ids))
    read_info(fd, length, bytes(asked))
    return list(ids[:count])


def open_by_id(command: int, number: int) -> int:
    """Open an object by its id and return its descriptor; `command`: `PROG_BY_ID`, `MAP_BY_ID` or `LINK_BY_ID`.

    Raises:
        BpfError: it is gone (ENOENT), or privileges are missing (EPERM).
    """
    return call_bpf(command, struct.pack("<III", number, 0, 0), "a BPF object cannot be opened")


def list_links() -> list[int]:
    """Return the ids of all links of the machine."""
    found: list[int] = []
    attributes = ctypes.create_string_buffer(struct.pack("<III", 0, 0, 0), 12)
    while _call(LINK_NEXT_ID, attributes) >= 0:
        (number,) = struct.unpack_from("<I", attributes, 4)
        found.append(number)
        struct.pack_into("<II", attributes, 0, number, 0)
    if ctypes.get_errno() != errno.ENOENT:
        raise BpfError(ctypes.get_errno(), "BPF links cannot be listed")
    return found


def pin_object(fd: int, path: str) -> None:
    """Keep an object by a name in a BPF file system."""
    name = ctypes.create_string_buffer(os.fsencode(path))
    call_bpf(OBJ_PIN, struct.pack("<QII", _address(name), fd, 0), f"{path} cannot be made")


def open_pinned(path: str) -> int:
    """Return a descriptor of an object that is kept by a name in a BPF file system."""
    name = ctypes.create_string_buffer(os.fsencode(path))
    return call_bpf(OBJ_GET, struct.pack("<QII", _address(name), 0, 0), f"{path} cannot be opened")


def detach_link(fd: int) -> None:
    """Undo what a link does, whoever has it open; struct_ops since kernel 6.11, EOPNOTSUPP before."""
    call_bpf(LINK_DETACH, struct.pack("<I", fd), "a BPF link cannot be detached")


def load_btf(data: bytes) -> int:
    """Load a program's types and return their descriptor."""
    held = ctypes.create_string_buffer(data, len(data))
    attributes = struct.pack("<QQIII4x", _address(held), 0, len(data), 0, 0)
    return call_bpf(BTF_LOAD, attributes, "the types of a BPF object cannot be loaded")


def load_struct_ops(
    name: str,
    instructions: bytes,
    btf: int,
    struct_type: int,
    member: int,
    functions: Sequence[bytes],
    relocations: Sequence[bytes],
) -> int:
    """Load a program that implements member number `member` of the kernel's structure `struct_type`; return its descriptor.

    Args:
        btf: descriptor of the program's types.
        functions, relocations: records of .BTF.ext, of one length each; the kernel relocates.

    Raises:
        BpfError: the verifier refused; its `log` says why.
    """
    return _load_program(PROG_STRUCT_OPS, 0, name, instructions, btf, struct_type, member, functions, relocations)


def load_syscall(name: str, instructions: bytes, btf: int, functions: Sequence[bytes], relocations: Sequence[bytes]) -> int:
    """Load a program that `run_program` runs; arguments, result and errors as of `load_struct_ops`."""
    return _load_program(PROG_SYSCALL, F_SLEEPABLE, name, instructions, btf, 0, 0, functions, relocations)


def run_program(fd: int) -> int:
    """Run a program of `load_syscall` once, and return its result."""
    attributes = ctypes.create_string_buffer(struct.pack("<IIIIQQIIIIQQIII4x", fd, *[0] * 14), 80)
    if _call(PROG_TEST_RUN, attributes) < 0:
        raise BpfError(ctypes.get_errno(), "BPF program cannot be run")
    return int(struct.unpack_from("<I", attributes, 4)[0])


def _load_program(
    kind: int,
    flags: int,
    name: str,
    instructions: bytes,
    btf: int,
    struct_type: int,
    member: int,
    functions: Sequence[bytes],
    relocations: Sequence[bytes],
) -> int:
    code = ctypes.create_string_buffer(instructions, len(instructions))
    license_ = ctypes.create_string_buffer(b"GPL")
    joined = [b"".join(records) for records in (functions, relocations)]
    held = [ctypes.create_string_buffer(data, max(1, len(data))) for data in joined]
    what = f"BPF program {name!r} cannot be loaded"

    def attributes(log: ctypes.Array | None) -> bytes:
        return struct.pack(
            "<IIQQIIQII16sIIIIQIIQIIIIQQI4x",
            *(kind, len(instructions) // 8, _address(code), _address(license_)),
            *((1, _LOG_BYTES, _address(log)) if log is not None else (0, 0, 0)),
            *(0, flags, name.encode()[:15], 0, member, btf),
            *(len(functions[0]), _address(held[0]), len(functions), 0, 0, 0),
            *(struct_type, 0, len(relocations), 0, _address(held[1]), len(relocations[0]) if relocations else 0),
        )

    try:
        return call_bpf(PROG_LOAD, attributes(None), what)
    except BpfError as error:
        log = ctypes.create_string_buffer(_LOG_BYTES)
        try:
            return call_bpf(PROG_LOAD, attributes(log), what)
        except BpfError:
            raise BpfError(error.errno or 0, what, log.value.decode(errors="replace")) from None


def create_link(map_fd: int, what: str) -> int:
    """Create the link that keeps a struct_ops map registered for as long as a process holds it open; return its descriptor."""
    return call_bpf(LINK_CREATE, struct.pack("<IIII", map_fd, 0, ATTACH_STRUCT_OPS, 0), what)
