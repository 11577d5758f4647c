"""Experiment of the study of a sender for real paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from studies.common.cells import KEYS, TEXTS
from studies.common.experiment import Experiment, Work
from studies.common.results import Runs
from studies.sender.sender_figures import draw_all
from studies.sender.sender_measures import MEASURES
from studies.sender.sender_schemes import NAMES, label
from studies.sender.sender_sections import SECTIONS, verdicts
from studies.sender.sender_settings import DEFAULT_SCHEMES, DEFAULT_STUDIES, LARGE, NEED_TRACES, STUDIES, Settings
from studies.sender.sender_work import StudyRuns


def _format_help() -> str:
    studies = "\n".join(f"      {name:10} {said}" for name, said in STUDIES.items())
    others = ", ".join(name for name in NAMES if name not in DEFAULT_SCHEMES)
    return f"""\
  studies=[{",".join(DEFAULT_STUDIES)}]
      also {", ".join(LARGE)}; and {", ".join(NEED_TRACES)}, where there are any:
{studies}
  schemes=[{",".join(DEFAULT_SCHEMES)}]
      also {others}; or all
  agent=FILE               the agent: a model.zip, a run directory or a name (netbuf-gym list agents; default: the package's
                           {Settings.shipped}, where the scheme agent is among schemes); plays as agent
  traces=DIR               a folder with the measured traces that docs/sender.md names, at any depth
  seeds=5                  worlds of each cell, from first_seed={FIRST_EVALUATION_SEED} on (no agent was trained on those)
  duration_s=null          the most that a run takes; null: what docs/sender.md says"""


class SenderExperiment(Experiment[Settings]):
    """Comparison of the congestion-window agent with congestion controls, a rule and bounds, on paths that senders use."""

    name = Settings.experiment
    summary = "a sender for real paths: the congestion-window agent on links, traces, outages and changing paths, beside rivals"
    settings = Settings
    work = StudyRuns
    keys = KEYS
    texts = TEXTS
    measures = MEASURES
    explained = {
        "study": "what a run is for",
        "cell": "what differs between the study's worlds",
        "scheme": "who plays",
        "step": "0 of a whole run; of the first seed's series the second at which half a second ends",
    }
    sections = SECTIONS
    verdicts = staticmethod(verdicts)
    choices = {
        "studies": STUDIES,
        "schemes": {"all": ""} | {scheme: label(scheme) for scheme in NAMES},
        "agent": "agents",
        "traces": "folder",
    }
    examples = (
        "",
        "agent=congestion_window/sender traces=traces",
        "studies=[outage,delay_step] schemes=[cubic,bbr,copa] seeds=3 output=out",
        "studies=[strangers] schemes=[agent,cubic,bbr,bbr3,copa,newreno,vegas,queue_target] seeds=2 jobs=2",
    )
    help = _format_help()

    def choose(self, runs: Runs) -> Runs:
        """Select the rows of whole runs; rows over time are for figures alone."""
        return runs.where(step=0)

    def draw(self, work: Work[Any], runs: Runs, folder: Path) -> list[Path]:
        """See `Experiment.draw`."""
        return draw_all(runs, folder)


SENDER = SenderExperiment()
