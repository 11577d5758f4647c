"""Entry point: `python -m studies.ppcc ...` runs `netbuf-gym reproduce ppcc ...`."""

from studies.command import run_as_program

run_as_program("ppcc")
