"""Worlds of the studies: the paper's four scenarios, and several senders on links of 10, 20 Mbit/s and a fluctuating one.

Choices where the paper leaves them open: the bottleneck fluctuates between 10 and 20 Mbit/s, 10 s each; of several senders
the first starts at once and each other one within the first second, at a time drawn from the seed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks.congestion_window import SCENARIOS
from netbuf_gym.tasks.congestion_window.scenarios import PPCC
from studies.ppcc import paper
from studies.ppcc.ppcc_schemes import TASK

FLUCTUATING = "fluctuating"
LATEST_START_S = 1.0
START_STREAM = 0x70706363
"""Random stream of the start times, separate from other draws under the same seed."""


def name_cell(rate: object, senders: int) -> str:
    """Return the value of column `cell` for a number of senders on a link."""
    return f"{rate}-{senders}"


RATES = (*map(str, paper.RATES_MBPS), FLUCTUATING)
SHARED = tuple(name_cell(rate, senders) for rate in RATES for senders in paper.SENDERS)


def make_scenario(number: str, duration_s: float, stack: str = "linux") -> Scenario:
    """Return one of the paper's four scenarios."""
    return _make_named_scenario(f"ppcc/{number}", duration_s=duration_s, stack=stack)


def make_shared_scenario(name: str, seed: int, duration_s: float) -> Scenario:
    """Return senders on a link with the buffer and the loss of scenario 2; all but the first start within the first second."""
    rate, _, senders = name.partition("-")
    if rate == FLUCTUATING:
        buffer_packets, loss = PPCC[int(paper.MAIN)]
        own = {"n": int(senders), "buffer_packets": buffer_packets, "loss": loss}
        made = _make_named_scenario(f"ppcc/{FLUCTUATING}", duration_s=duration_s, **own)
    else:
        made = _make_named_scenario(f"ppcc/{paper.MAIN}", duration_s=duration_s, n=int(senders), rate_mbps=float(rate))
    late_s = LATEST_START_S * np.random.default_rng((seed, START_STREAM)).random(int(senders))
    late_s[0] = 0.0
    return replace(made, flows=[replace(one, start_s=float(late)) for one, late in zip(made.flows, late_s, strict=True)])


def draw_world(made: Scenario, seed: int, agents: int = 1) -> rollout.World:
    """Return a world with agents in place, as an environment draws it."""
    return rollout.draw_worlds(TASK, made, [seed], agents=agents)[0]


def _make_named_scenario(name: str, **arguments: Any) -> Scenario:
    made = SCENARIOS[name](**arguments)
    assert isinstance(made, Scenario)
    return made
