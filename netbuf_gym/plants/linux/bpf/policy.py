"""A compiled sender inside the kernel, decision by decision: what its congestion control would decide, without a socket."""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Sequence

import numpy as np

from netbuf_gym.plants.linux.bpf import syscalls
from netbuf_gym.plants.linux.bpf.objects import load_object
from netbuf_gym.plants.linux.bpf.struct_ops import close_all, link_maps

_INTERVAL_FIELDS = 15
_START, _WINDOW = 15, 16
"""Places of 64 bits in `struct decision` of cpp/bpf/policy.bpf.c, behind its interval."""
_ACTION = 34
"""Place of 32 bits."""


class KernelPolicy:
    """A connection whose sender decides in a BPF program of type syscall, which has the source of the simulator's.

    Args:
        policy: `struct nb_policy`.

    Raises:
        BpfError: the kernel refuses: no privileges (CAP_BPF and CAP_PERFMON), or the verifier, whose words are in `log`.
        OSError: the kernel lacks support.
    """

    def __init__(self, policy: bytes):
        source = load_object("policy")
        if source.maps["policies"].value_bytes != len(policy):
            raise RuntimeError("the BPF object 'policy' is another version's: make bpf")
        self._open: list[int] = []
        try:
            maps = {}
            for name, spec in source.maps.items():
                maps[name] = syscalls.create_map(spec.type, name, spec.key_bytes, spec.value_bytes, spec.entries, spec.flags)
                self._open.append(maps[name])
            syscalls.update_element(maps["policies"], bytes(4), policy)
            program = source.programs["syscall"]
            btf = syscalls.load_btf(source.btf)
            self._open.append(btf)
            code = link_maps(program, maps)
            self._program = syscalls.load_syscall("decide", code, btf, program.functions, program.relocations)
            self._open.append(self._program)
        except BaseException:
            close_all(self._open)
            raise
        self._memory = mmap.mmap(maps["decisions"], source.maps["decisions"].value_bytes, mmap.MAP_SHARED)
        self._cells = np.frombuffer(self._memory, np.int64, source.maps["decisions"].value_bytes // 8)
        self._finalizer = weakref.finalize(self, close_all, self._open)

    def step(self, interval: Sequence[int] | np.ndarray, start: bool = False) -> tuple[int, int]:
        """Decide at the end of an interval, and return the action, and the window in bytes, 0 where it stays.

        Args:
            interval: Members of `struct nb_interval`.
            start: Whether a connection begins, with the interval's window and segments; then nothing is decided.
        """
        if start:
            self._cells[:] = 0
        self._cells[:_INTERVAL_FIELDS] = interval
        self._cells[_START] = start
        if syscalls.run_program(self._program):
            raise RuntimeError("the BPF program 'decide' has no maps")
        return int(self._cells.view(np.uint32)[_ACTION]), int(self._cells[_WINDOW])

    def close(self) -> None:
        """Remove program and maps from the kernel."""
        self._finalizer()
