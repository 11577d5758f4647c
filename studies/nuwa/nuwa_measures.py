"""Measures of a run: performance of a flow, fairness between flows, video quality, return of a learner."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netbuf_gym.evaluation.rollout import View
from netbuf_gym.simulation.results.video import ESTIMATES, VideoResult, build_video_results
from netbuf_gym.utils.statistics import jain_index
from studies.nuwa.nuwa_worlds import FLOWS

FAIR = 0.95
WINDOW_S = 2.0
"""Averaging window in s of the rates that are compared."""
SETTLED_S = 5.0
"""Seconds after an arrival from which on flows count as settled."""
LAST_S = 30.0
ARRIVALS = tuple(range(2, FLOWS + 1))

OF_A_FLOW = {
    "utility": "the paper's, mean over intervals of 0.1 s",
    "data_mb": "MB delivered in order",
    "goodput_mbps": "the same over the time of the flow, Mbit/s",
    "share": "goodput / mean capacity of the tightest link",
    "queue_delay_mean_ms": "mean time of a packet in the queues of its path",
    "queue_delay_p95_ms": "95th percentile of the intervals' mean time in the tightest link's queue",
    "rtt_mean_ms": "mean of the sender's round-trip samples",
    "loss": "packets dropped or lost, of those sent",
    "timeouts": "retransmission time-outs",
}
OF_FLOWS = {
    "goodput_mbps": "of all flows together",
    "jain": "Jain's index of the flows' goodput over the last 30 s",
    "own_share": "mean goodput of the scheme's flows over the last 30 s, over an equal share of the link's",
    **{
        f"jain_{n}": f"Jain's index over the goodput from 5 s after the arrival of flow {n} to the next arrival"
        for n in ARRIVALS
    },
    **{
        f"converged_{n}_s": f"seconds from the arrival of flow {n} until Jain's index over 2 s is {FAIR:g} or more first"
        for n in ARRIVALS
    },
}
OF_VIDEOS = {
    "estimate_ratio": "median over a client's chunks of size / download time, over what the link carried meanwhile",
    "estimate_off": "median of how far that is from 1",
    "window_ratio": "the same of the window that the receiver steers / its last round trip; NaN where none steers",
    "window_off": "median of how far that is from 1",
    "bitrate_mbps": "mean bitrate of the chunks",
    "stalled_share": "of the time since the first frame, waiting for chunks",
}
OF_LEARNERS = {"return": "of an episode, mean of the last ones, by the paper's reward"}
MEASURES = OF_A_FLOW | OF_FLOWS | {"goodput_mbps": OF_A_FLOW["goodput_mbps"]} | OF_VIDEOS | OF_LEARNERS
"""Measured columns of the results, with their descriptions. NaN (an empty field) where a study does not measure them."""


def measure_flow(view: View) -> dict[str, float]:
    """Return the measures `OF_A_FLOW` of a finished world with one flow."""
    report = view.report()[0]
    links, waited_s = view.simulated.link_stats(), 0.0
    for link in view.scenario.flows[0].path:
        own = links[link]
        waited_s += own["sojourn_sum_s"] / own["sojourn_count"] if own["sojourn_count"] else math.nan
    return {
        **{name: float(report[name]) for name in ("utility", "data_mb", "goodput_mbps", "share", "queue_delay_p95_ms")},
        "queue_delay_mean_ms": waited_s * 1e3,
        "rtt_mean_ms": float(report["mean_rtt_ms"]),
        "loss": float(report["loss_rate"]),
        "timeouts": float(report["timeouts"]),
    }


def get_video_result(view: View) -> VideoResult:
    """Return the video result of the client of a world's first flow."""
    return build_video_results(view.scenario, view.simulated.video_stats())[0]


def measure_video(view: View) -> dict[str, float]:
    """Return the measures `OF_VIDEOS` of a finished world with one client."""
    video = get_video_result(view)
    found: dict[str, float] = {}
    for name in ESTIMATES:
        of = name.removesuffix("_mbps")
        found |= {f"{of}_ratio": 1 + video.error_median(name, absolute=False), f"{of}_off": video.error_median(name)}
    return found | {"bitrate_mbps": video.bitrate_mean_mbps, "stalled_share": video.stalled_share}


class SharingRecorder:
    """Recorder of the bytes delivered to each flow of a world over time.

    Attributes:
        arrivals_s: Arrival times of the flows.
        rows: Samples: time in s, then bytes delivered to each flow.
    """

    def __init__(self, arrivals_s: list[float]):
        self.arrivals_s = arrivals_s
        self.rows: list[list[float]] = [[0.0] * (1 + len(arrivals_s))]

    def record(self, view: View) -> None:
        """Record a sample."""
        stats = view.simulated.flow_stats()
        self.rows.append([view.simulated.now_ns * 1e-9, *(one["delivered_bytes"] for one in stats)])

    def series(self) -> tuple[np.ndarray, np.ndarray]:
        """Return sample times `(samples,)` in s and bytes delivered `(samples, flows)`."""
        table = np.array(self.rows)
        return table[:, 0], table[:, 1:]


def compute_rates_mbps(time_s: np.ndarray, delivered: np.ndarray, window_s: float = WINDOW_S) -> np.ndarray:
    """Return mean rates in Mbit/s over the `window_s` before each sample, `(samples, flows)`; NaN in the first `window_s`."""
    before = np.searchsorted(time_s, time_s - window_s - 1e-9, side="left")
    rates = (delivered - delivered[before]) * 8e-6 / np.maximum(time_s - time_s[before], 1e-9)[:, None]
    rates[time_s < window_s - 1e-9] = math.nan
    return rates


def measure_sharing(
    time_s: np.ndarray, delivered: np.ndarray, own: int, arrivals_s: list[float], capacity_mbps: float
) -> dict[str, Any]:
    """Return the measures `OF_FLOWS` of a world.

    Args:
        time_s: Times of samples, `(samples,)`.
        delivered: Bytes delivered to each flow until each sample, `(samples, flows)`.
        own: Number of the scheme's own flows, which come first.
        arrivals_s: Arrival times of the flows.
        capacity_mbps: Capacity of the link.
    """
    end_s, rates = float(time_s[-1]), compute_rates_mbps(time_s, delivered)
    last = compute_mean_rates(time_s, delivered, end_s - LAST_S, end_s)
    found: dict[str, Any] = {
        "goodput_mbps": float(delivered[-1].sum()) * 8e-6 / end_s,
        "jain": jain_index(last),
        "own_share": float(last[:own].mean()) * len(arrivals_s) / capacity_mbps,
    }
    for number, arrival_s in enumerate(arrivals_s[1:], start=2):
        until_s = min(arrivals_s[number], end_s) if number < len(arrivals_s) else end_s
        if until_s <= arrival_s + SETTLED_S:
            continue
        found[f"jain_{number}"] = jain_index(compute_mean_rates(time_s, delivered, arrival_s + SETTLED_S, until_s)[:number])
        within = np.flatnonzero((time_s >= arrival_s + WINDOW_S) & (time_s <= until_s))
        fair = [at for at in within.tolist() if jain_index(rates[at, :number]) >= FAIR]
        found[f"converged_{number}_s"] = float(time_s[fair[0]]) - arrival_s if fair else math.nan
    return found


def compute_mean_rates(time_s: np.ndarray, delivered: np.ndarray, from_s: float, to_s: float) -> np.ndarray:
    """Return the mean rate of each flow between two times in Mbit/s, `(flows,)`."""
    first, last = (int(np.searchsorted(time_s, value - 1e-9)) for value in (max(from_s, 0.0), to_s))
    last = min(last, len(time_s) - 1)
    return (delivered[last] - delivered[first]) * 8e-6 / max(float(time_s[last] - time_s[first]), 1e-9)
