"""`python -m studies.auter ...` is `netbuf-gym reproduce auter ...`."""

from studies.command import run_as_program

run_as_program("auter")
