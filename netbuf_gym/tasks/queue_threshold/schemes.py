"""The scheme that this task brings: a switch's thresholds in an agent's hands."""

from __future__ import annotations

from netbuf_gym.scenarios.scheme_catalogue import Scheme
from netbuf_gym.scenarios.schemes import for_queues
from netbuf_gym.scenarios.switches import AgentThresholds, Switch
from netbuf_gym.scenarios.types import Scenario


def _agent(scenario: Scenario, betas: object = None, alphas: object = None) -> Scenario:
    def admission(switch: Switch) -> AgentThresholds:
        return AgentThresholds(
            betas=for_queues((1.0,) if betas is None else betas, switch.queues),
            alphas=None if alphas is None else for_queues(alphas, switch.queues),
        )

    return scenario.with_admission(admission)


SCHEMES = (Scheme("agent", "limits set by an environment: alpha times beta times the free buffer", _agent),)
