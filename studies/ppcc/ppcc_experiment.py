"""Experiment of the TCP-PPCC study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from studies.common.cells import KEYS, TEXTS
from studies.common.experiment import Experiment, Work
from studies.common.results import Runs
from studies.ppcc.ppcc_figures import draw_all
from studies.ppcc.ppcc_measures import MEASURES
from studies.ppcc.ppcc_schemes import AGENTS, LEARNED, LEARNERS, NAMES, RECIPE, label
from studies.ppcc.ppcc_sections import SECTIONS, verdicts
from studies.ppcc.ppcc_settings import DEFAULT_SCHEMES, FILES, STUDIES, Settings
from studies.ppcc.ppcc_work import StudyRuns


def _format_help() -> str:
    studies = "\n".join(f"      {name:9} {said}" for name, said in STUDIES.items())
    said = {LEARNED: "our agent", RECIPE: "an agent that was trained by the paper's recipe"}
    said |= {key: f"one that was trained by {name}" for key, name in LEARNERS.items()}
    lines = []
    for key, what in said.items():
        lines.append(f"  {f'{key}=FILE':24} {what}; plays as {key}")
        lines.append(f"{'':27}(default: {FILES[key] if Settings.bundled(key) else 'none'})")
    return f"""\
  studies=[{",".join(STUDIES)}]
{studies}
  schemes=[{",".join(DEFAULT_SCHEMES)}]
      also agents, of which FILE is a model.zip, a run directory or a name (netbuf-gym list agents); or all
{chr(10).join(lines)}
  seeds=10                 worlds of each cell, from first_seed={FIRST_EVALUATION_SEED} on (no agent was trained on those)
  duration_s=null          of every run; null: the paper's 100 s"""


class PpccExperiment(Experiment[Settings]):
    """Comparison of learned congestion windows with classic congestion controls, after the paper."""

    name = Settings.experiment
    summary = "the paper on TCP-PPCC: learned congestion windows beside NewReno, QTCP, CUBIC, BBR and others"
    settings = Settings
    work = StudyRuns
    keys = KEYS
    texts = TEXTS
    measures = MEASURES
    explained = {
        "study": "which table or figure a run is for",
        "cell": "a scenario of the paper's, or a rate in Mbit/s and a number of senders",
        "scheme": "who plays",
        "step": "0 of a whole run; of the study series the second at whose end, of constants the window in packets",
    }
    sections = SECTIONS
    verdicts = staticmethod(verdicts)
    choices = {
        "studies": STUDIES,
        "schemes": {"all": ""} | {scheme: label(scheme) for scheme in NAMES},
        **dict.fromkeys(AGENTS, "agents"),
    }
    examples = (
        "",
        "schemes=all",
        "studies=[table] schemes=[newreno,qtcp,cubic,bbr] seeds=3 output=out",
        "dqn=runs/congestion_window/dqn/mine a2c=runs/congestion_window/a2c/mine",
    )
    help = _format_help()

    def draw(self, work: Work[Any], runs: Runs, folder: Path) -> list[Path]:
        """See `Experiment.draw`."""
        return draw_all(runs, folder)


PPCC = PpccExperiment()
