"""The ns3 stack and ns-3.44 agree event for event: where no chance is involved, whole runs have the same numbers."""

import pytest

from netbuf_gym.validation import read_folder
from netbuf_gym.validation.cells import DROPS, GOODPUT, QUEUE_DELAY
from netbuf_gym.validation.dumbbells import NS3_DUMBBELL, NS3_LAST_HOP
from netbuf_gym.validation.runner import build_world, run_seed


@pytest.mark.slow
def test_lossless_cells_have_the_same_numbers(references):
    cells = [
        cell
        for cell in read_folder(references / "ns3").cells
        if cell.setting.kind in (NS3_DUMBBELL, NS3_LAST_HOP)
        and not cell.not_judged
        and cell.setting.loss == 0
        and not cell.setting.drops_at_random
    ]
    assert len(cells) >= 40
    for cell in cells:
        ours = run_seed(build_world(cell), cell.setting, seed=1)
        for quantity, relative in ((GOODPUT, 1e-6), (QUEUE_DELAY, 1e-4), (DROPS, 0)):  # the reference has 8 digits
            if quantity == QUEUE_DELAY and cell.setting.qdisc in ("CoDel", "FqCoDel"):
                relative = 0.05  # ns-3's mean includes packets that CoDel took out to drop them, which had waited for longer
            if cell.setting.kind == NS3_LAST_HOP and quantity != DROPS:
                relative = 3e-4  # its rates change, and ns-3 sends a packet at the rate at which it began
            for reference in cell.reference[quantity]:
                assert ours[quantity] == pytest.approx(reference, rel=relative, abs=1e-9), (cell.setting.id, quantity)
