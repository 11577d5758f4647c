import numpy as np
import pytest

from netbuf_gym.errors import SimulatorFault
from netbuf_gym.plants.sim import SimPlant
from netbuf_gym.plants.telemetry import TELEMETRY
from netbuf_gym.scenarios import get

WORLD = get("ppcc/3").with_agents()


def plant(worlds=2, agents=1, scenario=WORLD):
    made = SimPlant(worlds, agents)
    for world in range(worlds):
        made.reset(world, scenario, world)
    return made


def test_windows_act_from_the_next_advance_on_and_nan_leaves_them():
    made = plant()
    made.apply(np.array([20 * 1448, np.nan]))
    made.advance(100_000_000)
    cwnd = made.telemetry[:, 0, TELEMETRY.index("cwnd_bytes")]
    assert cwnd.tolist() == [20 * 1448, 10 * 1448]
    assert made.time_ns.tolist() == [10**8] * 2 and made.agent_mask.tolist() == [[1], [1]]


def test_clocks_are_exact():
    made = plant(1)
    for _ in range(1000):
        made.advance(100_000_000)
    assert made.time_ns[0] == 100 * 10**9 == made._batch.now_ns(0)


def test_to_the_next_ack():
    made = plant(1)
    total = 0
    for _ in range(300):
        made.advance_to_ack(50_000_000)
        elapsed_s = made.telemetry[0, 0, 0]
        assert 0 <= elapsed_s <= 0.05
        total += elapsed_s
        assert made.telemetry[0, 0, TELEMETRY.index("acks")] <= 1
    assert made.time_ns[0] == made._batch.now_ns(0) == pytest.approx(total * 1e9)


def test_a_reset_world_starts_at_zero_with_nothing_measured():
    made = plant()
    made.advance(500_000_000)
    made.reset(1, WORLD, 5)
    assert made.time_ns.tolist() == [5 * 10**8, 0]
    assert np.isnan(made.telemetry[1]).all() and np.isfinite(made.telemetry[0]).any()
    assert made.report(1)[0]["goodput_mbps"] == 0


def test_reports_are_in_the_order_of_the_agents():
    world = get("ppcc/3", n=3, senders=["agent", "cubic", "agent"])
    made = plant(1, 2, world)
    for _ in range(30):
        made.apply(np.array([30 * 1448, 5 * 1448]))
        made.advance(100_000_000)
    first, second = made.report(0)
    assert first["goodput_mbps"] > 2 * second["goodput_mbps"]
    assert second["duration_s"] == pytest.approx(2.8)  # started 0.2 s later


def test_faults_raise_instead_of_making_things_up():
    made = plant(1)

    class Broken:
        def advance(self, interval_ns):
            raise RuntimeError("queue holds -1 packets")

        advance_to_event = advance

    made._batch = Broken()
    for run in (made.advance, made.advance_to_ack):
        with pytest.raises(SimulatorFault, match="-1 packets"):
            run(1)
    with pytest.raises(SimulatorFault, match="never reset"):
        SimPlant(1).report(0)
