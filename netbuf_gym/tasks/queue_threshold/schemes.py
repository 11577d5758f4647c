"""The buffer scheme of this task: thresholds set by an agent."""

from __future__ import annotations

from netbuf_gym.scenarios.scheme_catalogue import Scheme
from netbuf_gym.scenarios.schemes import extend_alphas
from netbuf_gym.scenarios.switches import AgentThresholds, Switch
from netbuf_gym.scenarios.types import Scenario


def _control_by_agent(scenario: Scenario, betas: object = None, alphas: object = None) -> Scenario:
    def admission(switch: Switch) -> AgentThresholds:
        return AgentThresholds(
            betas=extend_alphas((1.0,) if betas is None else betas, switch.queues),
            alphas=None if alphas is None else extend_alphas(alphas, switch.queues),
        )

    return scenario.with_admission(admission)


SCHEMES = (Scheme("agent", "limits set by an environment: alpha times beta times the free buffer", _control_by_agent),)
