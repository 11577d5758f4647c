"""What evaluations draw, and the words beside their tables: every controller, capacities, each measure explained."""

import numpy as np
import pytest

from netbuf_gym import tasks
from netbuf_gym.evaluation import comparison, rollout, summary
from netbuf_gym.tasks.metrics import Column
from netbuf_gym.training.config import load
from netbuf_gym.training.evaluate import evaluate
from netbuf_gym.training.schema import FIRST_EVALUATION_SEED as FIRST
from netbuf_gym.utils import plots

WINDOWS, SWITCH_MEASURES = (tasks.get(name).measures for name in ("congestion_window", "queue_threshold"))


def drawn(monkeypatch):
    """What is drawn over time, call by call."""
    calls = []
    monkeypatch.setattr(
        plots, "plot_time_series", lambda series, path, rows, title, numbers, limits: calls.append((series, limits))
    )
    return calls


def test_pictures_over_time_show_as_many_controllers_as_asked_for_and_the_capacity(tmp_path, monkeypatch):
    calls = drawn(monkeypatch)
    base = ["model=null", "env=queue_threshold", "scenario=rlbm/default", "scenario.kwargs.duration_s=1", "seeds=1"]
    evaluate(load("evaluate", [*base, f"run_dir='{tmp_path / 'a'}'"]))
    evaluate(load("evaluate", [*base, f"run_dir='{tmp_path / 'b'}'", "lines=null"]))
    assert [len(series) for series, _ in calls[::2]] == [8, len(SWITCH_MEASURES.baselines)]
    label, (edges, capacity) = calls[0][1]["throughput_mbps"]
    assert label == "capacity" and edges.tolist() == [0, 1] and capacity.tolist() == [10]
    rates = calls[2][0]["naive"]["throughput_mbps"]
    assert 0 <= np.nanmin(rates) and np.nanmax(rates) <= 10 * 1.02


@pytest.mark.slow
def test_the_capacity_of_a_trace_is_its_mean_in_the_plot_of_trade_offs(tmp_path, monkeypatch):
    labels = []
    monkeypatch.setattr(plots, "plot_throughput_delay", lambda *arguments: labels.append((arguments[3], arguments[6])))
    short = ["model=null", "env=congestion_window", "baselines=[cubic]", "seeds=2"]
    for k, name in enumerate(("ppcc/fluctuating", "ppcc/2", "ppcc/random")):
        limit = ["scenario.kwargs.duration_s=20"]
        evaluate(load("evaluate", [*short, *limit, f"scenario={name}", f"run_dir='{tmp_path / str(k)}'"]))
    assert labels[0] == (pytest.approx(15), "mean capacity") and labels[1] == (10, "capacity") and labels[2][0] is None


@pytest.mark.parametrize("task", ["congestion_window", "queue_threshold"])
def test_every_column_of_the_tables_is_explained_where_it_appears(task):
    measures = tasks.get(task).measures
    shown = [column for column in measures.columns if isinstance(column, Column)]
    assert all(column.says for column in shown)
    text = summary.format_notes(measures, "the agent")
    assert all(f"* {column.label}: " in text for column in shown)


def test_agents_and_congestion_controls_are_shown_with_their_throughput():
    worlds = rollout.draw_worlds("congestion_window", {"name": "ppcc/2", "duration_s": 20}, [FIRST])
    scenario = {"name": "ppcc/2", "duration_s": 20}
    series = comparison.run_baselines("congestion_window", ["cubic"], worlds, scenario=scenario)[0].series
    assert np.nanmean(series["throughput_mbps"][50:]) == pytest.approx(9.5, abs=0.3)
