"""Entry point: `python -m studies.rlbm ...` runs `netbuf-gym reproduce rlbm ...`."""

from studies.command import run_as_program

run_as_program("rlbm")
