"""Numbers that the paper on TCP-PPCC reports, each with its table, figure or section.

Delays in ms, throughput in Mbit/s, losses as shares, Mt as printed. The curves of Figures 4 and 5 are published as pictures
only; of those, only what the paper's text states is here.
"""

from __future__ import annotations

from typing import NamedTuple

NEWRENO, QTCP, PPCC = "newreno", "qtcp", "ppcc"


class Reported(NamedTuple):
    """Row of Table III: E(t_d) in ms, E(thr) in Mbit/s, lost / sent, Mt."""

    delay_ms: float
    goodput_mbps: float
    loss: float
    mt: float


TABLE_3: dict[str, dict[str, Reported]] = {
    "1": {
        NEWRENO: Reported(1862.83, 6.83, 0.0, 2.44),
        QTCP: Reported(34.74, 5.92, 0.0, 0.77),
        PPCC: Reported(46.04, 6.37, 0.0, 0.85),
    },
    "2": {
        NEWRENO: Reported(68.44, 4.46, 2.89184e-05, 1.19),
        QTCP: Reported(24.57, 2.78, 2.95069e-05, 0.95),
        PPCC: Reported(28.23, 5.70, 2.72537e-05, 0.69),
    },
    "3": {
        NEWRENO: Reported(65.85, 6.86, 0.0, 0.98),
        QTCP: Reported(24.54, 3.23, 0.0, 0.88),
        PPCC: Reported(47.38, 6.73, 0.0, 0.84),
    },
    "4": {
        NEWRENO: Reported(25.19, 4.39, 2.90522e-05, 0.76),
        QTCP: Reported(24.56, 2.04, 3.07017e-05, 1.08),
        PPCC: Reported(26.66, 5.02, 2.82222e-05, 0.72),
    },
}
"""Rows of Table III by scenario and scheme."""
SCENARIOS = tuple(TABLE_3)
LOSSY = ("2", "4")
"""Scenarios with random loss of 1 packet in 10,000 (Table II)."""
MAIN = "2"
"""Scenario of Figures 4 and 5, and of the abstract."""

LESS_DELAY, MORE_THROUGHPUT = 0.5875, 0.2780
"""Relative gains over NewReno in scenario 2 (abstract)."""
SENDERS = (1, 2, 4)
RATES_MBPS = (10, 20)
"""Link rates of Figures 4(d) and 5, which also mention "fluctuant bottleneck bandwidths B"."""
