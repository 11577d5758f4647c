"""Numbers that the paper on Auter reports, each with its table, figure or section.

Throughput in Mbit/s, latency in ms, gains as shares of the default's throughput (0.2 is 20 % more). The curves of the paper's
figures are published as pictures only; for those, the numbers are the ones that the text states.
"""

from __future__ import annotations

from statistics import fmean

DEFAULT, TUNE_1, TUNE_2, MAX = "default", "tune-1", "tune-2", "max"
BBR, AUTER, AUTER_BBR = "bbr", "auter", "auter_bbr"

SETTINGS: dict[str, tuple[int, int, int]] = {
    DEFAULT: (256, 65_536, 212_992),
    TUNE_1: (512, 1_048_576, 4_194_304),
    TUNE_2: (256, 87_380, 67_108_864),
    MAX: (4096, 67_108_864, 67_108_864),
}
"""Table I: ring in packets, TCP socket and socket in bytes."""

TABLE_1: dict[str, dict[str, float]] = {
    "es-we": {DEFAULT: 161.32, TUNE_1: 169.73, TUNE_2: 217.0, MAX: 172.0},
    "es-ea": {DEFAULT: 0.1164, TUNE_1: 0.14692, TUNE_2: 0.1075, MAX: 0.1274},
}
"""Table I: throughput by region and setting."""

REGIONS = ("es-ea", "es-we", "es-es")
TRAFFIC = ("short", "long")
_SCHEMES = (DEFAULT, BBR, MAX, AUTER, AUTER_BBR)


def _column(*values: float) -> dict[str, float]:
    return dict(zip(_SCHEMES, values, strict=True))


LATENCY_MS: dict[str, dict[str, float]] = {
    "es-ea-short": _column(252.16, 243.88, 261.3, 271.04, 266.14),
    "es-we-short": _column(63.9, 62.7, 64.54, 64.22, 62.9),
    "es-es-short": _column(3.44, 2.91, 2.73, 3.78, 2.99),
    "es-ea-long": _column(267.3, 252.0, 266.58, 281.12, 284.3),
    "es-we-long": _column(68.2, 66.0, 65.0, 67.4, 67.7),
    "es-es-long": _column(2.84, 2.63, 2.96, 2.94, 2.8),
}
"""Table IV: latency by region with traffic, and scheme."""

THROUGHPUT: dict[str, dict[str, float]] = {
    "es-ea-short": _column(0.1864, 0.21462, 0.16632, 0.22408, 0.24147),
    "es-we-short": _column(101.0, 109.2, 117.0, 125.0, 128.67),
    "es-es-short": _column(947.0, 956.0, 944.0, 952.0, 954.0),
    "es-ea-long": _column(0.14433, 0.19368, 0.16906, 0.20278, 0.23522),
    "es-we-long": _column(106.3, 144.4, 137.1, 142.0, 147.8),
    "es-es-long": _column(911.0, 923.0, 930.0, 932.0, 942.0),
}
"""Table IV: throughput by region with traffic, and scheme."""

CELLS = tuple(THROUGHPUT)

USED_BY_DEFAULT = {"es-ea": 0.1615, "es-we": 0.1012, "es-es": 0.9072}
"""Section V-B: share of the bandwidth that the default uses."""

GAIN_SAID = {BBR: 0.1593, MAX: 0.0864, AUTER: 0.2033, AUTER_BBR: 0.28}
"""Section V-B: mean gains in Table IV as the text states them; `compute_gain` computes them from the table."""
BEST_GAIN, BEST_GAIN_BBR = 0.405, 0.639
"""Table IV: largest gain of Auter, and of Auter with BBR; long traffic from ES to EA."""
GAIN_SAID_OF = {"short": 0.1483, "long": 0.2486}
"""Section V-B: gains of Auter by kind of traffic, as the text states them."""
GAIN_SAID_IN = {"es-ea": 0.3036, "es-we": 0.2867, "es-es": 0.0207}
"""Section V-B: gains of Auter by region, as the text states them."""

SWEEPS = {"latency": 2.9677, "bandwidth": 0.1184, "loss": 0.1023, "flow_size": 0.1296}
"""Section V-A: mean gain of Auter in each sweep (Fig. 4 to 7)."""
AT_40_MS = 4.67
"""Fig. 4: "a 4.67 times increase in throughput" at 40 ms of extra latency; read as 4.67 times the default's."""
EXTRA_DELAY_MS = 0.8
"""Section V-A: largest delay that Auter adds, in ms."""

MEMORY_GAP, MEMORY_AT = 0.15, 1000
"""Fig. 9: least share by which Auter takes less memory than `max`, and the number of connections from which on."""
HOURS = 31
"""Fig. 8: duration of the long run in hours."""
EPOCHS, RESET_EACH = 4500, 100
"""Fig. 3: epochs of a training session, and epochs after which the buffers are reset."""


def compute_gain(scheme: str, cells: tuple[str, ...] = CELLS) -> float:
    """Return a scheme's mean gain over the default in cells of Table IV, computed from the table's throughputs."""
    return fmean(THROUGHPUT[cell][scheme] / THROUGHPUT[cell][DEFAULT] - 1 for cell in cells)


def select_cells(*, region: str | None = None, traffic: str | None = None) -> tuple[str, ...]:
    """Return the cells of Table IV in a region or with a kind of traffic; None selects all."""
    wanted = [(one, kind) for one in REGIONS for kind in TRAFFIC if region in (None, one) and traffic in (None, kind)]
    return tuple(f"{one}-{kind}" for one, kind in wanted)
