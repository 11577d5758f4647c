"""The worlds of the studies: the paper's four scenarios, and several senders on links of 10, 20 Mbit/s and a fluctuating one.

What the paper leaves open and we chose: that the bottleneck fluctuates between 10 and 20 Mbit/s, 10 s each; that of several
senders the first begins at once and each other one within the first second, when the seed says.
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
from studies.ppcc.schemes import TASK

FLUCTUATING = "fluctuating"
LATEST_START_S = 1.0
START_STREAM = 0x70706363
"""Keeps what is drawn from a seed for the starts apart from what else is."""


def cell(rate: object, senders: int) -> str:
    """What the column `cell` calls some senders on a link."""
    return f"{rate}-{senders}"


RATES = (*map(str, paper.RATES_MBPS), FLUCTUATING)
SHARED = tuple(cell(rate, senders) for rate in RATES for senders in paper.SENDERS)


def scenario(number: str, duration_s: float, stack: str = "linux") -> Scenario:
    """One of the paper's four."""
    return _made(f"ppcc/{number}", duration_s=duration_s, stack=stack)


def shared(name: str, seed: int, duration_s: float) -> Scenario:
    """Some senders on a link with the buffer and the loss of scenario 2; all but the first begin within the first second."""
    rate, _, senders = name.partition("-")
    if rate == FLUCTUATING:
        buffer_packets, loss = PPCC[int(paper.MAIN)]
        own = {"n": int(senders), "buffer_packets": buffer_packets, "loss": loss}
        made = _made(f"ppcc/{FLUCTUATING}", duration_s=duration_s, **own)
    else:
        made = _made(f"ppcc/{paper.MAIN}", duration_s=duration_s, n=int(senders), rate_mbps=float(rate))
    late_s = LATEST_START_S * np.random.default_rng((seed, START_STREAM)).random(int(senders))
    late_s[0] = 0.0
    return replace(made, flows=[replace(one, start_s=float(late)) for one, late in zip(made.flows, late_s, strict=True)])


def world(made: Scenario, seed: int, agents: int = 1) -> rollout.World:
    """A world with agents in their places, as an environment draws it."""
    return rollout.draw(TASK, made, [seed], agents=agents)[0]


def _made(name: str, **arguments: Any) -> Scenario:
    made = SCENARIOS[name](**arguments)
    assert isinstance(made, Scenario)
    return made
