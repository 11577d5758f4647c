"""Monitoring of running simulations: progress, and warnings about unexpected causes of slowness."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

from netbuf_gym.errors import ScenarioTypeError, SlowWorldWarning, quote, warn_caller
from netbuf_gym.plants.simulator import FLOW_SAMPLE, LINK_SAMPLE, Simulator
from netbuf_gym.scenarios.flows import Flow, OnOff, Sized
from netbuf_gym.scenarios.types import Link, Scenario
from netbuf_gym.scenarios.video import Video
from netbuf_gym.utils.progress import ProgressBar

MANY_PACKETS = 500_000
"""Packets that a flow can send with nothing in its way, from which on a warning is given beforehand."""
QUEUED_PACKETS = 1_000_000
"""Packets in one queue, or in one window, above which a warning is given during the run."""
LOOK_EVERY = 16
"""Slices of the simulation between two checks of its queues."""
REPORT_EVERY_S = 0.05

Progress = Callable[[float], Any]
"""Callback that receives the elapsed share of the virtual time, 0 to 1."""


def find_slow_causes(scenario: Scenario) -> Iterator[str]:
    """Yield the reasons, as far as the description tells, for which a world will take long: flows that no link limits."""
    for index, flow in enumerate(scenario.flows):
        links = scenario.links_of(index)
        if any(link.has_finite_rate for link in links):
            continue
        packets = _estimate_max_packets(scenario, index, flow)
        if packets < MANY_PACKETS:
            continue
        named = _join_names(links)
        window = _max_window_bytes(flow)
        grows = "its window grows without bound" if math.isinf(window) else f"only its buffer of {window:.4g} bytes limits it"
        many = "" if math.isinf(packets) else f" (up to {packets:.2g} packets)"
        yield (
            f"flow {index} ({_describe_flow(flow)}) has no link of finite rate on its path ({named}): {grows}, which takes "
            f"long to simulate{many}; valid: rate_mbps of a link, or a small receive_buffer_bytes"
        )
    yield from _find_slow_traffic(scenario)


def _find_slow_traffic(scenario: Scenario) -> Iterator[str]:
    """Yield one reason per path for the senders whose finite flows no link limits."""
    if scenario.traffic is None:
        return
    paths: dict[str, list[tuple[int, float]]] = {}
    for index, (sender, flows, size) in enumerate(
        zip(scenario.traffic.senders, *scenario.traffic.compute_expected_load(scenario.duration_s), strict=True)
    ):
        links = scenario.links_of(len(scenario.flows) + index)
        if flows and not any(link.has_finite_rate or link.loss or link.gilbert_elliott for link in links):
            rtt_s = scenario.base_rtt_ms(len(scenario.flows) + index) * 1e-3
            rounds = min(scenario.duration_s / rtt_s, 1000) if rtt_s > 0 else 1000
            packets = min(size / scenario.mss, flows * sender.initial_cwnd_packets * 2.0**rounds)
            paths.setdefault(_join_names(links), []).append((index, packets))
    for named, senders in paths.items():
        packets = sum(most for _, most in senders)
        if packets >= MANY_PACKETS:
            others = f" and {len(senders) - 1} more" if len(senders) > 1 else ""
            have = "have" if others else "has"
            yield (
                f"sender {senders[0][0]}{others} (finite flows) {have} no link of finite rate on the path ({named}): "
                f"windows grow without bound, which takes long to simulate (up to {packets:.2g} packets); "
                "valid: rate_mbps of a link"
            )


def _join_names(links: Sequence[Link]) -> str:
    return ", ".join(dict.fromkeys(repr(link.name) for link in links))


def _describe_flow(flow: Flow) -> str:
    if isinstance(flow.app, Sized):
        return f"finite, {flow.app.size_bytes} bytes"
    if isinstance(flow.app, Video):
        return "video"
    return "on and off" if isinstance(flow.app, OnOff) else "endless"


def _max_window_bytes(flow: Flow) -> float:
    """Return the most bytes that the flow can have in flight."""
    return min(size for size in (flow.send_buffer_bytes, flow.receive_buffer_bytes, math.inf) if size is not None)


def _estimate_max_packets(scenario: Scenario, index: int, flow: Flow) -> float:
    """Return the most packets that a flow can send if no link limits it; 0 if links lose packets at random (no warning)."""
    if any(link.loss or link.gilbert_elliott for link in scenario.links_of(index)):
        return 0.0
    seconds = min(flow.stop_s or math.inf, scenario.duration_s) - flow.start_s
    if seconds <= 0:
        return 0.0
    rtt_s = scenario.base_rtt_ms(index) * 1e-3
    rounds = seconds / rtt_s if rtt_s > 0 else math.inf
    most = [_max_window_bytes(flow) / scenario.mss * rounds, flow.initial_cwnd_packets * 2.0 ** min(rounds, 1000)]
    if isinstance(flow.app, Sized):
        most.append(flow.app.size_bytes / scenario.mss)
    if isinstance(flow.app, OnOff) and flow.app.rate_mbps is not None:
        most.append(flow.app.rate_mbps * 1e6 / 8 * seconds / scenario.mss)
    if isinstance(flow.app, Video):
        most.append(flow.app.bitrates_mbps[-1] * 1e6 / 8 * (seconds + flow.app.buffer_s + flow.app.chunk_s) / scenario.mss)
    return min(most)


class SimulationMonitor:
    """Monitor called between two slices of a simulation: reports progress, and warns of runaway queues and windows.

    Args:
        world: The running world.
        end_ns: Virtual time at which it ends.
        progress: Whether to draw a bar on standard error; or a function called with the elapsed share, at most 20 times a
            second, at the start and at the end.

    Raises:
        ScenarioTypeError: `progress` is neither.
    """

    def __init__(self, world: Any, end_ns: int, progress: bool | Progress):
        if not isinstance(progress, bool) and not callable(progress):
            valid = "True, False, or a function of the share that is over"
            raise ScenarioTypeError(f"progress = {quote(progress)}; valid: {valid}")
        self._world, self._end_ns = world, end_ns
        self._bar = ProgressBar("simulated", shown=progress is True, leave=False)
        self._tell = self._draw if progress is True else progress if callable(progress) else None
        self._told, self._slices = -math.inf, 0
        self._warned: set[str] = set()

    def __enter__(self) -> SimulationMonitor:
        if isinstance(self._world, Simulator):
            for cause in find_slow_causes(self._world.scenario):
                self._warn(cause.partition(" (")[0], cause)
        self._bar.__enter__()
        if self._tell is not None:
            self._tell(0.0)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None and self._tell is not None:
                self._tell(1.0)
        finally:
            self._bar.__exit__(kind, error, trace)

    def __call__(self) -> None:
        """Check queues and windows on every `LOOK_EVERY`-th slice, and report the progress."""
        self._slices += 1
        if self._slices % LOOK_EVERY == 0:
            self._check_queues()
        self.report()

    def report(self) -> None:
        """Report the progress unless that was done less than `REPORT_EVERY_S` ago."""
        if self._tell is None or (now := time.monotonic()) - self._told < REPORT_EVERY_S:
            return
        self._told = now
        self._tell(self._world.now_ns / self._end_ns)

    def _draw(self, share: float) -> None:
        end_s = self._end_ns * 1e-9
        self._bar(share, 1.0, f"{share * end_s:.4g} of {end_s:g} s", last=share >= 1.0)

    def _check_queues(self) -> None:
        scenario, time_s = self._world.scenario, self._world.now_ns * 1e-9
        queues = self._world.link_sample()[:, LINK_SAMPLE.index("queue_packets")]
        for link, queue in zip(scenario.links, queues, strict=True):
            if queue > QUEUED_PACKETS:
                self._warn(
                    f"link {link.name}",
                    f"link {link.name!r} has {queue:.2g} packets in its queue after {time_s:g} s, which takes long to "
                    "simulate; valid: queue_packets (buffer_packets), or a small receive_buffer_bytes of its flows",
                )
        windows = self._world.flow_sample()[:, FLOW_SAMPLE.index("cwnd_packets")] if scenario.flows else ()
        for index, window in enumerate(windows):
            if window > QUEUED_PACKETS:
                self._warn(
                    f"flow {index}",
                    f"flow {index} ({_describe_flow(scenario.flows[index])}) has a window of {window:.2g} packets after "
                    f"{time_s:g} s, which takes long to simulate; valid: a queue limit (buffer_packets) or "
                    "rate_mbps on its path, or a small receive_buffer_bytes",
                )

    def _warn(self, subject: str, text: str) -> None:
        if subject not in self._warned:
            self._warned.add(subject)
            warn_caller(text, SlowWorldWarning)
