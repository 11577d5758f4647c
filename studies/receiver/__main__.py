"""Receivers' experiments as commands: `agent MODEL ...` (see `studies.receiver.agent`), `delay`, `fairness`, `cubic`."""

from collections.abc import Sequence

from netbuf_gym import scripts
from studies.receiver import agent, receivers


def main(argv: Sequence[str]) -> int:
    """Runs the one that is named first; returns the exit status."""
    return agent.main(argv[1:]) if argv and argv[0] == "agent" else receivers.main(argv)


scripts.run("studies.receiver", main)
