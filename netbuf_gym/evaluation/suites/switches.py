"""Worlds of the queue-threshold suite: ten hosts that send to a shared-buffer switch, as in RLBM and in other conditions."""

from __future__ import annotations

from typing import Any

from netbuf_gym.evaluation.suites.sampling import Between, Family, GeneratedWorld, OneOf
from netbuf_gym.tasks.queue_threshold.scenarios import rlbm_default

DURATION_S = 60.0
LOSS_BASED, RATE_BASED = ("cubic", "newreno"), "bbr"


def make_world(**arguments: Any) -> GeneratedWorld:
    """Return a world of `rlbm/default`."""
    return GeneratedWorld(rlbm_default(**{"duration_s": DURATION_S, **arguments}))


_RANDOM = Family(
    "loads of 0.2 to 0.8, buffers of 200 to 2000 packets, CUBIC or NewReno, 10 Mbit/s: the midst of what agents are trained on",
    {"cc": OneOf(LOSS_BASED), "queue_packets": Between(100, 1000, whole=True), "load": Between(0.2, 0.8, evenly=True)},
)
FAMILIES = {
    "random": _RANDOM,
    "head": _RANDOM.with_overrides("the same, packets dropped at the head of queues", drop="head"),
    "light": _RANDOM.with_overrides("loads of 0.15 to 0.3, for 180 s", load=Between(0.15, 0.3, evenly=True), duration_s=180.0),
    "overload": _RANDOM.with_overrides("loads of 0.8 to 1.1", load=Between(0.8, 1.1, evenly=True)),
    "shallow": _RANDOM.with_overrides("buffers of 20 to 120 packets", queue_packets=Between(10, 60, whole=True)),
    "slow": _RANDOM.with_overrides("2 to 5 Mbit/s, for 180 s", duration_s=180.0, rate_mbps=Between(2.0, 5.0)),
    "fast": _RANDOM.with_overrides("25 to 100 Mbit/s", rate_mbps=Between(25.0, 100.0), access_mbps=1000.0),
    "far": _RANDOM.with_overrides("propagation of 20 to 100 ms each way", delay_ms=Between(20.0, 100.0)),
    "bbr": _RANDOM.with_overrides("all senders BBR", cc=RATE_BASED),
    "rivals": _RANDOM.with_overrides(
        "senders of three kinds: CUBIC, NewReno and BBR", cc=[*LOSS_BASED, RATE_BASED] * 3 + ["cubic"]
    ),
    "incast": _RANDOM.with_overrides(
        "bursts beside the flows: all ten hosts start one of 20 kB at once, every second",
        load=Between(0.2, 0.6, evenly=True),
        incast={"interval_s": 1.0, "fan_in": 10, "size_bytes": 20_000, "random": True},
    ),
    "data_mining": _RANDOM.with_overrides(
        "flow sizes of data mining, most tiny and a few huge, loads of 0.5 to 1.1, for 180 s",
        sizes="data_mining",
        load=Between(0.5, 1.1, evenly=True),
        duration_s=180.0,
    ),
    "strict": _RANDOM.with_overrides("strict priority of the small flows", scheduler="strict_priority"),
}
