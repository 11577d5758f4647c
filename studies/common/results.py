"""Reader of a campaign's tidy file, and means with their intervals."""

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
    """Rows of a campaign, by column.

    Attributes:
        comment: Version and command, from the file's first line.
        columns: Arrays of equal length by name.
        keys: Columns that identify a run, the seed last.
        measures: The other columns.
    """

    comment: str
    columns: dict[str, np.ndarray]
    keys: tuple[str, ...]
    measures: tuple[str, ...]

    @classmethod
    def read(cls, path: str | Path, keys: tuple[str, ...], texts: tuple[str, ...], measures: tuple[str, ...]) -> Runs:
        """Read `runs.csv`.

        Args:
            path: The file.
            keys, measures: Columns of the file.
            texts: Key columns that are not numbers.

        Raises:
            ReferenceDataError: The file is malformed or incomplete; names the file and the line.
            OSError: The file cannot be read.
        """
        found = table.read_table(path, (*keys, *measures), keys).require_complete(path)
        return cls.from_records(found.comment, found.rows, keys, texts, measures)

    @classmethod
    def from_records(
        cls,
        comment: str,
        rows: Sequence[Mapping[str, str]],
        keys: tuple[str, ...],
        texts: tuple[str, ...],
        measures: tuple[str, ...],
    ) -> Runs:
        """Return the runs of rows that are text by column; for the other arguments see `read`."""
        columns = {}
        for name in (*keys, *measures):
            values = [row.get(name, "") for row in rows]
            columns[name] = np.array(values) if name in texts else np.array([float(v) if v else np.nan for v in values])
        return cls(comment, columns, keys, measures)

    def __len__(self) -> int:
        return len(self.columns["scheme"])

    def where(self, **wanted: object) -> Runs:
        """Return the rows whose columns have the given values; a tuple stands for any one of its items."""
        keep = np.ones(len(self), bool)
        for name, value in wanted.items():
            keep &= np.isin(self.columns[name], value if isinstance(value, tuple) else (value,))
        return self.mask(keep)

    def mask(self, keep: np.ndarray) -> Runs:
        """Return the rows that a mask selects. keep: bool `(rows,)`."""
        return replace(self, columns={name: column[keep] for name, column in self.columns.items()})

    def values(self, name: str) -> list:
        """Return the distinct values of a column, in order of appearance."""
        return list(dict.fromkeys(self.columns[name].tolist()))

    def compute_bands(
        self, measure: str, column: str, values: Sequence, cells: Sequence[str]
    ) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return, for each scheme, means over all rows of each value of a column, and 95 % intervals for comparing schemes.

        Effects of a run's world that all schemes share say nothing about these: each value is taken relative to the mean
        of the schemes in the same cell under the same seed, and the variance scaled to the number of schemes (Morey's
        correction). For a single scheme the intervals are the usual ones. NaN where nothing was measured.

        Args:
            measure: Column to average.
            column, values: Column of the abscissa, and its values.
            cells: Further columns that identify a cell.

        Returns:
            Mean, low and high, `(values,)` each, by scheme.
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
        return {scheme: (columns[0], columns[1], columns[2]) for scheme, columns in found.items()}

    def compute_seed_means(self, measure: str) -> dict[int, float]:
        """Return the mean of a measure over each seed's rows that have a value."""
        seeds = self.columns["seed"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a seed without any value
            return {int(seed): float(np.nanmean(self.columns[measure][seeds == seed])) for seed in np.unique(seeds)}

    def to_csv(self, digits: int, measures: Sequence[str] = ()) -> str:
        """Return a CSV table of every run, for readers' own calculations, with measures of `digits` significant digits.

        Args:
            digits: Number of significant digits.
            measures: Columns to include; empty: all. Columns without any value are left out.
        """
        shown = [name for name in measures or self.measures if not np.isnan(self.columns[name]).all()]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*self.keys, *shown])
        for values in zip(*(self.columns[name].tolist() for name in (*self.keys, *shown)), strict=True):
            keys, measured = values[: len(self.keys)], values[len(self.keys) :]
            writer.writerow([*map(_format_key, keys), *("" if value != value else f"{value:.{digits}g}" for value in measured)])
        return out.getvalue()


def _format_key(value: object) -> object:
    """Return a key's value as written to the table: whole numbers without a point, NaN as ""."""
    if not isinstance(value, float):
        return value
    return "" if value != value else f"{value:.12g}"
