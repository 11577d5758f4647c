"""Runs of the campaign."""

from __future__ import annotations

from netbuf_gym.controllers import Controller
from studies.common import agents
from studies.common.cells import CellWork
from studies.sender import sender_worlds as worlds
from studies.sender import trace_cells
from studies.sender.sender_measures import MEASURES
from studies.sender.sender_schemes import LEARNED, make_controller
from studies.sender.sender_settings import TRACES, Settings
from studies.sender.studies import ALL


class StudyRuns(CellWork[Settings]):
    """Runs of the campaign and their controllers."""

    def __init__(self, settings: Settings):
        if TRACES in settings.studies:
            trace_cells.require_traces(settings.traces)
        identity = {
            "agent_sha256": agents.compute_agent_digest(settings),
            "traces_sha256": trace_cells.compute_sha256(settings.traces),
        }
        example = worlds.make_ppcc(worlds.PPCC_CELLS[0], 0, 10.0).scenario

        def controller(scheme: str) -> Controller:
            return agents.load_agent(settings, example) if scheme == LEARNED else make_controller(scheme)

        super().__init__(settings, settings.studies, ALL, MEASURES, identity, controller)
