"""Entry point: `python -m studies.switch SECTION ...`; see `studies.switch.families` and `studies.switch.judging`."""

from collections.abc import Sequence

from netbuf_gym.utils import scripts
from studies.switch import families, judging
from studies.switch.switch_sections import JUDGING


def main(argv: Sequence[str]) -> int:
    """Run the section that the first word names."""
    return (judging if argv[:1] == [JUDGING] else families).main(argv)


scripts.run("studies.switch", main)
