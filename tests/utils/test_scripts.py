"""Modules that are commands: their words, and how they end."""

import subprocess
import sys
from pathlib import Path

import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.utils import scripts


def test_words_say_something_instead_of_what_is_known():
    known = {"worlds": "200", "output": "table.csv"}
    assert scripts.read_key_values([], known) == known
    assert scripts.read_key_values(["output=a=b.csv", "worlds="], known) == {"worlds": "", "output": "a=b.csv"}
    assert known["output"] == "table.csv"
    for word in ("worlds", "seeds=3", "=3"):
        with pytest.raises(ConfigError, match=rf"argument '{word}' is unknown; valid: worlds=, output="):
            scripts.read_key_values([word], known)


def test_words_of_somebody_else_are_handed_on_as_they_stand():
    words = ["epochs=3", "algo=ppo", "+tuned=a", "word", "=3", "epochs=4", "algo.gamma=0.9"]
    found = scripts.split_arguments(words, {"epochs": "200", "folder": "here"})
    assert found == ({"epochs": "4", "folder": "here"}, ["algo=ppo", "+tuned=a", "word", "=3", "algo.gamma=0.9"])


def test_files_are_refused_before_the_work_that_could_not_be_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert scripts.check_output_path("output", "t.csv") == Path("t.csv")
    with pytest.raises(ConfigError, match=r"output = '\.': is a folder; valid: a file in a folder that can be written"):
        scripts.check_output_path("output", ".")
    with pytest.raises(ConfigError, match=r"figure = 'none/a\.svg': its folder cannot be written"):
        scripts.check_output_path("figure", "none/a.svg")


def test_numbers_are_numbers_and_what_is_none_stays():
    found = [scripts.parse_number(text) for text in ("20", "0.5", "1e3", "-1", "x", "")]
    assert found == [20, 0.5, 1000.0, -1.0, "x", ""] and isinstance(found[0], int)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("return 3", 3, ""),
        ("raise ConfigError('worlds = 0; valid: 1 and more')", 2, "mine: error: worlds = 0; valid: 1 and more\n"),
        ("raise OSError('no space')", 2, "mine: error: no space\n"),
        ("raise KeyboardInterrupt", 130, "mine: interrupted\n"),
    ],
)
def test_a_command_ends_by_a_line_and_a_status(body, status, said):
    code = f"from netbuf_gym.utils import scripts\nfrom netbuf_gym.errors import ConfigError\ndef main(argv):\n    {body}\n"
    ended = subprocess.run([sys.executable, "-c", f"{code}scripts.run('mine', main)"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (status, said)
