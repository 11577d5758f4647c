"""Definition of the experiment `live`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from studies.common.experiment import Experiment, Work
from studies.common.results import Runs
from studies.live.live_figures import draw_all
from studies.live.live_measures import MEASURES
from studies.live.live_schemes import NAMES, SCHEMES
from studies.live.live_sections import SECTIONS, verdicts
from studies.live.live_settings import KEYS_OF_AGENTS, Settings
from studies.live.live_work import KEYS, TEXTS, LiveWork
from studies.live.live_worlds import SENDER, WORLDS


def _format_help() -> str:
    schemes = "\n".join(f"      {task}: {', '.join(names)}" for task, names in SCHEMES.items())
    shipped = "\n".join(
        f"  {key + '=FILE':24} the agent of {task}; default: {Settings.agents[key][1]}, which comes with the package"
        for key, task in KEYS_OF_AGENTS.items()
    )
    return f"""\
  tasks=[{SENDER}]          of {", ".join(WORLDS)}; of the kernel's runs 90 minutes at most
  schemes=[{",".join(Settings.by_default)}]
      or all, with the trained agents:
{schemes}
{shipped}
  worlds=null              how many of each task's worlds; null: all
  duration_s=30            of every run
  noise_ms=0.05            by how much hosts are late in the simulator's noisy runs, in the mean; 0: none of these
  repeats=1                runs of a cell on each plant; five times as many of queue_threshold, and of
                           congestion_window on the trace and beside a rival, 40 times in the simulator
  first_seed={FIRST_EVALUATION_SEED}       of the runs
      jobs=N is how many kernel worlds run beside each other, too"""


class LiveExperiment(Experiment[Settings]):
    """Controllers in the simulator and on the kernel, in the same worlds."""

    name = Settings.experiment
    summary = "the same controllers in the simulator and on the kernel: how far apart they are"
    settings = Settings
    work = LiveWork
    keys = KEYS
    texts = TEXTS
    measures = MEASURES
    explained = {
        "task": "the environment's",
        "world": "rate, round trip and queue; of queue thresholds packets a queue and load",
        "scheme": "who plays",
        "plant": "sim: the simulator; noise: the simulator with hosts that are late; linux: the kernel",
    }
    sections = SECTIONS
    verdicts = staticmethod(verdicts)
    choices = {
        "tasks": dict.fromkeys(WORLDS, ""),
        "schemes": {"all": ""} | dict.fromkeys(NAMES, ""),
        "sender": "agents",
        "receiver": "agents",
        "switch": "agents",
    }
    examples = ("schemes=all", "tasks=[queue_threshold] schemes=all duration_s=22", "schemes=[cubic,bbr] worlds=3")
    help = _format_help()

    def draw(self, work: Work[Any], runs: Runs, folder: Path) -> list[Path]:
        """Draw all figures; see `Experiment.draw`."""
        assert isinstance(work, LiveWork)
        return draw_all(work, runs, folder)


LIVE = LiveExperiment()
