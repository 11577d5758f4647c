"""Completion: what is offered, that it is quick and follows the package, and that three shells put it in."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from netbuf_gym import scenarios, tasks
from netbuf_gym.cli import completion, program
from netbuf_gym.cli.completion import answer, format_script, table
from netbuf_gym.training import config_reference

ANSWER = answer.__file__


@pytest.fixture(scope="module")
def made():
    return json.loads(json.dumps(table.make_table()))


def offered(made, line):
    return answer.find_candidates(made, answer.split_line(line))


@pytest.mark.parametrize(
    ("line", "some", "none"),
    [
        ("", ["simulate", "train", "completion"], ["--scenario"]),
        ("tra", ["trace", "train"], ["list"]),
        ("--", ["--help", "--version"], ["train"]),
        ("simulate --s", ["--scenario", "--set", "--seed"], ["--json"]),
        ("simulate --scenario ppcc/", ["ppcc/1", "ppcc/random"], ["rlbm/default"]),
        ("simulate --scenario ppcc/2 --set r", ["rate_mbps=", "rtt_ms="], ["n="]),
        ("simulate --senders cubic,b", ["cubic,bbr"], ["cubic,cubic"]),
        ("simulate --stack ", ["linux", "ns3"], ["--stack"]),
        ("simulate --scheme co", ["codel"], ["naive"]),
        ("list re", ["rewards"], ["scenarios"]),
        ("trace generate w", ["walk", "wifi", "wired"], ["lte"]),
        ("trace generate lte --set ", ["sigma="], ["rate_mbps="]),
        ("completion ", ["bash", "zsh", "fish"], []),
        ("train ", ["algo=", "algo.", "seed=", "env=", "scenario="], ["--cfg", "algo.name="]),
        ("train --c", ["--cfg", "--config-dir"], ["--info"]),
        ("train --cfg ", ["job", "hydra", "all"], ["seed="]),
        ("train --info ", ["defaults-tree", "searchpath"], []),
        ("train --info sc", ["scenario="], []),
        ("train -m algo=", ["algo=ppo", "algo=dqn"], []),
        ("train -m algo=ppo,", ["algo=ppo,dqn"], ["algo=dqn"]),
        ("train algo.", ["algo.learning_rate=", "algo.kwargs."], ["algo.kwargs.gamma="]),
        ("train algo.kwargs.", ["algo.kwargs.clip_range="], ["algo.kwargs.buffer_size="]),
        ("train algo=dqn algo.kwargs.", ["algo.kwargs.buffer_size="], ["algo.kwargs.clip_range="]),
        ("train ~algo.kwargs.g", ["~algo.kwargs.gamma"], ["~algo.kwargs.gamma="]),
        ("train ++sce", ["++scenario="], []),
        ("train algo.activation=", ["algo.activation=relu"], []),
        ("train tensorboard=", ["tensorboard=true", "tensorboard=false"], []),
        ("train scenario=", ["scenario=ppcc/1", "scenario=rlbm/default", "scenario=trace:", "scenario=training"], []),
        ("train scenario=ppcc/2 scenario.kwargs.ra", ["scenario.kwargs.rate_mbps="], []),
        ("train reward=switch_tail reward.kwargs.sl", ["reward.kwargs.slowdown_weight="], []),
        ("train env=", ["env=congestion_window", "env=host_buffers", "env=queue_threshold", "env=receiver_window"], []),
        ("train seed=1 se", [], ["seed="]),
        ("demo exp", ["experiment="], []),
        ("evaluate baselines=", ["baselines=[", "baselines=[cubic"], []),
        ("evaluate baselines=[cubic,b", ["baselines=[cubic,bbr"], []),
        ("evaluate baselines=[cubic", ["baselines=[cubic]"], []),
        ("evaluate model=congestion", ["model=congestion_window/ppo"], []),
        ("evaluate env=q", ["env=queue_threshold"], []),
        ("reproduce ", ["rlbm"], []),
        ("reproduce rlbm s", ["schemes=", "sizes=", "seeds="], ["loads="]),
        ("reproduce rlbm schemes=[naive,d", ["schemes=[naive,dt"], []),
        ("reproduce rlbm traffic=t", ["traffic=thesis-code"], []),
        ("suite ", ["gate", "cards", "validation"], []),
        ("suite gate ", ["controller=", "families="], []),
        ("suite gate controller=[cubic,congestion_window/p", ["controller=[cubic,congestion_window/ppo"], []),
        ("suite gate controller=d", [], ["controller=dt"]),
        ("suite gate families=[fixed,ce", ["families=[fixed,cellular"], []),
        ("nonsense ", [], ["train"]),
        ("train nonsense=", [], ["nonsense=true"]),
        ("train 'sce", ["scenario="], []),
    ],
)
def test_what_is_offered(made, line, some, none):
    found = offered(made, line)
    assert set(some) <= found.keys() and not set(none) & found.keys(), found


def test_nothing_that_there_is_lacks(made):
    """Every command, option, group, choice and key; every scenario, controller and reward."""
    assert offered(made, "").keys() >= {*program.COMMANDS, *program.JOBS}
    top = program.build_parser()
    for name in (*program.COMMANDS, *program.JOBS):
        for action in program._find_subparser(top, name)._actions:
            assert offered(made, f"{name} -").keys() >= set(action.option_strings)
    for job in ("train", "evaluate"):
        for key in config_reference.list_keys(job):
            assert f"{key.name}=" in offered(made, f"{job} {key.name[:-1]}"), key
        for group in config_reference.read_groups(job):
            found = offered(made, f"{job} {group}=")
            assert found.keys() >= {f"{group}={choice}" for choice in config_reference.read_choices(group)}
    assert offered(made, "train scenario=").keys() >= {f"scenario={name}" for name in scenarios.names()}
    for record in tasks.records():
        assert offered(made, "train reward.name=").keys() >= {f"reward.name={name}" for name in record.rewards}
        assert offered(made, "evaluate baselines=").keys() >= {f"baselines=[{name}" for name in record.controllers}


def test_paths(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "file.csv").write_text("")
    (tmp_path / "runs" / "a b").mkdir()
    assert offered(made, "train resume=runs/").keys() == {"resume=runs/one/"}  # what needs quotes is left to the user
    assert offered(made, "train scenario=trace:runs/f").keys() == {"scenario=trace:runs/file.csv"}
    assert offered(made, "trace show runs/").keys() == {"runs/one/", "runs/a b/", "runs/file.csv"}
    assert offered(made, "validate ru").keys() == {"runs/"}
    assert offered(made, "simulate --json runs/f").keys() == {"runs/file.csv"}
    (tmp_path / "mine" / "algo").mkdir(parents=True)
    (tmp_path / "mine" / "algo" / "quick.yaml").write_text("")
    assert offered(made, "train --config-dir mine algo=qu").keys() == {"algo=quick"}


def ask(cache, *words):
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    run = subprocess.run([sys.executable, ANSWER, *words], capture_output=True, text=True, env=environment, cwd=cache)
    assert run.stderr == ""
    return run.stdout.splitlines()


@pytest.mark.slow
def test_an_answer_needs_no_import_of_the_package_and_follows_it(tmp_path, monkeypatch):
    assert "algo=" in [line.partition("\t")[0] for line in ask(tmp_path, "zsh", "train", "al")]
    (kept,) = (tmp_path / "netbuf-gym").glob("*.json")
    marked = json.loads(kept.read_text())
    marked["commands"][""]["commands"]["from-the-cache"] = {"help": ""}
    kept.write_text(json.dumps(marked))
    assert ask(tmp_path, "fish", "from") == ["from-the-cache"]
    began = time.process_time(), os.times().children_user
    ask(tmp_path, "fish", "train", "")
    assert os.times().children_user - began[1] < 0.15  # a start of Python, no numpy
    kept.rename(kept.with_name("completion-0123456789abcdef.json"))  # as after a change of the package
    assert ask(tmp_path, "fish", "from") == [] and len(list((tmp_path / "netbuf-gym").iterdir())) == 1
    kept.write_text("{")  # damaged
    assert ask(tmp_path, "fish", "completi") == [f"completion\t{completion.HELP}"]


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    (tmp_path / "netbuf-gym").write_text("a file")
    assert ask(tmp_path, "bash", "netbuf-gym tra", " =:") == ["trace", "train"]


def test_the_state_of_the_package_tells_changes():
    assert answer._compute_package_digest() == answer._compute_package_digest()
    path = Path(table.__file__)
    before, stat = answer._compute_package_digest(), path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1000))
    try:
        assert answer._compute_package_digest() != before
    finally:
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


# ---- in the shells themselves

START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
SET_UP = {
    "bash": "bind 'set bell-style none'; netbuf-gym() { printf 'GOT<%s>\\n' \"$*\"; }; source ./script",
    "zsh": 'netbuf-gym() { print -r -- "GOT<$*>" }; source ./script',
    "fish": 'function netbuf-gym; echo "GOT<$argv>"; end; function fish_prompt; end; source ./script',
}


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, shell, folder):
        environment = {
            **{key: value for key, value in os.environ.items() if key in ("PATH", "LANG")},
            "HOME": str(folder),
            "XDG_CACHE_HOME": str(folder),
            "TERM": "dumb" if shell != "fish" else "xterm",
            "PS1": "$ ",
        }
        self.child, self.file = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            os.execvpe(START[shell][0], START[shell], environment)
        self.seen = ""

    def send(self, text):
        os.write(self.file, text.encode())

    def until(self, pattern, seconds=20.0):
        """What a line of output says; raises where it does not come."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.search(pattern, self.seen)
            if found:
                self.seen = self.seen[found.end() :]
                return found[1]
            if select.select([self.file], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.file, 65536).decode(errors="replace")
                except OSError:
                    break
        raise AssertionError(f"no {pattern} in {self.seen[-2000:]!r}")

    def quiet(self, seconds=0.5):
        """Waits until nothing more comes."""
        while select.select([self.file], [], [], seconds)[0]:
            try:
                self.seen += os.read(self.file, 65536).decode(errors="replace")
            except OSError:
                return

    def close(self):
        os.close(self.file)
        os.kill(self.child, 9)
        os.waitpid(self.child, 0)


@pytest.mark.slow
@pytest.mark.parametrize("shell", START)
def test_a_shell_puts_it_in(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    (tmp_path / "script").write_text(format_script(shell))
    ask(tmp_path, "fish", "")  # the table
    terminal = Terminal(shell, tmp_path)
    try:
        terminal.quiet(1.0)
        terminal.send(f"{SET_UP[shell]}\n")
        terminal.quiet(1.0)
        for typed, got in (
            ("eval\t", "evaluate"),
            ("train experim\tdem\tsee\t3", "train experiment=demo seed=3"),
            ("train algo.kwargs.gam\t0.9", "train algo.kwargs.gamma=0.9"),
            ("simulate --scenario ppcc/fl\t--dur\t5", "simulate --scenario ppcc/fluctuating --duration 5"),
            ("train --cfg jo\t", "train --cfg job"),
            ("evaluate model=queue\tppo-\t", "evaluate model=queue_threshold/ppo-10ms"),
        ):
            terminal.seen = ""
            terminal.send("netbuf-gym ")
            for part in re.split(r"(\t)", typed):
                terminal.send(part)
                if part == "\t":
                    terminal.quiet()
            terminal.send("\n")
            assert terminal.until(r"GOT<([^>]*)>").strip() == got
    finally:
        terminal.close()


def test_the_scripts_are_printed(capsys):
    for shell in START:
        assert program.main(["completion", shell]) == 0
        assert capsys.readouterr().out == format_script(shell)
    assert program.main(["completion", "csh"]) == 2
    assert "choose from" in capsys.readouterr().err
