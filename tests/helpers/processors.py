"""Makes numpy compute alike on processors with and without AVX-512: what is recorded under tests/ is compared bit by bit.

numpy's float64 exponentials and powers differ in the last bit where it dispatches to AVX-512, and with them generated traces
and what a switch is told; sums of products differ with the kernels that OpenBLAS chooses by the processor. The recordings are
those of processors without AVX-512.
"""

import os
import sys
from pathlib import Path

ALIKE = {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR", "OPENBLAS_CORETYPE": "Haswell"}


def pin() -> None:
    """To be called before numpy is imported; what is started from here on inherits it."""
    if _needed():
        assert "numpy" not in sys.modules, "numpy was imported before its processor was chosen"
        os.environ.update(ALIKE)


def start_pinned() -> None:
    """Starts this program once more, pinned, where it is not."""
    if _needed():
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **ALIKE})


def _needed() -> bool:
    cpuinfo = Path("/proc/cpuinfo")
    pinned = all(os.environ.get(key) == value for key, value in ALIKE.items())
    return not pinned and cpuinfo.is_file() and "avx512f" in cpuinfo.read_text().split()
