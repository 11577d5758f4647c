"""`python -m studies.nuwa ...` is `netbuf-gym reproduce nuwa ...`."""

from studies.command import run_as_program

run_as_program("nuwa")
