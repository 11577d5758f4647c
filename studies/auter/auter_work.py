"""Runs of the campaign: a part for each study, cell and scheme; for long and live runs, a part for each run."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError
from studies.auter import training
from studies.auter.auter_measures import MEASURES
from studies.auter.auter_schemes import RECIPE, find_agent_key, make_controller
from studies.auter.auter_sections import KEYS
from studies.auter.auter_settings import AT_ONCE, LIVE_S, SIM, TRAINING, Settings
from studies.auter.studies import ALL, Study
from studies.common import agents
from studies.common.experiment import Chunk, Key, Part, Work, complete_rows, require_playing

SCHEME, SEED = KEYS.index("scheme"), KEYS.index("seed")


def build_parts(settings: Settings) -> list[Part]:
    """Return all parts of the campaign; training last, since it takes longest.

    Raises:
        ConfigError: A study has no scheme to play, training is asked for on a live plant, or live runs take too long.
    """
    parts = []
    for name in settings.studies:
        if name == TRAINING:
            if settings.live:
                raise ConfigError(f"studies holds {TRAINING!r} with plant = {settings.plant!r}; valid: plant={SIM}")
            continue
        study = ALL[name]
        schemes = require_playing(name, study.plays, settings)
        for cell in study.cells(settings):
            for scheme in schemes:
                parts += _build_study_parts(settings, study, cell, scheme)
    if settings.live:
        _require_time(settings)
    if TRAINING in settings.studies:
        for seed in range(settings.training_seeds):
            runs = [(TRAINING, training.CELL, settings.plant, RECIPE, step, seed) for step in training.list_steps(settings)]
            parts.append(Part(f"{TRAINING}-{seed}", tuple(runs)))
    return parts


def _build_study_parts(settings: Settings, study: Study, cell: str, scheme: str) -> list[Part]:
    steps = study.steps(settings)
    name = f"{study.name}-{cell}-{scheme}"

    def runs(seeds: Sequence[int]) -> tuple[Key, ...]:
        return tuple((study.name, cell, settings.plant, scheme, step, seed) for seed in seeds for step in steps)

    if settings.live or len(steps) > 1:
        return [Part(f"{name}-{seed}", runs([seed])) for seed in settings.list_seeds()]
    return [Part(name, runs(settings.list_seeds()))]


def _require_time(settings: Settings) -> None:
    """Raise ConfigError if the live runs take longer than `LIVE_S`."""
    runs_s = 0.0
    for study in (ALL[name] for name in settings.studies if name != TRAINING):
        playing = sum(study.plays(scheme) for scheme in settings.schemes)
        runs_s += playing * settings.seeds * sum(study.resolve_duration_s(settings, cell) for cell in study.cells(settings))
    minutes = runs_s / AT_ONCE / 60
    if minutes > LIVE_S / 60:
        raise ConfigError(
            f"plant = {settings.plant!r}: the runs take {minutes:.0f} minutes of real time, {AT_ONCE} at once; valid:"
            f" {LIVE_S / 60:.0f} or less, by fewer studies=, schemes= or seeds=, or a shorter duration_s="
        )


class AuterWork(Work[Settings]):
    """Runs of the campaign and the agents that play in them.

    Attributes:
        agents: Trained agents by scheme.
    """

    def __init__(self, settings: Settings):
        self.settings = settings
        self.parts = build_parts(settings)
        self.identity = {f"{key}_sha256": agents.compute_agent_digest(settings, key) for key in settings.agents}
        self.agents: dict[str, Controller] = {}
        for study, cell, _, scheme, *_ in (part.runs[0] for part in self.parts if part.runs[0][0] != TRAINING):
            if (key := find_agent_key(scheme)) is not None and scheme not in self.agents:
                self.agents[scheme] = agents.load_agent(settings, ALL[study].make_example(settings), key, scheme)
            make_controller(scheme, study, cell, self.agents.get(scheme))  # raises before any work is done

    def run(self, chunk: Chunk, folder: Path, stop: threading.Event) -> list[dict[str, Any]]:
        """See `Work.run`."""
        study, cell, _, scheme, *_ = chunk.runs[0]
        seeds = list(dict.fromkeys(run[SEED] for run in chunk.runs))
        if study == TRAINING:
            found = training.run_session(self.settings, seeds[0], stop)
        else:
            controller = make_controller(scheme, study, cell, self.agents.get(scheme))
            found = ALL[study].play(controller, self.settings, cell, seeds, stop)
        return complete_rows(chunk, KEYS, MEASURES, found)
