import pytest

from netbuf_gym.errors import ReferenceDataError
from netbuf_gym.scenarios import PIE, RED, CoDel, DropTail, FqCoDel
from netbuf_gym.validation import read_folder
from netbuf_gym.validation.cells import FAMILIES
from netbuf_gym.validation.runner import build_world, list_seeds, run_seed
from tests.validation.reference_files import LINUX_COLUMNS, linux_row, ns3_row, write, write_rates


def only_cell(folder):
    (cell,) = read_folder(folder).cells
    return cell


def test_the_ns3_dumbbell_is_rebuilt(tmp_path):
    write(
        tmp_path / "a.csv",
        [ns3_row(cc="WestwoodPlus", flows=3, buffer=33, loss=0.001, rtt=30, T=2, hystart=0, access_mbps=500)],
    )
    world = build_world(only_cell(tmp_path))
    assert world.stack == "ns3" and not world.hystart and world.duration_s == 2
    assert [(f.cc, f.start_s) for f in world.flows] == [("westwood", 0), ("westwood", 0.1), ("westwood", 0.2)]
    bottleneck = world.links[world.bottleneck]
    assert (bottleneck.rate_mbps, bottleneck.queue_packets, bottleneck.loss, bottleneck.delay_ms) == (10, 33, 0.001, 13)
    assert {link.rate_mbps for link in world.links} == {10, 500}


@pytest.mark.parametrize(
    ("qdisc", "discipline", "seeds"),
    [
        ("DropTail", None, [1]),
        ("Fifo", DropTail(), [1]),
        ("CoDel", CoDel(mtu_bytes=1499), [1]),
        ("FqCoDel", FqCoDel(mtu_bytes=1499, quantum_bytes=1502, perturbation=2994316), [1]),
        ("Pie", PIE(burst_quiet_s=1.5), [1, 2]),
        ("Red", RED(min_packets=8, max_packets=24, wait=True), [1, 2]),
    ],
)
def test_queue_disciplines_are_rebuilt(tmp_path, qdisc, discipline, seeds):
    write(tmp_path / "a.csv", [ns3_row(flows=2, qdisc=qdisc)])  # a limit of 40 packets
    cell = only_cell(tmp_path)
    world = build_world(cell)
    bottleneck = world.links[world.bottleneck]
    assert bottleneck.discipline == discipline and bottleneck.queue_packets == 40
    assert bottleneck.device_packets == (0 if qdisc == "DropTail" else 1)
    assert all(link.discipline is None for link in world.links if link is not bottleneck)
    assert not cell.not_judged and list_seeds(cell.setting, 2) == seeds
    values = run_seed(world, cell.setting, 1)
    assert 8 < values["goodput_mbps"] <= 9.65 and values["queue_delay_ms"] < 48


def test_the_linux_dumbbell_is_rebuilt(tmp_path):
    write(tmp_path / "a.csv", [linux_row(cc="reno", flows=2)])
    world = build_world(only_cell(tmp_path))
    assert world.stack == "linux" and [(f.cc, f.start_s) for f in world.flows] == [("newreno", 0), ("newreno", 0.1)]
    assert len(world.links) == 2 and world.pacing


def test_the_lateness_of_the_emulator_counts(tmp_path):
    rows = [linux_row(seed=seed, late_mean_us=late) for seed, late in ((1, 10), (2, 30))]
    write(tmp_path / "a.csv", rows, [*LINUX_COLUMNS, "late_mean_us"])
    cell = only_cell(tmp_path)
    assert cell.late_us == [10, 30] and sum(link.delay_ms for link in build_world(cell).links) == pytest.approx(20.04)


def test_processes_do_not_start_to_the_microsecond(tmp_path):
    write(tmp_path / "a.csv", [linux_row(flows=2)])
    cell = only_cell(tmp_path)
    assert list_seeds(cell.setting, 3) == [1, 2, 3]
    world = build_world(cell)
    first, again, other = (run_seed(world, cell.setting, seed) for seed in (1, 1, 2))
    assert first == again != other


def test_the_last_hop_plays_the_schedule_of_its_file(tmp_path):
    write(tmp_path / "a.csv", [ns3_row(rate_trace="r.csv", T=2, rate=100.0)])
    rates = write_rates(tmp_path / "rates" / "r.csv")
    world = build_world(only_cell(tmp_path))
    trace = world.links[world.bottleneck].trace
    assert trace.time_s.tolist() == [0, 2, 4] and trace.rate_mbps.tolist() == [20, 8, 15] and trace.period_s is None
    assert world.links[1].rate_mbps == 100 and world.links[1].queue_packets is None
    rates.write_text("time_s,mbps\n1.0,7.00000049\n")
    trace = build_world(only_cell(tmp_path)).links[0].trace
    assert trace.time_s.tolist() == [0, 1] and trace.rate_mbps.tolist() == [100, 7.0]  # whole bit/s; before it, B
    rates.write_text("time_s,mbps\n0.0,7\n0.0,8\n")
    with pytest.raises(ReferenceDataError, match=r"a.csv:2: .*r.csv:3: time_s = 0 is not after 0"):
        build_world(only_cell(tmp_path))


def test_chance_needs_seeds(tmp_path):
    cells = {}
    for name, row in {"lossless": linux_row(), "lossy": linux_row(loss=0.01), "bbr": linux_row(cc="bbr")}.items():
        write(tmp_path / name / "a.csv", [row])
        cells[name] = only_cell(tmp_path / name)
    assert list_seeds(cells["lossless"].setting, 30) == [1]
    assert list_seeds(cells["lossy"].setting, 30) == list_seeds(cells["bbr"].setting, 30) == list(range(1, 31))


class FakeResult:
    goodput_mbps = 5.0
    bottleneck = "b"

    class link:
        queue_delay_mean_ms, queue_drops, random_losses, packets_in, queue_drops_total = 7.0, 3, 1, 200, 11

    links = {"b": link}


def test_what_is_compared_follows_the_references_definitions():
    assert FAMILIES["ns3-dumbbell"].measure_quantities(FakeResult) == {
        "goodput_mbps": 5,
        "queue_delay_ms": 7,
        "queue_drops": 11,
    }
    assert FAMILIES["linux-dumbbell"].measure_quantities(FakeResult) == {
        "goodput_mbps": 5,
        "queue_delay_ms": 7,
        "loss_rate": 0.02,
    }


def test_linux_loss_rate_is_drops_over_arrivals_as_in_the_given_file(references):
    """Without random loss the reference's own columns must satisfy our definition: drops / (drops + delivered)."""
    for cell in read_folder(references / "linux").cells:
        s = cell.setting
        if s.loss or s.cc == "bbr":  # BBR's spurious retransmissions arrive too and are not in the goodput
            continue
        (loss,), (goodput,) = cell.reference["loss_rate"], cell.reference["goodput_mbps"]
        delivered = goodput * 1e6 * (s.duration_s - s.warmup_s) / 8 / 1448
        drops = loss * delivered / (1 - loss)
        assert abs(drops - round(drops)) < 0.02 * max(drops, 10), s.id
