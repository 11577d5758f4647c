"""Traffic that shares an agent's path: not observed by agents, but learners may be made to predict it (`Task.hidden`)."""

from __future__ import annotations

import math

from netbuf_gym.scenarios.types import AGENT, Scenario
from netbuf_gym.tasks.task import Spans

HIDDEN_KINDS = ("agents", "rivals", "reverse")
"""Other agents whose data cross the agent's slowest link, other flows whose data do, and flows whose data share links with the
agent's ACKs."""


def find_hidden_spans(scenario: Scenario, flow: int) -> tuple[Spans, ...]:
    """Return, for each of `HIDDEN_KINDS`, the times at which flows of that kind meet the given flow."""
    own, at = scenario.flows[flow], scenario.tightest_link(flow)
    found: tuple[list[tuple[float, float]], ...] = ([], [], [])
    for i, other in enumerate(scenario.flows):
        if i == flow:
            continue
        span = (other.start_s, math.inf if other.stop_s is None else other.stop_s)
        if at in other.path:
            found[0 if other.cc == AGENT else 1].append(span)
        if set(own.return_path) & set(other.path):
            found[2].append(span)
    return found
