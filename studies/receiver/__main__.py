"""Commands of the receivers' experiments: `agent MODEL ...` (see `studies.receiver.agent`), `delay`, `fairness`, `cubic`."""

from collections.abc import Sequence

from netbuf_gym.utils import scripts
from netbuf_gym.utils.arguments import check_choice
from studies.receiver import agent, measured


def main(argv: Sequence[str]) -> int:
    """Run the experiment named by the first argument and return the exit status."""
    what = check_choice("experiment", argv[0] if argv else "", ("agent", *measured.MEASUREMENTS))
    return agent.main(argv[1:]) if what == "agent" else measured.main(argv)


scripts.run("studies.receiver", main)
