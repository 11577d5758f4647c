"""Entry point of `python -m studies.nuwa ...`, the same as `netbuf-gym reproduce nuwa ...`."""

from studies.command import run_as_program

run_as_program("nuwa")
