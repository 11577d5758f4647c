"""Files and console text of a run's results, for suites whose worlds are averaged by family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from netbuf_gym.errors import ConfigError, require_extra
from netbuf_gym.evaluation.suites import report
from netbuf_gym.evaluation.suites.config import RunConfig
from netbuf_gym.evaluation.suites.runner import SuiteRun
from netbuf_gym.evaluation.suites.suite import Edition, Suite
from netbuf_gym.utils.files import write_atomic, write_json


class ReportWriter(Protocol):
    """Writer of a run's results; raises ConfigError on construction for an order that it cannot report.

    Attributes:
        needs: Controllers that the report requires; they are run even if the user did not name them.
    """

    needs: Sequence[str]

    def write(self, played: Sequence[SuiteRun], failed: Mapping[str, str], models: Mapping[str, str | None]) -> tuple[str, str]:
        """Write the results into the order's folder.

        Args:
            played: Results of the controllers.
            failed: Controllers that failed, with reasons.
            models: Digests of the files of models.

        Returns:
            The text to print, and the closing message if the exit status is to be 1, else "".
        """
        ...


class FamilyReport:
    """Tables and figures by family; see `ReportWriter`."""

    needs: Sequence[str] = ()

    def __init__(self, suite: Suite, edition: Edition, families: Sequence[str], order: RunConfig):
        if order.beside is not None:
            raise ConfigError(
                f"beside = {', '.join(map(str, order.beside)) or '[]'}: {suite.name} ranks nobody; valid: no beside"
            )
        self._suite, self._edition, self._families, self._order = suite, edition, families, order
        self._before = None if order.against is None else report.read_earlier(order.against, suite, edition, families)

    def write(self, played: Sequence[SuiteRun], failed: Mapping[str, str], models: Mapping[str, str | None]) -> tuple[str, str]:
        """Write worlds.csv, table.md, figures/ and result.json; see `ReportWriter`."""
        suite, edition, families, order = self._suite, self._edition, self._families, self._order
        summaries = {one.name: report.summarise(one, suite, families) for one in played}
        table = report.format_tables(suite, summaries, failed)
        behind: list[str] = []
        if self._before is not None and played:
            beside, behind = report.compare_results(suite, summaries, self._before, order.tolerance)
            table += f"\n\nagainst {order.against}\n\n{beside}"
        # result.json marks the folder as complete and of one run, so it is removed first and written last.
        (order.output / "result.json").unlink(missing_ok=True)
        write_atomic(order.output / "worlds.csv", report.format_rows(played, suite, order.command))
        title = f"suite {suite.name}, version {edition.version}"
        write_atomic(order.output / "table.md", f"{title}\n\n{table}\n\n{report.format_notes(suite, families)}\n")
        if order.figures and played:
            with require_extra("a plot", "plots"):
                from netbuf_gym.evaluation.suites import plots
            plots.draw(suite, played, families, order.output / "figures", title)
        data: dict[str, Any] = report.to_dict(suite, edition, played, summaries, models, order.command, failed)
        write_json(order.output / "result.json", data)
        return table, f"behind {order.against} by more than {order.tolerance:g}: {', '.join(behind)}" if behind else ""
