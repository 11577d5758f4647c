"""`python -m studies.live ...` is `netbuf-gym reproduce live ...`."""

from studies.command import run_as_program

run_as_program("live")
