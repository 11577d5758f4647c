"""What a run's folder says of how it was made, and where its log goes."""

import json
import time

import pytest

from netbuf_gym.cli import program
from netbuf_gym.training.config import load
from netbuf_gym.training.train import train
from netbuf_gym.version import __version__
from tests.helpers.wandb_files import read_records

pytest.importorskip("wandb")


@pytest.mark.slow
def test_a_training_logs_to_wandb_offline(tiny):
    overrides, run_dir = tiny
    own = [one for one in overrides if not one.startswith("tensorboard")]
    train([*own, "logger=wandb", "seed=7", "wandb.tags=[a]"])
    (path,) = run_dir.glob("wandb/offline-run-*/*.wandb")
    deadline = time.monotonic() + 300  # what writes the file is another process
    found = []
    while not any(one.WhichOneof("record_type") == "exit" for one in found):
        assert time.monotonic() < deadline
        time.sleep(0.1)
        found = list(read_records(path))
    (run,) = [one.run for one in found if one.WhichOneof("record_type") == "run"]
    pair = "congestion_window-ppo"
    assert (run.project, run.run_group, run.display_name) == ("netbuf-gym", pair, f"{pair}-seed7")
    assert run.run_id == (run_dir / "wandb-id.txt").read_text() and list(run.tags) == ["a"]
    config = {item.key: json.loads(item.value_json) for item in run.config.update}
    assert config["seed"] == 7 and config["algo"]["name"] == "ppo"
    rows = [one.history.item for one in found if one.WhichOneof("record_type") == "history"]
    logged = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in rows[-1]}
    header, *lines = (run_dir / "progress.csv").read_text().splitlines()
    last = dict(zip(header.split(","), lines[-1].split(","), strict=True))
    assert len(rows) == len(lines) and logged["train/learning_rate"] == float(last["train/learning_rate"])
    assert not list(run_dir.glob("events.*"))


LOGGERS = {"csv": (False, None), "tensorboard": (True, None), "wandb": (False, "offline")}


@pytest.mark.slow
@pytest.mark.parametrize(("logger", "expected"), LOGGERS.items())
def test_loggers_are_a_group(logger, expected):
    config = load("train", [f"logger={logger}"])
    assert (config.tensorboard, config.wandb.mode) == expected
    assert load("train", []).tensorboard


def test_a_mode_that_wandb_has_not_is_refused(tiny, capsys):
    assert program.main(["train", *tiny[0], "wandb.mode=often"]) == 2
    assert "wandb.mode = 'often'" in capsys.readouterr().err


def test_a_run_says_what_it_was_made_with(trained):
    found = json.loads((trained / "versions.json").read_text())
    assert found["netbuf_gym"] == __version__ and found["seed"] == 0 and found["packages"]["torch"]
    assert found["git_revision"] is None or len(found["git_revision"].rstrip("+")) == 40
    assert {"python", "platform"} <= found.keys()
