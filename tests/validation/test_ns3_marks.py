"""The linux stack's ECN beside ns-3.44's, as measured in tests/data."""

from pathlib import Path

import pytest

from netbuf_gym.errors import ReferenceDataError
from netbuf_gym.validation import read_folder, validate
from netbuf_gym.validation.marks import NS3_MARKS

DATA = Path(__file__).resolve().parents[1] / "data" / "ns3_marks.csv"


@pytest.fixture(scope="module")
def cells():
    return read_folder(DATA).cells


def test_what_the_file_holds(cells):
    assert {cell.setting.kind for cell in cells} == {NS3_MARKS}
    assert {cell.setting.label for cell in cells} == {"dctcp", "codel_marks", "step_marks", "ledbat"}
    assert sum(not cell.not_judged for cell in cells) == 33
    assert DATA.read_text().startswith("# tools/ns3/marks.py ")


def test_ours_is_within_tolerance():
    report = validate(DATA)
    assert report.within, report.text()


def test_a_malformed_row_is_named(tmp_path):
    lines = DATA.read_text().splitlines()
    (tmp_path / "marks.csv").write_text("\n".join([*lines[:3], lines[3].replace(",Dctcp,2,", ",Dctcp,0,"), ""]))
    with pytest.raises(ReferenceDataError, match=r"marks.csv:4"):
        read_folder(tmp_path)
