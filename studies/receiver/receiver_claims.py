"""Analysis of a receiver agent's rows: paired intervals, claims, tables. Independent of how the rows were produced.

Everything is paired: all controllers play a unit (a window of a trace, and a seed) with every buffer and base RTT, and
bootstrap samples draw units, with replacement. Units of one trace are alike, so intervals that draw whole traces are given
beside those; with five or six traces they say little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from netbuf_gym.utils.statistics import Interval
from netbuf_gym.utils.tables import markdown_table
from studies.common.kept import KeptRows
from studies.common.verdicts import format_verdicts_table

RESAMPLES = 2000
WORLD_COLUMNS = ("network", "trace", "start_s", "seed", "rtt_ms", "buffer", "controller")
"""Columns that identify a row's world and controller; all others are measures."""
TEXT_COLUMNS = ("network", "trace", "buffer", "controller", "test", "variant")
"""Columns that are not numbers."""
TARGETS = {
    "vegas": "10 % more data at no more queue, or 30 % less queue at no less data",
    "cubic": "4 % more data, or 95 % of it at less than half the queue",
}
PASSES = {
    "outage": "80 % of the link within 2 s",
    "delay step": "90 % of the goodput before",
    "way back": "80 % of the goodput without",
    "fairness": "Jain's index 0.95",
}
"""Pass criterion of each test; see `studies.receiver.survival`."""
Statistic = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Function of our and their means of a metric, `(samples,)` each."""
MORE_DATA_THAN_VEGAS, LESS_QUEUE_THAN_VEGAS = 1.10, 0.70
MORE_DATA_THAN_CUBIC, LEAST_DATA_OF_CUBIC, QUEUE_OF_CUBIC = 1.04, 0.95, 0.5


class NetworkTable:
    """Rows of a network: by metric and controller an array `(units, worlds of a unit)`; NaN where there is no row."""

    def __init__(self, rows: Sequence[dict[str, Any]]):
        self.names = list(dict.fromkeys(row["controller"] for row in rows))
        self.units = list(dict.fromkeys((row["trace"], row["start_s"], row["seed"]) for row in rows))
        self.parts = list(dict.fromkeys((row["rtt_ms"], row["buffer"]) for row in rows))
        self.buffers = list(dict.fromkeys(buffer for _, buffer in self.parts))
        unit, part = ({key: i for i, key in enumerate(keys)} for keys in (self.units, self.parts))
        self._values: dict[tuple[str, str], np.ndarray] = {}
        for row in rows:
            at = unit[row["trace"], row["start_s"], row["seed"]], part[row["rtt_ms"], row["buffer"]]
            for metric, value in row.items():
                if metric not in WORLD_COLUMNS:
                    key = metric, row["controller"]
                    self._values.setdefault(key, np.full((len(self.units), len(self.parts)), np.nan))[at] = value

    def compute_unit_means(self, metric: str, name: str, buffer: str | None = None) -> np.ndarray:
        """Return the mean of each unit, `(units,)`, over the worlds with a value."""
        chosen = [i for i, part in enumerate(self.parts) if buffer is None or part[1] == buffer]
        values = self._values[metric, name][:, chosen]
        counts = np.isfinite(values).sum(1)
        return np.where(counts > 0, np.nansum(values, 1) / np.maximum(counts, 1), np.nan)

    def draw_resamples(self, by_trace: bool, resamples: int = RESAMPLES) -> np.ndarray:
        """Return how often each unit occurs in each bootstrap sample, `(resamples, units)`."""
        generator = np.random.default_rng(0)
        names = [unit[0] for unit in self.units] if by_trace else list(range(len(self.units)))
        groups = {name: i for i, name in enumerate(dict.fromkeys(names))}
        member = np.array([groups[name] for name in names])
        drawn = generator.multinomial(len(groups), np.full(len(groups), 1 / len(groups)), size=resamples)
        return drawn[:, member].astype(float)

    def compare_with_agent(
        self, metric: str, other: str, statistic: Statistic, buffer: str | None = None, by_trace: bool = False
    ) -> Interval:
        """Return a statistic of the agent's mean and another's, with its 95 % interval, paired by unit."""
        return self.compare(metric, "agent", other, statistic, buffer, by_trace)

    def compare(
        self, metric: str, name: str, other: str, statistic: Statistic, buffer: str | None = None, by_trace: bool = False
    ) -> Interval:
        """Return a statistic of a controller's mean and another's, with its 95 % interval, paired by unit."""
        ours, theirs = self.compute_unit_means(metric, name, buffer), self.compute_unit_means(metric, other, buffer)
        both = np.isfinite(ours) & np.isfinite(theirs)
        weights = self.draw_resamples(by_trace)[:, both]
        weights = weights[weights.sum(1) > 0]
        totals = weights.sum(1)
        estimate = statistic(np.array([ours[both].mean()]), np.array([theirs[both].mean()]))[0]
        samples = statistic(weights @ ours[both] / totals, weights @ theirs[both] / totals)
        low, high = np.quantile(samples, (0.025, 0.975))
        return Interval(float(estimate), float(low), float(high))


def subtract(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return our means minus theirs."""
    return ours - theirs


def divide(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return our means over theirs."""
    return ours / np.maximum(theirs, 1e-12)


def drop_constants(table: NetworkTable) -> list[str]:
    """Return the controllers, of the constant actions only the best: best in these very worlds, a bias in its favour."""
    constants = [name for name in table.names if name.startswith("constant_")]
    best = sorted(constants, key=lambda name: -float(np.nanmean(table.compute_unit_means("utility", name))))[:1]
    return [name for name in table.names if name not in constants or name in best]


def summarise(rows: Sequence[dict[str, Any]], broken: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return, by network, the results of each controller and the claims that hold, and the results on paths that break."""
    networks = {}
    for network in dict.fromkeys(row["network"] for row in rows):
        table = NetworkTable([row for row in rows if row["network"] == network])
        names = drop_constants(table)
        networks[network] = {
            "traces": len({unit[0] for unit in table.units}),
            "units": len(table.units),
            "worlds": len(table.units) * len(table.parts),
            "means": {
                where: {name: _compute_means(table, name, buffer) for name in names} for where, buffer in _list_buffers(table)
            },
            "margins": {where: _compute_margins(table, names, buffer) for where, buffer in _list_buffers(table)},
            "claims": {where: _judge_claims(table, names, buffer) for where, buffer in _list_buffers(table)},
        }
    return {"networks": networks, "survival": _summarise_survival(broken)}


def _list_buffers(table: NetworkTable) -> list[tuple[str, str | None]]:
    return [("all", None), *((buffer, buffer) for buffer in table.buffers if len(table.buffers) > 1)]


def _compute_means(table: NetworkTable, name: str, buffer: str | None) -> dict[str, float]:
    metrics = ("utility", "share", "data_mb", "queue_delay_mean_ms", "queue_delay_p95_ms", "loss_rate")
    return {metric: float(np.nanmean(table.compute_unit_means(metric, name, buffer))) for metric in metrics}


def _compute_margins(table: NetworkTable, names: Sequence[str], buffer: str | None) -> dict[str, dict[str, Any]]:
    """Return the margins of utility: the agent's minus each other's."""
    found = {}
    for name in names:
        if name != "agent":
            plain, traces = (table.compare_with_agent("utility", name, subtract, buffer, by) for by in (False, True))
            found[name] = {"interval": list(plain), "by_trace": list(traces), "beaten": plain.low > 0}
    return found


def _judge_claims(table: NetworkTable, names: Sequence[str], buffer: str | None) -> dict[str, Any]:
    margins = _compute_margins(table, names, buffer)
    found: dict[str, Any] = {
        "utility": {
            "holds": all(one["beaten"] for one in margins.values()),
            "not beaten": [name for name, one in margins.items() if not one["beaten"]],
        },
    }
    for name in ("vegas", "cubic"):
        if name not in names:
            continue
        data, queue = (table.compare_with_agent(key, name, divide, buffer) for key in ("share", "queue_delay_mean_ms"))
        if name == "vegas":
            holds = (data.mean >= MORE_DATA_THAN_VEGAS and queue.mean <= 1) or (
                queue.mean <= LESS_QUEUE_THAN_VEGAS and data.mean >= 1
            )
            surely = (data.low >= MORE_DATA_THAN_VEGAS and queue.high <= 1) or (
                queue.high <= LESS_QUEUE_THAN_VEGAS and data.low >= 1
            )
        else:
            holds = data.mean >= MORE_DATA_THAN_CUBIC or (data.mean >= LEAST_DATA_OF_CUBIC and queue.mean < QUEUE_OF_CUBIC)
            surely = data.low >= MORE_DATA_THAN_CUBIC or (data.low >= LEAST_DATA_OF_CUBIC and queue.high < QUEUE_OF_CUBIC)
        found[name] = {"holds": bool(holds), "with intervals": bool(surely), "data": list(data), "queueing": list(queue)}
    return found


def _summarise_survival(broken: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one entry for each test, variant and controller: how many worlds pass, and the worst and median value."""
    found = []
    for key in dict.fromkeys((row["test"], row["variant"], row["controller"]) for row in broken):
        those = [row for row in broken if (row["test"], row["variant"], row["controller"]) == key]
        values = np.array([row["value"] for row in those])
        asked = [row["passes"] for row in those if row["passes"] is not None]
        found.append(
            {
                **dict(zip(("test", "variant", "controller"), key, strict=True)),
                "worlds": len(those),
                "passed": sum(asked) if asked else None,
                "median": float(np.median(values)),
                "worst": float(values.max() if key[0] == "outage" else values.min()),
                "share": float(np.mean([row["share"] for row in those])),
                "queueing_ms": float(np.nanmean([row["queueing_ms"] for row in those])),
                "failed": [
                    f"{row['rate_mbps']:g}/{row['rtt_ms']:g}/{row['buffer']}" for row in those if row["passes"] is False
                ],
            }
        )
    return found


def format_worlds(kept: KeptRows) -> str:
    """Return the Markdown for worlds over traces: how they were made, and for each network a table and the claims."""
    header, lines = kept.header, [f"`{kept.header['command']}`, {kept.header['date']}, {kept.header['machine']}.", ""]
    if header["lacking"]:
        lines += [f"This build lacks {', '.join(header['lacking'])}.", ""]
    for network, found in summarise(parse_rows(kept))["networks"].items():
        counted = f"{found['traces']} traces, {found['units']} units, {found['worlds']} worlds"
        lines += [f"### {network}, {header['part']}: {counted}", "", _format_network_table(found), ""]
        lines += [_format_claims_table(found["claims"]), ""]
    return "\n".join(lines)


def format_survival(kept: KeptRows) -> str:
    """Return the Markdown for paths that break."""
    return _format_survival_table(_summarise_survival(parse_rows(kept)))


def parse_rows(kept: KeptRows) -> list[dict[str, Any]]:
    """Return kept rows with parsed values: numbers except in text columns, `passes` a bool, None for tests without a bound."""
    return [{name: _parse_value(name, text) for name, text in row.items()} for row in kept.records]


def _parse_value(name: str, text: str) -> Any:
    if name in TEXT_COLUMNS:
        return text
    if name == "passes":
        return None if not text else text == "True"
    return float(text or "nan")


def verdicts(sections: Mapping[str, KeptRows]) -> str:
    """Return the table of verdicts on the agent: its targets on traces, and the breaking paths that it survives."""
    rows = []
    for network, found in (summarise(parse_rows(sections["worlds"]))["networks"] if "worlds" in sections else {}).items():
        name, claims, margins = network.upper(), found["claims"]["all"], found["margins"]["all"]
        least = min(margins, key=lambda other: margins[other]["interval"][1])
        said = f"least over `{least}`: {_format_interval(margins[least]['interval'])}"
        rows.append(
            [
                f"{name}: a higher utility than every other",
                "interval of the margin above 0",
                said,
                _format_holds(claims["utility"]),
            ]
        )
        for other, target in TARGETS.items():
            if other in claims:
                one = claims[other]
                said = f"data x {_format_interval(one['data'])}, queueing x {_format_interval(one['queueing'])}"
                rows.append([f"{name}: against {other}", target, said, _format_holds(one)])
    for one in _summarise_survival(parse_rows(sections["survival"])) if "survival" in sections else ():
        if one["controller"] == "agent" and one["passed"] is not None:
            passed, worlds = one["passed"], one["worlds"]
            found = (
                "holds" if passed == worlds else f"in all but {worlds - passed}" if passed > 0.75 * worlds else "does not hold"
            )
            rows.append([f"{one['test']}, {one['variant']}", PASSES[one["test"]], f"{passed} of {worlds} worlds", found])
    return format_verdicts_table(rows, ("claim", "target", "ours", "verdict"))


def _format_holds(claim: Mapping[str, Any]) -> str:
    if not claim["holds"]:
        return "does not hold"
    return "holds" if claim.get("with intervals", True) else "holds in the mean"


def _format_network_table(found: dict[str, Any]) -> str:
    head = ["controller", "utility", "margin of the agent", "by whole traces", "share (%)", "data (MB)", "queueing (ms)"]
    head += ["95 % (ms)", "loss (%)"]
    means, margins = found["means"]["all"], found["margins"]["all"]
    rows = []
    for name in sorted(means, key=lambda name: -means[name]["utility"]):
        one, margin = means[name], margins.get(name)
        cells = ["", ""] if margin is None else [_format_interval(margin["interval"]), _format_interval(margin["by_trace"])]
        rows.append(
            [
                f"**{name}**" if name == "agent" else name,
                f"{one['utility']:.4f}",
                *cells,
                f"{100 * one['share']:.1f}",
                f"{one['data_mb']:.1f}",
                f"{one['queue_delay_mean_ms']:.1f}",
                f"{one['queue_delay_p95_ms']:.1f}",
                f"{100 * one['loss_rate']:.3f}",
            ]
        )
    return markdown_table(head, rows)


def _format_claims_table(claims: dict[str, Any]) -> str:
    rows = []
    for where, found in claims.items():
        missed = ", ".join(found["utility"]["not beaten"])
        rows.append(
            [where, "utility above every other", _format_yes_no(found["utility"]["holds"]), missed and f"not above {missed}"]
        )
        for name in ("vegas", "cubic"):
            if name in found:
                one = found[name]
                ratios = f"data x {_format_interval(one['data'])}, queueing x {_format_interval(one['queueing'])}"
                sure = "" if one["with intervals"] == one["holds"] else " (its interval not)"
                rows.append([where, f"against {name}", _format_yes_no(one["holds"]) + sure, ratios])
    return markdown_table(["buffers", "claim", "holds", "why"], rows)


def _format_survival_table(found: Sequence[dict[str, Any]]) -> str:
    head = [
        "test",
        "variant",
        "controller",
        "passed",
        "median",
        "worst",
        "share (%)",
        "queueing (ms)",
        "failed (Mbit/s, ms, buffer)",
    ]
    rows = []
    for one in found:
        passed = "" if one["passed"] is None else f"{one['passed']} of {one['worlds']}"
        failed = "; ".join(one["failed"][:4]) + ("; ..." if len(one["failed"]) > 4 else "")
        figures = [f"{one['median']:.2f}", f"{one['worst']:.2f}", f"{100 * one['share']:.0f}", f"{one['queueing_ms']:.1f}"]
        rows.append([one["test"], one["variant"], one["controller"], passed, *figures, failed])
    return markdown_table(head, rows)


def _format_interval(values: Sequence[float]) -> str:
    return str(Interval(*values))


def _format_yes_no(holds: bool) -> str:
    return "yes" if holds else "no"
