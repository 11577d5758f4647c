import json
import math

import pytest

from netbuf_gym.cli.program import main
from netbuf_gym.errors import ConfigError
from netbuf_gym.utils.files import to_plain_values
from netbuf_gym.utils.tables import format_number
from netbuf_gym.validation import validate
from tests.helpers.release_cases import for_release
from tests.validation.reference_files import linux_row, ns3_row, write, write_rates


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Cells of all kinds that agree with our simulator, and some that are not judged."""
    root = tmp_path_factory.mktemp("reference")
    rows = [ns3_row(), ns3_row(buffer=20), ns3_row(cc="Cubic"), ns3_row(cc="Cubic", flows=3)]
    rows += [ns3_row(cc="Cubic", loss=0.005, seed=s) for s in (1, 2, 3)]
    rows += [ns3_row(cc="NewReno", loss=1e-3, buffer=150000, seed=s) for s in (101, 102, 103, 104, 105)]
    rows += [ns3_row(cc="Veno"), ns3_row(cc="Ledbat"), ns3_row(cc="Cubic", qdisc="Cobalt")]
    write(root / "ns3" / "a.csv", rows)
    write(root / "ns3" / "c.csv", [ns3_row(cc="Cubic", rate_trace="r.csv", label="C_r", rate=100.0)])
    write_rates(root / "ns3" / "rates" / "r.csv")
    write(root / "linux.csv", [linux_row(), linux_row(cc="reno", flows=2), linux_row(loss=0.01), linux_row(cc="tahoe")])
    return root


def test_a_reference_that_agrees_is_within(folder):
    report = validate(folder, seeds=10, jobs=2)
    assert report.within
    assert report.count("within") == 10 and report.count("not judged") == 4 and report.count("out") == 0
    assert [len(group.cells) for group in report.groups] == [2, 1, 3, 1]
    text = report.text()
    assert "10 cells judged, 0 out of tolerance" in text and "Ledbat" in text and "rates/r.csv" in text
    assert "ns3-dumbbell T_s3: Cubic, 10 Mbit/s, 20 ms" in text


def test_cells_of_queue_disciplines_have_tables_of_their_own(tmp_path):
    write(tmp_path / "a.csv", [ns3_row(cc="Cubic", qdisc=qdisc) for qdisc in ("DropTail", "Fifo", "CoDel", "Red")])
    report = validate(tmp_path, seeds=2)
    assert [len(group.cells) for group in report.groups] == [1]
    text = report.text()
    for name in ("Fifo", "CoDel", "Red"):
        title, header = text[text.index(f"T_s3: Cubic, 10 Mbit/s, 20 ms, {name}") :].splitlines()[:2]
        assert "delay" in header and "drops" not in header, title


def test_a_distribution_with_one_reference_seed_can_fail(tmp_path):
    row = ns3_row(buffer=150000, loss=0.001) | {"goodput_w_mbps": 0.5}
    write(tmp_path / "a.csv", [row])
    (cell,) = to_plain_values(validate(tmp_path, seeds=30).to_dict())["cells"]
    assert cell["verdict"] == "out" and len(cell["our_seeds"]) == 250


def test_the_report_does_not_depend_on_the_number_of_jobs(folder):
    one, many = (json.dumps(to_plain_values(validate(folder, seeds=6, jobs=jobs).to_dict())) for jobs in (1, 4))
    assert one == many


def test_json_holds_every_cell_and_group(folder):
    data = to_plain_values(validate(folder, seeds=6).to_dict())
    assert data["verdict"] == "within" and data["counts"] == {"within": 10, "out": 0, "not judged": 4}
    cells = {cell["id"]: cell for cell in data["cells"]}
    first = cells["ns3-dumbbell/T_s3/NewReno/N1/10Mbps/20ms/40pkts"]
    assert first["file"] == "ns3/a.csv" and first["line"] == 2 and first["judged"] == "alone"
    assert first["quantities"]["goodput_mbps"]["error"] == pytest.approx(0, abs=1e-9)
    lossy = cells["ns3-dumbbell/T_s3/Cubic/N1/10Mbps/20ms/40pkts/loss0.005"]
    assert lossy["reference_seeds"] == [1, 2, 3] and lossy["our_seeds"] == [1, 2, 3, 4, 5, 6]
    assert len(lossy["quantities"]["queue_drops"]["our_values"]) == 6
    spread = cells["ns3-dumbbell/T_s3/NewReno/N1/10Mbps/20ms/150000pkts/loss0.001"]
    assert spread["judged"] == "as a distribution" and spread["quantities"]["goodput_mbps"]["p"] > 0.01
    odd = cells["ns3-dumbbell/T_s3/Veno/N1/10Mbps/20ms/40pkts"]
    assert odd["verdict"] == "not judged" and odd["reason"] and odd["quantities"] == {}
    assert {group["cc"] for group in data["groups"]} == {"Cubic", "cubic", "reno"}


@pytest.mark.parametrize(
    ("row", "column", "factor"),
    [
        (ns3_row, "goodput_w_mbps", 1.02),
        (ns3_row, "sojourn_mean_w_ms", 1.10),
        (ns3_row, "queue_drops", 2),
        (linux_row, "goodput_w_mbps", 0.95),
        (linux_row, "qdelay_mean_w_ms", 1.4),
        (linux_row, "loss_rate_w", 2),
    ],
)
def test_a_reference_that_disagrees_is_out(tmp_path, row, column, factor):
    made = row()
    made[column] = type(made[column])(made[column] * factor)
    write(tmp_path / "a.csv", [made])
    report = validate(tmp_path)
    assert not report.within and "OUT" in report.text()
    assert report.to_dict()["verdict"] == "out"


def test_cells_that_are_not_judged_never_count(tmp_path):
    write(tmp_path / "a.csv", [ns3_row(cc="Veno", goodput_w_mbps=1e-3)])
    report = validate(tmp_path)
    assert report.within and report.count("not judged") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "count"), [("linux", 4), ("ns3-*/Cubic/*", 5), ("newreno", 3), ("ns3-*loss*", 2), ("*150000pkts*", 1)]
)
def test_only_selects_cells(folder, pattern, count):
    assert len(validate(folder, seeds=2, only=pattern).cells) == count


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"seeds": 1}, "seeds = 1"),
        ({"seeds": 2.5}, "seeds = 2.5"),
        ({"jobs": 0}, "jobs = 0"),
        ({"only": "nothing"}, "only = 'nothing' matches none of the 14 cells; there is, e.g., linux-dumbbell"),
    ],
)
def test_bad_arguments_are_named(folder, kwargs, message):
    with pytest.raises(ConfigError, match=message):
        validate(folder, **kwargs)


def test_progress_counts_every_run(folder):
    calls = []
    validate(folder, seeds=2, only="ns3-dumbbell/T_s3/Cubic", jobs=2, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(i, 4) for i in range(1, 5)]


def test_markdown_has_every_cell(folder, tmp_path):
    page = tmp_path / "page.md"
    main(["validate", str(folder), "--seeds", "2", "--markdown", str(page)])
    text = page.read_text()
    assert "| flows | buffer | loss |" in text and "## Not judged" in text
    report = validate(folder, seeds=2)
    assert report.summary in text and text == report.markdown()


def test_it_is_said_in_short(folder):
    report = validate(folder, seeds=2)
    short = report.short_table()
    assert report.summary in short and short.count("\n| ") == 2 + len({group.kind for group in report.groups})
    means = [c for group in report.groups for c in group.comparisons if c.quantity == "goodput_mbps" and math.isnan(c.p)]
    assert f"at most {format_number(100 * max(abs(c.relative_error) for c in means), 2)} %" in short


@pytest.mark.slow
@pytest.mark.parametrize(("source", "cells", "seeds"), [("ns3", 119, 8), ("linux", 45, 30), *for_release(("ns3", 119, 30))])
def test_the_given_references_are_within_tolerance(references, source, cells, seeds):
    report = validate(references / source, seeds=seeds)
    assert report.within, report.text()
    assert report.count("within") == cells
