"""Delay and loss schedules of changing paths: route changes, handovers between cells, satellite reassignments."""

from __future__ import annotations

import numpy as np

from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios.impairments import DelaySchedule, LossSchedule
from netbuf_gym.scenarios.limits import MAX_DELAY_MS
from netbuf_gym.traces.types import MAX_TIME_S
from netbuf_gym.utils import checks

LEO_INTERVAL_S = 15.0
"""Interval of Starlink's satellite reassignments (Mohan et al., "A Multifaceted Look at Starlink Performance", WWW 2024)."""
MAX_CHANGES = 1_000_000
MAX_SEED = 2**63 - 1


def route_change(
    *, delay_ms: float, change_ms: float = 50.0, at_s: float, until_s: float | None = None, reorder: bool = False
) -> DelaySchedule:
    """Return the delays of a path that becomes longer or shorter at one moment, and may change back later.

    Args:
        delay_ms: One-way delay before the change, 0 to 1e5 ms.
        change_ms: Delay that the new route adds (negative: a shorter route); the sum is 0 to 1e5 ms.
        at_s: Time of the change, above 0 to 1e6 s.
        until_s: Time of the return to the old route, after `at_s`; None: never.
        reorder: As in `DelaySchedule`.

    Raises:
        ScenarioError: A value out of range.
    """
    delay_ms = checks.number("delay_ms", delay_ms, 0, MAX_DELAY_MS)
    change_ms = checks.number("change_ms", change_ms, -delay_ms, MAX_DELAY_MS - delay_ms)
    times = [0.0, checks.number("at_s", at_s, 0, MAX_TIME_S, low_open=True)]
    delays = [delay_ms, delay_ms + change_ms]
    if until_s is not None:
        times.append(checks.number("until_s", until_s, times[1], MAX_TIME_S, low_open=True))
        delays.append(delay_ms)
    return DelaySchedule(times, delays, reorder=reorder)


def handovers(
    *,
    low_ms: float = 10.0,
    high_ms: float = 40.0,
    interval_s: float = 10.0,
    duration_s: float = 100.0,
    seed: int = 0,
    reorder: bool = False,
) -> DelaySchedule:
    """Return the delays of a mobile host that changes cells at random moments, each cell with its own delay.

    Delays are uniform, the times between changes exponential. Packets in flight at a change still arrive; to lose them, set the
    link's `loss` to `interruptions(schedule, length_ms=...)`.

    Args:
        low_ms, high_ms: Range of the one-way delay, 0 to 1e5 ms.
        interval_s: Mean time between two changes, 0.001 to 1e6 s.
        duration_s: Time of the last possible change, above 0 to 1e6 s.
        seed: 0 to 2**63 - 1; the same seed gives the same schedule.
        reorder: As in `DelaySchedule`.

    Raises:
        ScenarioError: A value out of range, or more than 1e6 changes.
    """
    rng, low_ms, high_ms = _prepare_sampling(seed, low_ms, high_ms)
    interval_s = checks.number("interval_s", interval_s, 1e-3, MAX_TIME_S)
    duration_s = checks.number("duration_s", duration_s, 0, MAX_TIME_S, low_open=True)
    _check_changes(duration_s, interval_s)
    times = [0.0]
    while (following := times[-1] + max(rng.exponential(interval_s), 1e-6)) < duration_s:
        times.append(following)
    return DelaySchedule(times, rng.uniform(low_ms, high_ms, len(times)), reorder=reorder)


def leo_delays(
    *,
    low_ms: float = 15.0,
    high_ms: float = 40.0,
    drift_ms: float = 3.0,
    interval_s: float = LEO_INTERVAL_S,
    first_s: float = LEO_INTERVAL_S,
    step_s: float = 1.0,
    duration_s: float = 300.0,
    seed: int = 0,
    reorder: bool = False,
) -> DelaySchedule:
    """Return the delays of a path over satellites in low orbit, reassigned every `interval_s` seconds.

    Each assignment has its own delay, uniform between the bounds, which drifts by up to `drift_ms` until the next assignment,
    as the satellite approaches or recedes; the delay stays within the bounds.

    Args:
        low_ms, high_ms: Range of the one-way delay, 0 to 1e5 ms.
        drift_ms: Largest drift within one assignment, in steps of `step_s`, 0 to 1e5 ms.
        interval_s: Time between two assignments, 0.001 to 1e6 s.
        first_s: Time of the first reassignment, above 0 to `interval_s`.
        step_s: Length of a step, 0.001 to 1e6 s; from `interval_s` on, one step an assignment.
        duration_s: Time of the last possible assignment, above 0 to 1e6 s.
        seed: 0 to 2**63 - 1; the same seed gives the same schedule.
        reorder: As in `DelaySchedule`.

    Raises:
        ScenarioError: A value out of range, or more than 1e6 steps.
    """
    rng, low_ms, high_ms = _prepare_sampling(seed, low_ms, high_ms)
    drift_ms = checks.number("drift_ms", drift_ms, 0, MAX_DELAY_MS)
    interval_s = checks.number("interval_s", interval_s, 1e-3, MAX_TIME_S)
    first_s = checks.number("first_s", first_s, 0, interval_s, low_open=True)
    step_s = min(checks.number("step_s", step_s, 1e-3, MAX_TIME_S), interval_s)
    duration_s = checks.number("duration_s", duration_s, 0, MAX_TIME_S, low_open=True)
    _check_changes(duration_s, step_s)
    starts = np.concatenate([[0.0], np.arange(first_s, duration_s, interval_s)])
    ends = np.append(starts[1:], max(duration_s, starts[-1] + step_s))
    times, delays = [], []
    for start, end in zip(starts, ends, strict=True):
        level, drift = rng.uniform(low_ms, high_ms), rng.uniform(-drift_ms, drift_ms)
        since = np.arange(0.0, end - start - 1e-6, step_s)
        times.append(start + since)
        delays.append(np.clip(level + drift * since / interval_s, low_ms, high_ms))
    return DelaySchedule(np.concatenate(times), np.concatenate(delays), reorder=reorder)


def delay_walk(
    *,
    low_ms: float = 10.0,
    high_ms: float = 40.0,
    sigma_ms: float = 2.0,
    step_s: float = 0.05,
    duration_s: float = 100.0,
    seed: int = 0,
    reorder: bool = False,
) -> DelaySchedule:
    """Return the delays of a path that wander: a Gaussian random walk, reflected at both bounds, from a uniform start on.

    Unlike `Jitter`, successive packets have nearly the same delay, and the low delays of a while may not come back for long.

    Args:
        low_ms, high_ms: Range of the one-way delay, 0 to 1e5 ms.
        sigma_ms: Standard deviation of a step, 0 to 1e5 ms.
        step_s: Length of a step, 0.001 to 1e6 s.
        duration_s: Time of the last possible step, above 0 to 1e6 s.
        seed: 0 to 2**63 - 1; the same seed gives the same schedule.
        reorder: As in `DelaySchedule`.

    Raises:
        ScenarioError: A value out of range, or more than 1e6 steps.
    """
    rng, low_ms, high_ms = _prepare_sampling(seed, low_ms, high_ms)
    sigma_ms = checks.number("sigma_ms", sigma_ms, 0, MAX_DELAY_MS)
    step_s = checks.number("step_s", step_s, 1e-3, MAX_TIME_S)
    duration_s = checks.number("duration_s", duration_s, 0, MAX_TIME_S, low_open=True)
    _check_changes(duration_s, step_s)
    times, span_ms = np.arange(0.0, duration_s, step_s), high_ms - low_ms
    walk = rng.uniform(0, span_ms) + np.cumsum(sigma_ms * rng.standard_normal(len(times)))
    folded = np.mod(walk, 2 * span_ms) if span_ms else np.zeros(len(times))
    return DelaySchedule(times, low_ms + np.minimum(folded, 2 * span_ms - folded), reorder=reorder)


def interruptions(delays: DelaySchedule, *, length_ms: float, least_change_ms: float = 0.0) -> LossSchedule:
    """Return a loss schedule with an outage after each change of a delay schedule: the gap of a handover.

    Args:
        delays: Delay schedule with the changes.
        length_ms: Length of an outage, 1e-6 to 1e5 ms.
        least_change_ms: Least change that interrupts, 0 to 1e5 ms; smaller ones (a satellite's drift) do not.

    Raises:
        ScenarioError: A value out of range, or interruptions that last from change to change to the end of a period.
    """
    length_s = checks.number("length_ms", length_ms, 1e-6, MAX_DELAY_MS) * 1e-3
    least_ms = checks.number("least_change_ms", least_change_ms, 0, MAX_DELAY_MS)
    before = np.roll(delays.delay_ms, 1)
    changed = np.abs(delays.delay_ms - before) > max(least_ms, 1e-9)
    if delays.period_s is None:
        changed[0] = False
    times, values = [0.0], [0.0]
    for start in delays.time_s[changed]:
        for moment, value in ((float(start), 1.0), (float(start) + length_s, 0.0)):
            if delays.period_s is not None and moment >= delays.period_s:
                continue
            while times and moment <= times[-1]:  # overlaps the outage before
                times.pop()
                values.pop()
            times.append(moment)
            values.append(value)
    return LossSchedule(times, values, period_s=delays.period_s)


def _prepare_sampling(seed: int, low_ms: float, high_ms: float) -> tuple[np.random.Generator, float, float]:
    low_ms = checks.number("low_ms", low_ms, 0, MAX_DELAY_MS)
    high_ms = checks.number("high_ms", high_ms, low_ms, MAX_DELAY_MS)
    return np.random.default_rng(checks.integer("seed", seed, 0, MAX_SEED)), low_ms, high_ms


def _check_changes(duration_s: float, interval_s: float) -> None:
    if duration_s / interval_s > MAX_CHANGES:
        made = f"{duration_s / interval_s:.3g} steps"
        raise ScenarioError(f"duration_s = {duration_s:g} makes {made} of {interval_s:g} s; valid: at most {MAX_CHANGES}")
