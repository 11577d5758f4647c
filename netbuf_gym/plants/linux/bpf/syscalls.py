"""The bpf(2) system call, as far as it is needed here (uapi/linux/bpf.h)."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Sequence

_NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_LIBC = ctypes.CDLL(None, use_errno=True)
_LOG_BYTES = 1 << 18

MAP_CREATE, MAP_UPDATE, MAP_DELETE, PROG_LOAD, PROG_TEST_RUN, BTF_LOAD, LINK_CREATE = 0, 2, 3, 5, 10, 18, 28
MAP_STRUCT_OPS = 26
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
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise BpfError(38, f"{what}: on {platform.machine()}")
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    result = _LIBC.syscall(ctypes.c_long(number), ctypes.c_int(command), buffer, ctypes.c_uint(len(attributes)))
    if result < 0:
        raise BpfError(ctypes.get_errno(), what)
    return int(result)


def _address(data: ctypes.Array) -> int:
    return ctypes.addressof(data)


def create_map(
    kind: int, name: str, key: int, value: int, entries: int, flags: int = 0, struct_type: int = 0, btf: int = 0
) -> int:
    """Create a map and return its descriptor.

    Args:
        struct_type: type of the kernel's structure, for struct_ops.
        btf: descriptor of the programs' types, for struct_ops.
    """
    attributes = struct.pack(
        "<IIIIIII16sIIIIIQ", kind, key, value, entries, flags, 0, 0, name.encode()[:15], 0, btf, 0, 0, struct_type, 0
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
    number = _NUMBERS[platform.machine()]
    result = _LIBC.syscall(ctypes.c_long(number), ctypes.c_int(PROG_TEST_RUN), attributes, ctypes.c_uint(len(attributes)))
    if result < 0:
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
