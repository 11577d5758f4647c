"""All experiments by name."""

from __future__ import annotations

from typing import Any

from netbuf_gym.arguments import choice
from netbuf_gym.reproduce.auter.experiment import AUTER
from netbuf_gym.reproduce.experiment import Experiment
from netbuf_gym.reproduce.live.experiment import LIVE
from netbuf_gym.reproduce.nuwa.experiment import NUWA
from netbuf_gym.reproduce.ppcc.experiment import PPCC
from netbuf_gym.reproduce.rlbm.experiment import RLBM
from netbuf_gym.reproduce.sender.experiment import SENDER

EXPERIMENTS: dict[str, Experiment[Any]] = {one.name: one for one in (RLBM, NUWA, PPCC, AUTER, SENDER, LIVE)}


def experiment(name: str) -> Experiment[Any]:
    """One by its name; raises ConfigError for another."""
    return EXPERIMENTS[choice("experiment", name, EXPERIMENTS)]
