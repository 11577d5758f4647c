"""Entry point: `python -m studies.sender ...` runs `netbuf-gym reproduce sender ...`."""

from studies.command import run_as_program

run_as_program("sender")
