"""Suites of the field: accepted evaluation suites of congestion control, as their authors publish their parameters.

A module a suite makes its worlds, measures them, and ranks everybody's results by the suite's own rule.
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
