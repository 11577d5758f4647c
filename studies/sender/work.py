"""The runs of the campaign."""

from __future__ import annotations

from netbuf_gym.controllers import Controller
from studies.common import agents
from studies.common.cells import Cells
from studies.sender import trace_cells, worlds
from studies.sender.measures import MEASURES
from studies.sender.schemes import LEARNED, controller_of
from studies.sender.settings import TRACES, Settings
from studies.sender.studies import ALL


class Studies(Cells[Settings]):
    """The runs, and who plays in them."""

    def __init__(self, settings: Settings):
        if TRACES in settings.studies:
            trace_cells.require(settings.traces)
        identity = {"agent_sha256": agents.sha256(settings), "traces_sha256": trace_cells.sha256(settings.traces)}
        example = worlds.ppcc(worlds.PPCC_CELLS[0], 0, 10.0).scenario

        def controller(scheme: str) -> Controller:
            return agents.load(settings, example) if scheme == LEARNED else controller_of(scheme)

        super().__init__(settings, settings.studies, ALL, MEASURES, identity, controller)
