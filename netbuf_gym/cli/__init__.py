"""Command line `netbuf-gym`: one module per subcommand, with `add` for its arguments and `run` for its work."""

from netbuf_gym.cli.program import main

__all__ = ["main"]
