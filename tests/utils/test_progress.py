"""Progress: a bar on a terminal, lines elsewhere and without tqdm, nothing where nothing is wanted."""

import builtins
import io
import subprocess
import sys

import pytest

from netbuf_gym.utils import progress
from netbuf_gym.utils.progress import ProgressBar, format_duration


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(monkeypatch, stream, steps=4, **kwargs):
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressBar("working", **kwargs) as bar:
        for step in range(steps + 1):
            bar(step, steps, f"at {step}")
    return stream.getvalue()


def test_a_bar_on_a_terminal_ends_with_its_line(monkeypatch):
    text = shown(monkeypatch, Terminal())
    assert "working 100%|" in text and "4/4, at 4" in text and text.endswith("\n")


def test_lines_elsewhere_come_seldom(monkeypatch):
    assert shown(monkeypatch, io.StringIO()) == ""
    text = shown(monkeypatch, io.StringIO(), line_seconds=0.0)
    assert text.splitlines()[-1] == "working 100%  4/4, at 4  0 s" and "\r" not in text
    assert shown(monkeypatch, io.StringIO(), line_seconds=None) == ""
    assert shown(monkeypatch, Terminal(), shown=False) == ""


def test_without_tqdm_there_are_lines_on_a_terminal_too(monkeypatch):
    imported = builtins.__import__

    def without(name, *args):
        if name.partition(".")[0] == "tqdm":
            raise ModuleNotFoundError(name=name)
        return imported(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "working  50%  2/4" in shown(monkeypatch, Terminal(), line_seconds=0.0)
    assert progress._import_tqdm() is None


def test_what_is_said_meanwhile_is_a_line_of_its_own(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with ProgressBar("working") as bar:
        bar(1, 2)
        progress.print_line("half of it")
    assert capsys.readouterr().out == "half of it\n"


def test_a_bar_is_closed_when_work_fails(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(ValueError), ProgressBar("working") as bar:
        bar(1, 2)
        raise ValueError
    assert stream.getvalue().endswith("\n")


def test_times_as_people_say_them():
    assert [format_duration(seconds) for seconds in (4.4, 89, 720, 36000)] == ["4 s", "89 s", "12 min", "10.0 h"]


@pytest.mark.slow
def test_importing_it_loads_no_tqdm():
    code = "import sys, netbuf_gym.cli.program, netbuf_gym.utils.progress; print('tqdm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
