"""Runs of the campaign: a part for each study, cell and scheme; for learning curves, a part for each run."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError, quote
from studies.common import agents
from studies.common.experiment import Chunk, Key, Part, Work, complete_rows, require_playing
from studies.nuwa import learning
from studies.nuwa import nuwa_worlds as worlds
from studies.nuwa.nuwa_measures import MEASURES, OF_LEARNERS
from studies.nuwa.nuwa_schemes import LEARNED, make_controller
from studies.nuwa.nuwa_settings import FOUR, LEARNING, Settings
from studies.nuwa.studies import ALL

KEYS = ("study", "network", "scheme", "step", "seed")
TEXTS = ("study", "network", "scheme")


def build_parts(settings: Settings) -> list[Part]:
    """Return all parts of the campaign; training last, since it takes longest.

    Raises:
        ConfigError: A study has no scheme to play.
    """
    parts = []
    for name in settings.studies:
        if name == LEARNING:
            continue
        schemes = require_playing(name, ALL[name].plays, settings)
        for cell in ALL[name].cells(settings):
            for scheme in schemes:
                runs: tuple[Key, ...] = tuple((name, cell, scheme, None, seed) for seed in settings.list_seeds())
                parts.append(Part(f"{name}-{cell}-{scheme}", runs))
    if LEARNING in settings.studies:
        steps = learning.list_steps(settings)
        for seed in range(settings.training_seeds):
            for network in settings.networks:
                for algorithm in settings.algorithms:
                    runs = tuple((LEARNING, network, algorithm, step, seed) for step in steps)
                    parts.append(Part(f"{LEARNING}-{network}-{algorithm}-{seed}", runs))
    return parts


def find_traced_networks(settings: Settings) -> list[str]:
    """Return the networks for which the settings' real traces stand.

    Raises:
        ConfigError: The settings name traces, and no study has a mobile network.
    """
    studies = [ALL[name] for name in settings.studies if name != LEARNING]
    found = sorted({network for study in studies for network in study.follows(settings)} & set(worlds.MOBILE))
    if settings.traces and not found:
        valid = ", ".join(name for name, study in ALL.items() if study.follows(Settings()))
        mobile = " or ".join(worlds.MOBILE)
        raise ConfigError(
            f"traces = {quote(settings.traces)} has no effect: studies=[{','.join(settings.studies)}] has no {mobile} link;"
            f" valid with any of the studies {valid} ({FOUR}: with {mobile} among networks=)"
        )
    return found


class NuwaWork(Work[Settings]):
    """Runs of the campaign and the controllers that play in them.

    Attributes:
        controllers: Controllers by scheme.
    """

    def __init__(self, settings: Settings):
        self.settings = settings
        self.parts = build_parts(settings)
        self.identity = {
            "agent_sha256": agents.compute_agent_digest(settings),
            "traces_sha256": worlds.hash_traces(settings, find_traced_networks(settings)),
        }
        played = list(dict.fromkeys(part.runs[0][2] for part in self.parts if part.runs[0][0] != LEARNING))
        self.controllers: dict[str, Controller] = {
            scheme: agents.load_agent(settings, worlds.make_joining_scenario(worlds.WITH_CUBIC, 0, 1.0))
            if scheme == LEARNED
            else make_controller(scheme)
            for scheme in played
        }

    def run(self, chunk: Chunk, folder: Path, stop: threading.Event) -> list[dict[str, Any]]:
        """See `Work.run`."""
        study, cell, scheme, _, seed = chunk.runs[0]
        if study == LEARNING:
            curve = learning.train_curve(self.settings, cell, scheme, seed, folder, stop)
            found: list[dict[str, Any]] = [{name: float(value)} for value in curve for name in OF_LEARNERS]
        else:
            seeds = [run[-1] for run in chunk.runs]
            found = ALL[study].play(self.controllers[scheme], self.settings, cell, seeds, stop)
        return complete_rows(chunk, KEYS, MEASURES, found)
