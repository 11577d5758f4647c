"""The runs of the campaign."""

from __future__ import annotations

from netbuf_gym.controllers import Controller
from studies.common import agents
from studies.common.cells import Cells
from studies.ppcc import paper, worlds
from studies.ppcc.measures import MEASURES
from studies.ppcc.schemes import AGENTS, RECIPE, controller_of
from studies.ppcc.settings import Settings
from studies.ppcc.studies import ALL


class Studies(Cells[Settings]):
    """The runs, and who plays in them."""

    def __init__(self, settings: Settings):
        identity = {f"{key}_sha256": agents.sha256(settings, key) for key in settings.agents}
        example = worlds.scenario(paper.MAIN, settings.lasting_s)

        def controller(scheme: str) -> Controller:
            if scheme not in AGENTS:
                return controller_of(scheme)
            return agents.load(settings, example, scheme, scheme, recipe=RECIPE if scheme == RECIPE else "")

        super().__init__(settings, settings.studies, ALL, MEASURES, identity, controller)
