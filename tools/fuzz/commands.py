"""Command lines: every command, option and key that there is, with good and odd values."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import warnings
from pathlib import Path
from typing import Any

from netbuf_gym import scenarios, tasks, traces
from netbuf_gym.cli import program
from studies.common.settings import find_key_kinds
from studies.rlbm.rlbm_settings import Settings
from tools.fuzz import random_worlds
from tools.fuzz.case import ACCEPTED, REFUSED, Case, Finding
from tools.fuzz.server import Kind

STATUSES = (0, 1, 2, 130)
MOST_LINES = 8
"""On standard error: bad input is answered with one, and learners may warn of something."""

NUMBERS = ("0", "1", "2", "3", "-1", "0.5", "1e-12", "1e-3", "10", "100", "1e6", "nan", "inf", "-inf", "1e309", "1_0", "٣")
HUGE = ("9223372036854775807", "18446744073709551616", "1" * 400)
ODD = (
    "", " ", "x", "null", "true", "False", "[]", "{}", "[1,2]", "[1", "{a:1}", '{"a":1}', '"', "'", "$x", "${seed}",
    "${no.such}", "a=b", "=", "--", "-", "a,b", ",", "é", "\udcff", "a" * 300, "[[]]", "*", "?", "~", "+", "\t", "\n",
    "\\", "%s", "{0}",
)  # fmt: skip
PATHS = (
    "trace.csv", "trace.down", "flows.csv", "sizes.csv", "world.json", "odd.txt", "folder", "missing.csv", ".",
    "no/such/file",
    "/dev/null", "/dev/full", "out.json", "out.csv", "out.png", "out.svg", "out.md",
)  # fmt: skip
"""The first ones are there."""

MODELS: dict[str, Path] = {}
"""Of each task, one that comes with the package."""

SMALL = {
    "train": (
        "total_timesteps=32", "algo.num_envs=2", "algo.kwargs.n_steps=8", "algo.kwargs.batch_size=8", "algo.net_arch=[4]",
        "scenario.kwargs.duration_s=1", "stagger_steps=0", "tensorboard=false", "progress=false", "run_dir=run",
    ),
    "evaluate": (
        "model=null", "env=queue_threshold", "seeds=1", "scenario.kwargs.duration_s=1", "baselines=[naive]", "plots=false",
        "run_dir=run",
    ),
    "demo": ("total_timesteps=32", "algo.num_envs=2", "algo.net_arch=[4]", "max_minutes=0.01", "run_dir=run"),
    "reproduce": (
        "rlbm", "schemes=[naive]", "ccs=[cubic]", "sizes=[20]", "loads=[0.4]", "seeds=1", "duration_s=1", "intervals=[]",
        "figures=false", "jobs=1", "output=run",
    ),
}  # fmt: skip
"""Settings that make jobs take little; without it they are interrupted."""
LONG = ("tune",)
"""They begin processes that train: tests/training/test_tune.py has them."""
MORE = {
    "evaluate": (
        "model=MODEL", "env=congestion_window", "scenario=ppcc/2", "baselines=[cubic,random]", "plots=true", "senders=2",
    ),
    "train": (
        "env=queue_threshold", "scenario=ppcc/2", "algo=dqn", "algo=ppo_lstm", "resume=MODEL", "reward=power",
        "experiment=demo",
    ),
    "reproduce": ("schemes=all", "agent=MODEL", "traffic=default", "figures=true", "sizes=[1]", "intervals=[0.1]", "seeds=2"),
}  # fmt: skip


def run(case: Case) -> str:
    """Run a command line in this process."""
    _write_inputs(case)
    argv = [word.replace("\0", "") for word in draw_command(case)]
    case.tell(argv)
    said = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            status = program.main(argv)
    except KeyboardInterrupt:  # it came when the command had ended
        return ACCEPTED
    text = said.getvalue()
    if status not in STATUSES:
        raise Finding(f"exit status {status}: {text[-2000:]}")
    if "Traceback" in text or 'File "' in text:
        raise Finding(f"a trace back: {text[-3000:]}")
    lines = [line for line in text.replace("\r", "\n").split("\n") if line.strip()]
    if len(lines) > MOST_LINES:
        raise Finding(f"{len(lines)} lines on standard error: {text[:2000]}")
    if status == 2 and not text.strip():
        raise Finding("exit status 2 without a word")
    if left := [path.name for path in case.folder.rglob(".*") if path.is_file() and path.name != ".lock"]:
        raise Finding(f"left behind: {left}")
    return REFUSED if status == 2 else ACCEPTED


def draw_command(case: Case) -> list[str]:
    """Draw the words of a command line."""
    top = program.build_parser()
    commands = _list_choices(top)
    if case.chance(0.02):
        return [case.pick((*ODD, "-h", "--version", *commands)) for _ in range(case.whole(0, 3))]
    name = case.pick([one for one in commands if one not in LONG for _ in range(1 if one == "demo" else 4)])
    if name in (*program.JOBS, "reproduce"):
        return [name, *_draw_job(case, name)]
    return [name, *_draw_words(case, commands[name])]


def _draw_words(case: Case, parser: argparse.ArgumentParser) -> list[str]:
    """Draw arguments of a command, as its parser describes them."""
    words: list[str] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            verb = case.pick(list(action.choices))
            return [*words, verb, *_draw_words(case, action.choices[verb])]
        if not action.option_strings:
            if action.nargs != "?" or case.chance(0.7):
                words.append(_draw_value(case, action))
        elif action.dest == "help":
            words += ["--help"] if case.chance(0.01) else []
        elif action.required or case.chance(0.3):
            for _ in range(case.pick((1, 1, 1, 2))):
                words.append(case.pick(action.option_strings))
                if action.nargs != 0:
                    words.append(_draw_value(case, action))
    if case.chance(0.05):
        words.insert(case.whole(0, len(words)), case.pick(ODD))
    return words


def _draw_value(case: Case, action: argparse.Action) -> str:
    if action.choices is not None and case.chance(0.95):
        return str(case.pick(list(action.choices)))
    if case.chance(0.06):
        return case.pick((*ODD, *HUGE, *NUMBERS))
    name, meta = action.dest, str(action.metavar or "")
    if name == "scenario":
        return _draw_scenario(case)
    if name == "set":
        return f"{_draw_argument(case)}={case.pick((*NUMBERS, *NUMBERS, *ODD, *PATHS, 'cubic', '[1,2]', '[1.5,3]'))}"
    if name == "senders":
        return case.pick(("cubic", "bbr", "cubic,bbr", "agent", "cubic,cubic,newreno", "x"))
    if name == "scheme":
        return case.pick((*scenarios.SCHEMES, '{"name": "dt", "alphas": [1, 2]}', '{"name": "codel", "target_ms": 0}', "{"))
    if meta in ("N", "S"):
        return case.pick(("0", "1", "2", "5", "0.1", "0.5", *NUMBERS[:12]))
    return case.pick(PATHS)


def _draw_scenario(case: Case) -> str:
    known = [*scenarios.names(), "rlbm/cubic-100-0.6", "trace:trace.csv", "trace:trace.down", "file:world.json", "file:odd.txt"]
    return case.pick((*known, "trace:", "file:", "trace:missing", "rlbm/cubic-0-0", "rlbm/x-1-1", f"rlbm/cubic-{'9' * 30}-0.5"))


def _draw_argument(case: Case) -> str:
    """Draw an argument of a scenario or of a generator of traces."""
    names = [*scenarios.parameters_of(case.pick(scenarios.names()))]
    names += list(traces.generators.list_parameters(case.pick(sorted(traces.GENERATORS))))
    return case.pick((*names, "duration_s", "duration_s", "rate_mbps", "n", "name", "kind", "seed", "self", "x", ""))


def _draw_job(case: Case, name: str) -> list[str]:
    """Draw keys and values of a job, mostly small."""
    words = [] if case.chance(0.04) else list(SMALL[name])
    for _ in range(case.pick((0, 1, 1, 2, 3))):
        if name in MORE and case.chance(0.5):
            words.append(case.pick(MORE[name]).replace("MODEL", str(case.pick(list(MODELS.values())))))
            continue
        key = case.pick(KEYS[name])
        value = case.pick((*NUMBERS, *ODD, *PATHS[:9], *HUGE, "[1000000]", "cubic", "[naive,dt]", *tasks.names()))
        words.append(case.pick((f"{key}={value}",) * 6 + (key, f"+{key}={value}", f"~{key}", f"{key}.x={value}", value)))
    if case.chance(0.1):
        words.append(case.pick(("--help", "-h", "--cfg", "job", "--info", "-m", "--config-dir", "folder", *ODD)))
    return words


KEYS: dict[str, list[str]] = {}
"""Of each job."""


def prepare(folder: Path) -> None:
    """Imports what jobs need, and finds out what keys they take."""
    import torch._dynamo  # noqa: F401  (learners import it when they begin, for seconds)
    from omegaconf import OmegaConf

    from netbuf_gym.training import demo, evaluate, train  # noqa: F401
    from netbuf_gym.training.config import load
    from netbuf_gym.zoo import library

    for job in ("train", "evaluate"):
        KEYS[job] = list(_flatten(OmegaConf.to_container(load(job, []))))
    KEYS["train"] += [f"algo.kwargs.{key}" for key in ("n_steps", "batch_size", "gamma", "target_kl", "n_epochs", "x")]
    KEYS["train"] += ["scenario.kwargs.n", "scenario.kwargs.loss", "env.kwargs.recipe", "env.kwargs.history"]
    KEYS["evaluate"] += ["scenario.kwargs.n", "scenario.kwargs.load", "env"]
    KEYS["demo"] = KEYS["train"]
    KEYS["reproduce"] = [*find_key_kinds(Settings), "output", "jobs", "figures", "intervals", "x"]
    agents = library.FOLDER
    MODELS.update({path.parent.parent.name: path for path in sorted(agents.rglob("model.zip"))})


def _flatten(data: dict[str, Any], at: str = "") -> list[str]:
    keys = []
    for key, value in data.items():
        keys.append(at + key)
        keys += _flatten(value, f"{at}{key}.") if isinstance(value, dict) else []
    return keys


def _list_choices(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return next(dict(action.choices) for action in parser._actions if isinstance(action, argparse._SubParsersAction))


def _write_inputs(case: Case) -> None:
    """Write the files that commands may be given."""
    Path("trace.csv").write_text("time_s,mbps\n0,5\n1,0\n1.5,2\n")
    Path("trace.down").write_text("1\n2\n2\n9\n40\n")
    Path("flows.csv").write_text("flow_id,start_s,sender,size_bytes,priority\n0,0,0,5000,0\n1,0.1,1,90000,1\n")
    Path("sizes.csv").write_text("size_bytes,cumulative\n100,0\n1000,0.5\n90000,1\n")
    Path("world.json").write_text(json.dumps(random_worlds.draw_world(case)))
    Path("odd.txt").write_bytes(b"\xff\x00 1,2\n,\n")
    os.mkdir("folder")


KIND = Kind("commands", run, prepare=prepare, share=2.0, interrupt_s=2.0, limit_s=90.0)
