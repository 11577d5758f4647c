"""Reading the tidy file of a campaign, and its means with their intervals."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from netbuf_gym.utils import statistics
from studies.common import table


@dataclass(frozen=True)
class Runs:
    """A campaign's rows, by column.

    Attributes:
        comment: Of the file's first line: version and command.
        columns: Arrays of equal length by name.
        keys: The columns that tell a run from every other, the seed last.
        measures: The others.
    """

    comment: str
    columns: dict[str, np.ndarray]
    keys: tuple[str, ...]
    measures: tuple[str, ...]

    @classmethod
    def read(cls, path: str | Path, keys: tuple[str, ...], texts: tuple[str, ...], measures: tuple[str, ...]) -> Runs:
        """Reads `runs.csv`.

        Args:
            path: The file.
            keys, measures: Its columns.
            texts: Those of the keys that are no numbers.

        Raises:
            ReferenceDataError: It is not such a file, or not a whole one; names it and the line.
            OSError: It cannot be read.
        """
        found = table.read(path, (*keys, *measures), keys).whole(path)
        return cls.of_records(found.comment, found.rows, keys, texts, measures)

    @classmethod
    def of_records(
        cls,
        comment: str,
        rows: Sequence[Mapping[str, str]],
        keys: tuple[str, ...],
        texts: tuple[str, ...],
        measures: tuple[str, ...],
    ) -> Runs:
        """Runs of rows as text, by column; other arguments as for `read`."""
        columns = {}
        for name in (*keys, *measures):
            values = [row.get(name, "") for row in rows]
            columns[name] = np.array(values) if name in texts else np.array([float(v) if v else np.nan for v in values])
        return cls(comment, columns, keys, measures)

    def __len__(self) -> int:
        return len(self.columns["scheme"])

    def where(self, **wanted: object) -> Runs:
        """The rows whose columns have these values; a tuple: one of them."""
        keep = np.ones(len(self), bool)
        for name, value in wanted.items():
            keep &= np.isin(self.columns[name], value if isinstance(value, tuple) else (value,))
        return self.kept(keep)

    def kept(self, keep: np.ndarray) -> Runs:
        """Some of the rows. keep: bool `(rows,)`."""
        return replace(self, columns={name: column[keep] for name, column in self.columns.items()})

    def values(self, name: str) -> list:
        """The different values of a column, in order of appearance."""
        return list(dict.fromkeys(self.columns[name].tolist()))

    def bands(
        self, measure: str, column: str, values: Sequence, cells: Sequence[str]
    ) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For each scheme the means over all rows of each value of a column, and 95 % intervals for comparing schemes.

        What a run's world does to all schemes alike says nothing about them: each value is taken relative to the mean
        of the schemes in the same cell under the same seed, and the variance scaled to the number of schemes (Morey's
        correction). Of one scheme alone the intervals are the usual ones. NaN where nothing was measured.

        Args:
            measure: What of.
            column, values: The abscissa.
            cells: Further columns that tell cells apart.

        Returns:
            mean, low and high, `(values,)` each, by scheme.
        """
        schemes = self.values("scheme")
        found = {scheme: np.full((3, len(values)), np.nan) for scheme in schemes}
        for i, value in enumerate(values):
            own = self.where(**{column: value})
            keys = list(zip(*(own.columns[name].tolist() for name in (*cells, "seed")), strict=True))
            index = {key: k for k, key in enumerate(dict.fromkeys(keys))}
            grid = np.full((len(schemes), len(index)), np.nan)
            rows = [schemes.index(scheme) for scheme in own.columns["scheme"].tolist()]
            grid[rows, [index[key] for key in keys]] = own.columns[measure]
            many = sum(np.isfinite(grid).any(axis=1)) > 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # a cell in which nothing was measured
                relative = grid - (np.nanmean(grid, axis=0) if many else 0.0)
            factor = np.sqrt(len(schemes) / (len(schemes) - 1)) if many else 1.0
            for scheme, each, left in zip(schemes, grid, relative, strict=True):
                finite = np.isfinite(each)
                if finite.any():
                    mean, (centre, low, high) = float(each[finite].mean()), statistics.mean_interval(left[finite])
                    half = factor * (high - centre) if np.isfinite(high - low) else 0.0
                    found[scheme][:, i] = mean, mean - half, mean + half
        return {scheme: tuple(columns) for scheme, columns in found.items()}

    def by_seed(self, measure: str) -> dict[int, float]:
        """The mean over each seed's rows in which it was measured."""
        seeds = self.columns["seed"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a seed without any
            return {int(seed): float(np.nanmean(self.columns[measure][seeds == seed])) for seed in np.unique(seeds)}

    def rows_csv(self, digits: int, measures: Sequence[str] = ()) -> str:
        """A table for readers who reckon for themselves: every run, measured values of so many significant digits.

        Args:
            measures: Which; none: all. Those that no run has are left out.
        """
        shown = [name for name in measures or self.measures if not np.isnan(self.columns[name]).all()]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*self.keys, *shown])
        for values in zip(*(self.columns[name].tolist() for name in (*self.keys, *shown)), strict=True):
            keys, measured = values[: len(self.keys)], values[len(self.keys) :]
            writer.writerow([*map(_key, keys), *("" if value != value else f"{value:.{digits}g}" for value in measured)])
        return out.getvalue()


def _key(value: object) -> object:
    """As it is written: whole numbers without a point, nothing where there is none."""
    if not isinstance(value, float):
        return value
    return "" if value != value else f"{value:.12g}"
