"""Training says where it writes, how long it takes and what comes next, and draws its curve; evaluation shows progress."""

import builtins
import io
import re
import shlex
import sys
import types

import pytest

from netbuf_gym.cli import program as cli
from netbuf_gym.training import callbacks, curves, models
from netbuf_gym.training.callbacks import ProgressDisplay, StopCondition


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_folder_curve_and_next_command(tiny, capsys, tmp_path, monkeypatch):
    overrides, _ = tiny
    run_dir = tmp_path / "it's a run"
    assert cli.main(["train", *overrides[:-1], f'run_dir="{run_dir}"']) == 0
    first, *_, curve, last = capsys.readouterr().out.splitlines()
    assert first == f"training ppo on ppcc/4 for 128 steps, into {run_dir}"
    assert curve == f"learning curve: {run_dir / 'learning_curve.png'}" and (run_dir / "learning_curve.png").is_file()
    said, command = last.split(": ", 1)
    assert said == "evaluate with"
    program, *words = shlex.split(command)  # as a shell reads it
    assert program == "netbuf-gym" and words[0] == "evaluate"
    monkeypatch.chdir(tmp_path)
    assert cli.main([*words, "seeds=1", "scenario.kwargs.duration_s=2", "scenario=ppcc/4", "baselines=[]", "plots=false"]) == 0


@pytest.mark.slow
def test_after_an_interruption_the_printed_command_goes_on_and_the_curve_is_whole(tiny, capsys, tmp_path, monkeypatch):
    overrides, _ = tiny
    run_dir = tmp_path / "a run"
    stopped = types.SimpleNamespace(received=2)

    class Interrupted(callbacks.Interrupt):
        def __enter__(self):
            return self

        @property
        def received(self):
            return stopped.received if self.model_steps() >= 160 else None

        @received.setter
        def received(self, value):
            pass

        def model_steps(self):
            return seen[-1].num_timesteps if seen else 0

    seen = []
    real = models.make_model
    monkeypatch.setattr(models, "make_model", lambda *args, **kwargs: seen.append(real(*args, **kwargs)) or seen[-1])
    monkeypatch.setattr(callbacks, "Interrupt", Interrupted)
    longer = ["total_timesteps=256", "scenario.kwargs.duration_s=1"]
    assert cli.main(["train", *overrides[:-1], *longer, f"run_dir='{run_dir}'"]) == 130
    out = capsys.readouterr().out
    assert (run_dir / "learning_curve.png").is_file() and "learning curve: " in out
    steps, _ = curves.read_curve(run_dir)
    stopped.received = None
    program, *words = shlex.split(re.search(r"continue with: (.*)", out)[1])
    assert program == "netbuf-gym" and words[0] == "train"
    (run_dir / "learning_curve.png").unlink()
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert out.startswith("going on at ") and "evaluate with: netbuf-gym evaluate" in out
    whole, values = curves.read_curve(run_dir)
    assert whole[: len(steps)] == steps and whole[-1] >= 256 and len(values) == len(whole) == len(set(whole))
    assert (run_dir / "learning_curve.png").is_file()


def test_rows_without_an_episode_do_not_count(tmp_path):
    head = f"{curves.STEPS},{curves.RETURN}\n"
    (tmp_path / "progress.csv").write_text(head + "10,1\n20,2\n30,\n40,4\n1x,5\n")
    assert curves.read_curve(tmp_path) == ([10, 20, 40], [1, 2, 4])


def test_without_matplotlib_or_episodes_a_line_says_why(tmp_path, monkeypatch):
    assert curves.draw_curve(tmp_path, "ppo") == "no learning curve: no episode has ended yet"
    (tmp_path / "progress.csv").write_text(f"{curves.STEPS},{curves.RETURN}\n10,1\n")
    imported = builtins.__import__

    def without(name, *args):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(name=name)
        return imported(name, *args)

    with monkeypatch.context() as patched:
        patched.setattr(builtins, "__import__", without)
        said = curves.draw_curve(tmp_path, "ppo")
    assert said.startswith("no learning curve: ") and "matplotlib is not installed" in said and "\n" not in said
    assert curves.draw_curve(tmp_path, "ppo") == f"learning curve: {tmp_path / 'learning_curve.png'}"


class Clock:
    """Time as a test has it."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(callbacks.time, "perf_counter", lambda: self.now)


def estimates(monkeypatch, rounds, max_seconds=None, learning_starts=0):
    """What is said of rounds of (seconds, steps)."""
    said, clock = [], Clock(monkeypatch)
    monkeypatch.setattr(callbacks, "print_line", said.append)
    stop = StopCondition(types.SimpleNamespace(received=None), max_seconds)
    one = ProgressDisplay(100_000, stop, "score", line_seconds=1e9)
    one.model = types.SimpleNamespace(num_timesteps=0, learning_starts=learning_starts)
    for seconds, steps in rounds:
        one._on_rollout_start()
        clock.now += seconds
        one.model.num_timesteps += steps
    one._on_rollout_start()
    return said


def test_the_estimate_goes_by_what_was_measured(monkeypatch):
    assert estimates(monkeypatch, [(1, 1000)]) == []  # too short to tell
    assert estimates(monkeypatch, [(2, 1000)] * 5) == ["500 steps/s: about 3 min left, for 100,000 steps"]
    warm = [(1, 20_000), *[(2, 1000)] * 5]  # filling a buffer is fast, and tells nothing
    (said,) = estimates(monkeypatch, warm, learning_starts=20_000)
    assert said.startswith("500 steps/s: ")
    (said,) = estimates(monkeypatch, [(2, 1000)] * 5, max_seconds=60)
    assert said == "500 steps/s: about 56 s left, by max_minutes, which comes to about 30,000 steps"


@pytest.mark.parametrize(("words", "bar"), [([], True), (["progress=false"], False)])
def test_evaluation_shows_a_bar_on_a_terminal(words, bar, tmp_path, monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    always = ["model=null", "env=congestion_window", "seeds=2", "baselines=[cubic,newreno]", "plots=false", "scenario=ppcc/4"]
    assert cli.main(["evaluate", *always, "scenario.kwargs.duration_s=1", f"run_dir={tmp_path / 'out'}", *words]) == 0
    assert ("evaluating 100%|" in stream.getvalue() and "4/4, newreno" in stream.getvalue()) == bar
    assert bar or stream.getvalue() == ""


def test_evaluation_is_quiet_where_there_is_no_terminal(tmp_path, capfd):
    always = ["model=null", "env=congestion_window", "seeds=2", "baselines=[cubic]", "plots=false", "scenario=ppcc/4"]
    assert cli.main(["evaluate", *always, "scenario.kwargs.duration_s=1", f"run_dir={tmp_path / 'out'}"]) == 0
    assert capfd.readouterr().err == ""


def test_the_curve_says_how_many_episodes_its_returns_are_of(tiny, tmp_path, monkeypatch):
    labels = []
    monkeypatch.setattr(curves.plots, "plot_learning_curves", lambda runs, path, label, title="": labels.append(label))
    words = [*tiny[0][:-1], f"run_dir={tmp_path / 'run'}", "algo.kwargs.stats_window_size=7"]
    assert cli.main(["train", *words]) == 0
    assert labels == ["return of an episode (mean of the last 7)"]
