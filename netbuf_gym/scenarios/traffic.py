"""Traffic of finite flows: who sends, when flows arrive and how large they are; and probes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, located, shown
from netbuf_gym.scenarios.limits import MAX_COUNT, MAX_DURATION_S, MAX_QUEUES
from netbuf_gym.scenarios.senders import Sender
from netbuf_gym.scenarios.sizes import SizeDistribution, records, sizes_of
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS
from netbuf_gym.utils import checks
from netbuf_gym.utils.files import csv_fields, parsed, write_atomic
from netbuf_gym.utils.sums import added

MIN_RATE_PER_S = 1e-9
MAX_RATE_PER_S = 1e6
COLUMNS = ("flow_id", "start_s", "sender", "size_bytes", "priority")


@dataclass(frozen=True, kw_only=True)
class PoissonArrivals:
    """Flows that arrive independently of each other, each at a sender drawn uniformly.

    Args:
        flows_per_s: Mean rate of all senders together, 1e-9 to 1e6; over a world's duration it makes at most 5 million
            flows.
        sizes: Their sizes are drawn from this.
        start_s: When arrivals begin, 0 to 1e6 seconds.
        stop_s: When they end, above `start_s`; None: never.
    """

    flows_per_s: float
    sizes: SizeDistribution
    start_s: float = 0.0
    stop_s: float | None = None
    kind: ClassVar[str] = "poisson"
    parts: ClassVar[dict[str, type]] = {"sizes": SizeDistribution}  # fields that are records of their own

    def __post_init__(self) -> None:
        rate = checks.number("poisson.flows_per_s", self.flows_per_s, MIN_RATE_PER_S, MAX_RATE_PER_S)
        object.__setattr__(self, "flows_per_s", rate)
        if not isinstance(self.sizes, SizeDistribution):
            raise ScenarioTypeError(f"poisson.sizes = {shown(self.sizes)} is not a SizeDistribution")
        _check_span(self)

    @staticmethod
    def for_load(
        load: float,
        rate_mbps: float,
        sizes: SizeDistribution | str | os.PathLike[str],
        start_s: float = 0.0,
        stop_s: float | None = None,
    ) -> PoissonArrivals:
        """Arrivals whose data is the share `load` (above 0 to 1e3) of `rate_mbps` (1e-6 to 1e6) in the mean.

        Args:
            load, rate_mbps: As said.
            sizes: A distribution, the name of a built-in one, or the path of a CSV file.
            start_s, stop_s: As in `PoissonArrivals`.

        Raises:
            ScenarioError: A value out of range, or a load that makes less than 1e-9 or more than 1e6 flows a second.
        """
        load = checks.number("load", load, 0, 1e3, low_open=True)
        rate_mbps = checks.number("rate_mbps", rate_mbps, MIN_RATE_MBPS, MAX_RATE_MBPS)
        sizes = sizes_of(sizes)
        rate = load * rate_mbps * 1e6 / (8 * sizes.mean_bytes)
        if not MIN_RATE_PER_S <= rate <= MAX_RATE_PER_S:
            ends = (f"{load / rate * bound:.4g}" if rate else "more" for bound in (MIN_RATE_PER_S, MAX_RATE_PER_S))
            raise ScenarioError(
                f"load = {load:g} of rate_mbps = {rate_mbps:g} makes {rate:.4g} flows a second of {sizes.name!r};"
                f" valid: {' to '.join(ends)}"
            )
        return PoissonArrivals(flows_per_s=rate, sizes=sizes, start_s=start_s, stop_s=stop_s)

    @property
    def offered_mbps(self) -> float:
        """The mean rate of the data that arrives, Mbit/s."""
        return self.flows_per_s * self.sizes.mean_bytes * 8e-6

    def flows_within(self, duration_s: float) -> float:
        """How many flows start in the first `duration_s` seconds, in the mean."""
        return self.flows_per_s * _span_s(self, duration_s)


@dataclass(frozen=True, kw_only=True)
class Incast:
    """Bursts: several senders, drawn anew each time, start a flow each at the same moment.

    Over a world's duration at most 5 million flows.

    Args:
        interval_s: Time between bursts, 1e-6 to 1e6 seconds; its mean when `random`.
        fan_in: How many senders, 1 to as many as there are, all different.
        size_bytes: Of each flow, 1 to 2**40.
        random: Exponentially distributed intervals instead of fixed ones.
        start_s: When the first interval begins, 0 to 1e6 seconds.
        stop_s: When bursts end, above `start_s`; None: never.
    """

    interval_s: float
    fan_in: int
    size_bytes: int
    random: bool = False
    start_s: float = 0.0
    stop_s: float | None = None
    kind: ClassVar[str] = "incast"
    parts: ClassVar[dict[str, type]] = {}

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "interval_s", checks.number("incast.interval_s", self.interval_s, 1e-6, MAX_DURATION_S))
        put(self, "fan_in", checks.integer("incast.fan_in", self.fan_in, 1, 2**20))
        put(self, "size_bytes", checks.integer("incast.size_bytes", self.size_bytes, 1, MAX_COUNT))
        put(self, "random", checks.boolean("incast.random", self.random))
        _check_span(self)

    @property
    def offered_mbps(self) -> float:
        """The mean rate of the data that arrives, Mbit/s."""
        return self.fan_in * self.size_bytes * 8e-6 / self.interval_s

    def flows_within(self, duration_s: float) -> float:
        """How many flows start in the first `duration_s` seconds, in the mean, to within one burst."""
        return self.fan_in * _span_s(self, duration_s) / self.interval_s


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowList:
    """Flows one by one. They are put in order of their starts, equal ones as they were given.

    The simulator numbers flows from 0 in order of their starts: flow k of a world whose only arrivals are this list is
    entry k, which was called `flow_id[k]`.

    Args:
        start_s: 0 to 1e6 seconds. Shape (flows,), as are all of them.
        sender: Index into `Traffic.senders`.
        size_bytes: 1 to 2**40.
        priority: The flow's queue at switches, 0 to 63.
        flow_id: What the flows are called, all different, 0 to 2**53; None: 0, 1, ... as given.

    Raises:
        ScenarioError: A value out of range, a name given twice, or lengths that differ.
    """

    start_s: np.ndarray
    sender: np.ndarray
    size_bytes: np.ndarray
    priority: np.ndarray
    flow_id: np.ndarray = None  # type: ignore[assignment]  # 0, 1, ... as given
    _source: tuple[str, np.ndarray] | None = field(default=None, init=False, repr=False)
    kind: ClassVar[str] = "list"
    parts: ClassVar[dict[str, type]] = {}

    if TYPE_CHECKING:  # lists become arrays

        def __init__(
            self,
            *,
            start_s: ArrayLike,
            sender: ArrayLike,
            size_bytes: ArrayLike,
            priority: ArrayLike,
            flow_id: ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        start = _column("flows.start_s", self.start_s, np.float64, 0, MAX_DURATION_S)
        columns = {
            "sender": _column("flows.sender", self.sender, np.int64, 0, 2**20),
            "size_bytes": _column("flows.size_bytes", self.size_bytes, np.int64, 1, MAX_COUNT),
            "priority": _column("flows.priority", self.priority, np.int64, 0, MAX_QUEUES - 1),
            "flow_id": np.arange(len(start))
            if self.flow_id is None
            else _column("flows.flow_id", self.flow_id, np.int64, 0, 2**53),
        }
        for name, column in columns.items():
            if len(column) != len(start):
                raise ScenarioError(f"flows.{name} has {len(column)} values for {len(start)} in start_s; valid: as many")
        ids, counts = np.unique(columns["flow_id"], return_counts=True)
        if len(ids) < len(start):
            raise ScenarioError(f"flows.flow_id = {ids[counts > 1][0]} is given twice; valid: each once")
        order = np.argsort(start, kind="stable")
        for name, column in {"start_s": start, **columns}.items():
            column = column[order]
            column.setflags(write=False)
            object.__setattr__(self, name, column)

    def __len__(self) -> int:
        return len(self.start_s)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FlowList):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in COLUMNS)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name).tobytes() for name in COLUMNS))

    def where(self, i: int) -> str:
        """What entry `i` is called in a message: its file and line, or its id."""
        if self._source is not None:
            return located("", self._source[0], int(self._source[1][i])).rstrip()
        return f"flow {self.flow_id[i]}:"

    @staticmethod
    def read_csv(path: str | os.PathLike[str], *, senders: int | None = None, queues: int | None = None) -> FlowList:
        """Reads a file with the header `flow_id,start_s,sender,size_bytes,priority`.

        The columns may stand in any order, `flow_id` may be missing, other columns are passed over.

        Args:
            path: The file.
            senders, queues: How many there are, when that is known; a world checks it in any case.

        Raises:
            ScenarioError: No such file, a column that is missing, no flows, or a value that cannot be; names the file
                and the line.
        """
        (first, line), *entries = records(path)
        header = [name.lower() for name in csv_fields(line)]
        valid = f"valid: {','.join(COLUMNS)} (flow_id may be missing)"
        for name in COLUMNS:
            if header.count(name) != 1 and (name != "flow_id" or header.count(name)):
                what = "twice" if header.count(name) else "not"
                raise ScenarioError(located(f"column {name} is {what} in the header; {valid}", path, first))
        if not entries:
            raise ScenarioError(located("has a header but no flows; valid: at least one", path, first))
        ranges = {
            "flow_id": (0, 2**53),
            "start_s": (0, MAX_DURATION_S),
            "sender": (0, 2**20 if senders is None else senders - 1),
            "size_bytes": (1, MAX_COUNT),
            "priority": (0, MAX_QUEUES - 1 if queues is None else queues - 1),
        }
        columns = {name: (header.index(name), *ranges[name]) for name in COLUMNS if name in header}
        values = _at_once(entries, len(header), columns)
        if values is None:
            values = _row_by_row(entries, len(header), columns, path)
        made = FlowList(**values)
        where = np.array([number for number, _ in entries])[np.argsort(values["start_s"], kind="stable")]
        object.__setattr__(made, "_source", (str(path), where))
        return made

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes the list with its header, starts to the nanosecond; the whole file or none.

        Raises:
            OSError: The file cannot be written.
        """
        entries = zip(*(getattr(self, name).tolist() for name in COLUMNS), strict=True)
        text = "\n".join([",".join(COLUMNS), *(f"{i},{t:.9f},{s},{b},{p}" for i, t, s, b, p in entries)])
        write_atomic(Path(path), text + "\n")


Arrivals = PoissonArrivals | Incast | FlowList
ARRIVALS: dict[str, type] = {cls.kind: cls for cls in (PoissonArrivals, Incast, FlowList)}


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Finite flows that senders open as time goes on.

    All of it is drawn from a random stream of its own: one seed gives the same flows in every world with the same
    traffic, whatever its switches and links do.

    Args:
        senders: At least one `Sender`.
        arrivals: At least one of `PoissonArrivals`, `Incast` and `FlowList`.
        priority_below: Sizes in bytes, rising. A drawn flow's priority is 0 below the first, 1 from there to below the
            second, and so on; empty: all flows have priority 0. Flow lists bring their own priorities.

    Raises:
        ScenarioError: A field out of range, a flow list with a sender that is not there (names its file and line).
    """

    senders: Sequence[Sender]
    arrivals: Sequence[Arrivals]
    priority_below: Sequence[int] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "senders", checks.sequence("traffic.senders", self.senders, "senders"))
        for i, sender in enumerate(self.senders):
            if not isinstance(sender, Sender):
                raise ScenarioTypeError(f"traffic.senders[{i}] = {shown(sender)} is not a Sender")
        put(self, "arrivals", checks.sequence("traffic.arrivals", self.arrivals, "arrivals"))
        n = len(self.senders)
        for i, arrivals in enumerate(self.arrivals):
            if not isinstance(arrivals, Arrivals):
                valid = "PoissonArrivals, Incast or FlowList"
                raise ScenarioTypeError(f"traffic.arrivals[{i}] = {shown(arrivals)}; valid: {valid}")
            if isinstance(arrivals, Incast) and arrivals.fan_in > n:
                raise ScenarioError(f"traffic.arrivals[{i}]: fan_in = {arrivals.fan_in} of {n} senders; valid: 1..{n}")
            if isinstance(arrivals, FlowList) and arrivals.sender.max() >= n:
                k = int(np.argmax(arrivals.sender >= n))
                raise ScenarioError(f"{arrivals.where(k)} sender = {arrivals.sender[k]} is not there; valid: 0..{n - 1}")
        if isinstance(self.priority_below, (str, bytes)) or not isinstance(self.priority_below, Iterable):
            raise ScenarioTypeError(f"traffic.priority_below = {shown(self.priority_below)} is not a list of sizes")
        sizes = tuple(
            checks.integer(f"traffic.priority_below[{i}]", size, 1, MAX_COUNT) for i, size in enumerate(self.priority_below)
        )
        if list(sizes) != sorted(set(sizes)):
            raise ScenarioError(f"traffic.priority_below = {shown(sizes)} does not rise; valid: rising sizes")
        if len(sizes) >= MAX_QUEUES:
            raise ScenarioError(f"traffic.priority_below has {len(sizes)} sizes; valid: at most {MAX_QUEUES - 1}")
        put(self, "priority_below", sizes)

    def given(self, duration_s: float) -> np.ndarray:
        """What each sender is given in the first `duration_s` seconds, in the mean: flows, and bytes. Shape (2, senders)."""
        n = len(self.senders)
        total = np.zeros((2, n))
        for a in self.arrivals:
            if isinstance(a, FlowList):
                who, sizes = a.sender[a.start_s < duration_s], a.size_bytes[a.start_s < duration_s]
                total += np.bincount(who, minlength=n), np.bincount(who, sizes, minlength=n)
            else:
                total += np.array([[a.flows_within(duration_s)], [a.offered_mbps * _span_s(a, duration_s) / 8e-6]]) / n
        return total

    @property
    def offered_mbps(self) -> float:
        """The mean rate of the data that random arrivals bring, Mbit/s; flow lists are left out."""
        return added(a.offered_mbps for a in self.arrivals if not isinstance(a, FlowList))

    def check_queues(self, queues: int, switch: str) -> None:
        """Refuses traffic with priorities that a switch has no queue for.

        Raises:
            ScenarioError: As said; names the file and the line of a flow list.
        """
        drawn = any(not isinstance(arrivals, FlowList) for arrivals in self.arrivals)
        if drawn and len(self.priority_below) >= queues:
            raise ScenarioError(
                f"traffic.priority_below makes {len(self.priority_below) + 1} priorities for {queues} queues of switch "
                f"{switch!r}; valid: at most {queues - 1} sizes"
            )
        for arrivals in self.arrivals:
            if isinstance(arrivals, FlowList) and arrivals.priority.max() >= queues:
                k = int(np.argmax(arrivals.priority >= queues))
                raise ScenarioError(
                    f"{arrivals.where(k)} priority = {arrivals.priority[k]} is beyond the {queues} queues of switch "
                    f"{switch!r}; valid: 0..{queues - 1}"
                )

    def with_senders(self, names: Iterable[str]) -> Traffic:
        """The same traffic with other congestion controls, one for each sender."""
        return replace(self, senders=tuple(replace(s, cc=cc) for s, cc in zip(self.senders, names, strict=True)))


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A small packet sent now and then, one way, to see how long it takes.

    Args:
        path: The links that it takes, as indices into `Scenario.links` or link names.
        priority: Its queue at switches, 0 to 63.
        interval_s: 1e-6 to 1e6 seconds.
        start_s: When the first one is sent, 0 to 1e6 seconds.
        bytes: On the wire, 1 to 65535.
    """

    path: Sequence[int | str]
    priority: int = 0
    interval_s: float = 1.0
    start_s: float = 0.0
    bytes: int = 64

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "path", checks.sequence("probe.path", self.path, "links"))
        put(self, "priority", checks.integer("probe.priority", self.priority, 0, MAX_QUEUES - 1))
        put(self, "interval_s", checks.number("probe.interval_s", self.interval_s, 1e-6, MAX_DURATION_S))
        put(self, "start_s", checks.number("probe.start_s", self.start_s, 0, MAX_DURATION_S))
        put(self, "bytes", checks.integer("probe.bytes", self.bytes, 1, 65535))


def _check_span(arrivals: PoissonArrivals | Incast) -> None:
    kind = arrivals.kind
    object.__setattr__(arrivals, "start_s", checks.number(f"{kind}.start_s", arrivals.start_s, 0, MAX_DURATION_S))
    if arrivals.stop_s is not None:
        object.__setattr__(arrivals, "stop_s", checks.number(f"{kind}.stop_s", arrivals.stop_s, 0, MAX_DURATION_S))
        if arrivals.stop_s <= arrivals.start_s:
            raise ScenarioError(f"{kind}.stop_s = {arrivals.stop_s:g} is not after start_s = {arrivals.start_s:g}")


def _column(name: str, values: object, dtype: type, low: float, high: float) -> np.ndarray:
    """A checked one-dimensional array of numbers in [low, high], at least one."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ScenarioTypeError(f"{name} = {shown(values)} is not a list of numbers")
    try:
        array = np.asarray(values if isinstance(values, np.ndarray) else list(values))
    except ValueError:  # lists in it, of different lengths
        array = np.zeros((0, 0))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "fiu"):
        raise ScenarioTypeError(f"{name} = {shown(values)} is not a list of numbers")
    if not array.size:
        raise ScenarioError(f"{name} is empty; valid: at least one flow")
    whole = np.dtype(dtype).kind == "i"
    bad = np.flatnonzero(~((array >= low) & (array <= high)) | (whole & (np.floor(array) != array)))
    if len(bad):
        valid = f"{low:g} to {high:g}{', a whole number' if whole else ''}"
        raise ScenarioError(f"{name}[{bad[0]}] = {array[bad[0]]} is out of range; valid: {valid}")
    return array.astype(dtype)


def _at_once(
    entries: list[tuple[int, str]], fields: int, columns: Mapping[str, tuple[int, float, float]]
) -> dict[str, np.ndarray] | None:
    """The columns (where they are and their ranges) of lines with so many fields, parsed all at once.

    None when there is anything unusual: row by row it can be read, or it can be said what is wrong with which line.
    """
    if any("_" in line or '"' in line or not line.isascii() or line.count(",") != fields - 1 for _, line in entries):
        return None
    try:
        at = [place for place, _, _ in columns.values()]
        text = (line for _, line in entries)
        table = np.loadtxt(text, delimiter=",", comments=None, usecols=at, ndmin=2, unpack=True, encoding=None)
    except ValueError:
        return None
    values = dict(zip(columns, table, strict=True))
    for name, (_, low, high) in columns.items():
        column = values[name]
        if not ((column >= low) & (column <= high) & (column < 2**53)).all():  # beyond it a float may be another number
            return None
        if name != "start_s":
            values[name] = column.astype(np.int64)
            if not (values[name] == column).all():
                return None
    if "flow_id" in values and len(np.unique(values["flow_id"])) < len(entries):
        return None
    return values


def _row_by_row(
    entries: list[tuple[int, str]], fields: int, columns: Mapping[str, tuple[int, float, float]], path: str | os.PathLike[str]
) -> dict[str, np.ndarray]:
    """As `_at_once`; names the first bad line."""
    values: dict[str, list] = {name: [] for name in columns}
    seen: dict[int, int] = {}
    for number, line in entries:
        found = csv_fields(line)
        if len(found) != fields:
            raise ScenarioError(located(f"has {len(found)} fields; valid: {fields}, as the header", path, number))
        for name, (place, low, high) in columns.items():
            label = located(name, path, number)
            try:
                value = parsed(found[place])
            except ValueError:
                raise ScenarioError(f"{label} = {shown(found[place])} is not a number") from None
            check: Callable[..., float] = checks.number if name == "start_s" else checks.integer
            values[name].append(check(label, value, low, high))
        if "flow_id" in values:
            flow_id = values["flow_id"][-1]
            if flow_id in seen:
                raise ScenarioError(located(f"flow_id = {flow_id} is on line {seen[flow_id]} too", path, number))
            seen[flow_id] = number
    return {name: np.array(column) for name, column in values.items()}


def _span_s(arrivals: PoissonArrivals | Incast, duration_s: float) -> float:
    """For how long there are arrivals in the first `duration_s` seconds."""
    stop_s = duration_s if arrivals.stop_s is None else min(arrivals.stop_s, duration_s)
    return max(stop_s - arrivals.start_s, 0.0)
