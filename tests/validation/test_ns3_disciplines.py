"""Queue disciplines and ns-3.44's agree event for event where they draw no lots.

The numbers are of the reference program (`dumbbell.cc`, 60 s of which 50 count, seed 1) on cells that the reference does not
have.
"""

import pytest

from netbuf_gym.validation.cells import DROPS, GOODPUT, Cell, Setting
from netbuf_gym.validation.dumbbells import NS3_DUMBBELL
from netbuf_gym.validation.runner import build_world, run_seed


@pytest.mark.parametrize(
    ("qdisc", "cc", "flows", "rate_mbps", "limit", "goodput_mbps", "drops"),
    [
        ("FqCoDel", "NewReno", 4, 10, 1000, 8.5204954, 257),
        ("FqCoDel", "Cubic", 8, 10, 1000, 9.4319245, 1616),
        ("FqCoDel", "Cubic", 4, 10, 100, 9.0380685, 785),
        ("CoDel", "Cubic", 4, 2, 1000, 1.9241024, 673),
        ("CoDel", "LinuxReno", 4, 10, 1000, 9.5174144, 679),
        ("Fifo", "Cubic", 4, 50, 100, 48.111132, 717),
    ],
)
def test_whole_runs_have_the_same_numbers(tmp_path, qdisc, cc, flows, rate_mbps, limit, goodput_mbps, drops):
    setting = Setting(
        kind=NS3_DUMBBELL,
        label="",
        cc=cc,
        flows=flows,
        rate_mbps=rate_mbps,
        rtt_ms=48,
        buffer_packets=limit,
        loss=0,
        duration_s=60,
        warmup_s=10,
        access_mbps=1000,
        qdisc=qdisc,
    )
    ours = run_seed(build_world(Cell(setting=setting, file=tmp_path, line=1)), setting, seed=1)
    assert ours[GOODPUT] == pytest.approx(goodput_mbps, rel=1e-7) and ours[DROPS] == drops
