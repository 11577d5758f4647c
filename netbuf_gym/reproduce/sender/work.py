"""The runs of the campaign."""

from __future__ import annotations

from netbuf_gym.contenders import Contender
from netbuf_gym.reproduce import agents
from netbuf_gym.reproduce.cells import Cells
from netbuf_gym.reproduce.sender import trace_cells, worlds
from netbuf_gym.reproduce.sender.measures import MEASURES
from netbuf_gym.reproduce.sender.schemes import LEARNED, contender_of
from netbuf_gym.reproduce.sender.settings import TRACES, Settings
from netbuf_gym.reproduce.sender.studies import ALL


class Studies(Cells[Settings]):
    """The runs, and who plays in them."""

    def __init__(self, settings: Settings):
        if TRACES in settings.studies:
            trace_cells.require(settings.traces)
        identity = {"agent_sha256": agents.sha256(settings), "traces_sha256": trace_cells.sha256(settings.traces)}
        example = worlds.ppcc(worlds.PPCC_CELLS[0], 0, 10.0).scenario

        def contender(scheme: str) -> Contender:
            return agents.load(settings, example) if scheme == LEARNED else contender_of(scheme)

        super().__init__(settings, settings.studies, ALL, MEASURES, identity, contender)
