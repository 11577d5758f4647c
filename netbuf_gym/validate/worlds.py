"""From a cell to the scenario that repeats it, and to the numbers that are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from netbuf_gym.errors import ReferenceDataError, ScenarioError, TraceError
from netbuf_gym.results import Result
from netbuf_gym.scenarios import PIE, RED, CoDel, Discipline, DropTail, FqCoDel, Scenario, dumbbell, last_hop
from netbuf_gym.simulation import simulate
from netbuf_gym.traces import RateTrace, read_rate_steps
from netbuf_gym.validate import shared_buffer
from netbuf_gym.validate.cells import (
    DROPS,
    GOODPUT,
    LINUX_DUMBBELL,
    LOSS_RATE,
    NS3_DUMBBELL,
    NS3_LAST_HOP,
    NS3_SHARED_BUFFER,
    QUEUE_DELAY,
    Cell,
    Setting,
)
from netbuf_gym.validate.shared_buffer import POLICIES, policy, with_stack_options

NS3_SCHEMES = {"NewReno": "newreno", "LinuxReno": "linuxreno", "Cubic": "cubic", "WestwoodPlus": "westwood"}
LINUX_SCHEMES = {"reno": "newreno", "cubic": "cubic", "bbr": "bbr", "vegas": "vegas", "westwood": "westwood"}
LINUX_PACING = True
"""The kernel paced the reference's Reno and CUBIC too: iperf3 chooses the congestion control after the connection is made,
with the host's default, which was BBR, and that leaves pacing on. Seen in the retransmissions of slow start, which a kernel
without pacing does not have."""
START_SPREAD_S = 0.005
"""How far the start of a process is from the time at which it was asked for, at most."""
NS3_ODD = {
    "Vegas": "ns-3's Vegas stays near half the rate with delayed ACKs, an oddity that is not copied",
    "Bbr": "ns-3's BBR over-estimates the bandwidth and is no reference",
    "Veno": "ns-3's Veno equals its NewReno",
}


NS3_DISCIPLINES: dict[str, Callable[[int], Discipline]] = {
    "Fifo": lambda limit: DropTail(),
    "CoDel": lambda limit: CoDel(mtu_bytes=1499),
    "FqCoDel": lambda limit: FqCoDel(mtu_bytes=1499, quantum_bytes=1502, perturbation=2994316),
    "Pie": lambda limit: PIE(burst_quiet_s=1.5),
    "Red": lambda limit: RED(min_packets=0.2 * limit, max_packets=0.6 * limit, wait=True),
}
"""ns-3.44's queue disciplines by the limit in packets: CoDel drops unless fewer than 1500 bytes would be left, a quantum is one
packet, PIE's burst allowance begins with the first arrival, RED waits between drops and has the thresholds that the reference
program gives it. With this perturbation no two of 64 flows share a queue of FQ-CoDel (ns-3's hash is of the addresses), and
the queues of the first ten have their order, as in ns-3, where the first of the longest ones loses packets at the limit."""


def why_not_judged(setting: Setting) -> str:
    """Why a cell of this setting is not judged; empty when it is."""
    if setting.kind == NS3_SHARED_BUFFER and policy(setting) not in POLICIES:
        return f"buffer scheme {policy(setting)} is not built yet"
    if setting.kind == LINUX_DUMBBELL:
        return "" if setting.cc in LINUX_SCHEMES else f"congestion control {setting.cc} is not built yet"
    if setting.cc in NS3_ODD:
        return NS3_ODD[setting.cc]
    if setting.cc not in NS3_SCHEMES:
        return f"congestion control {setting.cc} is not built yet"
    if setting.disciplined and (setting.qdisc not in NS3_DISCIPLINES or setting.kind == NS3_LAST_HOP):
        return f"queue discipline {setting.qdisc} is not built yet"
    return ""


def scenario(cell: Cell, seed: int | None = None) -> Scenario:
    """The world of a cell that is judged.

    Args:
        cell: The cell.
        seed: The reference's, where it names a list of flows.

    Raises:
        ReferenceDataError: Its values, or the rate schedule or the list of flows it names, make no world; names the file and
            the line.
    """
    s = cell.setting
    common = {
        "rtt_ms": s.rtt_ms,
        "buffer_packets": s.buffer_packets,
        "loss": s.loss,
        "duration_s": s.duration_s,
        "stagger_s": s.stagger_s,
        "name": s.id,
    }
    try:
        if s.kind == LINUX_DUMBBELL:
            senders = (LINUX_SCHEMES[s.cc],) * s.flows
            late_ms = float(np.mean(cell.late_us)) / 1e3 if cell.late_us else 0.0
            common["rtt_ms"] += 2 * late_ms  # the emulator's, there and back
            return dumbbell(rate_mbps=s.rate_mbps, senders=senders, stack="linux", pacing=LINUX_PACING, **common)
        senders = (NS3_SCHEMES[s.cc],) * s.flows
        ns3 = {"senders": senders, "stack": "ns3", "access_mbps": s.access_mbps, "hystart": s.hystart}
        if s.kind == NS3_DUMBBELL:
            return with_stack_options(_with_discipline(dumbbell(rate_mbps=s.rate_mbps, **ns3, **common), s), s)
        if s.kind == NS3_LAST_HOP:
            world = last_hop(trace=_schedule(cell), return_rate_mbps=s.rate_mbps, **ns3, **common)
            return with_stack_options(world, s)
        if s.kind == NS3_SHARED_BUFFER:
            return with_stack_options(shared_buffer.world(cell, cell.seeds[0] if seed is None else seed, NS3_SCHEMES[s.cc]), s)
    except (ScenarioError, TraceError) as error:
        raise ReferenceDataError(str(error), cell.file, cell.line) from None
    raise ValueError(f"a cell of kind {s.kind} has no world")


def _with_discipline(world: Scenario, setting: Setting) -> Scenario:
    """The bottleneck's queue as the reference program sets it up, with the device's one packet behind it."""
    if not setting.disciplined:
        return world
    discipline = NS3_DISCIPLINES[setting.qdisc](setting.buffer_packets)
    links = [replace(link, discipline=discipline, device_packets=1) if i == 0 else link for i, link in enumerate(world.links)]
    return replace(world, links=tuple(links))


def _schedule(cell: Cell) -> RateTrace:
    """The rate schedule as the reference program plays it: whole bit/s, the last rate holds, before it the rate B."""
    time_s, mbps = read_rate_steps(cell.rate_file)
    mbps = np.floor(mbps * 1e6 + 0.5) / 1e6
    if time_s[0] > 0:
        time_s, mbps = np.insert(time_s, 0, 0.0), np.insert(mbps, 0, cell.setting.rate_mbps)
    return RateTrace(time_s, mbps, name=cell.setting.rate_trace)


def seeds_to_run(setting: Setting, seeds: int) -> list[int]:
    """1 to `seeds` where chance decides (random loss, PIE, RED, BBR's probing phase, when the processes of several senders
    really started); one run where it does not."""
    random = setting.loss > 0 or setting.cc == "bbr" or setting.drops_at_random or uncertain_starts(setting)
    return list(range(1, seeds + 1)) if random else [1]


def uncertain_starts(setting: Setting) -> bool:
    """Whether the senders are processes that compete from the first packet on: which of them loses when is chaotic, and a
    single history says little. ns-3's senders start to the nanosecond."""
    return setting.kind == LINUX_DUMBBELL and setting.flows > 1


def run(world: Scenario, setting: Setting, seed: int) -> dict[str, float]:
    """The compared quantities of one run."""
    if uncertain_starts(setting):
        late_s = np.random.default_rng(seed).uniform(0, START_SPREAD_S, len(world.flows))
        world = replace(world, flows=tuple(replace(f, start_s=f.start_s + t) for f, t in zip(world.flows, late_s, strict=True)))
    return compared(simulate(world, seed, sample_interval_s=None, warmup_s=setting.warmup_s), setting.kind)


def compared(result: Result, kind: str) -> dict[str, float]:
    """What is set beside the reference: its own definitions (of shared-buffer cells: `shared_buffer.compared`).

    Goodput and queueing delay are of the window after the warm-up; ns-3's drops count from the start; Linux' loss rate
    is what the window's packets lost at the full queue and at random, over what arrived at the queue.
    """
    if kind == NS3_SHARED_BUFFER:
        return shared_buffer.compared(result)
    link = result.links[result.bottleneck]
    values = {GOODPUT: result.goodput_mbps, QUEUE_DELAY: link.queue_delay_mean_ms}
    if kind == LINUX_DUMBBELL:
        lost = link.queue_drops + link.random_losses
        values[LOSS_RATE] = lost / link.packets_in if link.packets_in else float("nan")
    else:
        values[DROPS] = float(link.queue_drops_total)
    return values
