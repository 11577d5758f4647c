"""`netbuf-gym completion`: prints what makes a shell complete commands, options, groups, keys and names."""

from __future__ import annotations

import argparse

from netbuf_gym.completion.scripts import SCRIPTS, script

HELP = "print a script that completes commands, options, keys and names in bash, zsh or fish"
EPILOG = """put into the shell's start-up file:
  bash  eval "$(netbuf-gym completion bash)"      ~/.bashrc
  zsh   eval "$(netbuf-gym completion zsh)"       ~/.zshrc
  fish  netbuf-gym completion fish | source       ~/.config/fish/config.fish

TAB then answers within some hundredths of a second, from a table in ~/.cache/netbuf-gym that follows the package.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=list(SCRIPTS), help="which one")


def run(arguments: argparse.Namespace) -> int:
    """Does it."""
    print(script(arguments.shell), end="")
    return 0
