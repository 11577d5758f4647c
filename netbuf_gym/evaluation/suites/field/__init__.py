"""Suites of the field: established evaluation suites of congestion control, with the parameters that their authors publish.

Each module makes a suite's worlds, measures them, and ranks all results by the suite's own rule.
"""

from netbuf_gym.evaluation.suites.field import bbr3, ccbench, genet, pantheon, rfc7928, rfc9743, sage, sussex

SUITES = (
    *ccbench.SUITES,
    *sussex.SUITES,
    rfc9743.SUITE,
    rfc7928.SUITE,
    *pantheon.SUITES,
    genet.SUITE,
    sage.SUITE,
    bbr3.SUITE,
)
