"""Experiment object of the paper on Nuwa."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from netbuf_gym.tasks.receiver_window import NETWORKS
from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from studies.common.experiment import Experiment, Work
from studies.common.results import Runs
from studies.nuwa.nuwa_figures import draw_all
from studies.nuwa.nuwa_measures import MEASURES
from studies.nuwa.nuwa_schemes import LEARNED, NAMES, label
from studies.nuwa.nuwa_sections import SECTIONS, build_verdicts
from studies.nuwa.nuwa_settings import ALGORITHMS, DEFAULT_SCHEMES, DEFAULT_STUDIES, LEARNING, STUDIES, Settings
from studies.nuwa.nuwa_work import KEYS, TEXTS, NuwaWork

WIDTH = 100


def _wrap_list(words: tuple[str, ...]) -> str:
    """Return the bracketed list of schemes, wrapped to lines of `WIDTH` characters at most."""
    lines, line = [], "  schemes=["
    for number, word in enumerate(words):
        more = word + ("," if number < len(words) - 1 else "]")
        if len(line) + len(more) > WIDTH:
            lines.append(line)
            line = "      "
        line += more
    return "\n".join([*lines, line])


def _format_help() -> str:
    studies = "\n".join(f"      {name:9} {said}" for name, said in STUDIES.items())
    return f"""\
  studies=[{",".join(DEFAULT_STUDIES)}]
      also {LEARNING}, which trains for hours:
{studies}
{_wrap_list(DEFAULT_SCHEMES)}
      also {LEARNED}: {label(LEARNED)}; or all
  agent=FILE               the trained agent: a model.zip, a run directory or a name (netbuf-gym list agents; default:
                           {Settings.shipped}, which comes with the package); a file that exists goes before a name
  networks=[{",".join(NETWORKS)}]
      of the studies networks and learning
  traces=DIR               real traces (Mahimahi or CSV) in its folders 4g and 5g, in place of generated ones
  seeds=10                 worlds of each cell, from first_seed={FIRST_EVALUATION_SEED} on (no agent was trained on those)
  duration_s=null          of every run; null: the paper's, 40 or 80 s
  algorithms=[{",".join(ALGORITHMS)}]
  steps=1000000            of each training run of the study learning
  training_seeds=5         runs of each learner on each network"""


class NuwaExperiment(Experiment[Settings]):
    """The paper's comparison of receivers that drive their senders with receivers that do not."""

    name = Settings.experiment
    summary = "the paper on Nuwa and Nuwa-RL: receivers beside congestion controls over 4G, 5G, Wi-Fi and wired paths"
    settings = Settings
    work = NuwaWork
    keys = KEYS
    texts = TEXTS
    measures = MEASURES
    explained = {
        "study": "which table or figure a run is for",
        "network": "the kind of world",
        "scheme": "who plays; of learning curves the learner",
        "step": "of training, at which a learner's return was taken",
    }
    sections = SECTIONS
    verdicts = staticmethod(build_verdicts)
    choices = {
        "studies": STUDIES,
        "schemes": {"all": ""} | {scheme: label(scheme) for scheme in NAMES},
        "networks": dict.fromkeys(NETWORKS, ""),
        "algorithms": dict.fromkeys(ALGORITHMS, ""),
        "agent": "agents",
        "traces": "folder",
    }
    examples = (
        "",
        "studies=[mobile] schemes=[cubic,bbr,nuwa_k7] seeds=3 output=out",
        "studies=[mobile,networks,grid] traces=DIR agent=runs/receiver_window/ppo/mine",
        "studies=[learning] networks=[4g] algorithms=[ppo] steps=200000",
    )
    help = _format_help()

    def draw(self, work: Work[Any], runs: Runs, folder: Path) -> list[Path]:
        """See `Experiment.draw`."""
        assert isinstance(work, NuwaWork)
        return draw_all(work, runs, folder)


NUWA = NuwaExperiment()
