"""Counters of a live world in the form of simulated ones, so that reports and results are made of both alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from netbuf_gym import _core
from netbuf_gym.errors import PlantFault
from netbuf_gym.plants.linux.process import Process
from netbuf_gym.plants.linux.setup import Agents, Setup
from netbuf_gym.plants.simulator import FLOW_SAMPLE, LINK_SAMPLE, World
from netbuf_gym.scenarios.types import Scenario

_INFO = {name: i for i, name in enumerate(_core.tcp_info_columns())}
_NOTHING = [math.nan] * len(_INFO)
SLICE_NS = 200_000_000
"""Time that a lone world runs before `between` is called."""


def summarize_lateness(emulator: Mapping[str, Any]) -> dict[str, float]:
    """Return the number of packets handed on and percentiles of how late they were (NaN: none), for reports.

    Args:
        emulator: Counters of an emulator.
    """
    packets = emulator.get("packets_written", 0)
    unit = 1e3 if packets else math.nan
    late = {f"packet_lateness_{name}_ms": emulator.get(f"late_{name}_s", math.nan) * unit for name in ("p50", "p99")}
    return {"packets_timed": packets, **late}


class LiveReadings(World):
    """Counters of a live world at one moment.

    Args:
        scenario: the scenario that the world runs.
        state: returns the world's report (`netbuf_gym.plants.linux.world.LiveWorld.report`), empty when its process is gone.
    """

    def __init__(self, scenario: Scenario, state: Callable[[], Mapping[str, Any]]):
        super().__init__(None)
        self.scenario = scenario
        self._read_state = state

    @property
    def _state(self) -> Mapping[str, Any]:
        state = self._read_state()
        if not state:
            raise PlantFault("nothing is known of the live world any more: its process is gone")
        return state

    @property
    def now_ns(self) -> int:
        """The world's time in nanoseconds, from its start."""
        return round(self._state["now_s"] * 1e9)

    def flow_stats(self) -> list[dict[str, Any]]:
        """See `World`. NaN where the kernel reports nothing: packets marked lost, recoveries; time-outs before Linux 6.7."""
        state, rows = self._state, []
        for flow, route in zip(state["flows"], state["routes"], strict=False):
            info = flow["info"] or _NOTHING
            rows.append(
                {
                    **route,
                    **{name: value for name, value in flow.items() if name not in ("info", "failure")},
                    "acks_received": route["acks"],
                    "packets_lost_marked": math.nan,
                    "timeouts": info[_INFO["timeouts"]] if flow["info"] else 0,
                    "fast_recoveries": math.nan,
                    "mark_responses": math.nan,
                    "packets_in_network": math.nan,
                }
            )
        return rows

    def link_stats(self) -> list[dict[str, Any]]:
        return self._state["links"]

    def switch_stats(self) -> list[dict[str, Any]]:
        return self._state["switches"]

    def traffic_stats(self) -> dict[str, Any]:
        """See `World`; time-outs (of SYNs too) and packets in the network are not known."""
        state = self._state
        routes = state["routes"][len(state["flows"]) :]
        names = ("packets_sent", "packets_retransmitted", "packets_received", "queue_drops", "random_losses", "marks")
        sums = {name: sum(route[name] for route in routes) for name in names}
        # Packets received by a relayed flow are counted on the leg from the relay.
        senders = () if self.scenario.traffic is None else self.scenario.traffic.senders
        last = [leg is sender.legs[-1] for sender in senders for leg in sender.legs]
        sums["received_bytes"] = sum(route["received_bytes"] for route, counts in zip(routes, last, strict=True) if counts)
        unknown = ("timeouts", "syn_timeouts", "packets_in_network", "mark_responses")
        return {**state["traffic"], **sums, **dict.fromkeys(unknown, math.nan)}

    def completions(self) -> np.ndarray:
        return np.array(self._state["completions"], np.float64).reshape(-1, 7)

    def flow_sample(self) -> np.ndarray:
        rows = []
        for flow, route in zip(self._state["flows"], self._state["routes"], strict=False):
            info = flow["info"] or _NOTHING
            mss = info[_INFO["mss_bytes"]]
            rows.append(
                [
                    info[_INFO["cwnd_packets"]],
                    info[_INFO["ssthresh_packets"]],
                    route["rtt_last_s"] * 1e3,
                    info[_INFO["rtt_s"]] * 1e3,
                    route["in_flight_bytes"] / mss,
                    flow["delivered_bytes"],
                    info[_INFO["pacing_rate_bytes_per_s"]] * 8e-6,
                ]
            )
        return np.array(rows, np.float64).reshape(len(rows), len(FLOW_SAMPLE))

    def flow_arrivals(self) -> list[int]:
        state = self._state
        return [route["received_bytes"] for route, _ in zip(state["routes"], state["flows"], strict=False)]

    def link_sample(self) -> np.ndarray:
        return np.array([[link[name] for name in LINK_SAMPLE] for link in self._state["links"]], np.float64)

    def switch_sample(self) -> np.ndarray:
        queues = self._state["queues"]
        sample = np.full((len(queues), max(map(len, queues), default=0), 4), np.nan)
        for row, own in zip(sample, queues, strict=True):
            row[: len(own)] = own
        return sample

    def video_stats(self) -> list[dict | None]:
        """See `World`: there are no video clients."""
        return [None] * len(self._state["flows"])

    def probe_delays(self) -> list[np.ndarray]:
        return [np.array(delays, np.float64) for delays in self._state["probes"]]

    def probe_sent(self) -> list[int]:
        return self._state["probe_sent"]

    def udp_stats(self) -> list[dict[str, Any]]:
        return self._state["udp"]

    def emulator(self) -> dict[str, Any]:
        """Return packets, how late they were read and written (percentiles, s), by how much rates were off (NaN: unknown)."""
        return self._state["emulator"]

    def timing(self) -> dict[str, float]:
        """Return how many packets the links handed on, and how late: see `summarize_lateness`."""
        return summarize_lateness(self.emulator())

    def ideal_s(self, sender: int, size_bytes: int, start_ns: int) -> float:
        return self.scenario.ideal_s(sender, size_bytes, start_ns * 1e-9)

    def flows_opened(self) -> np.ndarray:
        """See `World`. Raises PlantFault: only lone worlds know."""
        raise PlantFault("the flows opened are known of lone live worlds only")


class LiveRun(LiveReadings):
    """A live world without agents, from its start, with the methods of `netbuf_gym.plants.simulator.Simulator`.

    Between two calls of `run` the world goes on; readings are those at the end of the last call.

    Args:
        scenario: the scenario to run.
        seed: 0 to 2**63 - 1, for everything that is drawn at random.
        realtime: as in `LinuxPlant`.

    Attributes:
        between: a function that `run` calls every 0.2 s, to look at the progress, or to raise.

    Raises:
        ConfigError: the scenario has what a live world has not, or this machine lacks what one needs.
        PlantFault: the world's process has ended.
    """

    def __init__(self, scenario: Scenario, seed: int, realtime: bool = True):
        setup = Setup(scenario, Agents(), realtime)
        self._last: dict[str, Any] = {}
        super().__init__(scenario, lambda: self._last)
        self.between: Callable[[], None] | None = None
        self._process = Process()
        self._time_ns = 0
        try:
            self._process.ask({**setup.message, "seed": seed, "places": []})
            self._last = self._process.ask({"do": "report"})["report"]
        except BaseException:
            self._process.close()
            raise

    def run(self, until_ns: int) -> None:
        """Run the world to this time of its own, or some tenths of a ms beyond.

        Raises:
            PlantFault: the world cannot go on.
        """
        while (left_ns := until_ns - self._time_ns) > 0:
            part_ns = left_ns if left_ns < 1.5 * SLICE_NS else SLICE_NS
            step = {"do": "step", "interval_ns": part_ns, "until": "interval", "most": 1, "control": None}
            self._time_ns += self._process.ask(step, part_ns * 1e-9 + 10)["elapsed_ns"]
            if self.between is not None:
                self.between()
        known = self._last["completions"]
        self._last = self._process.ask({"do": "report", "completions": len(known)})["report"]
        self._last["completions"] = [*known, *self._last["completions"]]

    def flows_opened(self) -> np.ndarray:
        return np.array(self._process.ask({"do": "opened"})["opened"], np.float64).reshape(-1, 5)

    def close(self) -> None:
        """End the world; its counters remain readable."""
        self._process.close()

    def __del__(self) -> None:
        if "_process" in vars(self):
            self.close()
