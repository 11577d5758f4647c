"""Entry point of `python -m studies.auter ...`, the same as `netbuf-gym reproduce auter ...`."""

from studies.command import run_as_program

run_as_program("auter")
