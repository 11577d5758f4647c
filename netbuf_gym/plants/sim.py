"""The simulated plant: many worlds of the native core, stepped together in virtual time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netbuf_gym import _core
from netbuf_gym.errors import SimulatorFault
from netbuf_gym.plants.switch_report import counters_of, switch_report
from netbuf_gym.plants.switch_telemetry import switch_telemetry
from netbuf_gym.plants.telemetry import TELEMETRY, TelemetrySchema
from netbuf_gym.scenarios.types import AGENT, MSS_BYTES, Scenario


def _require_fields(reported: list[str], expected: TelemetrySchema) -> None:
    if tuple(reported) != expected.names:
        raise ImportError(
            f"the native core reports telemetry {reported}, this package expects {list(expected.names)}: rebuild the package"
        )


class SimPlant:
    """`worlds` simulated worlds with `agents` controlled senders each, or one controlled switch.

    Worlds are reset one by one and advance together. Times are integer nanoseconds, so that a thousand intervals of
    0.1 s are exactly 100 s.

    Args:
        worlds: number of worlds, at least 1.
        agents: controlled senders or switches in each world, at least 1.
        threads: threads that advance the worlds; the results are the same for any number.
        kind: what the agents are, `"sender"` or `"switch"`.
        queues: of a switch.

    Attributes:
        telemetry: float64 `(worlds, agents, fields)` by :data:`TELEMETRY`, of switches by
            :func:`~netbuf_gym.plants.switch_telemetry.switch_telemetry`; rewritten by every advance.
        agent_mask: uint8 `(worlds, agents)`, whether the agent's flow is alive; a switch always is.
        control: float64, what the next advance begins with; NaN leaves it as it is. Of senders `(worlds, agents)`,
            windows in bytes; of switches `(worlds, agents, queues)`, alphas.
        time_ns: int64 `(worlds,)`, each world's clock.
    """

    def __init__(self, worlds: int, agents: int = 1, threads: int = 1, *, kind: str = "sender", queues: int = 1):
        self.worlds, self.agents, self.kind = worlds, agents, kind
        schema, parameters = (switch_telemetry(queues), {"queues": queues}) if kind == "switch" else (TELEMETRY, {})
        self._batch = _core.Batch(worlds, agents, threads, kind=kind, **parameters)
        _require_fields(self._batch.fields, schema)
        self.telemetry: np.ndarray = self._batch.telemetry
        self.agent_mask: np.ndarray = self._batch.agent_mask
        self.control: np.ndarray = self._batch.control if kind == "switch" else self._batch.control[..., 0]
        self.control.fill(np.nan)
        self.time_ns = np.zeros(worlds, np.int64)
        self._scenarios: list[Scenario | None] = [None] * worlds
        self._prepared: tuple[Scenario, Any] | None = None

    @property
    def core(self) -> _core.Batch:
        """The native worlds, for what telemetry and reports do not tell; not to be advanced but by the plant."""
        return self._batch

    def reset(self, world: int, scenario: Scenario, seed: int) -> None:
        """Starts a world anew at time 0, with nothing run yet; as many flows of `scenario` are agents as `agents`."""
        if self._prepared is None or self._prepared[0] is not scenario:
            self._prepared = (scenario, scenario.to_core())
        self._batch.reset(world, self._prepared[1], seed)
        self._scenarios[world] = scenario
        self.control[world] = np.nan
        self.time_ns[world] = 0

    def apply(self, control: np.ndarray) -> None:
        """Control for the next advance, of its shape or flat; NaN leaves things as they are."""
        self.control[...] = np.reshape(control, self.control.shape)

    def advance(self, interval_ns: int) -> None:
        """Runs every world `interval_ns` further and writes the telemetry of that interval.

        Raises:
            SimulatorFault: the simulator found its own state inconsistent; the plant is of no further use.
        """
        try:
            self._batch.advance(interval_ns)
        except RuntimeError as error:
            raise SimulatorFault(str(error)) from error
        self.time_ns += interval_ns

    def advance_to_ack(self, max_wait_ns: int) -> None:
        """Runs every world to the next ACK of any of its agents, at most `max_wait_ns` further.

        Raises:
            SimulatorFault: see :meth:`advance`.
        """
        try:
            self._batch.advance_to_event(max_wait_ns)
        except RuntimeError as error:
            raise SimulatorFault(str(error)) from error
        self._take_clocks()

    def advance_to_change(self, interval_ns: int, max_intervals: np.ndarray) -> None:
        """Runs every world whole intervals further, until the worst slowdown of the completed flows has changed.

        Args:
            interval_ns: length of an interval.
            max_intervals: int `(worlds,)`, at most so many.

        Raises:
            SimulatorFault: see :meth:`advance`.
        """
        try:
            for most in np.unique(max_intervals).tolist():
                self._batch.advance_to_event(interval_ns, most, (max_intervals == most).astype(np.uint8))
        except RuntimeError as error:
            raise SimulatorFault(str(error)) from error
        self._take_clocks()

    def _take_clocks(self) -> None:
        """Adds each world's own elapsed time to its clock."""
        self.time_ns += np.rint(self.telemetry[:, 0, 0] * 1e9).astype(np.int64)

    def report(self, world: int) -> list[dict[str, Any]]:
        """What each agent of a world achieved since its start.

        See :func:`episode_report`, and of a switch :func:`netbuf_gym.plants.switch_report.switch_report`.
        """
        scenario = self._scenarios[world]
        if scenario is None:
            raise SimulatorFault(f"world {world} was never reset")
        if self.kind == "switch":
            return [switch_report(scenario, counters_of(self._batch, world))]
        flows, links = self._batch.flow_stats(world), self._batch.link_stats(world)
        now_s = self._batch.now_ns(world) * 1e-9
        return [
            episode_report(scenario, flow, flows, links, now_s)
            for flow, description in enumerate(scenario.flows)
            if description.cc == AGENT
        ]


def episode_report(
    scenario: Scenario, flow: int, flow_stats: list[dict], link_stats: list[dict], now_s: float
) -> dict[str, Any]:
    """A flow's whole life so far from the core's counters, start-up included.

    Args:
        scenario: the world that was run.
        flow: index of the flow.
        flow_stats, link_stats: the core's cumulative counters, one dict for each flow and link.
        now_s: virtual time of the counters.

    Returns:
        goodput_mbps: bytes delivered in order to the application over the time since the flow's start.
        mean_rtt_ms, base_rtt_ms: mean of all round-trip samples (NaN without one), and what is least possible.
        queue_delay_mean_ms: mean sojourn at the bottleneck over all packets that passed it (NaN without one).
        loss_rate: packets dropped by queues or lost at random over packets sent (0 when none was sent).
        utility: 0.5 ln(goodput / fair share) - 0.5 ln(mean RTT / base RTT); the fair share is the capacity over the
            number of flows. A flow that delivered nothing counts as having delivered one segment.
        Mt: log10(mean RTT - least RTT, in ms) - log10(goodput in Mbit/s); the difference counts as at least 1 us.
        timeouts: retransmission time-outs.
        duration_s: time since the flow's start.
        scenario: the scenario's name.
    """
    own, link = flow_stats[flow], link_stats[scenario.bottleneck]
    duration_s = max(now_s - scenario.flows[flow].start_s, 1e-9)
    goodput_mbps = own["delivered_bytes"] * 8e-6 / duration_s
    samples = own["rtt_count"]
    mean_rtt_ms = own["rtt_sum_s"] / samples * 1e3 if samples else math.nan
    base_rtt_ms = scenario.base_rtt_ms(flow)
    lost = own["queue_drops"] + own["random_losses"]
    share_mbps = scenario.capacity_mbps / len(scenario.flows)
    counted_mbps = max(goodput_mbps, MSS_BYTES * 8e-6 / duration_s)
    delay_ms = max(mean_rtt_ms - own["rtt_min_s"] * 1e3, 1e-3) if samples else math.nan
    return {
        "goodput_mbps": goodput_mbps,
        "mean_rtt_ms": mean_rtt_ms,
        "base_rtt_ms": base_rtt_ms,
        "queue_delay_mean_ms": link["sojourn_sum_s"] / link["sojourn_count"] * 1e3 if link["sojourn_count"] else math.nan,
        "loss_rate": lost / own["packets_sent"] if own["packets_sent"] else 0.0,
        "utility": 0.5 * math.log(counted_mbps / share_mbps) - 0.5 * math.log(mean_rtt_ms / base_rtt_ms),
        "Mt": math.log10(delay_ms) - math.log10(counted_mbps),
        "timeouts": int(own["timeouts"]),
        "duration_s": duration_s,
        "scenario": scenario.name,
    }
