"""Families of switch worlds to train on: short and long paths, slow and fast ports, many hosts, many mice, incast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netbuf_gym.scenarios.distributions import Distribution, check_interval, log_uniform
from netbuf_gym.scenarios.sizes import SizeDistribution, sizes_of
from netbuf_gym.scenarios.switched import shared_buffer
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.scenarios.traffic import Arrivals, Incast, PoissonArrivals
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.utils import checks

PREFIX = "switch/"
PRIORITIES = {2: (2_000_000,), 3: (100_000, 2_000_000), 4: (10_000, 100_000, 2_000_000)}
"""Sizes in bytes below which flows have the priorities 0, 1, ..., by number of queues."""
MICE = SizeDistribution(name="mice", size_bytes=(1000, 30_000), cumulative=(0, 1))
"""Flows of 1 to 30 kB, evenly."""
CC = ("cubic", "cubic", "newreno", "newreno", "bbr")
LEAST_DURATION_S = 10.0


@dataclass(frozen=True)
class SwitchFamily:
    """What the worlds of a family have; ranges of rates, round trips and hosts are drawn from evenly by their logarithm.

    Attributes:
        says: The family in words.
        rate_mbps, rtt_ms: Ranges of the port's rate and of the round trip of an empty path.
        hosts: Range of the number of hosts.
        load: Range of the offered load.
        cc: Congestion controls of which one is drawn for all hosts.
        sizes: Sizes of the flows.
        mice: Share of the load that is flows of 1 to 30 kB.
        incast: Whether all hosts, at most 64, start a flow of 20 kB at once, once a second on average.
        scheduler: Scheduler of the port.
    """

    says: str
    rate_mbps: tuple[float, float] = (7.0, 50.0)
    rtt_ms: tuple[float, float] = (5.0, 60.0)
    hosts: tuple[int, int] = (10, 10)
    load: tuple[float, float] = (0.1, 0.95)
    cc: tuple[str, ...] = CC
    sizes: str = "web_search"
    mice: float = 0.0
    incast: bool = False
    scheduler: str = "round_robin"


FAMILIES: Mapping[str, SwitchFamily] = {
    "plain": SwitchFamily("7 to 50 Mbit/s, round trips of 5 to 60 ms, ten hosts"),
    "near": SwitchFamily("round trips of 0.5 to 5 ms", rtt_ms=(0.5, 5.0)),
    "far": SwitchFamily("round trips of 60 to 150 ms", rtt_ms=(60.0, 150.0)),
    "slow": SwitchFamily("7 to 12 Mbit/s", rate_mbps=(7.0, 12.0)),
    "fast": SwitchFamily("50 to 200 Mbit/s", rate_mbps=(50.0, 200.0)),
    "light": SwitchFamily("loads of 0.1 to 0.3", load=(0.1, 0.3)),
    "heavy": SwitchFamily("loads of 0.8 to 0.95", load=(0.8, 0.95)),
    "mice": SwitchFamily("half of the load in flows of 1 to 30 kB", mice=0.5),
    "data_mining": SwitchFamily("sizes of data mining, most tiny and a few huge", sizes="data_mining"),
    "many_hosts": SwitchFamily("30 to 200 hosts", hosts=(30, 200)),
    "incast": SwitchFamily("bursts of 20 kB of all hosts, ten to 64", hosts=(10, 64), incast=True),
    "bbr": SwitchFamily("all hosts BBR", cc=("bbr",)),
    "strict": SwitchFamily("strict priority", scheduler="strict_priority"),
    "drr": SwitchFamily("round robin by bytes", scheduler="drr"),
}
"""Families by name; worlds are called `switch/NAME`."""


@dataclass(frozen=True, kw_only=True)
class SwitchFamilies(Distribution):
    """Worlds of several families of switches, all as likely: 7 to 200 Mbit/s, round trips of 0.5 to 150 ms, 10 to 200 hosts.

    Args:
        families: Names of families, each as likely; one that is named twice is twice as likely. None: all.
        queues: Number of queues, 2 to 4; flows below 2 MB, and 100 kB, and 10 kB, are ranked above the others.
        queue_packets: Range of the shared buffer's packets for each of two queues, 1 to 1e6.
        drop: Drop places of which one is drawn.
        duration_s: Duration of a world, 1 to 1e6.
        most_mbit: What a port can send in a world, in Mbit, 1 to 1e9: worlds of fast ports are shorter, but 10 s at least.
    """

    families: Sequence[str] | None = None
    queues: int = 2
    queue_packets: tuple[float, float] = (50.0, 1000.0)
    drop: Sequence[str] = DROPS
    duration_s: float = 60.0
    most_mbit: float = 1500.0
    name: str = "switch/families"

    def __post_init__(self) -> None:
        put = object.__setattr__
        names = tuple(FAMILIES) if self.families is None else self.families
        names = checks.sequence("families", (names,) if isinstance(names, str) else names, "names")
        put(self, "families", tuple(checks.choice("families", name, FAMILIES) for name in names))
        put(self, "queues", checks.integer("queues", self.queues, min(PRIORITIES), max(PRIORITIES)))
        put(self, "queue_packets", check_interval("queue_packets", self.queue_packets, 1e6, 1.0))
        drops = (self.drop,) if isinstance(self.drop, str) else checks.sequence("drop", self.drop, "drop places")
        put(self, "drop", tuple(checks.choice("drop", one, DROPS) for one in drops))
        put(self, "duration_s", checks.number("duration_s", self.duration_s, 1.0, 1e6))
        put(self, "most_mbit", checks.number("most_mbit", self.most_mbit, 1.0, 1e9))

    @property
    def flows(self) -> int:
        return 0

    def sample(self, rng: np.random.Generator) -> Scenario:
        u = rng.random(8)  # always as many: what is drawn of one thing moves nothing else
        assert self.families is not None
        name, drop = _pick(self.families, u[0]), _pick(self.drop, u[7])
        shape = {"queues": self.queues, "queue_packets": self.queue_packets, "drop": drop}
        return draw_world(
            f"{PREFIX}{name}", FAMILIES[name], u[1:7], **shape, duration_s=self.duration_s, most_mbit=self.most_mbit
        )


def draw_world(
    name: str,
    family: SwitchFamily,
    u: np.ndarray,
    *,
    drop: str,
    queues: int = 2,
    queue_packets: tuple[float, float] = (50.0, 1000.0),
    duration_s: float = 60.0,
    most_mbit: float = 1500.0,
) -> Scenario:
    """Return a world of a family.

    Args:
        name: Name of the world.
        family: The family.
        u: Six numbers from 0 to below 1: for the rate, the round trip, hosts, load, congestion control and buffer.
        drop: Drop place.
        queues, queue_packets, duration_s, most_mbit: As of `SwitchFamilies`.
    """
    rate_mbps, rtt_ms = log_uniform(u[0], family.rate_mbps), log_uniform(u[1], family.rtt_ms)
    hosts = round(log_uniform(u[2], family.hosts))
    load = family.load[0] + u[3] * (family.load[1] - family.load[0])
    access_ms = min(0.1, rtt_ms / 20)
    arrivals: list[Arrivals] = [PoissonArrivals.for_load(load * (1 - family.mice), rate_mbps, sizes_of(family.sizes))]
    if family.mice:
        arrivals.append(PoissonArrivals.for_load(load * family.mice, rate_mbps, MICE))
    if family.incast:
        arrivals.append(Incast(interval_s=1.0, fan_in=hosts, size_bytes=20_000, random=True))
    return shared_buffer(
        senders=_pick(family.cc, u[4]),
        hosts=hosts,
        arrivals=arrivals,
        rate_mbps=rate_mbps,
        delay_ms=rtt_ms / 2 - access_ms,
        access_mbps=max(100.0, 5 * rate_mbps),
        access_delay_ms=access_ms,
        buffer_packets=2 * round(log_uniform(u[5], queue_packets)),
        drop=drop,
        scheduler=family.scheduler,
        priority_below=PRIORITIES[queues],
        duration_s=min(duration_s, round(max(most_mbit / rate_mbps, LEAST_DURATION_S), 1)),
        name=name,
    )


def _pick(options: Sequence[Any], u: float) -> Any:
    return options[min(int(u * len(options)), len(options) - 1)]
