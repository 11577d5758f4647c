"""Traffic of finite flows (senders, arrival times, sizes), and probes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, prefix_location, quote
from netbuf_gym.scenarios.catalogue import Controls
from netbuf_gym.scenarios.fields import boolean, check_fields, check_span, integer, links, number, rule
from netbuf_gym.scenarios.laws import Constant, Exponential, Law, Lognormal, Mixed, Pareto, Weibull, check_law, check_times
from netbuf_gym.scenarios.limits import MAX_COUNT, MAX_DATAGRAM_BYTES, MAX_DURATION_S, MAX_QUEUES
from netbuf_gym.scenarios.senders import Sender
from netbuf_gym.scenarios.sizes import SizeDistribution, read_records, sizes_of
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS
from netbuf_gym.utils import checks
from netbuf_gym.utils.files import parse_number, split_csv_fields, write_atomic
from netbuf_gym.utils.sums import sequential_sum

MIN_RATE_PER_S = 1e-9
MAX_RATE_PER_S = 1e6
_START = number(0, MAX_DURATION_S, core="start_ns")
_STOP = number(0, MAX_DURATION_S, core="stop_ns")


def compute_mean_bytes(sizes: Law) -> float:
    """Return the mean of a law of flow sizes, bytes."""
    return sizes.mean_bytes if isinstance(sizes, SizeDistribution) else sizes.compute_mean()


def describe_sizes(sizes: Law) -> str:
    """Return the name of a law of flow sizes for messages."""
    return repr(sizes.name) if isinstance(sizes, SizeDistribution) else sizes.kind


def _check_sizes(label: str, value: object) -> Law:
    law = check_law(label, value)
    mean = compute_mean_bytes(law)
    if not 1 <= mean <= MAX_COUNT:
        valid = "1 to 2**40 (Pareto: a shape above 1, or a high)"
        raise ScenarioError(f"{label}: the law's mean is {mean:g} bytes; valid: {valid}")
    return law


def _check_connections(label: str, value: object) -> int | None:
    return None if value is None else checks.integer(label, value, 1, 256)


_SIZES = rule(_check_sizes)
COLUMNS = ("flow_id", "start_s", "sender", "size_bytes", "priority")


@dataclass(frozen=True, kw_only=True)
class PoissonArrivals:
    """Poisson arrivals of flows, each at a sender drawn uniformly.

    Args:
        flows_per_s: Mean rate of all senders together, 1e-9 to 1e6; at most 5 million flows over a world's duration.
        sizes: Law of the flow sizes in bytes: a `SizeDistribution`, or `Pareto`, `Lognormal`, ... of a finite mean.
        start_s: Start of the arrivals, 0 to 1e6 seconds.
        stop_s: End of the arrivals, above `start_s`; None: never.
    """

    flows_per_s: float = field(metadata=number(MIN_RATE_PER_S, MAX_RATE_PER_S, core="rate_per_s"))
    sizes: Law = field(metadata=_SIZES)
    start_s: float = field(default=0.0, metadata=_START)
    stop_s: float | None = field(default=None, metadata=_STOP)
    kind: ClassVar[str] = "poisson"

    def __post_init__(self) -> None:
        check_fields(self, "poisson.")
        check_span(self, "poisson.")

    @staticmethod
    def for_load(
        load: float,
        rate_mbps: float,
        sizes: Law | str | os.PathLike[str],
        start_s: float = 0.0,
        stop_s: float | None = None,
    ) -> PoissonArrivals:
        """Return arrivals whose mean data rate is the share `load` of `rate_mbps`.

        Args:
            load: Share of the rate, above 0 to 1e3.
            rate_mbps: Rate, 1e-6 to 1e6 Mbit/s.
            sizes: A distribution, the name of a built-in one, or the path of a CSV file.
            start_s, stop_s: As in `PoissonArrivals`.

        Raises:
            ScenarioError: A value out of range, or a load that makes less than 1e-9 or more than 1e6 flows a second.
        """
        load = checks.number("load", load, 0, 1e3, low_open=True)
        rate_mbps = checks.number("rate_mbps", rate_mbps, MIN_RATE_MBPS, MAX_RATE_MBPS)
        sizes = _check_sizes("sizes", sizes_of(sizes))
        rate = load * rate_mbps * 1e6 / (8 * compute_mean_bytes(sizes))
        if not MIN_RATE_PER_S <= rate <= MAX_RATE_PER_S:
            ends = (f"{load / rate * bound:.4g}" if rate else "more" for bound in (MIN_RATE_PER_S, MAX_RATE_PER_S))
            raise ScenarioError(
                f"load = {load:g} of rate_mbps = {rate_mbps:g} makes {rate:.4g} flows a second of {describe_sizes(sizes)};"
                f" valid: {' to '.join(ends)}"
            )
        return PoissonArrivals(flows_per_s=rate, sizes=sizes, start_s=start_s, stop_s=stop_s)

    @property
    def offered_mbps(self) -> float:
        """Mean rate of the arriving data, Mbit/s."""
        return self.flows_per_s * compute_mean_bytes(self.sizes) * 8e-6

    def get_frequency(self) -> tuple[str, float, bool]:
        """Return the field that says how often flows start, its value, and whether more of it makes more flows."""
        return "flows_per_s", self.flows_per_s, True

    def count_expected_flows(self, duration_s: float) -> float:
        """Return the expected number of flows that start in the first `duration_s` seconds."""
        return self.flows_per_s * _compute_span_s(self, duration_s)


@dataclass(frozen=True, kw_only=True)
class Incast:
    """Incast bursts: several senders, drawn anew for each burst, start a flow each at the same time.

    At most 5 million flows over a world's duration.

    Args:
        interval_s: Time between bursts, 1e-6 to 1e6 seconds; the mean time when `random`.
        fan_in: Number of different senders in a burst, 1 to the number of senders.
        size_bytes: Size of each flow, 1 to 2**40.
        random: Whether the intervals are exponentially distributed instead of fixed.
        start_s: Start of the first interval, 0 to 1e6 seconds.
        stop_s: End of the bursts, above `start_s`; None: never.
    """

    interval_s: float = field(metadata=number(1e-6, MAX_DURATION_S, core="interval_ns"))
    fan_in: int = field(metadata=integer(1, 2**20, core="fan_in"))
    size_bytes: int = field(metadata=integer(1, MAX_COUNT, core="size_bytes", convert=lambda size: [size]))
    random: bool = field(default=False, metadata=boolean(core="random"))
    start_s: float = field(default=0.0, metadata=_START)
    stop_s: float | None = field(default=None, metadata=_STOP)
    kind: ClassVar[str] = "incast"

    def __post_init__(self) -> None:
        check_fields(self, "incast.")
        check_span(self, "incast.")

    @property
    def offered_mbps(self) -> float:
        """Mean rate of the arriving data, Mbit/s."""
        return self.fan_in * self.size_bytes * 8e-6 / self.interval_s

    def get_frequency(self) -> tuple[str, float, bool]:
        """Return the field that says how often flows start, its value, and whether more of it makes more flows."""
        return "interval_s", self.interval_s, False

    def count_expected_flows(self, duration_s: float) -> float:
        """Return the expected number of flows that start in the first `duration_s` seconds, to within one burst."""
        return self.fan_in * _compute_span_s(self, duration_s) / self.interval_s


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowList:
    """Explicit list of flows, sorted by start time (stable: equal starts keep their order).

    The simulator numbers flows from 0 in order of their starts: flow k of a world whose only arrivals are this list is
    entry k, with the id `flow_id[k]`.

    Args:
        start_s: Start of each flow, 0 to 1e6 seconds. Shape (flows,), as for all arguments.
        sender: Index into `Traffic.senders`.
        size_bytes: Size of each flow, 1 to 2**40.
        priority: Queue of each flow at switches, 0 to 63.
        flow_id: Ids of the flows, all different, 0 to 2**53; None: 0, 1, ... in the given order.

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
        start = _check_column("flows.start_s", self.start_s, np.float64, 0, MAX_DURATION_S)
        columns = {
            "sender": _check_column("flows.sender", self.sender, np.int64, 0, 2**20),
            "size_bytes": _check_column("flows.size_bytes", self.size_bytes, np.int64, 1, MAX_COUNT),
            "priority": _check_column("flows.priority", self.priority, np.int64, 0, MAX_QUEUES - 1),
            "flow_id": np.arange(len(start))
            if self.flow_id is None
            else _check_column("flows.flow_id", self.flow_id, np.int64, 0, 2**53),
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

    def describe_entry(self, i: int) -> str:
        """Return the name of entry `i` for error messages: file and line, or the flow's id."""
        if self._source is not None:
            return prefix_location("", self._source[0], int(self._source[1][i])).rstrip()
        return f"flow {self.flow_id[i]}:"

    @staticmethod
    def read_csv(path: str | os.PathLike[str], *, senders: int | None = None, queues: int | None = None) -> FlowList:
        """Read a CSV file with the header `flow_id,start_s,sender,size_bytes,priority`.

        The columns may be in any order, `flow_id` may be missing, other columns are ignored.

        Args:
            path: Path of the file.
            senders, queues: Number of senders and queues, if known; `Scenario` checks them in any case.

        Raises:
            ScenarioError: No such file, a missing column, no flows, or an invalid value; names the file and the line.
        """
        (first, line), *entries = read_records(path)
        header = [name.lower() for name in split_csv_fields(line)]
        valid = f"valid: {','.join(COLUMNS)} (flow_id may be missing)"
        for name in COLUMNS:
            if header.count(name) != 1 and (name != "flow_id" or header.count(name)):
                what = "twice" if header.count(name) else "not"
                raise ScenarioError(prefix_location(f"column {name} is {what} in the header; {valid}", path, first))
        if not entries:
            raise ScenarioError(prefix_location("has a header but no flows; valid: at least one", path, first))
        ranges = {
            "flow_id": (0, 2**53),
            "start_s": (0, MAX_DURATION_S),
            "sender": (0, 2**20 if senders is None else senders - 1),
            "size_bytes": (1, MAX_COUNT),
            "priority": (0, MAX_QUEUES - 1 if queues is None else queues - 1),
        }
        columns = {name: (header.index(name), *ranges[name]) for name in COLUMNS if name in header}
        values = _parse_all_rows(entries, len(header), columns)
        if values is None:
            values = _parse_row_by_row(entries, len(header), columns, path)
        made = FlowList(**values)
        where = np.array([number for number, _ in entries])[np.argsort(values["start_s"], kind="stable")]
        object.__setattr__(made, "_source", (str(path), where))
        return made

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the list to a CSV file with a header, starts rounded to the nanosecond; atomically.

        Raises:
            OSError: The file cannot be written.
        """
        entries = zip(*(getattr(self, name).tolist() for name in COLUMNS), strict=True)
        text = "\n".join([",".join(COLUMNS), *(f"{i},{t:.9f},{s},{b},{p}" for i, t, s, b, p in entries)])
        write_atomic(Path(path), text + "\n")


@dataclass(frozen=True, kw_only=True)
class RenewalArrivals:
    """Arrivals of flows with independent gaps of any law, each at a sender drawn uniformly.

    The first gap is what is left of one that is under way at the start, as if arrivals had been going on for ever.

    Args:
        gap_s: Law of the gaps in seconds, all senders together, of a finite mean; at most 5 million flows over a world's
            duration.
        sizes: Law of the flow sizes, as in `PoissonArrivals`.
        start_s: Start of the arrivals, 0 to 1e6 seconds.
        stop_s: End of the arrivals, above `start_s`; None: never.
    """

    gap_s: Law = field(metadata=rule(lambda label, law: check_times(label, check_law(label, law), 1e-6)))
    sizes: Law = field(metadata=_SIZES)
    start_s: float = field(default=0.0, metadata=_START)
    stop_s: float | None = field(default=None, metadata=_STOP)
    kind: ClassVar[str] = "renewal"

    def __post_init__(self) -> None:
        check_fields(self, "renewal.")
        check_span(self, "renewal.")

    @property
    def offered_mbps(self) -> float:
        """Mean rate of the arriving data, Mbit/s."""
        return compute_mean_bytes(self.sizes) * 8e-6 / self.gap_s.compute_mean()

    def get_frequency(self) -> tuple[str, float, bool]:
        """Return the field that says how often flows start, its value, and whether more of it makes more flows."""
        return "gap_s", self.gap_s.compute_mean(), False

    def count_expected_flows(self, duration_s: float) -> float:
        """Return the expected number of flows that start in the first `duration_s` seconds, rather too many if gaps vary much:
        those of gaps cut at the duration."""
        span_s = _compute_span_s(self, duration_s)
        return span_s / self.gap_s.compute_mean(max(span_s, 1e-9))


@dataclass(frozen=True, kw_only=True)
class WebSessions:
    """Users who read pages, one after the other, over finite flows; user k is served by sender k modulo their number.

    A page is a main object and, once that has arrived and is parsed, the objects that it refers to. When all have arrived the
    user reads, and asks for the next page. A request takes the propagation delay of the way back; connections begin then,
    opened by the server, so that the first byte comes two round trips after the click, as if the user had connected and asked.
    A page of which a connection fails is given up. `Result.pages` has the pages' load times.

    Args:
        users: Number of users, 1 to 1000000; about at most 5 million objects over a world's duration.
        connections: Largest number of objects of a page on their way at once, each over a connection of its own, 1 to 256;
            None: one connection for all of a page.
        main_bytes, object_bytes: Laws of the sizes of main and other objects, of finite means.
        objects: Law of the number of other objects; draws are rounded, 10000 at most.
        reading_s: Law of the time from a page's last byte to the next click, of a finite mean. First clicks come as if all
            users were reading at the start.
        parsing_s: Law of the time from the main object's last byte to the requests for the others.
        start_s: Start, 0 to 1e6 seconds.
        stop_s: End of clicks, above `start_s`; None: never.
    """

    users: int = field(metadata=integer(1, 1_000_000, core="users"))
    main_bytes: Law = field(metadata=_SIZES)
    object_bytes: Law = field(metadata=_SIZES)
    objects: Law = field(metadata=rule(check_law))
    reading_s: Law = field(metadata=rule(lambda label, law: check_times(label, check_law(label, law), 1e-6)))
    parsing_s: Law = field(metadata=rule(lambda label, law: check_times(label, check_law(label, law), 0.0)))
    connections: int | None = field(default=6, metadata=rule(_check_connections))
    start_s: float = field(default=0.0, metadata=_START)
    stop_s: float | None = field(default=None, metadata=_STOP)
    kind: ClassVar[str] = "web"

    def __post_init__(self) -> None:
        check_fields(self, "web.")
        check_span(self, "web.")

    @staticmethod
    def of_model(model: str, users: int, **fields: Any) -> WebSessions:
        """Return users of a published model of web traffic, with other `fields` where given.

        Args:
            model: "3gpp": HTTP traffic of 3GPP TR 25.892 (annex A.2.1.3.2 there; pages of 10.7 kB and 5.64 objects of 7.8 kB,
                read for 30 s); "surge": SURGE (Barford and Crovella, "Generating representative web workloads", SIGMETRICS
                1998, tables 1 and 2), whose sizes end at 100 MB and whose times end at 10000 s here.
            users: Number of users.
            fields: Fields of `WebSessions`.

        Raises:
            ScenarioError: An unknown model, or a value out of range.
        """
        return WebSessions(**{**WEB_MODELS[checks.choice("model", model, WEB_MODELS)], "users": users, **fields})

    @property
    def flows_per_page(self) -> float:
        """Mean number of flows for a page."""
        return 1.0 if self.connections is None else 1 + self.objects.compute_mean(10_000)

    @property
    def page_bytes(self) -> float:
        """Mean size of a page with its objects, bytes."""
        return compute_mean_bytes(self.main_bytes) + self.objects.compute_mean(10_000) * compute_mean_bytes(self.object_bytes)

    @property
    def offered_mbps(self) -> float:
        """Mean rate of the pages if they took no time to load, Mbit/s."""
        pages_per_s = self.users / (self.reading_s.compute_mean() + self.parsing_s.compute_mean())
        return pages_per_s * self.page_bytes * 8e-6

    def get_frequency(self) -> tuple[str, float, bool]:
        """Return the field that says how often flows start, its value, and whether more of it makes more flows."""
        return "users", float(self.users), True

    def count_expected_flows(self, duration_s: float) -> float:
        """Return the expected number of flows that start in the first `duration_s` seconds if pages took no time to load."""
        span_s = _compute_span_s(self, duration_s)
        pages = self.users * span_s / self.reading_s.compute_mean(max(span_s, 1e-9))
        return pages * self.flows_per_page


def _count_objects(law: Pareto, most: int) -> Law:
    """Return the law of min(x, `most`) - law.minimum to the nearest whole number."""
    edges = law.minimum + np.arange(0.5, most - law.minimum)
    tails = np.concatenate([[1.0], (law.minimum / edges) ** law.shape, [0.0]])
    return Mixed(parts=[Constant(value=n) for n in range(len(tails) - 1)], weights=(-np.diff(tails)).tolist())


_SURGE_SIZES = Mixed(
    parts=[Lognormal(mu=9.357, sigma=1.318, high=133e3), Pareto(minimum=133e3, shape=1.1, high=100e6)], weights=[0.93, 0.07]
)
WEB_MODELS: dict[str, dict[str, Law]] = {
    "3gpp": {
        "main_bytes": Lognormal(mu=8.37, sigma=1.37, low=100, high=2e6),
        "objects": _count_objects(Pareto(minimum=2, shape=1.1), 55),
        "object_bytes": Lognormal(mu=6.17, sigma=2.36, low=50, high=2e6),
        "reading_s": Exponential(mean=30),
        "parsing_s": Exponential(mean=0.13),
    },
    "surge": {
        "main_bytes": _SURGE_SIZES,
        "objects": Pareto(minimum=1, shape=2.43),
        "object_bytes": _SURGE_SIZES,
        "reading_s": Pareto(minimum=1, shape=1.5, high=1e4),
        "parsing_s": Weibull(scale=1.46, shape=0.382, high=1e4),
    },
}
Arrivals = PoissonArrivals | RenewalArrivals | Incast | FlowList | WebSessions
ARRIVALS: dict[str, type] = {cls.kind: cls for cls in (PoissonArrivals, Incast, FlowList, RenewalArrivals, WebSessions)}


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Finite flows that senders open over time.

    Traffic has its own random stream: one seed gives the same flows in every world with the same traffic, independent of
    switches and links.

    Args:
        senders: At least one `Sender`.
        arrivals: At least one of `PoissonArrivals`, `RenewalArrivals`, `Incast`, `FlowList` and `WebSessions`.
        priority_below: Sizes in bytes, rising. A random flow's priority is 0 below the first size, 1 from there to below the
            second, and so on; empty: all flows have priority 0. Flow lists have their own priorities.

    Raises:
        ScenarioError: A field out of range, a flow list with an unknown sender (names the file and the line).
    """

    senders: Sequence[Sender]
    arrivals: Sequence[Arrivals]
    priority_below: Sequence[int] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "senders", checks.sequence("traffic.senders", self.senders, "senders"))
        for i, sender in enumerate(self.senders):
            if not isinstance(sender, Sender):
                raise ScenarioTypeError(f"traffic.senders[{i}] = {quote(sender)} is not a Sender")
        put(self, "arrivals", checks.sequence("traffic.arrivals", self.arrivals, "arrivals"))
        n = len(self.senders)
        for i, arrivals in enumerate(self.arrivals):
            if not isinstance(arrivals, Arrivals):
                valid = "PoissonArrivals, RenewalArrivals, Incast, FlowList or WebSessions"
                raise ScenarioTypeError(f"traffic.arrivals[{i}] = {quote(arrivals)}; valid: {valid}")
            if isinstance(arrivals, Incast) and arrivals.fan_in > n:
                raise ScenarioError(f"traffic.arrivals[{i}]: fan_in = {arrivals.fan_in} of {n} senders; valid: 1..{n}")
            if isinstance(arrivals, FlowList) and arrivals.sender.max() >= n:
                k = int(np.argmax(arrivals.sender >= n))
                raise ScenarioError(
                    f"{arrivals.describe_entry(k)} sender = {arrivals.sender[k]} is not there; valid: 0..{n - 1}"
                )
        if isinstance(self.priority_below, (str, bytes)) or not isinstance(self.priority_below, Iterable):
            raise ScenarioTypeError(f"traffic.priority_below = {quote(self.priority_below)} is not a list of sizes")
        sizes = tuple(
            checks.integer(f"traffic.priority_below[{i}]", size, 1, MAX_COUNT) for i, size in enumerate(self.priority_below)
        )
        if list(sizes) != sorted(set(sizes)):
            raise ScenarioError(f"traffic.priority_below = {quote(sizes)} does not rise; valid: rising sizes")
        if len(sizes) >= MAX_QUEUES:
            raise ScenarioError(f"traffic.priority_below has {len(sizes)} sizes; valid: at most {MAX_QUEUES - 1}")
        put(self, "priority_below", sizes)

    def compute_expected_load(self, duration_s: float) -> np.ndarray:
        """Return the expected flows and bytes of each sender in the first `duration_s` seconds. Shape (2, senders)."""
        n = len(self.senders)
        total = np.zeros((2, n))
        for a in self.arrivals:
            if isinstance(a, FlowList):
                who, sizes = a.sender[a.start_s < duration_s], a.size_bytes[a.start_s < duration_s]
                total += np.bincount(who, minlength=n), np.bincount(who, sizes, minlength=n)
            else:
                total += (
                    np.array([[a.count_expected_flows(duration_s)], [a.offered_mbps * _compute_span_s(a, duration_s) / 8e-6]])
                    / n
                )
        return total

    @property
    def offered_mbps(self) -> float:
        """Mean data rate of the random arrivals, Mbit/s, without flow lists."""
        return sequential_sum(a.offered_mbps for a in self.arrivals if not isinstance(a, FlowList))

    def check_queues(self, queues: int, switch: str) -> None:
        """Raise ScenarioError unless a switch has a queue for every priority of the traffic.

        Raises:
            ScenarioError: A priority without a queue; names the file and the line of a flow list.
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
                    f"{arrivals.describe_entry(k)} priority = {arrivals.priority[k]} is beyond the {queues} queues of switch "
                    f"{switch!r}; valid: 0..{queues - 1}"
                )

    def with_senders(self, names: Iterable[Controls]) -> Traffic:
        """Return the traffic with other congestion controls, one for each sender."""
        return replace(self, senders=tuple(replace(s, cc=cc) for s, cc in zip(self.senders, names, strict=True)))


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Periodic small packet that measures the one-way delay of a path.

    Args:
        path: Links of the path, as indices into `Scenario.links` or link names.
        priority: Queue at switches, 0 to 63.
        interval_s: Time between packets, 1e-6 to 1e6 seconds.
        start_s: Time of the first packet, 0 to 1e6 seconds.
        bytes: Size of a packet on the wire, 1 to 65535.
    """

    path: Sequence[int | str] = field(metadata=links(core="path"))
    priority: int = field(default=0, metadata=integer(0, MAX_QUEUES - 1, core="priority"))
    interval_s: float = field(default=1.0, metadata=number(1e-6, MAX_DURATION_S, core="interval_ns"))
    start_s: float = field(default=0.0, metadata=number(0, MAX_DURATION_S, core="start_ns"))
    bytes: int = field(default=64, metadata=integer(1, MAX_DATAGRAM_BYTES, core="bytes"))

    def __post_init__(self) -> None:
        check_fields(self, "probe.")


def _check_column(name: str, values: object, dtype: type, low: float, high: float) -> np.ndarray:
    """Check a non-empty one-dimensional array of numbers in [low, high] and convert it to `dtype`."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ScenarioTypeError(f"{name} = {quote(values)} is not a list of numbers")
    try:
        array = np.asarray(values if isinstance(values, np.ndarray) else list(values))
    except ValueError:  # nested lists of different lengths
        array = np.zeros((0, 0))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "fiu"):
        raise ScenarioTypeError(f"{name} = {quote(values)} is not a list of numbers")
    if not array.size:
        raise ScenarioError(f"{name} is empty; valid: at least one flow")
    whole = np.dtype(dtype).kind == "i"
    bad = np.flatnonzero(~((array >= low) & (array <= high)) | (whole & (np.floor(array) != array)))
    if len(bad):
        valid = f"{low:g} to {high:g}{', a whole number' if whole else ''}"
        raise ScenarioError(f"{name}[{bad[0]}] = {array[bad[0]]} is out of range; valid: {valid}")
    return array.astype(dtype)


def _parse_all_rows(
    entries: list[tuple[int, str]], fields: int, columns: Mapping[str, tuple[int, float, float]]
) -> dict[str, np.ndarray] | None:
    """Parse all lines of a flow list together.

    Args:
        entries: Pairs of line number and text.
        fields: Number of fields of a line.
        columns: Index and range of each column.

    Returns:
        Values of each column; None if a line is unusual or invalid, so that `_parse_row_by_row` must parse the lines.
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
        if not ((column >= low) & (column <= high) & (column < 2**53)).all():  # larger integers are not exact as floats
            return None
        if name != "start_s":
            values[name] = column.astype(np.int64)
            if not (values[name] == column).all():
                return None
    if "flow_id" in values and len(np.unique(values["flow_id"])) < len(entries):
        return None
    return values


def _parse_row_by_row(
    entries: list[tuple[int, str]], fields: int, columns: Mapping[str, tuple[int, float, float]], path: str | os.PathLike[str]
) -> dict[str, np.ndarray]:
    """Parse the lines of a flow list one by one, with the arguments of `_parse_all_rows`.

    Raises:
        ScenarioError: An invalid line; names the first.
    """
    values: dict[str, list] = {name: [] for name in columns}
    seen: dict[int, int] = {}
    for at, line in entries:
        found = split_csv_fields(line)
        if len(found) != fields:
            raise ScenarioError(prefix_location(f"has {len(found)} fields; valid: {fields}, as the header", path, at))
        for name, (place, low, high) in columns.items():
            label = prefix_location(name, path, at)
            try:
                value = parse_number(found[place])
            except ValueError:
                raise ScenarioError(f"{label} = {quote(found[place])} is not a number") from None
            check: Callable[..., float] = checks.number if name == "start_s" else checks.integer
            values[name].append(check(label, value, low, high))
        if "flow_id" in values:
            flow_id = values["flow_id"][-1]
            if flow_id in seen:
                raise ScenarioError(prefix_location(f"flow_id = {flow_id} is on line {seen[flow_id]} too", path, at))
            seen[flow_id] = at
    return {name: np.array(column) for name, column in values.items()}


def _compute_span_s(arrivals: PoissonArrivals | RenewalArrivals | Incast | WebSessions, duration_s: float) -> float:
    """Return the length of the arrivals' time span within the first `duration_s` seconds."""
    stop_s = duration_s if arrivals.stop_s is None else min(arrivals.stop_s, duration_s)
    return max(stop_s - arrivals.start_s, 0.0)
