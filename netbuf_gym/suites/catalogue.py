"""All suites by name. A further one is an entry here: worlds, what is measured in each, families."""

from __future__ import annotations

from netbuf_gym.arguments import choice
from netbuf_gym.suites import paths
from netbuf_gym.suites.suite import Suite

SUITES: dict[str, Suite] = {one.name: one for one in paths.SUITES}


def suite(name: str) -> Suite:
    """The one of a name; raises ConfigError, naming the valid ones, for another."""
    return SUITES[choice("suite", name, SUITES)]
