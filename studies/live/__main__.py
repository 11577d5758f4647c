"""Command `python -m studies.live ...`, equivalent to `netbuf-gym reproduce live ...`."""

from studies.command import run_as_program

run_as_program("live")
