"""Experiment of the study of learned queue thresholds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from netbuf_gym.tasks.queue_threshold import QUEUE_PACKETS
from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from studies.common.experiment import Experiment, Work
from studies.common.results import Runs
from studies.rlbm import rlbm_settings as rlbm
from studies.rlbm.rlbm_figures import draw_all
from studies.rlbm.rlbm_measures import MEASURES
from studies.rlbm.rlbm_sections import KEPT, SECTIONS, TEXTS, verdicts
from studies.rlbm.rlbm_settings import DEFAULT_SCHEMES, INTERVALS_S, LOADS, NAMES, TRAFFIC, Settings
from studies.rlbm.rlbm_work import KEYS, CampaignGrid


def _format_list(values: Iterable[object]) -> str:
    return f"[{','.join(f'{value:g}' if isinstance(value, float) else str(value) for value in values)}]"


class RlbmExperiment(Experiment[Settings]):
    """Comparison of learned queue thresholds with every other buffer scheme, after the thesis."""

    name = Settings.experiment
    summary = "the thesis on learned queue thresholds: schemes x congestion controls x sizes x loads x seeds, 60 s each"
    settings = Settings
    work = CampaignGrid
    keys = KEYS
    texts = TEXTS
    measures = MEASURES
    explained = {"size": "packets a queue, half of the shared buffer"}
    sections = SECTIONS
    verdicts = staticmethod(verdicts)
    kept_measures = KEPT
    choices = {
        "schemes": {"all": ""} | dict.fromkeys(NAMES, ""),
        "ccs": "congestion-controls",
        "traffic": dict(TRAFFIC),
        "agent": "agents",
    }
    examples = (
        "",
        "schemes=[naive,dt,codel] traffic=default seeds=3 loads=[0.4,0.8] sizes=[100,1000] output=out",
        "schemes=all agent=zoo/agents/queue_threshold/ppo/model.zip",
    )
    help = f"""\
  schemes={_format_list(DEFAULT_SCHEMES)}
      also {", ".join(name for name in NAMES if name not in DEFAULT_SCHEMES)}; or all.
      {rlbm.LEARNED} is a trained agent; random takes its decisions by chance, random_no_beta without the thesis' weights
  agent=FILE               the trained agent: a model.zip, a run directory or a name (netbuf-gym list agents; default:
                           {Settings.shipped}, which comes with the package); a file that exists goes before a name
  traffic=thesis-code      {", ".join(TRAFFIC)}: the thesis as coded, as described, or a sane offered load
  ccs=[cubic,newreno]
  sizes={_format_list(QUEUE_PACKETS)}
      packets a queue; the two queues share twice that
  loads={_format_list(LOADS)}
  seeds=10                 runs of each cell, from first_seed={FIRST_EVALUATION_SEED} on (no agent was trained on those)
  duration_s=60
  interval_s=0.1           between the decisions of random and rlbm
  intervals={_format_list(INTERVALS_S)}
      the same for the interval sweep, which goes over CUBIC and sizes 100, 500, 1000; []: none"""

    def draw(self, work: Work[Any], runs: Runs, folder: Path) -> list[Path]:
        """See `Experiment.draw`."""
        assert isinstance(work, CampaignGrid)
        return draw_all(work, runs, folder)


RLBM = RlbmExperiment()
