"""How a run's results become files and a text: of suites whose worlds are averaged by family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from netbuf_gym.errors import ConfigError, needing
from netbuf_gym.evaluation.suites import report
from netbuf_gym.evaluation.suites.config import Order
from netbuf_gym.evaluation.suites.runner import Played
from netbuf_gym.evaluation.suites.suite import Edition, Suite
from netbuf_gym.utils.files import write_atomic, write_json


class Teller(Protocol):
    """Tells a run's results; raises ConfigError, when it is made, for an order that it cannot tell.

    Attributes:
        needs: Controllers that it cannot do without, whom nobody has asked for and who are to be played too.
    """

    needs: Sequence[str]

    def tell(self, played: Sequence[Played], failed: Mapping[str, str], models: Mapping[str, str | None]) -> tuple[str, str]:
        """Writes the results into the order's folder.

        Args:
            played: Controllers over the worlds.
            failed: Those that failed, and why.
            models: Digests of the files of models.

        Returns:
            what to print, and what to end with where the exit status is to be 1; "" where it is not.
        """
        ...


class Families:
    """Tables and pictures by family; see `Teller`."""

    needs: Sequence[str] = ()

    def __init__(self, suite: Suite, edition: Edition, families: Sequence[str], order: Order):
        if order.beside is not None:
            raise ConfigError(
                f"beside = {', '.join(map(str, order.beside)) or '[]'}: {suite.name} ranks nobody; valid: no beside"
            )
        self._suite, self._edition, self._families, self._order = suite, edition, families, order
        self._before = None if order.against is None else report.earlier(order.against, suite, edition, families)

    def tell(self, played: Sequence[Played], failed: Mapping[str, str], models: Mapping[str, str | None]) -> tuple[str, str]:
        """See `Teller`."""
        suite, edition, families, order = self._suite, self._edition, self._families, self._order
        summaries = {one.name: report.summary(one, suite, families) for one in played}
        table = report.tables(suite, summaries, failed)
        behind: list[str] = []
        if self._before is not None and played:
            beside, behind = report.compared(suite, summaries, self._before, order.tolerance)
            table += f"\n\nagainst {order.against}\n\n{beside}"
        # The result says that the folder is whole, and all of it of one run: it goes first and comes last.
        (order.output / "result.json").unlink(missing_ok=True)
        write_atomic(order.output / "worlds.csv", report.rows(played, suite, order.command))
        title = f"suite {suite.name}, version {edition.version}"
        write_atomic(order.output / "table.md", f"{title}\n\n{table}\n\n{report.notes(suite, families)}\n")
        if order.figures and played:
            with needing("a plot", "plots"):
                from netbuf_gym.evaluation.suites import plots
            plots.draw(suite, played, families, order.output / "figures", title)
        data: dict[str, Any] = report.to_dict(suite, edition, played, summaries, models, order.command, failed)
        write_json(order.output / "result.json", data)
        return table, f"behind {order.against} by more than {order.tolerance:g}: {', '.join(behind)}" if behind else ""
