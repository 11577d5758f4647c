"""`python -m studies.ppcc ...` is `netbuf-gym reproduce ppcc ...`."""

from studies.command import run_as_program

run_as_program("ppcc")
