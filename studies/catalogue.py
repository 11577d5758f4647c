"""All experiments by name."""

from __future__ import annotations

from typing import Any

from netbuf_gym.utils.arguments import choice
from studies.auter.experiment import AUTER
from studies.common.experiment import Experiment
from studies.common.settings import OWN, kinds
from studies.live.experiment import LIVE
from studies.nuwa.experiment import NUWA
from studies.ppcc.experiment import PPCC
from studies.rlbm.experiment import RLBM
from studies.sender.experiment import SENDER

EXPERIMENTS: dict[str, Experiment[Any]] = {one.name: one for one in (RLBM, NUWA, PPCC, AUTER, SENDER, LIVE)}


def experiment(name: str) -> Experiment[Any]:
    """One by its name; raises ConfigError for another."""
    return EXPERIMENTS[choice("experiment", name, EXPERIMENTS)]


def describe_settings() -> dict[str, dict[str, Any]]:
    """Of each study, as plain data for the completion of command lines: its summary, its keys, what they take (`choices`), and
    of those that take a list what it may hold (`lists`)."""
    return {one.name: _describe(one) for one in EXPERIMENTS.values()}


def _describe(one: Experiment[Any]) -> dict[str, Any]:
    own = kinds(one.settings)
    lists = {
        key: dict(found) for key, found in one.choices.items() if key in own and own[key].many and not isinstance(found, str)
    }
    return {"summary": one.summary, "keys": [*own, *OWN], "choices": dict(one.choices), "lists": lists}
