"""Flow size distributions given by points: two built-in ones, others from CSV files."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, overload

import numpy as np

from netbuf_gym import _core
from netbuf_gym.errors import ScenarioError, prefix_location, quote
from netbuf_gym.scenarios.laws import LAWS, LEAST_SHARE, Law, make_bounds_error, make_config
from netbuf_gym.utils import checks
from netbuf_gym.utils.files import CsvError, parse_number, read_text, split_csv_fields, split_csv_rows
from netbuf_gym.utils.suggestions import suggest_valid

MAX_SIZE_BYTES = 2.0**40
HEADER = ["size_bytes", "cumulative"]


@dataclass(frozen=True, kw_only=True)
class SizeDistribution(Law):
    """Flow size distribution, given by points of the cumulative distribution, linear between the points.

    Args:
        name: Label.
        size_bytes: Sizes of the points, 1 to 2**40 bytes, not falling; two equal ones are a step.
        cumulative: Share of flows of at most the point's size, 0 to 1, not falling, the last one 1. A first one above 0 is
            the share of flows of exactly the first size.

    Raises:
        ScenarioError: A value that is no number or out of range, points that fall, or a last share other than 1.
    """

    name: str
    size_bytes: Sequence[float]
    cumulative: Sequence[float]
    kind: ClassVar[str] = "points"

    def __post_init__(self) -> None:
        checks.text("sizes.name", self.name)
        sizes = checks.sequence("sizes.size_bytes", self.size_bytes, "sizes")
        shares = checks.sequence("sizes.cumulative", self.cumulative, "shares")
        if len(sizes) != len(shares):
            raise ScenarioError(f"sizes.cumulative has {len(shares)} values for {len(sizes)} sizes; valid: as many")
        sizes, shares = _check_points(sizes, shares, lambda i, field: f"sizes.{field}[{i}]")
        object.__setattr__(self, "size_bytes", sizes)
        object.__setattr__(self, "cumulative", shares)

    def to_core(self, low: float = 0.0, high: float = math.inf) -> _core.LawConfig:
        config = make_config(self.kind, values=list(self.size_bytes), cumulative=list(self.cumulative))
        if low <= self.size_bytes[0] and self.size_bytes[-1] <= high:
            return config
        below, above = 1 - config.tail(low), config.tail(math.nextafter(high, math.inf))
        share = 1 - below - above
        if share < LEAST_SHARE:
            raise make_bounds_error(self.kind, low, high)
        points = [(size, (at - below) / share) for size, at in zip(self.size_bytes, self.cumulative, strict=True)]
        points = [(size, min(max(at, 0.0), 1.0)) for size, at in points if low <= size <= high]
        if low > self.size_bytes[0]:
            points.insert(0, (low, 0.0))
        points.append((min(high, self.size_bytes[-1]), 1.0))
        return make_config(self.kind, values=[size for size, _ in points], cumulative=[at for _, at in points])

    @property
    def mean_bytes(self) -> float:
        """Mean size, bytes."""
        size, share = np.array(self.size_bytes), np.array(self.cumulative)
        return float(share[0] * size[0] + np.diff(share) @ (size[1:] + size[:-1]) / 2)

    def quantile(self, share: np.ndarray | float) -> np.ndarray:
        """Return the size in bytes that a share of flows (0 to 1) does not exceed. Same shape as `share`."""
        points, sizes = np.array(self.cumulative), np.array(self.size_bytes)
        share = np.asarray(share, np.float64)
        right = np.minimum(np.searchsorted(points, share, side="left"), len(points) - 1)
        left = np.maximum(right - 1, 0)
        gap = points[right] - points[left]
        part = np.where(gap > 0, (share - points[left]) / np.where(gap > 0, gap, 1.0), 1.0)
        return sizes[left] + np.clip(part, 0, 1) * (sizes[right] - sizes[left])

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Sample `n` sizes in whole bytes. Shape (n,)."""
        return np.maximum(self.quantile(rng.random(n)).round().astype(np.int64), 1)

    @staticmethod
    def read_csv(path: str | os.PathLike[str]) -> SizeDistribution:
        """Read a distribution from a CSV file of `size_bytes,cumulative` rows, with that header or none.

        The distribution is named after the file.

        Raises:
            ScenarioError: No such file, no points, or an invalid point; names the file and the line.
        """
        sizes: list[float] = []
        shares: list[float] = []
        lines: list[int] = []
        for line, fields in read_rows(path):
            if not lines and [field.lower() for field in fields] == HEADER:
                continue
            if len(fields) != 2:
                raise ScenarioError(
                    prefix_location(
                        f"{quote(','.join(fields))} has {len(fields)} fields; valid: 2, {','.join(HEADER)}", path, line
                    )
                )
            sizes.append(_parse_number(fields[0], HEADER[0], path, line))
            shares.append(_parse_number(fields[1], HEADER[1], path, line))
            lines.append(line)
        if not lines:
            raise ScenarioError(prefix_location(f"holds no points; valid: rows of {','.join(HEADER)}", path, 1))
        points = _check_points(sizes, shares, lambda i, field: prefix_location(field, path, lines[i]))
        return SizeDistribution(name=Path(path).name, size_bytes=points[0], cumulative=points[1])


@overload
def sizes_of(sizes: SizeDistribution | str | os.PathLike[str]) -> SizeDistribution: ...
@overload
def sizes_of(sizes: Law | str | os.PathLike[str]) -> Law: ...
def sizes_of(sizes: Law | str | os.PathLike[str]) -> Law:
    """Return a size distribution by name or from a CSV file's path; return a law unchanged.

    Raises:
        ScenarioError: Neither a known name nor a readable file.
    """
    if isinstance(sizes, Law):
        return sizes
    if isinstance(sizes, str) and sizes in SIZES:
        return SIZES[sizes]
    if not isinstance(sizes, (str, os.PathLike)) or (isinstance(sizes, str) and not ("." in sizes or os.sep in sizes)):
        raise ScenarioError(f"sizes = {quote(sizes)} is unknown; {suggest_valid(sizes, SIZES)}, or a CSV file's path")
    return SizeDistribution.read_csv(sizes)


def read_rows(path: str | os.PathLike[str]) -> list[tuple[int, list[str]]]:
    """Read the non-blank rows of a CSV file: pairs of line number, from 1, and unquoted, stripped fields.

    Raises:
        ScenarioError: The file cannot be read, is empty, or is not CSV.
    """
    return [(number, split_csv_fields(record)) for number, record in read_records(path)]


def read_records(path: str | os.PathLike[str]) -> list[tuple[int, str]]:
    """Read the non-blank rows of a CSV file: pairs of line number, from 1, and raw text.

    Raises:
        ScenarioError: The file cannot be read, is empty, or is not CSV.
    """
    try:
        found = split_csv_rows(read_text(path))
    except OSError as error:
        raise ScenarioError(prefix_location(f"cannot be read: {error.strerror or error}", path, None)) from None
    except UnicodeDecodeError:
        raise ScenarioError(prefix_location("is not text", path, None)) from None
    except CsvError as error:
        raise ScenarioError(prefix_location(str(error), path, error.line)) from None
    if not found:
        raise ScenarioError(prefix_location("is empty", path, 1))
    return found


def _parse_number(text: str, field: str, path: str | os.PathLike[str], line: int) -> float:
    try:
        return float(parse_number(text))
    except (ValueError, OverflowError):
        raise ScenarioError(prefix_location(f"{field} = {quote(text)} is not a number", path, line)) from None


def _check_points(
    sizes: Sequence, shares: Sequence, where: Callable[[int, str], str]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Check points and return their sizes and shares; `where(i, field)` names a value for error messages."""
    size, share = [], []
    for i in range(len(sizes)):
        size.append(checks.number(where(i, "size_bytes"), sizes[i], 1, MAX_SIZE_BYTES))
        share.append(checks.number(where(i, "cumulative"), shares[i], 0, 1))
        if i and size[i] < size[i - 1]:
            raise ScenarioError(
                f"{where(i, 'size_bytes')} = {size[i]:g} is below {size[i - 1]:g}; valid: sizes that do not fall"
            )
        if i and share[i] < share[i - 1]:
            raise ScenarioError(
                f"{where(i, 'cumulative')} = {share[i]:g} is below {share[i - 1]:g}; valid: shares that do not fall"
            )
    if not math.isclose(share[-1], 1, abs_tol=1e-9):
        raise ScenarioError(f"{where(len(share) - 1, 'cumulative')} = {share[-1]:g} at the end; valid: 1")
    share[-1] = 1.0
    return tuple(size), tuple(share)


WEB_SEARCH = SizeDistribution(
    name="web_search",
    size_bytes=(2000, 2100, 2500, 6000, 10e3, 20e3, 30e3, 50e3, 80e3, 200e3, 1e6, 2e6, 5e6, 10e6, 30e6),
    cumulative=(0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.53, 0.6, 0.7, 0.8, 0.9, 0.97, 1),
)
"""Web search workload (Alizadeh et al., Data Center TCP, 2010), with the points of the thesis on learned thresholds; mean
1.711 MB."""

DATA_MINING = SizeDistribution(
    name="data_mining",
    size_bytes=(1, 180, 216, 560, 900, 1100, 1870, 3160, 10e3, 400e3, 3.16e6, 100e6, 1e9),
    cumulative=(0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1),
)
"""Data mining workload (Greenberg et al., VL2, 2009, Fig. 2), with the points that the literature reads off that figure: those
of HKUST's TrafficGenerator (`conf/VL2_CDF.txt`), but with a first point of 1 byte instead of 0. Mean 12.66 MB, most of it in
the largest 2 % of the flows."""

IMIX = SizeDistribution(name="imix", size_bytes=(40, 576, 576, 1500, 1500), cumulative=(7 / 12, 7 / 12, 11 / 12, 11 / 12, 1))
"""Simple Internet mix of packets (IMIX; RFC 6985 tells of its kinds): 40, 576 and 1500 bytes as 7 : 4 : 1; mean 340.3 bytes."""

SIZES: dict[str, SizeDistribution] = {d.name: d for d in (WEB_SEARCH, DATA_MINING)}
"""Built-in distributions of flows by name."""
PACKET_SIZES: dict[str, SizeDistribution] = {IMIX.name: IMIX}
"""Built-in distributions of packets by name."""
LAWS[SizeDistribution.kind] = SizeDistribution
