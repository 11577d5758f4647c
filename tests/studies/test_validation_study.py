"""Ours beside references, kept as rows: verdicts from rows are those of the measurement itself."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest

from netbuf_gym.errors import ReferenceDataError
from netbuf_gym.validation import host_settings, validate
from netbuf_gym.validation.host_settings import Cell, CellComparison, Measurement, SettingsReport
from studies.common import kept
from studies.validation import measured
from studies.validation import validation_sections as sections

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """One with ns-3's marks, of three cells."""
    source = measured.SOURCES["marks"]
    lines = (CHECKOUT / source).read_text().splitlines()
    (tmp_path / source).parent.mkdir(parents=True)
    (tmp_path / source).write_text("\n".join(lines[:5]) + "\n")
    monkeypatch.setattr(measured, "SEEDS", 3)
    return tmp_path


def test_verdicts_of_kept_rows_are_those_of_the_run(checkout):
    measured.keep_section("marks", checkout)
    rows = kept.read_rows(checkout, "validation", "marks")
    report = validate(checkout / measured.SOURCES["marks"], seeds=3)
    assert len(report.cells) == 3
    assert measured.build_report(rows).to_dict() == report.to_dict()
    assert sections.SECTIONS["marks"](rows) == report.markdown()
    assert measured.find_stale_reason(rows) == ""
    assert "3 cells judged, 0 out of tolerance" in sections.verdicts({"marks": rows})


def test_a_changed_row_is_out_of_tolerance_and_a_missing_one_refused(checkout):
    path = measured.keep_section("marks", checkout)
    first, columns, *lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    rows = list(csv.DictReader(io.StringIO("\n".join([columns, *lines]))))
    rows[0]["goodput_mbps"] = str(0.5 * float(rows[0]["goodput_mbps"]))
    texts = [",".join(row.values()) for row in rows]
    path.write_bytes(gzip.compress("\n".join([first, columns, *texts, ""]).encode()))
    found = kept.read_rows(checkout, "validation", "marks")
    assert (
        not measured.build_report(found).within and "out of tolerance" in sections.verdicts({"marks": found}).splitlines()[-1]
    )
    assert measured.find_stale_reason(found).startswith("differs in 1 of 3 runs")
    path.write_bytes(gzip.compress("\n".join([first, columns, *texts[:1], ""]).encode()))
    with pytest.raises(ReferenceDataError, match=r"has no rows of ns3-.*results make studies/validation/marks"):
        measured.build_report(kept.read_rows(checkout, "validation", "marks"))


def test_hosts_settings_are_kept_to_the_last_digit(tmp_path):
    compared = CellComparison(Cell("bbr", 4 << 20, 40.0), Measurement(1 / 3, 50.1), Measurement(0.3, 50.0))
    report = SettingsReport((compared,), "linux", "6.18", "2026-01-01")
    measured.keep_settings(report, tmp_path)
    rows = kept.read_rows(tmp_path, "validation", "linux")
    assert measured.build_report(rows) == report
    said = "| hosts' buffers, BBR: largest error of throughput | Linux, 1 settings | -10.00 % (4 MiB, 40 ms) |"
    assert said in sections.verdicts({"linux": rows})


def test_the_section_of_the_kernel_measures_both_plants(tmp_path, monkeypatch):
    monkeypatch.setattr(host_settings, "measure", lambda plant, cell, look: Measurement(10.0, 20.0))
    measured.keep_section("linux", tmp_path)
    report = measured.build_report(kept.read_rows(tmp_path, "validation", "linux"))
    assert len(report.cells) == 40 and report.within
