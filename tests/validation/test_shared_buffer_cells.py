"""Shared-buffer cells: reading, rebuilding, judging. The rows are made by our own simulator, so that they agree with it."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from netbuf_gym.errors import ReferenceDataError
from netbuf_gym.scenarios import FlowList, shared_buffer
from netbuf_gym.simulation.runner import simulate
from netbuf_gym.validation import judge_cell, judge_groups, read_folder, validate
from netbuf_gym.validation.cells import DROPS, FAMILIES, GOODPUT, Cell, Setting
from netbuf_gym.validation.runner import build_world
from netbuf_gym.validation.shared_buffer import COLUMNS, COMPLETED, FCT, NS3_SHARED_BUFFER, OCCUPANCY, SLOWDOWN, SLOWDOWN_P99
from tests.validation.reference_files import ns3_row, write, write_rates

HEADER = "flow_id,start_s,sender,size_bytes,priority"
FLOWS = [f"{i},{0.1 * i:.9f},{i % 10},{1_000_000 if i % 5 == 1 else 30_000},{int(i % 5 == 1)}" for i in range(20)]


def write_flows(folder: Path, lines=FLOWS, name="sane10_0.4_1", header=HEADER) -> Path:
    path = folder / "flows" / f"flows_{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def line(folder: Path, **changes) -> dict:
    """A row that agrees with ours, but for the changes."""
    row = {"ns3": "3.44", "variant": "sane10", "policy": "soph", "cc": "Cubic", "B_mbps": 10, "access_mbps": 100}
    row |= {"perq_pkts": 50, "load": 0.4, "seed": 1, "T_s": 10, "min_rto_s": 1, "delack": 2}
    flows = write_flows(folder)
    world = shared_buffer(
        senders="cubic",
        arrivals=FlowList.read_csv(flows),
        buffer_packets=100,
        scheme="sophisticated",
        queues=2,
        duration_s=10,
        stack="ns3",
    )
    values = FAMILIES[NS3_SHARED_BUFFER].measure_quantities(simulate(world, 1, sample_interval_s=None))
    row |= {column: values[quantity] for quantity, column in COLUMNS.items()}
    return row | {"drops_q0": 0, "drops_q1": int(values[DROPS])} | changes


def made(folder: Path, **changes) -> Path:
    row = line(folder, **changes)
    return write(folder / "b.csv", [row], list(row))


def test_a_cell_is_read_with_its_flow_list(tmp_path):
    made(tmp_path)
    (cell,) = read_folder(tmp_path).cells
    assert cell.setting.id == "ns3-sharedbuffer/sane10/soph/Cubic/10Mbps/50pkts/load0.4"
    assert cell.flow_files == {1: tmp_path / "flows" / "flows_sane10_0.4_1.csv"} and not cell.not_judged
    assert cell.reference[COMPLETED] == [20] and cell.reference[DROPS][0] > 0


def test_the_world_is_rebuilt(tmp_path):
    made(tmp_path, min_rto_s=0.3, delack=1)
    (cell,) = read_folder(tmp_path).cells
    world = build_world(cell)
    assert world.stack == "ns3" and world.duration_s == 10 and (world.min_rto_ms, world.delayed_ack) == (300, 1)
    (switch,) = world.switches
    assert (switch.capacity, switch.queues, switch.admission.alphas) == (100, 2, (8, 1))
    assert [link.rate_mbps for link in world.links[:4]] == [10, 10, 100, 100] and world.links[0].device_packets == 1
    assert len(world.traffic.senders) == 10 and len(world.traffic.arrivals[0]) == 20


def test_each_seed_replays_its_own_list(tmp_path):
    first = line(tmp_path)
    write_flows(tmp_path, [text.replace("30000", "15000") for text in FLOWS], name="sane10_0.4_7")
    write(tmp_path / "b.csv", [first, first | {"seed": 7}], list(first))
    (cell,) = read_folder(tmp_path).cells
    assert cell.seeds == [1, 7]
    assert [build_world(cell, seed).traffic.arrivals[0].size_bytes.min() for seed in (1, 7)] == [30_000, 15_000]
    (verdict,) = validate(tmp_path).cells
    ours = verdict.cell.ours[FCT[0]]
    assert verdict.cell.our_seeds == [1, 7] and ours[1] < ours[0]


def test_what_agrees_is_within_and_reported(tmp_path):
    made(tmp_path)
    report = validate(tmp_path)
    assert report.within and report.count("within") == 1
    assert [len(group.cells) for group in report.groups] == [1]
    assert "sane10/soph: Cubic, 10 Mbit/s, 50 packets a queue" in report.text() and "occupancy p99" in report.text()
    assert "## Groups of the shared buffer" in report.markdown()
    (cell,) = report.to_dict()["cells"]
    assert cell["setting"]["load"] == 0.4 and cell["quantities"][COMPLETED]["ours"] == 20


def test_kinds_mix_in_one_report(tmp_path):
    made(tmp_path)
    write(tmp_path / "a.csv", [ns3_row(cc="Cubic"), ns3_row()])
    write_rates(tmp_path / "r.csv")
    text = validate(tmp_path, seeds=2).markdown()
    assert "## Groups\n" in text and "## Groups of the shared buffer" in text


@pytest.mark.parametrize(
    ("column", "factor"),
    [
        ("sink_goodput_mbps", 1.05),
        ("done_all", 2),
        ("fct_mean_s_p0", 1.3),
        ("slow_mean_p1", 1.3),
        ("slow_p99_p1", 1.5),
        ("drops_q1", 2),
        ("occ_p99_pct", 0.7),
    ],
)
def test_what_disagrees_is_out(tmp_path, column, factor):
    row = line(tmp_path)
    write(tmp_path / "b.csv", [row | {column: type(row[column])(row[column] * factor)}], list(row))
    report = validate(tmp_path)
    assert not report.within and "OUT" in report.text()


def test_overloaded_cells_are_judged_by_goodput_drops_and_occupancy(tmp_path):
    row = line(tmp_path) | {"variant": "thesis", "done_all": 3, "fct_mean_s_p0": "nan"}
    write_flows(tmp_path, name="thesis_0.4_1")
    write(tmp_path / "b.csv", [row], list(row))
    (verdict,) = validate(tmp_path).cells
    assert verdict.verdict == "within" and {c.quantity for c in verdict.comparisons} == {GOODPUT, DROPS, OCCUPANCY}


def test_nothing_measured_must_be_nothing_on_both_sides(tmp_path):
    row = line(tmp_path)
    for value, verdict in (("nan", "out"), (row["fct_mean_s_p1"], "within")):
        write(tmp_path / "b.csv", [row | {"fct_mean_s_p1": value}], list(row))
        assert validate(tmp_path).cells[0].verdict == verdict
    only_small = [text for text in FLOWS if text.endswith(",0")]
    write_flows(tmp_path, [f"{i},{text.split(',', 1)[1]}" for i, text in enumerate(only_small)])
    write(tmp_path / "b.csv", [row], list(row))
    (mine,) = validate(tmp_path).cells
    values = {quantity: value for quantity, (value,) in mine.cell.ours.items()}
    assert math.isnan(values[FCT[1]])
    agreeing = row | {column: values[quantity] for quantity, column in COLUMNS.items()} | {"drops_q1": int(values[DROPS])}
    write(tmp_path / "b.csv", [agreeing], list(row))
    assert validate(tmp_path).within


def test_unknown_schemes_are_listed_and_not_judged(tmp_path):
    made(tmp_path, policy="elastic")
    made(tmp_path / "other", cc="Veno")
    cells = {cell.setting.label: cell for cell in read_folder(tmp_path).cells}
    assert "elastic is not built yet" in cells["sane10/elastic"].not_judged
    assert cells["sane10/soph"].not_judged and not cells["sane10/soph"].flow_files


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"perq_pkts": 0}, "perq_pkts = '0'"),
        ({"load": "x"}, "load = 'x'"),
        ({"load": 0}, "load = '0'; valid: a number above 0"),
        ({"T_s": -1}, "T_s = '-1'"),
        ({"done_all": 1.5}, "done_all = '1.5'; valid: a whole number"),
        ({"fct_mean_s_p0": "inf"}, "fct_mean_s_p0 = 'inf'; valid: a number from 0 to 1e+09, or nan"),
        ({"fct_mean_s_p0": ""}, "fct_mean_s_p0 = ''"),
        ({"sink_goodput_mbps": "nan"}, "sink_goodput_mbps = 'nan'"),
        ({"occ_p99_pct": 101}, "occ_p99_pct = '101'"),
        ({"variant": ""}, "variant is empty"),
        ({"variant": "a/b"}, "variant = 'a/b'; valid: a name without a slash"),
        ({"seed": 2}, "list of flows (variant, load, seed) = 'flows_sane10_0.4_2.csv' is in none of "),
        ({"load": 0.6}, "list of flows (variant, load, seed) = 'flows_sane10_0.6_1.csv' is in none of "),
    ],
)
def test_malformed_rows_name_file_and_line(tmp_path, change, message):
    row = line(tmp_path)
    path = write(tmp_path / "b.csv", [row, row | change], list(row))
    with pytest.raises(ReferenceDataError) as error:
        read_folder(tmp_path)
    assert str(error.value).startswith(f"{path}:3: ") and message in str(error.value)


def test_a_missing_column_is_named(tmp_path):
    row = line(tmp_path)
    del row["occ_p99_pct"]
    path = write(tmp_path / "b.csv", [row], list(row))
    with pytest.raises(ReferenceDataError, match=f"{path}:1: ns3-sharedbuffer cells need the column occ_p99_pct"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        ("0,0.5,10,1000,0", ":2: sender"),
        ("0,-0.5,1,1000,0", ":2: start_s"),
        ("0,0.5,1,0,0", ":2: size_bytes"),
        ("0,0.5,1,1000,2", ":2: priority"),
    ],
)
def test_a_malformed_flow_list_names_both_files(tmp_path, flow, message):
    path = made(tmp_path)
    flows = write_flows(tmp_path, [flow])
    with pytest.raises(ReferenceDataError) as error:
        validate(tmp_path)
    text = str(error.value)
    assert text.startswith(f"{path}:2: ") and str(flows) in text and message in text


# ---- judging


def cell(load=0.4, ours=1.0, reference=1.0, variant="sane10", **values) -> Cell:
    setting = Setting(
        kind=NS3_SHARED_BUFFER,
        label=f"{variant}/naive",
        cc="Cubic",
        flows=10,
        rate_mbps=10.0,
        rtt_ms=20.2,
        buffer_packets=100,
        loss=0.0,
        duration_s=60.0,
        warmup_s=0.0,
        extra=f"load{load}",
    )
    made = Cell(setting=setting, file=Path("b.csv"), line=2)
    quantities = [*COLUMNS, DROPS]
    made.reference = {name: [1000.0 * reference] for name in quantities}
    made.ours = {name: [1000.0 * values.get(name, ours)] for name in quantities}
    return made


@pytest.mark.parametrize(
    ("load", "quantity", "alone"),
    [
        (0.4, GOODPUT, 0.04),
        (0.4, COMPLETED, 0.04),
        (0.4, FCT[0], 0.20),
        (0.4, SLOWDOWN[1], 0.20),
        (0.8, SLOWDOWN[0], 0.20),
        (0.8, SLOWDOWN[1], 0.30),
        (0.8, FCT[1], 0.30),
        (0.4, SLOWDOWN_P99[0], 0.30),
        (0.4, DROPS, 0.40),
        (0.4, OCCUPANCY, 0.20),
    ],
)
def test_single_cells_and_groups_of_one(load, quantity, alone):
    for off, verdict in ((0.99 * alone, "within"), (1.01 * alone, "out")):
        for ours in (1 + off, 1 - off):
            one = cell(load, **{quantity: ours})
            assert judge_cell(one).verdict == verdict
            assert judge_groups([one])[0].verdict == verdict


def test_groups_are_held_to_the_mean_of_what_their_cells_are_allowed():
    good, bad = cell(0.4), cell(0.6, **{GOODPUT: 1.039})
    assert judge_cell(bad).verdict == "within"
    assert judge_groups([good, bad])[0].verdict == "within"  # off by 1.95 % in the mean
    assert judge_groups([bad, replace(bad, setting=good.setting)])[0].verdict == "out"
    high = cell(0.8, **{SLOWDOWN[1]: 1.29})
    assert judge_groups([good, high])[0].verdict == "within"  # 14.5 % of the allowed (10 + 30) / 2 %
    assert judge_groups([good, cell(0.6, **{SLOWDOWN[1]: 1.29})])[0].verdict == "out"


def test_a_group_passes_over_cells_that_measured_nothing():
    empty = cell(0.2)
    empty.reference[FCT[1]] = empty.ours[FCT[1]] = [math.nan]
    assert judge_cell(empty).verdict == "within"
    (group,) = judge_groups([empty, cell(0.4, **{FCT[1]: 1.05})])
    assert group.verdict == "within"
    assert next(c for c in group.comparisons if c.quantity == FCT[1]).reference == 1000


def test_buffers_and_schemes_make_groups_of_their_own():
    other = cell(0.4)
    other.setting = replace(other.setting, buffer_packets=500)
    assert len(judge_groups([cell(0.4), cell(0.8), other])) == 2
