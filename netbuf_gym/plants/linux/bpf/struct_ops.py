"""Registration of a compiled congestion control with the kernel, for as long as this process has it open.

No libbpf: the kernel relocates the programs itself (since 5.17), so that what is left to do is to read the object, to create
its maps, and to fill in the structure whose members the programs are. The registration goes with the last descriptor of the
link, however the process ends (kernel 6.3); sockets that use the control keep it until they are closed.
"""

from __future__ import annotations

import os
import struct
import weakref
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from types import MappingProxyType

from netbuf_gym import _core
from netbuf_gym.plants.linux.bpf import syscalls
from netbuf_gym.plants.linux.bpf.objects import BpfObject, Program
from netbuf_gym.plants.linux.bpf.syscalls import BpfError

KERNEL_TYPES = "/sys/kernel/btf/vmlinux"
_STRUCT, _VALUE = "tcp_congestion_ops", "bpf_struct_ops_tcp_congestion_ops"
_NAME_BYTES = 16
NAME_CHARACTERS = _NAME_BYTES - 1
_NON_RESTRICTED = 1
PREFIX = "nb"
"""Prefix of the names of our congestion controls, before an underscore."""


@cache
def kernel_structs() -> tuple[dict, dict]:
    """Return the structure that congestion controls fill in, and the map's value that holds it.

    Raises:
        FileNotFoundError: the kernel does not describe its types, or knows no such programs.
    """
    if not os.path.exists(KERNEL_TYPES):
        raise FileNotFoundError(f"no {KERNEL_TYPES}: the kernel was built without CONFIG_DEBUG_INFO_BTF")
    operations, value = _core.btf_structs(KERNEL_TYPES, [_STRUCT, _VALUE])
    if operations is None or value is None:
        raise FileNotFoundError(f"{KERNEL_TYPES} has no {_VALUE}: the kernel takes no congestion controls by BPF (6.3 does)")
    return operations, value


def explain_unavailable() -> str:
    """Return why no congestion control can be registered here; empty where one can, as far as can be told without trying."""
    try:
        kernel_structs()
    except (OSError, RuntimeError) as error:
        return str(error)
    if kernel_release() < (6, 3):
        return "congestion controls by BPF end with the process that registers them since kernel 6.3; this one is older"
    return ""


def kernel_release() -> tuple[int, ...]:
    """Return the version of the kernel, `(6, 18)`."""
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])


def link_maps(program: Program, fds: Mapping[str, int]) -> bytes:
    """Return the instructions, with the descriptors of maps in the place of their addresses."""
    code = bytearray(program.instructions)
    for at, name in program.maps.items():
        code[at + 1] = code[at + 1] & 0x0F | syscalls.PSEUDO_MAP_FD << 4
        struct.pack_into("<I", code, at + 4, fds[name])
    return bytes(code)


def close_all(fds: list[int]) -> None:
    """Close descriptors, and empty their list."""
    while fds:
        with suppress(OSError):
            os.close(fds.pop())


class StructOps:
    """A registered congestion control of BPF programs.

    Args:
        source: the compiled object.
        entries: elements of its maps, by name, where they are not the object's.
        name: value for a socket's TCP_CONGESTION; "": one of this process's own.
        unrestricted: whether every socket may take it; else those with CAP_NET_ADMIN in their network namespace.
        contents: element 0 of its maps, by name.

    Attributes:
        name: value for a socket's TCP_CONGESTION.
        maps: descriptors of the maps, by name.
        link: descriptor of what keeps it registered.

    Raises:
        BpfError: the kernel refuses: no privileges (CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, or CAP_SYS_ADMIN, of the initial
            user namespace), or the verifier, whose words are in `log`.
        OSError: the kernel lacks support.
    """

    def __init__(
        self,
        source: BpfObject,
        entries: Mapping[str, int],
        name: str = "",
        unrestricted: bool = False,
        contents: Mapping[str, bytes] = MappingProxyType({}),
    ):
        operations, value = kernel_structs()
        self.name = name or f"{PREFIX}_{os.urandom(4).hex()}"[:NAME_CHARACTERS]  # unique on the machine
        self.maps: dict[str, int] = {}
        self._open: list[int] = []
        btf = syscalls.load_btf(source.btf)
        try:
            for key, spec in source.maps.items():
                stored = spec.type == syscalls.MAP_SK_STORAGE
                fd = syscalls.create_map(
                    *(spec.type, key, spec.key_bytes, spec.value_bytes, entries.get(key, spec.entries), spec.flags),
                    btf=btf if stored else 0,
                    types=(spec.key_type, spec.value_type) if stored else (0, 0),
                )
                self._open.append(fd)
                self.maps[key] = fd
            for key, content in contents.items():
                syscalls.update_element(self.maps[key], bytes(4), content)
            self.link = self._register(source, btf, operations, value, unrestricted)
            self._open.append(self.link)
        except BaseException:
            close_all(self._open)
            raise
        finally:
            os.close(btf)
        self._finalizer = weakref.finalize(self, close_all, self._open)

    def _register(self, source: BpfObject, btf: int, operations: dict, value: dict, unrestricted: bool) -> int:
        programs: list[int] = []
        try:
            start = value["members"]["data"][1]
            filled = bytearray(value["bytes"])
            place = start + operations["members"]["name"][1]
            filled[place : place + _NAME_BYTES] = self.name.encode().ljust(_NAME_BYTES, b"\0")
            struct.pack_into("<I", filled, start + operations["members"]["flags"][1], _NON_RESTRICTED if unrestricted else 0)
            for member, program in source.programs.items():
                number, offset = operations["members"][member]
                code = link_maps(program, self.maps)
                fd = syscalls.load_struct_ops(
                    member, code, btf, operations["id"], number, program.functions, program.relocations
                )
                programs.append(fd)
                struct.pack_into("<Q", filled, start + offset, fd)
            table = syscalls.create_map(
                syscalls.MAP_STRUCT_OPS, self.name, 4, value["bytes"], 1, syscalls.F_LINK, value["id"], btf
            )
            programs.append(table)
            what = f"congestion control {self.name!r} cannot be registered"
            syscalls.update_element(table, bytes(4), bytes(filled), what)
            return syscalls.create_link(table, what)
        finally:
            close_all(programs)

    def close(self) -> None:
        """Unregister the control; sockets that use it keep it until they are closed."""
        self._finalizer()


__all__ = ["BpfError", "StructOps", "explain_unavailable", "kernel_release"]
