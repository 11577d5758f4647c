"""Modules that are commands: their words, and how they end."""

import subprocess
import sys

import pytest

from netbuf_gym.utils import scripts


def test_words_of_somebody_else_are_handed_on_as_they_stand():
    words = ["epochs=3", "algo=ppo", "+tuned=a", "word", "=3", "epochs=4", "algo.gamma=0.9"]
    found = scripts.split_arguments(words, {"epochs": "200", "folder": "here"})
    assert found == ({"epochs": "4", "folder": "here"}, ["algo=ppo", "+tuned=a", "word", "=3", "algo.gamma=0.9"])


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
