"""The command `netbuf-gym`: a module a subcommand, whose `add` describes the arguments and whose `run` does the work."""

from netbuf_gym.cli.program import main

__all__ = ["main"]
