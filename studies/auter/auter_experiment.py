"""Experiment object of the paper on Auter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from studies.auter import paper
from studies.auter.auter_figures import draw_all
from studies.auter.auter_measures import MEASURES
from studies.auter.auter_schemes import NAMES, label
from studies.auter.auter_sections import KEYS, SECTIONS, TEXTS, build_verdicts
from studies.auter.auter_settings import (
    AGENTS,
    AT_ONCE,
    DEFAULT_SCHEMES,
    DEFAULT_STUDIES,
    LIVE_S,
    PLANTS,
    STUDIES,
    TRAINING,
    Settings,
)
from studies.auter.auter_work import AuterWork
from studies.common.experiment import Experiment, Work
from studies.common.results import Runs


def _format_help() -> str:
    studies = "\n".join(f"      {name:9} {said}" for name, said in STUDIES.items())
    lines = []
    for key, said in (("agent", "the agent with our recipe"), ("auter", "one that was trained with the paper's recipe")):
        lines.append(f"  {key}=FILE               {said}: a model.zip, a run directory or a name (netbuf-gym list agents;")
        lines.append(f"                           default: {AGENTS[key][1]}, where it comes with the package); plays as")
        lines.append(f"                           {' and '.join(AGENTS[key][0])}")
    return f"""\
  studies=[{",".join(DEFAULT_STUDIES)}]
      also {TRAINING}, which needs what training needs:
{studies}
  schemes=[{",".join(DEFAULT_SCHEMES)}]
      also {", ".join(scheme for schemes, _ in AGENTS.values() for scheme in schemes)}; or all
{chr(10).join(lines)}
  plant=sim                or linux: live, {LIVE_S / 60:.0f} minutes at most with {AT_ONCE} worlds at once
  seeds=5                  worlds of each cell, from first_seed={FIRST_EVALUATION_SEED} on (no agent was trained on those)
  duration_s=null          of every run but long ones; null: what docs/auter.md says
  hours=null               of the study long_run; null: {paper.HOURS}, and live a third of an hour
  epochs={paper.EPOCHS}              of each session of the study {TRAINING}
  training_seeds=3         sessions"""


class AuterExperiment(Experiment[Settings]):
    """The paper's comparison of a proxy's buffers set by hand, by rules and by agents."""

    name = Settings.experiment
    summary = "the paper on Auter: a proxy's buffers over long distances, hand-tuned, by rules and by agents"
    settings = Settings
    work = AuterWork
    keys = KEYS
    texts = TEXTS
    measures = MEASURES
    explained = {
        "study": "which table or figure a run is for",
        "cell": "what differs between the study's worlds",
        "plant": "what the run was made on",
        "scheme": "who plays",
        "step": "0 of a whole run; of a long one also the hour at whose end, of training the epoch",
    }
    sections = SECTIONS
    verdicts = staticmethod(build_verdicts)
    choices = {
        "studies": STUDIES,
        "schemes": {"all": ""} | {scheme: label(scheme) for scheme in NAMES},
        "plant": PLANTS,
        **dict.fromkeys(AGENTS, "agents"),
    }
    examples = (
        "",
        "studies=[regions] schemes=[default,max,autotuning] seeds=3 output=out",
        "agent=runs/host_buffers/dqn/mine auter=runs/host_buffers/dqn/recipe",
        "plant=linux studies=[regions] schemes=[default,max,autotuning] seeds=2",
        "studies=[training]",
    )
    help = _format_help()

    def draw(self, work: Work[Any], runs: Runs, folder: Path) -> list[Path]:
        """See `Experiment.draw`."""
        return draw_all(runs, folder)


AUTER = AuterExperiment()
