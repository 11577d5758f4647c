"""Worlds of strangers: jitter, other round trips, crowds, policers, traffic on the way back, fades; and their measures.

A cell is `row:place`. Its row says what the world has and what is judged there; the place is its path. Who is judged against
another scheme meets the same worlds as that one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from netbuf_gym.scenarios.delays import delay_walk
from netbuf_gym.scenarios.impairments import MAX_CORRELATION
from netbuf_gym.tasks.congestion_window.families import SenderPaths
from netbuf_gym.tasks.congestion_window.paths import GeneratedTrace, Path, PathWorld, RivalFlow
from netbuf_gym.utils.statistics import jain_index
from studies.sender.sender_worlds import StudyWorld, compute_buffer

STREAM = 0x737472616E676572
"""Random stream of this module."""
LASTS_S = 30.0
FROM = 1 / 4
"""Share of a run after which deliveries are measured."""
JITTER_MS, LESS_JITTER_MS = 20.0, 8.0
CORRELATED_S = 0.1
"""How long successive delays are alike where they are correlated."""
WALK_STEP_S = 0.02
SPREAD = 5.0
"""Long over short round trip of two senders."""
CROWD = 16
FADING_S, FADES = 12.0, 6
"""Longest run of a link that fades, and blockages in it."""
SHARED = 100
"""Cells of random shared worlds; each seed draws another world."""
NEVER_BELOW = 0.25
"""Share of its fair share below which a rival is starved."""


@dataclass(frozen=True)
class Row:
    """Worlds of one kind.

    Attributes:
        name: Name of the row.
        text: What its worlds have.
        places: Rate in Mbit/s, round trip in ms and buffer in bandwidth-delay products of each world; of some rows more, or
            something else.
        make: Function `(place, rng, duration_s)` that returns the path or paths of a world, with the senders' start times.
        measures: Measures that the row is judged by.
        target: What is to be reached.
        lasts_s: Longest run.
    """

    name: str
    text: str
    places: tuple[tuple[float, ...], ...]
    make: Callable[[tuple[float, ...], np.random.Generator, float], Path]
    measures: tuple[str, ...]
    target: str = ""
    lasts_s: float = LASTS_S

    def list_cells(self) -> list[str]:
        """Return the names of the row's cells."""
        return [f"{self.name}:{'-'.join(f'{value:g}' for value in place)}" for place in self.places]


def _cross(*ranges: Sequence[float]) -> tuple[tuple[float, ...], ...]:
    made: list[tuple[float, ...]] = [()]
    for one in ranges:
        made = [(*place, value) for place in made for value in one]
    return tuple(made)


def _make_path(rate: float, rtt: float, bdp: float, **more: Any) -> Path:
    return Path(**{"rate_mbps": rate, "rtt_ms": rtt, "buffer_packets": compute_buffer(rate, rtt, bdp)} | more)


def _draw_starts(rng: np.random.Generator, number: int) -> list[float]:
    """Draw start times within a second, one of which is 0."""
    starts = rng.random(number)
    return (starts - starts.min()).tolist()


def _make_jitter(most_ms: float, reorder: bool = False, correlated: bool = False) -> Callable[..., Path]:
    def make(place: tuple[float, ...], rng: np.random.Generator, duration_s: float) -> Path:
        rate, rtt, bdp = place
        packets = CORRELATED_S * rate * 1e6 / 12000
        correlation = min(math.exp(-1 / packets), MAX_CORRELATION) if correlated else 0.0
        return _make_path(rate, rtt, bdp, jitter_ms=most_ms, jitter_reorder=reorder, jitter_correlation=correlation)

    return make


def _make_walk(place: tuple[float, ...], rng: np.random.Generator, duration_s: float) -> Path:
    rate, rtt, bdp = place
    delays = delay_walk(
        low_ms=rtt / 2,
        high_ms=rtt / 2 + JITTER_MS,
        sigma_ms=JITTER_MS * math.sqrt(WALK_STEP_S / CORRELATED_S) / 2,
        step_s=WALK_STEP_S,
        duration_s=duration_s,
        seed=int(rng.integers(2**62)),
    )
    return _make_path(rate, rtt, bdp, delays=delays)


def _make_unequal(place: tuple[float, ...], rng: np.random.Generator, duration_s: float) -> Path:
    rate, rtt, bdp = place
    buffer = compute_buffer(rate, rtt * (1 + SPREAD) / 2, bdp)
    starts = _draw_starts(rng, 2)
    return _make_path(rate, rtt, bdp, buffer_packets=buffer, starts_s=starts, more_rtts_ms=(0.0, rtt * (SPREAD - 1)))


def _make_beside(cc: str, number: int) -> Callable[..., Path]:
    def make(place: tuple[float, ...], rng: np.random.Generator, duration_s: float) -> Path:
        starts = _draw_starts(rng, number + 1)
        return _make_path(*place[:3], starts_s=starts[:1], rivals=[RivalFlow(cc, at_s) for at_s in starts[1:]])

    return make


def _make_crowd(place: tuple[float, ...], rng: np.random.Generator, duration_s: float) -> Path:
    return _make_path(*place[:3], starts_s=_draw_starts(rng, CROWD))


def _make_policed(place: tuple[float, ...], rng: np.random.Generator, duration_s: float) -> Path:
    """`place`: policed rate, round trip, burst in bandwidth-delay products; the link has five times the rate."""
    rate, rtt, bdp = place
    burst = max(4500.0, bdp * rate * rtt * 125)
    return _make_path(5 * rate, rtt, 1.0, policer_mbps=rate, policer_bytes=burst)


def _make_way_back(place: tuple[float, ...], rng: np.random.Generator, duration_s: float) -> Path:
    rate, rtt, bdp, share = place
    buffer = compute_buffer(share * rate, rtt, bdp)
    more = {"return_mbps": share * rate, "return_packets": buffer, "reverse": [RivalFlow("cubic", rng.random())]}
    return _make_path(rate, rtt, bdp, **more)


def _make_cellular(place: tuple[float, ...], rng: np.random.Generator, duration_s: float) -> Path:
    """`place`: number of the trace, round trip, buffer."""
    number, rtt, bdp = place
    generated = GeneratedTrace("4g", duration_s, int(rng.integers(2**31)) + int(number), {})
    mean_mbps = generated.trace().mean_mbps(duration_s)
    return _make_path(mean_mbps, rtt, bdp, rate_mbps=None, generated=generated)


def _make_fades(place: tuple[float, ...], rng: np.random.Generator, duration_s: float) -> Path:
    rate, rtt, bdp = place
    arguments = {
        "start_mbps": 0.8 * rate,
        "low_mbps": 0.4 * rate,
        "high_mbps": rate,
        "blockages_per_minute": 60 * FADES / FADING_S,
        "blocked_low_mbps": 0.03 * rate,
        "blocked_high_mbps": 0.1 * rate,
        "blockage_max_s": 1.0,
    }
    generated = GeneratedTrace("mmwave", duration_s, int(rng.integers(2**31)), arguments)
    return _make_path(rate, rtt, bdp, rate_mbps=None, generated=generated)


def _make_plain(place: tuple[float, ...], rng: np.random.Generator, duration_s: float) -> Path:
    return _make_path(*place[:3])


_SHARED = SenderPaths(
    family="rivals",
    rate_mbps=(4.0, 60.0),
    rtt_ms=(10.0, 120.0),
    buffer_bdp=(0.5, 8.0),
    competitors=("cubic", "newreno", "bbr", "vegas", "copa", "bbr3"),
    leave_probability=0.0,
    mixed_probability=0.0,
    several_probability=0.6,
    alike_probability=0.5,
    unequal_probability=0.3,
    rtt_spread=4.0,
    duration_s=LASTS_S,
    most_mbit=1e9,
)


def _make_shared(place: tuple[float, ...], rng: np.random.Generator, duration_s: float) -> Path:
    """`place`: number of the world."""
    world = replace(_SHARED, duration_s=duration_s).draw(np.random.default_rng((int(rng.integers(2**62)), int(place[0]))))
    path = world.paths[0]
    early = [replace(one, start_s=min(one.start_s, FROM * duration_s / 2)) for one in path.rivals]
    return replace(path, starts_s=[min(path.starts_s[0], FROM * duration_s / 2)], rivals=early)


_RATES, _RTTS, _BUFFERS = (6.0, 18.0, 55.0), (22.0, 40.0, 75.0), (1.0, 3.0)
_JITTERED = _cross(_RATES, _RTTS, _BUFFERS)
_BESIDE = _cross((9.0, 24.0, 60.0), (16.0, 40.0, 90.0), (0.5, 1.5, 4.0))
_OF_BBR = "0.85 of BBR's, least 0.6"
ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        Row("jitter", "jitter of 20 ms, in order", _JITTERED, _make_jitter(JITTER_MS), ("use",), _OF_BBR),
        Row(
            "reordering",
            "jitter of 20 ms, packets overtake",
            _JITTERED,
            _make_jitter(JITTER_MS, reorder=True),
            ("use",),
            _OF_BBR,
        ),
        Row("jitter8", "jitter of 8 ms, in order", _JITTERED, _make_jitter(LESS_JITTER_MS), ("use",), _OF_BBR),
        Row(
            "correlated",
            "jitter of 20 ms, alike for 0.1 s",
            _JITTERED,
            _make_jitter(JITTER_MS, correlated=True),
            ("use",),
            _OF_BBR,
        ),
        Row("walk", "a delay that walks within 20 ms", _JITTERED, _make_walk, ("use",), _OF_BBR),
        Row(
            "round_trips",
            "two of it, round trips 1 to 5",
            _cross((8.0, 24.0, 60.0), (10.0, 20.0, 35.0), (0.5, 1.5, 4.0)),
            _make_unequal,
            ("ratio", "use"),
            "0.5 to 2",
        ),
        Row(
            "cubic3", "beside three CUBIC flows", _BESIDE, _make_beside("cubic", 3), ("rivals_keep", "rivals_least"), "each 0.8"
        ),
        Row("newreno", "beside a NewReno flow", _BESIDE, _make_beside("newreno", 1), ("rivals_keep", "rivals_least"), "0.75"),
        Row("bbr", "beside a BBR flow", _BESIDE, _make_beside("bbr", 1), ("share",)),
        Row(
            "crowd",
            "16 of it on a slow link",
            _cross((6.0, 12.0, 20.0), (50.0, 90.0), (1.0, 2.5)),
            _make_crowd,
            ("jain", "loss", "use"),
            "Jain 0.9, loss at most twice CUBIC's",
        ),
        Row(
            "policer",
            "a policer of a fifth of the link's rate",
            _cross((4.0, 12.0, 40.0), (20.0, 60.0), (0.1, 0.5, 2.0)),
            _make_policed,
            ("loss", "use"),
            "loss at most twice CUBIC's at 0.97 of its goodput",
        ),
        Row(
            "way_back",
            "CUBIC on a way back of the same rate",
            _cross((8.0, 24.0, 60.0), (22.0, 65.0), _BUFFERS, (1.0,)),
            _make_way_back,
            ("use",),
            "0.9",
        ),
        Row(
            "thin_back",
            "CUBIC on a way back of a third",
            _cross((8.0, 24.0, 60.0), (22.0, 65.0), _BUFFERS, (1 / 3,)),
            _make_way_back,
            ("use",),
            "0.8",
        ),
        Row(
            "short",
            "generated 4G, a round trip of 20 ms",
            _cross(range(6), (20.0,), (2.0, 8.0)),
            _make_cellular,
            ("standing_ms", "utility"),
        ),
        Row(
            "shared",
            "random shared worlds",
            tuple((float(number),) for number in range(SHARED)),
            _make_shared,
            ("rivals_keep", "rivals_least"),
            "never below 0.25",
        ),
        Row(
            "fades",
            "a fast link that fades",
            _cross((200.0, 400.0, 800.0), (30.0, 50.0), (1.0,)),
            _make_fades,
            ("utility", "use"),
            lasts_s=FADING_S,
        ),
        Row("plain", "one sender on a plain link", _cross(_RATES, _RTTS, (1.0,)), _make_plain, ("utility", "use")),
    )
}
"""Rows by name."""
JITTERED_ROWS = ("jitter", "reordering", "jitter8", "correlated", "walk")
"""Rows whose worlds are those of one another but for the kind of jitter."""
CELLS = tuple(cell for row in ROWS.values() for cell in row.list_cells())

MEASURES = {
    "ratio": "strangers, round_trips: delivery over the short round trip over that over the long one",
    "rivals_keep": "strangers: delivery of the rivals over an even part of the bottleneck's rate, mean over them",
    "rivals_least": "strangers: the same of the rival that has least",
    "standing_ms": "strangers: mean round trip less the least that the path can have, over the whole run",
}
SHORT = {
    "use": "share of the link (least)",
    "ratio": "short over long (least)",
    "rivals_keep": "rivals keep, of fair (least)",
    "rivals_least": "the poorest rival keeps (least)",
    "share": "share of the delivery (least)",
    "jain": "Jain's index (least)",
    "loss": "share lost (most)",
    "standing_ms": "standing queue, ms (most)",
    "utility": "utility (least)",
}
"""Measures of rows in few words."""
LESS_IS_BETTER = ("loss", "standing_ms")
"""Measures of rows whose worst world has the most."""


def split_cell(cell: str) -> tuple[Row, tuple[float, ...]]:
    """Return a cell's row and place."""
    row = ROWS[cell.partition(":")[0]]
    return row, row.places[row.list_cells().index(cell)]


def make_world(cell: str, seed: int, duration_s: float) -> StudyWorld:
    """Build the world of a cell under a seed."""
    row, place = split_cell(cell)
    lasts_s = min(duration_s, row.lasts_s)
    path = row.make(place, np.random.default_rng((seed, STREAM)), lasts_s)
    world = PathWorld(family=cell, duration_s=lasts_s, paths=(path,))
    return StudyWorld(world.scenario(("cubic",) * world.senders), world.senders)


def measure_deliveries(made: StudyWorld, delivered: Sequence[float], rtt_ms: float) -> dict[str, float]:
    """Return the measures of a world.

    Args:
        made: The world.
        delivered: Delivery of every flow over the last three quarters of the run, Mbit/s.
        rtt_ms: Mean round trip, mean over the senders.
    """
    scenario, rates = made.scenario, np.asarray(delivered)
    over = [at for at, flow in enumerate(scenario.flows) if scenario.bottleneck in flow.path]
    rivals = [at for at in over if at >= made.agents]
    total, fair = rates[over].sum(), scenario.capacity_mbps / len(over)
    found = {"standing_ms": rtt_ms - float(np.mean([scenario.base_rtt_ms(at) for at in range(made.agents)]))}
    if rivals:
        found["share"] = float(rates[: made.agents].sum() / total) if total > 0 else math.nan
        found |= {"rivals_keep": float(rates[rivals].mean() / fair), "rivals_least": float(rates[rivals].min() / fair)}
    if made.agents == 2:
        found["ratio"] = float(rates[0] / max(rates[1], 1e-9))
    if made.agents > 1:
        found["jain"] = jain_index(rates[: made.agents], of_nothing=0.0)
    return found
