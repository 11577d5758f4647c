"""Commands of the receivers' experiments: `agent MODEL ...`, `goal ...`, `search ...`, `delay`, `fairness`, `cubic`.

`studies.receiver.agent`, `.goal`, `.refill_search` and `.measured` say what each does.
"""

from collections.abc import Sequence

from netbuf_gym.utils import scripts
from netbuf_gym.utils.arguments import check_choice
from studies.receiver import agent, goal, measured, refill_search

COMMANDS = {"agent": agent.main, "goal": goal.main, "search": refill_search.main}
"""Experiments with a command line of their own."""


def main(argv: Sequence[str]) -> int:
    """Run the experiment named by the first argument and return the exit status."""
    what = check_choice("experiment", argv[0] if argv else "", (*COMMANDS, *measured.MEASUREMENTS))
    return COMMANDS[what](argv[1:]) if what in COMMANDS else measured.main(argv)


scripts.run("studies.receiver", main)
