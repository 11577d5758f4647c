"""Runs of the campaign."""

from __future__ import annotations

from netbuf_gym.controllers import Controller
from studies.common import agents
from studies.common.cells import CellWork
from studies.ppcc import paper
from studies.ppcc import ppcc_worlds as worlds
from studies.ppcc.ppcc_measures import MEASURES
from studies.ppcc.ppcc_schemes import AGENTS, RECIPE, make_controller
from studies.ppcc.ppcc_settings import Settings
from studies.ppcc.studies import ALL


class StudyRuns(CellWork[Settings]):
    """Runs of the campaign and their controllers."""

    def __init__(self, settings: Settings):
        identity = {f"{key}_sha256": agents.compute_agent_digest(settings, key) for key in settings.agents}
        example = worlds.make_scenario(paper.MAIN, settings.lasting_s)

        def controller(scheme: str) -> Controller:
            if scheme not in AGENTS:
                return make_controller(scheme)
            return agents.load_agent(settings, example, scheme, scheme, recipe=RECIPE if scheme == RECIPE else "")

        super().__init__(settings, settings.studies, ALL, MEASURES, identity, controller)
