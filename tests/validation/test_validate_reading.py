import pytest

from netbuf_gym.errors import ReferenceDataError
from netbuf_gym.validation import read_folder
from tests.validation.reference_files import (
    LAST_HOP_COLUMNS,
    LINUX_COLUMNS,
    NS3_COLUMNS,
    linux_row,
    write,
    write_rates,
)


def ns3_line(**changes) -> dict:
    """A row without running anything."""
    values = dict.fromkeys(NS3_COLUMNS, 1) | {"cc": "NewReno", "label": "L", "rtt_prop_ms": 20, "loss": 0, "T_s": 10}
    return values | {"qdisc": "DropTail", "flow": "agg", "mss": 1448, "delack": 2, "stagger_s": 0} | changes


def linux_line(**changes) -> dict:
    return dict.fromkeys(LINUX_COLUMNS, 1) | {"cc": "cubic", "loss": 0, "T_s": 10, "loss_rate_w": 0.1} | changes


def read(tmp_path, rows, columns=None):
    write(tmp_path / "some_name.csv", rows, columns)
    return read_folder(tmp_path)


def test_a_cell_is_a_setting_with_its_seeds(tmp_path):
    rows = [ns3_line(seed=1, goodput_w_mbps=5), ns3_line(seed=1, flow=0), ns3_line(seed=2, goodput_w_mbps=6)]
    rows.append(ns3_line(seed=1, loss=0.01))
    first, second = read(tmp_path, rows).cells
    assert first.seeds == [1, 2] and first.reference["goodput_mbps"] == [5, 6]
    assert first.line == 2 and second.line == 5 and second.setting.loss == 0.01
    assert set(first.reference) == {"goodput_mbps", "queue_delay_ms", "queue_drops"}
    assert first.setting.id == "ns3-dumbbell/L/NewReno/N1/1Mbps/20ms/1pkts"
    assert second.setting.id.endswith("1pkts/loss0.01")


def test_kinds_are_told_from_columns_whatever_the_name(tmp_path):
    write(tmp_path / "deep" / "x.csv", [linux_line()])
    write(tmp_path / "y.csv", [ns3_line()])
    write(tmp_path / "z.csv", [ns3_line(rate_trace="r.csv", label="C")], LAST_HOP_COLUMNS)
    write_rates(tmp_path / "rates" / "r.csv")
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n")
    (tmp_path / "readme.txt").write_text("not looked at")
    (tmp_path / "series.csv").write_text("t_s,cwnd_pkts,rtt_ms\n0.1,3,4\n")
    (tmp_path / "flows.csv").write_text("flow_id,start_s,sender,size_bytes,priority\n0,0.8,7,3010,0\n")
    reference = read_folder(tmp_path)
    assert [cell.setting.kind for cell in reference.cells] == ["linux-dumbbell", "ns3-dumbbell", "ns3-lasthop"]
    assert reference.cells[2].rate_file == tmp_path / "rates" / "r.csv"
    reasons = {skipped.file.name: skipped.reason for skipped in reference.skipped}
    assert set(reasons) == {"r.csv", "notes.csv", "series.csv", "flows.csv"}
    assert "no known kind" in reasons["notes.csv"]


def test_a_single_file_is_a_folder_of_one(tmp_path):
    path = write(tmp_path / "a.csv", [linux_line()])
    write(tmp_path / "b.csv", [linux_line(N=2)])
    assert len(read_folder(path).cells) == 1


def test_cells_of_one_setting_in_two_files_are_one(tmp_path):
    write(tmp_path / "a.csv", [linux_line(seed=1)])
    write(tmp_path / "b.csv", [linux_line(seed=2)])
    (cell,) = read_folder(tmp_path).cells
    assert cell.seeds == [1, 2] and cell.file.name == "a.csv"


@pytest.mark.parametrize("place", ["rates/r.csv", "r.csv", "sub/r.csv", "sub/rates/r.csv"])
def test_a_rate_schedule_is_found_near_its_file_or_at_the_root(tmp_path, place):
    write(tmp_path / "sub" / "z.csv", [ns3_line(rate_trace="r.csv")], LAST_HOP_COLUMNS)
    write_rates(tmp_path / place)
    (cell,) = read_folder(tmp_path).cells
    assert cell.rate_file == tmp_path / place


def test_a_missing_rate_schedule_names_file_and_line(tmp_path):
    path = write(tmp_path / "z.csv", [ns3_line(rate_trace="gone.csv")], LAST_HOP_COLUMNS)
    with pytest.raises(ReferenceDataError, match=f"^{path}:2: rate_trace = 'gone.csv' is in none of "):
        read_folder(tmp_path)
    write(path, [ns3_line(rate_trace="../r.csv")], LAST_HOP_COLUMNS)
    with pytest.raises(ReferenceDataError, match=r":2: rate_trace = '../r.csv'; valid: a file name"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cc": "Veno"}, "Veno"),
        ({"cc": "Bbr"}, "BBR"),
        ({"cc": "Ledbat"}, "LEDBAT stands still"),
        ({"cc": "NoSuch"}, "NoSuch is not built yet"),
        ({"qdisc": "Cobalt"}, "Cobalt is not built yet"),
    ],
)
def test_schemes_that_are_not_built_are_not_judged(tmp_path, change, reason):
    (cell,) = read(tmp_path, [ns3_line(**change)]).cells
    assert reason in cell.not_judged


def test_linux_schemes(tmp_path):
    cells = read(tmp_path, [linux_line(cc=cc) for cc in ("reno", "bbr", "vegas", "westwood", "dctcp")]).cells
    assert [bool(cell.not_judged) for cell in cells] == [False, False, False, False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"goodput_w_mbps": "abc"}, "goodput_w_mbps = 'abc'; valid: a number from 0 to 1e+06"),
        ({"goodput_w_mbps": ""}, "goodput_w_mbps = ''"),
        ({"goodput_w_mbps": "nan"}, "goodput_w_mbps = 'nan'"),
        ({"goodput_w_mbps": "-1"}, "goodput_w_mbps = '-1'"),
        ({"sojourn_mean_w_ms": "inf"}, "sojourn_mean_w_ms = 'inf'"),
        ({"queue_drops": "1.5"}, "queue_drops = '1.5'; valid: a whole number"),
        ({"N": 0}, "N = '0'"),
        ({"N": "two"}, "N = 'two'"),
        ({"B_mbps": 0}, "B_mbps = '0'; valid: a number above 0"),
        ({"B_mbps": -10}, "B_mbps = '-10'"),
        ({"buffer_pkts": 0}, "buffer_pkts = '0'"),
        ({"loss": 1}, "loss = '1'"),
        ({"loss": -0.1}, "loss = '-0.1'"),
        ({"T_s": 0.5}, "warm_s = 1 is not below T_s = 0.5"),
        ({"rtt_prop_ms": 3}, "rtt_prop_ms = 3; valid: at least the access links' 4 ms"),
        ({"hystart": 2}, "hystart = '2'"),
        ({"seed": -1}, "seed = '-1'"),
        ({"cc": ""}, "cc is empty"),
        ({"flow": "all"}, "flow = 'all'; valid: 0 to 0, or agg"),
        ({"flow": 1}, "flow = '1'"),
    ],
)
def test_malformed_ns3_rows_name_file_and_line(tmp_path, change, message):
    path = write(tmp_path / "a.csv", [ns3_line(), ns3_line(**change)])
    with pytest.raises(ReferenceDataError) as error:
        read_folder(tmp_path)
    assert str(error.value).startswith(f"{path}:3: ") and message in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss_rate_w": 1.5}, "loss_rate_w = '1.5'"),
        ({"qdelay_mean_w_ms": "x"}, "qdelay_mean_w_ms = 'x'"),
        ({"qdelay_mean_w_ms": -1}, "qdelay_mean_w_ms = '-1'"),
    ],
)
def test_malformed_linux_rows_name_file_and_line(tmp_path, change, message):
    path = write(tmp_path / "a.csv", [linux_line(), linux_line(**change)])
    with pytest.raises(ReferenceDataError) as error:
        read_folder(tmp_path)
    assert str(error.value).startswith(f"{path}:3: ") and message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": is empty"),
        ("\n", ": is empty"),
        (",".join(LINUX_COLUMNS) + "\n", ":1: has a header but no rows"),
        (",".join(LINUX_COLUMNS) + "\n6.18,cubic,1\n", ":2: 3 fields; valid: 15, as in the header"),
        (",".join(LINUX_COLUMNS[:-4]) + "\n", ":1: has a header but no rows"),
        (
            ",".join(c for c in LINUX_COLUMNS if c != "N") + "\n" + ",".join("1" * 14) + "\n",
            ":1: linux-dumbbell cells need the column N,",
        ),
        (",".join(c for c in NS3_COLUMNS if c != "flow") + "\n" + ",".join("1" * 23) + "\n", "need the column flow,"),
        ("cc,cc,goodput_w_mbps\n1,2,3\n", ":1: column 'cc' stands twice"),
        ('kernel,cc,goodput_w_mbps\n6.18,"cubic,3\n', "is not CSV"),
        (b"\xff\xfe,\x00\n", ": is not UTF-8 text"),
    ],
)
def test_damaged_files_are_named(tmp_path, text, message):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ReferenceDataError) as error:
        read_folder(tmp_path)
    assert str(error.value).startswith(str(path)) and message in str(error.value)


def test_a_truncated_file_is_named(tmp_path):
    path = write(tmp_path / "a.csv", [linux_row(), linux_row(cc="reno")])
    path.write_text(path.read_text()[:-40])
    with pytest.raises(ReferenceDataError, match=f"{path}:3: "):
        read_folder(tmp_path)


def test_rows_of_flows_alone_are_no_cells(tmp_path):
    path = write(tmp_path / "a.csv", [ns3_line(flow=0)])
    with pytest.raises(ReferenceDataError, match=f"{path}:2: has no row with flow = agg"):
        read_folder(tmp_path)


def test_a_folder_without_cells_is_refused(tmp_path):
    with pytest.raises(ReferenceDataError, match=r"no such folder; .* in a clone \(git clone "):
        read_folder(tmp_path / "none")
    with pytest.raises(ReferenceDataError, match="holds no reference cells"):
        read_folder(tmp_path)
    write_rates(tmp_path / "r.csv")
    with pytest.raises(ReferenceDataError, match=r"holds no reference cells \(1 CSV files, 1 skipped\)"):
        read_folder(tmp_path)


def test_the_given_references_are_read_whole(references):
    reference = read_folder(references)
    judged = [cell for cell in reference.cells if not cell.not_judged]
    assert len(judged) == 164 and len(reference.cells) == 168
    assert {cell.setting.kind for cell in judged} == {"ns3-dumbbell", "ns3-lasthop", "ns3-sharedbuffer", "linux-dumbbell"}
