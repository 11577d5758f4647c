"""Entry point: `python -m studies.switch SECTION ...`; see `studies.switch.families`."""

from netbuf_gym.utils import scripts
from studies.switch.families import main

scripts.run("studies.switch", main)
