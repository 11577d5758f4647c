"""Command `python -m studies.validation SECTION ...`: see `studies.validation.measured`."""

from netbuf_gym.utils import scripts
from studies.validation.measured import main

scripts.run("studies.validation", main)
