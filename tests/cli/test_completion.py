"""Completion: candidates by argcomplete, the time that they take, and what three shells insert."""

import io
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import pytest

from netbuf_gym import scenarios, tasks
from netbuf_gym.cli import completion, program
from netbuf_gym.training import config_reference


@pytest.fixture
def complete(monkeypatch):
    """Function that returns the candidates for the last word of a line, as the script of a shell receives them."""

    def run(line):
        line = f"netbuf-gym {line}"
        for name, value in (("", "1"), ("_IFS", "\n"), ("_SHELL", "fish"), ("_SUPPRESS_SPACE", "1")):
            monkeypatch.setenv(f"_ARGCOMPLETE{name}", value)
        monkeypatch.setenv("COMP_LINE", line)
        monkeypatch.setenv("COMP_POINT", str(len(line)))
        monkeypatch.setattr(completion.Finder, "_init_debug_stream", lambda finder: None)  # descriptor 9 is pytest's here
        output = io.StringIO()
        completion.print_completions(output_stream=output, exit_method=lambda status: None)
        return output.getvalue().splitlines()

    return run


@pytest.mark.parametrize(
    ("line", "some", "none"),
    [
        ("", ["simulate", "train", "completion"], ["--version"]),
        ("tra", ["trace", "train"], ["list"]),
        ("--", ["--help", "--version"], ["train"]),
        ("simulate --s", ["--scenario", "--set", "--seed"], ["--json"]),
        ("simulate --seed 5 --se", ["--senders", "--set"], ["--seed"]),
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
        ("train -m algo=", ["algo=ppo", "algo=dqn"], []),
        ("train -m algo=ppo,", ["algo=ppo,dqn"], ["algo=dqn", "algo=ppo,ppo"]),
        ("train algo.", ["algo.learning_rate=", "algo.kwargs."], ["algo.kwargs.gamma="]),
        ("train algo.kwargs.", ["algo.kwargs.clip_range="], ["algo.kwargs.buffer_size="]),
        ("train algo=dqn algo.kwargs.", ["algo.kwargs.buffer_size="], ["algo.kwargs.clip_range="]),
        ("train algo=dqn -m algo.kwargs.", ["algo.kwargs.buffer_size="], ["algo.kwargs.clip_range="]),
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
        ("evaluate baselines=", ["baselines=[cubic", "baselines=[dt"], []),
        ("evaluate baselines=[cubic,b", ["baselines=[cubic,bbr"], []),
        ("evaluate baselines=[newren", ["baselines=[newreno]", "baselines=[newreno,"], []),
        ("evaluate model=congestion", ["model=congestion_window/ppo"], []),
        ("evaluate env=q", ["env=queue_threshold"], []),
        ("reproduce ", ["rlbm"], []),
        ("reproduce rlbm s", ["schemes=", "sizes=", "seeds="], ["loads="]),
        ("reproduce rlbm schemes=[naive,d", ["schemes=[naive,dt"], []),
        ("reproduce rlbm traffic=t", ["traffic=thesis-code"], []),
        ("reproduce rlbm agent=queue", ["agent=queue_threshold/ppo"], []),
        ("suite ", ["gate", "cards", "validation"], []),
        ("suite gate ", ["controller=", "families="], []),
        ("suite gate controller=[cubic,congestion_window/p", ["controller=[cubic,congestion_window/ppo"], []),
        ("suite gate controller=d", [], ["controller=[dt"]),
        ("suite gate families=[fixed,ce", ["families=[fixed,cellular]"], []),
        ("leaderboard ", ["submit", "show", "check"], ["task="]),
        ("leaderboard show t", ["task=", "threads="], []),
        ("leaderboard submit queue_threshold/p", ["queue_threshold/ppo"], []),
        ("live tune --apply con", ["controller="], []),
        ("live run task=", ["task=host_buffers"], []),
        ("train nonsense=", [], ["nonsense=true"]),
        ("suite nonsense controller=", [], ["controller=[cubic"]),
        ("train 'sce", ["scenario="], []),
    ],
)
def test_candidates(complete, line, some, none):
    found = set(complete(line))
    assert set(some) <= found and not set(none) & found, found


def test_every_command_option_group_choice_and_key_is_a_candidate(complete):
    parser = program.build_parser()
    assert set(complete("")) == parser.commands.keys()
    for name, own in parser.commands.items():
        options = {option for action in own._actions for option in action.option_strings if action.help != "==SUPPRESS=="}
        assert set(complete(f"{name} -")) >= options
    for job in ("train", "evaluate"):
        for key in config_reference.list_keys(job):
            assert f"{key.name}=" in complete(f"{job} {key.name[:-1]}"), key
        for group in config_reference.read_groups(job):
            assert set(complete(f"{job} {group}=")) >= {f"{group}={name}" for name in config_reference.read_choices(group)}
    assert set(complete("train scenario=")) >= {f"scenario={name}" for name in scenarios.names()}
    for record in tasks.records():
        assert set(complete("train reward.name=")) >= {f"reward.name={name}" for name in record.rewards}
        assert set(complete("evaluate baselines=")) >= {f"baselines=[{name}" for name in record.controllers}


def test_paths(complete, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "file.csv").write_text("")
    assert complete("train resume=runs/") == ["resume=runs/one/"]
    assert complete("train scenario=trace:runs/f") == ["scenario=trace:runs/file.csv"]
    assert sorted(complete("trace show runs/")) == ["runs/file.csv", "runs/one/"]
    assert complete("validate ru") == ["runs/"]
    assert complete("simulate --json runs/f") == ["runs/file.csv"]
    (tmp_path / "mine" / "algo").mkdir(parents=True)
    (tmp_path / "mine" / "algo" / "quick.yaml").write_text("")
    assert complete("train --config-dir mine algo=qu") == ["algo=quick"]


@pytest.mark.slow
def test_a_completion_costs_little_more_than_the_import_of_the_tasks():
    learners = "{'torch', 'hydra', 'omegaconf', 'stable_baselines3', 'matplotlib', 'pandas', 'scipy'}"
    code = (
        "import os, sys; from netbuf_gym.cli.completion import print_completions as answer;"
        f"answer(output_stream=sys.stdout, exit_method=lambda status: print({learners} & set(sys.modules)))"
    )
    spent = []
    line = "netbuf-gym train algo.kwargs.g"
    environment = os.environ | {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    for program_text in ("import netbuf_gym.tasks", code):
        began = os.times().children_user
        done = subprocess.run([sys.executable, "-c", program_text], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        spent.append(os.times().children_user - began)
    assert "algo.kwargs.gamma=" in done.stdout and done.stdout.endswith("set()\n"), done.stdout
    assert spent[1] < 2 * spent[0]


# ---- in the shells themselves

START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
SET_UP = {
    "bash": "bind 'set bell-style none'; source ./script",
    "zsh": "source ./script",
    "fish": "function fish_prompt; end; source ./script",
}
COMMAND = """#!/bin/sh
if [ -n "$_ARGCOMPLETE" ]; then
    {python} -m netbuf_gym
    echo completed >> "$HOME/log"
else
    echo "GOT<$*>"
fi
"""
"""Program in the place of netbuf-gym: completes as it does and logs that, and otherwise prints its arguments."""


class Terminal:
    """Shell on a terminal of its own."""

    def __init__(self, shell, folder):
        environment = {
            **{key: value for key, value in os.environ.items() if key in ("LANG", "PYTHONPATH")},
            "PATH": f"{folder}:{os.environ['PATH']}",
            "HOME": str(folder),
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

    def wait_for(self, pattern, seconds=60.0):
        """Return the group of a pattern in the output; fail where it does not come."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.search(pattern, self.seen)
            if found:
                self.seen = self.seen[found.end() :]
                return found[1]
            self.read(0.1)
        raise AssertionError(f"no {pattern} in {self.seen[-2000:]!r}")

    def read(self, seconds):
        """Read what comes within some seconds; return whether there is any."""
        if not select.select([self.file], [], [], seconds)[0]:
            return False
        try:
            self.seen += os.read(self.file, 65536).decode(errors="replace")
        except OSError:
            return False
        return True

    def wait_for_silence(self, seconds):
        while self.read(seconds):
            pass

    def press_tab(self, log, seconds=60.0):
        """Send TAB, and wait until the program has answered and the shell has inserted it."""
        self.wait_for_silence(0.2)
        size, end = log.stat().st_size, time.monotonic() + seconds
        self.send("\t")
        while log.stat().st_size == size and time.monotonic() < end:
            self.read(0.1)
        self.wait_for_silence(0.5)

    def close(self):
        os.close(self.file)
        os.kill(self.child, 9)
        os.waitpid(self.child, 0)


@pytest.mark.slow
@pytest.mark.parametrize("shell", START)
def test_a_shell_inserts_candidates(shell, tmp_path, capsys):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    assert program.main(["completion", shell]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "netbuf-gym").write_text(COMMAND.format(python=sys.executable))
    (tmp_path / "netbuf-gym").chmod(0o755)
    (tmp_path / "lte.down").write_text("1\n")
    (tmp_path / "log").touch()
    terminal = Terminal(shell, tmp_path)
    try:
        terminal.wait_for_silence(1.0)
        terminal.send(f"{SET_UP[shell]}\n")
        terminal.wait_for_silence(1.0)
        for typed, got in (
            ("eval\t", "evaluate"),
            ("train experim\tdem\tsee\t3", "train experiment=demo seed=3"),
            ("train env=con\t", "train env=congestion_window"),
            ("train algo.kwargs.gam\t0.9", "train algo.kwargs.gamma=0.9"),
            ("train scenario=trace:lt\t", "train scenario=trace:lte.down"),
            ("simulate --scenario ppcc/fl\t--dur\t5", "simulate --scenario ppcc/fluctuating --duration 5"),
            ("train --cfg jo\t", "train --cfg job"),
            ("evaluate model=queue\tppo-\t", "evaluate model=queue_threshold/ppo-10ms"),
            ("evaluate 'baselines=[cubic,bb\t3]'", "evaluate baselines=[cubic,bbr3]"),
        ):
            terminal.seen = ""
            terminal.send("netbuf-gym ")
            for part in re.split(r"(\t)", typed):
                if part == "\t":
                    terminal.press_tab(tmp_path / "log")
                else:
                    terminal.send(part)
            terminal.send("\n")
            assert terminal.wait_for(r"GOT<([^>]*)>").strip() == got
    finally:
        terminal.close()


def test_an_unknown_shell_is_refused(capsys):
    assert program.main(["completion", "csh"]) == 2
    assert "choose from" in capsys.readouterr().err
