import numpy as np
import pytest

from netbuf_gym import plants
from netbuf_gym.errors import ConfigError, PlantFault, SimulatorFault
from netbuf_gym.plants.simulated import SimPlant
from netbuf_gym.scenarios import get
from netbuf_gym.tasks.congestion_window import SENDER, TELEMETRY
from netbuf_gym.tasks.queue_threshold import switch_kind

WORLD = get("ppcc/3").with_agents()


def plant(worlds=2, agents=1, scenario=WORLD):
    made = plants.make("sim", worlds, agents, SENDER)
    for world in range(worlds):
        made.reset(world, scenario, world)
    return made


def test_windows_act_from_the_next_advance_on_and_nan_leaves_them():
    made = plant()
    made.apply(np.array([20 * 1448, np.nan]).reshape(2, 1, 1))
    elapsed_ns, failures = made.advance(100_000_000)
    cwnd = made.telemetry[:, 0, TELEMETRY.index("cwnd_bytes")]
    assert cwnd.tolist() == [20 * 1448, 10 * 1448]
    assert elapsed_ns.tolist() == [10**8] * 2 and made.agent_mask.tolist() == [[1], [1]] and not failures


def test_clocks_are_exact():
    made = plant(1)
    passed = sum(int(made.advance(100_000_000).elapsed_ns[0]) for _ in range(1000))
    assert passed == 100 * 10**9 == made.world(0).now_ns


def test_to_the_next_ack():
    made = plant(1)
    total, passed = 0, 0
    for _ in range(300):
        passed += int(made.advance(50_000_000, "event").elapsed_ns[0])
        elapsed_s = made.telemetry[0, 0, 0]
        assert 0 <= elapsed_s <= 0.05
        total += elapsed_s
        assert made.telemetry[0, 0, TELEMETRY.index("acks")] <= 1
    assert passed == made.world(0).now_ns == pytest.approx(total * 1e9)


def test_to_the_next_change_of_the_worst_slowdown_or_the_end():
    world = get("rlbm/thesis-code", duration_s=2).with_scheme("agent")
    made = plants.make("sim", 2, 1, switch_kind(2))
    for number in range(2):
        made.reset(number, world, number)
    elapsed = [made.advance(100_000_000, "event", np.array([10**9, 10**8])).elapsed_ns.copy() for _ in range(4)]
    assert all((one % 100_000_000 == 0).all() and (one > 0).all() for one in elapsed)
    assert all(one[0] <= 10**9 and one[1] == 10**8 for one in elapsed) and len({int(one[0]) for one in elapsed}) > 1


def test_a_reset_world_starts_at_zero_with_nothing_measured():
    made = plant()
    made.advance(500_000_000)
    made.reset(1, WORLD, 5)
    assert [made.world(k).now_ns for k in range(2)] == [5 * 10**8, 0]
    assert np.isnan(made.telemetry[1]).all() and np.isfinite(made.telemetry[0]).any()
    assert made.report(1)[0]["delivered_bytes"] == 0


def test_reports_are_in_the_order_of_the_agents():
    world = get("ppcc/3", n=3, senders=["agent", "cubic", "agent"])
    made = plant(1, 2, world)
    for _ in range(30):
        made.apply(np.array([30 * 1448, 5 * 1448]).reshape(1, 2, 1))
        made.advance(100_000_000)
    first, second = made.report(0)
    assert first["delivered_bytes"] > 2 * second["delivered_bytes"]
    assert (first["start_s"], second["start_s"], second["now_s"]) == (0, pytest.approx(0.2), 3)


def test_faults_raise_instead_of_making_things_up():
    made = plant(1)

    class Broken:
        def advance(self, *_, **__):
            raise RuntimeError("queue holds -1 packets")

        advance_to_event = advance

    made._batch = Broken()
    for until in SimPlant.untils:
        with pytest.raises(SimulatorFault, match="-1 packets"):
            made.advance(1, until)
    with pytest.raises(PlantFault, match="never reset"):
        plants.make("sim", 1, 1, SENDER).report(0)


def test_a_closed_plant_says_so():
    made = plant()
    made.close()
    made.close()
    with pytest.raises(PlantFault, match="closed"):
        made.advance(1)


def test_worlds_of_another_kind_are_refused():
    class Room:
        name, duration_s = "attic", 1.0

    with pytest.raises(ConfigError, match=r"'attic' is no netbuf_gym\.scenarios\.Scenario"):
        plants.make("sim", 1, 1, SENDER).reset(0, Room(), 1)
