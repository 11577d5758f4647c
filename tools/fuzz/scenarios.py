"""Random worlds through the simulator: valid, odd and invalid ones."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

from netbuf_gym import scenarios
from netbuf_gym.errors import NetbufError
from netbuf_gym.scenarios import Scenario
from netbuf_gym.scenarios.catalogue import CONGESTION_CONTROLS, MEDIUM_RECORDS, QUEUE_DISCIPLINES
from netbuf_gym.simulation import runner
from netbuf_gym.simulation.results.result import Result
from tools.fuzz import oracles, random_worlds
from tools.fuzz.case import ACCEPTED, REFUSED, Case, Finding, spoil
from tools.fuzz.server import Kind

RECORDS = (
    Scenario, scenarios.Link, scenarios.Flow, scenarios.Sized, scenarios.OnOff, scenarios.Video, scenarios.Switch,
    scenarios.Traffic, scenarios.Sender, scenarios.Probe, scenarios.UdpSource, scenarios.PoissonArrivals, scenarios.Incast,
    scenarios.FlowList, scenarios.RenewalArrivals, scenarios.WebSessions, scenarios.PacketReplay, scenarios.Constant,
    scenarios.Exponential, scenarios.Pareto, scenarios.Lognormal, scenarios.Weibull, scenarios.Mixed,
    scenarios.SizeDistribution, scenarios.GilbertElliott, scenarios.RateTrace, scenarios.DeliveryTrace, scenarios.ABM,
    scenarios.StaticThresholds, scenarios.DRR, scenarios.AgentThresholds, scenarios.DelaySchedule, scenarios.LossSchedule,
    scenarios.Jitter,
)  # fmt: skip
FIELDS = {entry.name for record in RECORDS for entry in fields(record)} | {"schema", "kind", "app", "seed", "warmup_s"}
CATALOGUES = (*CONGESTION_CONTROLS.values(), *QUEUE_DISCIPLINES.values(), *MEDIUM_RECORDS.values())
FIELDS |= {parameter.name for record in CATALOGUES for parameter in record.parameters}


def run(case: Case) -> str:
    """Simulate a world from a dict, check its result, and do the same again."""
    data = random_worlds.draw_world(case)
    for _ in range(case.pick((0, 0, 0, 1, 2))):
        data = spoil(case, data)
    before = repr(data)
    case.tell(before)
    try:
        scenario = Scenario.from_dict(data)
    except NetbufError as error:
        require_clear_refusal(str(error))
        return REFUSED
    if repr(data) != before:
        raise Finding("from_dict changed the dict that it was given")
    return simulate_twice(case, scenario)


def simulate_twice(case: Case, scenario: Scenario) -> str:
    """Simulate a valid scenario, twice, with everything that must hold."""
    shorter = random_worlds.shorten(scenario)
    if shorter is None:
        return "too large"
    text = json.dumps(shorter.to_dict(), allow_nan=False)
    again = Scenario.from_dict(json.loads(text))
    if again != shorter:
        raise Finding("to_dict and from_dict give another scenario")
    warmup_s = case.pick((0.0, 0.0, 0.0, shorter.duration_s * float(case.rng.random())))
    seed = case.pick((0, 1, 2**63 - 1, case.whole(0, 10**9)))
    interval_s = case.pick((None, max(shorter.duration_s / case.whole(1, 30), 1e-6)))
    try:
        result = runner.simulate(shorter, seed, sample_interval_s=interval_s, warmup_s=warmup_s)
    except NetbufError as error:
        require_clear_refusal(str(error))
        return REFUSED
    oracles.check_result(result)
    require_repeatable(result, again, interval_s)
    oracles.check_files(result, case.folder)
    if case.chance(0.1):
        repr(result)
    return ACCEPTED


def require_repeatable(result: Result, scenario: Scenario, interval_s: float | None) -> None:
    """Raise `Finding` unless the scenario, read again, gives the same bits, and about the same if not looked at meanwhile."""
    again = runner.simulate(scenario, result.seed, sample_interval_s=interval_s, warmup_s=result.window_s[0])
    if json.dumps(again.to_dict()) != json.dumps(result.to_dict()):
        oracles.require_equal(result.to_dict(), again.to_dict(), "one seed gives two results")
    unseen = runner.simulate(scenario, result.seed, sample_interval_s=None, warmup_s=result.window_s[0])
    what = "the result depends on the samples taken"
    oracles.require_equal(result.to_dict(series=False), unseen.to_dict(series=False), what, tolerance=1e-6)


def require_clear_refusal(message: str) -> None:
    """Raise `Finding` unless a refusal is a line or so and names a field."""
    if not message.strip() or len(message) > 6000 or message.count("\n") > 3:
        raise Finding(f"a refusal of {len(message)} characters: {message[:500]!r}")
    if not FIELDS & set(re.findall(r"[A-Za-z_]\w*", message)):
        names: Any = message[:500]
        raise Finding(f"a refusal that names no field: {names!r}")


KIND = Kind("scenarios", run, share=3.0)
