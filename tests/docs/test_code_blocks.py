"""Every code block of README.md and the documentation's pages: run, each page in a folder of its own, in the order of a reader.

A page's Python blocks are one script. Its commands are run for real, with fewer steps, seconds and worlds where `TREATED` says
so; what is looked at and not run stands there too, with the reason. Pages that a test of their own follows are in `FOLLOWED`.
"""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from netbuf_gym.cli.program import build_parser
from studies.pages.code_tables import fill_tables
from studies.pages.command_tables import format_commands as commands_table
from tests.docs import code_blocks
from tests.helpers import machines
from tests.helpers.release_cases import for_release

ROOT = Path(__file__).parents[2]
PATHS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "zoo/README.md", "notebooks/README.md")]
COMMANDS = {"commands": lambda: commands_table(build_parser())}
PAGES = {
    str(path.relative_to(ROOT)): fill_tables(path.read_text(), COMMANDS)
    for path in [*PATHS, *sorted((ROOT / "docs").rglob("*.md"))]
}
BLOCKS = {page: list(code_blocks.blocks(page, text)) for page, text in PAGES.items()}
LIMIT_S = 900  # of a page, on a machine that is busy with others

FOLLOWED = {
    "docs/extending.md": ("tests/docs/test_extending.py", {"python", "cpp", "console", "toml"}),
    "docs/faq.md": ("tests/docs/test_faq_page.py", {"python"}),
    "docs/own_control.md": ("tests/docs/test_own_control_page.py", {"python", "cpp", "console"}),
    "docs/research.md": ("tests/docs/test_research_page.py", {"python", "text"}),
    "docs/tutorials/own_agent.md": ("tests/docs/test_own_agent_page.py", {"python", "console", "toml"}),
}
"""Pages with a test of their own, and the languages of the blocks that it follows."""

SMALL = "algo.num_envs=16 algo.kwargs.batch_size=256 progress=false"
SMALLER, CHECKED, LEFT_OUT = "smaller", "checked", "left out"
TREATED = {
    "netbuf-gym simulate": (SMALLER, "--duration 20"),
    "netbuf-gym simulate --app": (SMALLER, ""),
    "netbuf-gym simulate --senders mine.cc": (LEFT_OUT, "supposes two files of one's own; tests/controllers/test_own.py"),
    "netbuf-gym evaluate": (SMALLER, "seeds=1 plots=false"),
    "netbuf-gym record": (SMALLER, "--episodes 1"),
    "netbuf-gym record queue_threshold brief_pulse --scenario": (SMALLER, "--episodes 2"),
    "python -m netbuf_gym.training.algorithms.cloning": (SMALLER, "epochs=2"),
    "netbuf-gym suite gate": (SMALLER, "families=[ppcc] figures=false"),
    "netbuf-gym leaderboard show": (SMALLER, ""),
    "netbuf-gym leaderboard show task=queue_threshold project=": (LEFT_OUT, "asks a server"),
    "netbuf-gym live check": (SMALLER, ""),
    "netbuf-gym train": (CHECKED, "trains for minutes to hours; tests/training/test_train.py"),
    "netbuf-gym train run_dir=": (SMALLER, f"total_timesteps=2048 {SMALL}"),
    "netbuf-gym tune run_dir=": (SMALLER, f"total_timesteps=2048 trials=1 rungs=1 worlds=2 {SMALL}"),
    "netbuf-gym tune env=congestion_window algo=ppo --cfg": (SMALLER, ""),
    "netbuf-gym suite v1/congestion_window": (SMALLER, "families=[ppcc] figures=false"),
    "netbuf-gym demo": (CHECKED, "trains for minutes; tests/training/test_train.py"),
    "netbuf-gym train --cfg": (SMALLER, ""),
    "netbuf-gym train --info": (SMALLER, ""),
    "netbuf-gym train algo=dqn --cfg": (SMALLER, ""),
    "netbuf-gym tune": (CHECKED, "trains for hours; tests/training/test_tune.py"),
    "python -m netbuf_gym.training.campaign": (CHECKED, "trains for hours; tests/training/test_zoo_campaign.py"),
    "netbuf-gym reproduce": (CHECKED, "runs for minutes to hours; tests/studies/test_campaign.py"),
    "python -m studies.": (LEFT_OUT, "plays trained agents for minutes to hours"),
    "netbuf-gym suite": (CHECKED, "plays hundreds of worlds; tests/evaluation/test_field.py"),
    "netbuf-gym suite gate controller=[mine.cc": (LEFT_OUT, "supposes two files; tests/docs/test_own_control_page.py"),
    "netbuf-gym leaderboard submit": (CHECKED, "plays hundreds of worlds; tests/leaderboard/test_leaderboard.py"),
    "netbuf-gym validate": (CHECKED, "runs for minutes; tests/validation/test_ns3_marks.py"),
    "netbuf-gym trace calibrate": (CHECKED, "needs measured traces; tests/traces/test_calibration.py"),
    "netbuf-gym trace compare": (CHECKED, "needs measured traces; tests/traces/test_calibration.py"),
    "netbuf-gym trace rank": (CHECKED, "needs measured traces; tests/traces/test_calibration.py"),
    "netbuf-gym live": (CHECKED, "changes this host, or runs in real time; tests/host/test_live_tune.py"),
    "sudo netbuf-gym live": (CHECKED, "changes this host; tests/host/test_live_tune.py"),
    "netbuf-gym export runs/mine hub/mine --onnx": (SMALLER, ""),
    "netbuf-gym compile": (SMALLER, "--states 200 --worlds 0"),
    "sudo netbuf-gym install": (LEFT_OUT, "runs until it is ended; tests/cli/test_install.py"),
    "sudo netbuf-gym status": (LEFT_OUT, "of this machine's kernel; tests/cli/test_install.py"),
    "iperf3": (LEFT_OUT, "asks a server"),
    "eval": (LEFT_OUT, "of an interactive shell; tests/cli/test_completion.py"),
    "netbuf-gym completion fish": (LEFT_OUT, "of an interactive shell; tests/cli/test_completion.py"),
    "python -m rl_zoo3": (LEFT_OUT, "belongs into an environment of its own; tests/zoo/test_export.py"),
    "wandb sync": (LEFT_OUT, "sends to a server"),
    "jupyter lab": (LEFT_OUT, "a server; tests/docs/test_notebooks.py runs the notebooks"),
    "apt install": (LEFT_OUT, "changes this machine; .ci/run does it"),
    "cmake": (LEFT_OUT, "builds for minutes, as make test-cpp does"),
    "pip install": (LEFT_OUT, "installs; tests/docs/test_extras.py looks up the extras"),
    "make": (LEFT_OUT, "builds, or runs everything; the targets are looked up below"),
    "source": (LEFT_OUT, "of an environment that is not there"),
    ".venv/bin/python -m pytest": (LEFT_OUT, "a test that runs anyway"),
}
"""What becomes of commands that begin so, the longest beginning first: words that make them smaller, or the reason not to run
them. Commands that begin in no such way are run as they are.

SMALLER: run, with these words beside its own, or instead of those of the same keys. CHECKED: told everything, and stopped where
its work begins, so that what it would refuse is refused. LEFT_OUT: not even that.
"""

SHORTER = {
    "docs/appendix/validation.md": [("duration_s=60", "duration_s=3")],
    "docs/live_plant.md": [("duration_s=10", "duration_s=2")],
    "docs/training.md": [("model.learn(100_000)", "model.learn(8_192)")],
    "docs/tutorials/own_reward.md": [("model.learn(300_000)", "model.learn(4_096)")],
}
"""By page: what of its Python is replaced, in order to be quicker."""

IN_CI = {"README.md", "CONTRIBUTING.md", "docs/environment.md", "docs/index.md", "docs/simulator.md", "docs/networks.md"}
"""Pages whose blocks take a few seconds, or that everybody begins with; the release check has all."""

LIVE = ("docs/appendix/validation.md", "docs/live_plant.md", "docs/tutorials/to_the_kernel.md")
"""Pages whose Python needs live worlds."""

BEST = "# @package _global_\nalgo: {learning_rate: 0.001}\n"
NIGHT = "# @package _global_\ntotal_timesteps: 1000000\n"
TRACE = "".join(f"{ms}\n" for ms in range(0, 20_000, 2))
AGENTS = {
    "runs/mine": "congestion_window/ppo",
    "runs/host": "host_buffers/dqn",
    "runs/congestion_window/ppo/20260101-120000-seed3": "congestion_window/ppo",
    "runs/queue_threshold/ppo/20260101-120000-seed3": "queue_threshold/ppo",
    **{f"runs/mine/seed{seed}": "queue_threshold/ppo" for seed in (1, 2, 3)},
    "runs/congestion_window/ppo/mine": "congestion_window/ppo",
    "runs/congestion_window/ppo_kl/mine": "congestion_window/ppo_kl-ppcc",
    "runs/receiver_window/ppo_lstm/mine": "receiver_window/ppo_lstm",
    "runs/host_buffers/dqn/mine": "host_buffers/dqn",
    "runs/host_buffers/dqn/recipe": "host_buffers/auter",
}
SUPPOSED = {name: f"zoo/agents/{agent}" for name, agent in AGENTS.items()} | {
    "model.zip": "zoo/agents/congestion_window/ppo/model.zip",
    "FILE": "zoo/agents/congestion_window/ppo/model.zip",
    "zoo/agents/queue_threshold/ppo/model.zip": "zoo/agents/queue_threshold/ppo/model.zip",
    "lte.down": {"": TRACE},
    "DIR": {"4g/one.down": TRACE, "5g/one.down": TRACE},
    "runs/tune/congestion_window-ppo": {"tuned/best.yaml": BEST},
    "mine": {"algo/quick.yaml": "defaults: [ppo, _self_]\nkwargs: {n_epochs: 2}\n", "experiment/night.yaml": NIGHT},
}
"""Files that pages take for granted, as a reader has them by then: copies of what is in the checkout, or their texts."""


def treatment(command):
    """The longest beginning of TREATED that a command has, and what that says; None, ...: it is run as it is."""
    begun = [words for words in TREATED if command.startswith(words)]
    return (None, (SMALLER, "")) if not begun else (longest := max(begun, key=len), TREATED[longest])


def own(block):
    """Whether a block is followed by another test."""
    return block.page in FOLLOWED and block.language in FOLLOWED[block.page][1]


def commands(block):
    """Of a block: as a shell has them, or as systemd starts them."""
    if block.language != "ini":
        return block.commands
    parts = configparser.ConfigParser(strict=False)
    parts.read_string(block.text)
    lines = [value for section in parts.values() for key, value in section.items() if key.startswith("exec")]
    return [re.sub(r"^\S*/netbuf-gym ", "netbuf-gym ", line) for line in lines]


def steps_of(block):
    """What is to be done about a block that this module follows."""
    at = {"page": block.page, "line": block.line}
    if block.file:
        yield at | {"file": block.file, "text": block.text}
    elif block.language == "python":
        text = block.text
        for long, short in SHORTER.get(block.page, []):
            text = text.replace(long, short)
        yield at | {"python": text}
    elif block.language == "yaml":
        yaml.safe_load(block.text)
    for command in commands(block):
        _, (how, words) = treatment(command)
        if how != LEFT_OUT:
            given = shlex.split(command.removeprefix("sudo "))
            given = code_blocks.with_words(given, shlex.split(words)) if how == SMALLER else given
            status = [0, 1] if given[1:3] == ["live", "check"] else [0]
            yield at | {"command": given, "checked": how == CHECKED, "status": status}


STEPS = {page: [step for block in found if not own(block) for step in steps_of(block)] for page, found in BLOCKS.items()}
COMMANDS = [(block, command) for found in BLOCKS.values() for block in found if not own(block) for command in commands(block)]


def mentioned(page):
    """The files that a page takes for granted."""
    return [name for name in SUPPOSED if re.search(rf"(?<![\w/]){re.escape(name)}(?![\w-])", PAGES[page])]


def suppose(target, source):
    """Makes what a page takes for granted."""
    for path, text in source.items() if isinstance(source, dict) else ():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text)
    if isinstance(source, str):
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(ROOT / source, target)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page if page in IN_CI else for_release(page)[0] for page, steps in STEPS.items() if steps])
def test_its_blocks_run(page, tmp_path):
    pytest.importorskip("torch")
    if page in LIVE:
        machines.needs_live_worlds()
    for name in mentioned(page):
        suppose(tmp_path / name.rpartition("=")[2], SUPPOSED[name])
    (tmp_path / "steps.json").write_text(json.dumps(STEPS[page]))
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path, "WANDB_MODE": "offline", "MPLBACKEND": "agg"}
    command = [sys.executable, code_blocks.__file__, "steps.json"]
    options = {"cwd": tmp_path, "env": environment, "stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    done = subprocess.run(command, **options, timeout=LIMIT_S)
    print(done.stderr)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"


def test_every_block_is_followed():
    for page, found in BLOCKS.items():
        assert len(re.findall(r"^ *(?:```|~~~)", PAGES[page], re.M)) == 2 * len(found), page
        for block in found:
            known = block.language in ("python", "yaml", "ini", "text", "", *code_blocks.SHELL)
            assert own(block) or block.file or known, f"{page}:{block.line}: nothing runs {block.language}"
            assert not (block.language in code_blocks.SHELL and not commands(block)), f"{page}:{block.line}: no command"
    assert len(COMMANDS) > 150


def test_what_is_not_run_is_there_and_has_a_reason():
    used = {treatment(command)[0] for _, command in COMMANDS}
    assert set(TREATED) <= used, f"no command begins so: {set(TREATED) - used}"
    for beginning, (how, text) in TREATED.items():
        assert how in (SMALLER, CHECKED, LEFT_OUT) and (text or how == SMALLER), beginning
        assert all((ROOT / name).is_file() for name in re.findall(r"tests/\S+\.py", text) if how != SMALLER), beginning
    for page, (test, languages) in FOLLOWED.items():
        assert Path(page).name in (ROOT / test).read_text()
        assert languages <= {block.language for block in BLOCKS[page]}
    for page, pairs in SHORTER.items():
        assert all(long in PAGES[page] for long, _ in pairs), page
    assert set(SUPPOSED) == {name for page in PAGES for name in mentioned(page)}
    for page in LIVE:
        assert any("linux" in block.text for block in BLOCKS[page] if block.language == "python")
    for block, command in COMMANDS:
        _, (how, _) = treatment(command)
        ours = command.removeprefix("sudo ").startswith(code_blocks.OURS)
        assert ours or how == LEFT_OUT, f"{block.page}:{block.line}: {command} is no command of the package's"


def test_targets_of_make_are_there():
    targets = [word for _, one in COMMANDS if one.startswith("make ") for word in shlex.split(one)[1:] if "=" not in word]
    assert len(targets) > 4
    makefile = (ROOT / "Makefile").read_text().replace("$(VENV)", ".venv")
    assert set(targets) <= set(re.findall(r"^([\w./-]+):", makefile, re.M))


def test_blocks_and_commands_are_read_as_they_stand(tmp_path):
    page = "`a.py`:\n\n```python\nx = 1\n```\n\n"
    page += "    ```sh\n    ls 'a # b'  # list\n    netbuf-gym train \\\n      seed=1\n    ```\n"
    page += "```text\nexamples:\n  netbuf-gym list\n```\n```console\n$ true\nout\n```\n"
    one, two, three, four = code_blocks.blocks("page.md", page)
    assert (one.file, one.language, one.text, one.line) == ("a.py", "python", "x = 1\n", 4)
    assert (two.file, two.commands, two.line) == ("", ["ls 'a # b'", "netbuf-gym train seed=1"], 8)
    assert three.commands == ["netbuf-gym list"] and four.commands == ["true"]
    assert code_blocks.with_words(["a", "b=1", "--c", "1", "d"], ["b=2", "--c", "3"]) == ["a", "d", "b=2", "--c", "3"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [
        {"python": "y = 1 / 0"},
        {"python": "import warnings\nwarnings.warn('old')"},
        {"command": ["netbuf-gym", "simulate", "--set", "colour=1"], "checked": False, "status": [0]},
        {"command": ["netbuf-gym", "train", "algo.gama=1"], "checked": True, "status": [0]},
        {"command": ["netbuf-gym", "reproduce", "rlbm", "seedss=1"], "checked": True, "status": [0]},
        {"command": ["netbuf-gym", "suite", "gate", "controller=nobody"], "checked": True, "status": [0]},
        {"command": ["netbuf-gym", "live", "tune", "--durations", "1"], "checked": True, "status": [0]},
    ],
    ids=lambda step: str(step.get("python", step.get("command")))[:60],
)
def test_what_fails_is_found(step, tmp_path):
    good = {"page": "page.md", "line": 3, "python": "x = 1"}
    (tmp_path / "steps.json").write_text(json.dumps([good, {"page": "page.md", "line": 7, **step}]))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, code_blocks.__file__, "steps.json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "page.md:7" in done.stderr, done.stderr
