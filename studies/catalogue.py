"""Catalogue of all experiments by name."""

from __future__ import annotations

from typing import Any

from netbuf_gym.utils.arguments import check_choice
from studies.auter.auter_experiment import AUTER
from studies.common.experiment import Experiment
from studies.common.settings import COMMON_KEYS, find_key_kinds
from studies.live.live_experiment import LIVE
from studies.nuwa.nuwa_experiment import NUWA
from studies.ppcc.ppcc_experiment import PPCC
from studies.rlbm.rlbm_experiment import RLBM
from studies.sender.sender_experiment import SENDER

EXPERIMENTS: dict[str, Experiment[Any]] = {one.name: one for one in (RLBM, NUWA, PPCC, AUTER, SENDER, LIVE)}


def get_experiment(name: str) -> Experiment[Any]:
    """Return the experiment of a name.

    Raises:
        ConfigError: The name is unknown.
    """
    return EXPERIMENTS[check_choice("experiment", name, EXPERIMENTS)]


def describe_settings() -> dict[str, dict[str, Any]]:
    """Return each study's settings for command-line completion: summary, keys, sources of values (`choices`), and the keys
    that take lists (`lists`)."""
    return {one.name: _describe_experiment(one) for one in EXPERIMENTS.values()}


def _describe_experiment(one: Experiment[Any]) -> dict[str, Any]:
    own = find_key_kinds(one.settings)
    lists = [key for key in one.choices if key in own and own[key].many]
    return {"summary": one.summary, "keys": [*own, *COMMON_KEYS], "choices": dict(one.choices), "lists": lists}
