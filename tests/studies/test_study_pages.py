"""Rows that are kept, the sections made of them, the campaigns that make them, and the command that finds studies."""

import dataclasses
import gzip
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from netbuf_gym.cli.program import main
from netbuf_gym.errors import ConfigError, ReferenceDataError
from netbuf_gym.utils import checkout
from netbuf_gym.zoo import library
from studies import campaigns
from studies.common import kept, replay, verdicts
from studies.common.campaign import Campaign
from studies.common.judging import HIGHER, HOLDS, OPPOSITE, SLIGHT, Claim, compute_interval
from studies.pages import study_tables
from studies.ppcc.ppcc_experiment import PPCC

ROOT = Path(__file__).resolve().parents[2]
HEADER = {"command": "by hand"}
WORDS = ["studies=[table,senders]", "schemes=[newreno,constant]", "seeds=2", "duration_s=2"]


def test_rows_come_back_as_they_were_kept(tmp_path):
    rows = [{"scheme": "a", "seed": 1, "rate_mbps": 1.23456789}, {"scheme": "b", "seed": 2, "rate_mbps": float("nan")}]
    path = kept.write_rows(tmp_path, "ppcc", "300 s", HEADER, kept.format_rows(("scheme", "seed", "rate_mbps"), rows))
    assert path == tmp_path / "results/studies/ppcc/300_s.csv.gz"
    found = kept.read_rows(tmp_path, "ppcc", "300 s")
    assert found.header["command"] == "by hand" and found.records[1] == {"scheme": "b", "seed": "2", "rate_mbps": ""}
    runs = found.runs(("scheme", "seed"), ("scheme",), ("rate_mbps", "loss"))
    assert runs.columns["rate_mbps"][0] == 1.23457 and runs.columns["loss"].shape == (2,)
    first = path.read_bytes()
    kept.write_rows(tmp_path, "ppcc", "300 s", HEADER, kept.format_rows(("scheme", "seed", "rate_mbps"), rows))
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    "damage, said",
    [
        (lambda text: text.replace("# {", "{ {"), "is no table of a study"),
        (
            lambda text: text.replace('"section": "simulated"', '"section": "real"'),
            ":1: holds ppcc real; valid",
        ),
        (lambda text: text + "1,2,3\n", ":4: holds 3 values; valid: 2, as the header has"),
        (lambda text: "\n".join(text.split("\n")[:2]), ":2: holds no rows"),
    ],
)
def test_damaged_rows_are_named(tmp_path, damage, said):
    path = kept.write_rows(tmp_path, "ppcc", "simulated", HEADER, "scheme,seed\na,1\n")
    path.write_bytes(gzip.compress(damage(gzip.decompress(path.read_bytes()).decode()).encode()))
    with pytest.raises(ReferenceDataError, match=said):
        study_tables.make_sections(tmp_path)
    path.write_bytes(b"no gzip")
    with pytest.raises(ReferenceDataError, match="is no table of a study"):
        kept.read_rows(tmp_path, "ppcc", "simulated")


def test_marked_rows_say_so_in_their_section(tmp_path, monkeypatch):
    path = kept.write_rows(tmp_path, "ppcc", "simulated", HEADER, "scheme,seed\na,1\n")
    before = path.read_bytes()
    kept.mark_stale(tmp_path, "ppcc", "simulated", "differs in 1 of 2 runs")
    monkeypatch.setitem(study_tables.STUDIES, "ppcc", ({"simulated": lambda rows: "| a |"}, lambda found: ""))
    assert study_tables.make_sections(tmp_path) == {"ppcc simulated": "| a |\n\n*Stale: differs in 1 of 2 runs.*"}
    kept.mark_stale(tmp_path, "ppcc", "simulated", "")
    assert path.read_bytes() == before and study_tables.make_sections(tmp_path) == {"ppcc simulated": "| a |"}


def test_no_section_follows_from_means(tmp_path):
    kept.write_rows(tmp_path, "rlbm", "default", {**HEADER, "rows": kept.MEANS}, "scheme,runs\nnaive,10\n")
    assert kept.read_rows(tmp_path, "rlbm", "default") is None and study_tables.make_sections(tmp_path) == {}


def test_every_section_has_a_campaign_and_agents_that_there_are():
    named = [one.name for one in campaigns.CAMPAIGNS]
    assert len(set(named)) == len(named) and all(one.minutes > 0 for one in campaigns.CAMPAIGNS)
    derived = {f"{study} {section}" for study, own in study_tables.DERIVED_SECTIONS.items() for section in own}
    sections = {name for name in study_tables.NAMES if not name.endswith(study_tables.VERDICTS)} - derived
    made = {f"{one.study} {one.section}" for one in campaigns.CAMPAIGNS}
    assert sections - made == {"rlbm thesis-text"} and made - sections == {"auter constants"}
    assert {agent for one in campaigns.CAMPAIGNS for agent in one.agents} <= set(library.names())
    assert {one.needs for one in campaigns.CAMPAIGNS} == {"", campaigns.LIVE, campaigns.TRAIN, campaigns.TRACES}
    for one in campaigns.CAMPAIGNS:
        if isinstance(one, campaigns.ExperimentCampaign) and one.needs not in (campaigns.TRACES, campaigns.TRAIN):
            campaigns.EXPERIMENTS[one.study].parse(one.words)


def test_what_a_campaign_needs_is_said():
    links = next(one for one in campaigns.CAMPAIGNS if one.name == "studies/sender/links")
    with pytest.raises(ConfigError, match="studies/sender/links plays measured traces; valid: --traces DIR"):
        links.run()


@pytest.mark.slow
def test_a_campaign_goes_on_and_keeps_its_rows(tmp_path, monkeypatch):
    """Interrupted, given again, and given once more for another agent's sake: rows, pictures and sections follow."""
    parts = []
    original = Campaign._run_chunk

    def killed(self, chunk):
        if len(parts) == 3:
            raise KeyboardInterrupt
        parts.append(chunk.part.name)
        return original(self, chunk)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Campaign, "_run_chunk", killed)
        campaigns.run_experiment(PPCC, "simulated", WORDS, 1, "local", tmp_path)
    assert kept.read_rows(tmp_path, "ppcc", "simulated") is None
    before = len(parts)
    monkeypatch.setattr(Campaign, "_run_chunk", lambda self, chunk: parts.append(chunk.part.name) or original(self, chunk))
    path = campaigns.run_experiment(PPCC, "simulated", WORDS, 1, "local", tmp_path)
    assert 0 < before < len(parts) < before + len(set(parts))  # what was done was not done again
    whole = path.read_bytes()
    made = study_tables.make_sections(tmp_path)
    assert "### Table III: one sender" in made["ppcc simulated"] and "(../figures/ppcc/senders.png)" in made["ppcc simulated"]
    assert (tmp_path / "docs/figures/ppcc/senders.png").stat().st_size > 1000
    assert not (tmp_path / "runs/studies/ppcc/simulated/campaign").exists()
    again = campaigns.run_experiment(PPCC, "simulated", WORDS, 2, "local", tmp_path)
    drop = ('"seconds"', '"jobs"')
    headers = [gzip.decompress(one).decode().partition("\n") for one in (whole, again.read_bytes())]
    assert headers[0][2] == headers[1][2] and all(word in headers[0][0] for word in drop)


def test_rows_are_current_as_long_as_their_runs_come_out_alike(tmp_path):
    campaigns.run_experiment(PPCC, "simulated", WORDS, 1, "local", tmp_path)
    settings, found = PPCC.parse(WORDS).settings, kept.read_rows(tmp_path, "ppcc", "simulated")
    assert replay.find_stale_reason(PPCC, settings, found) == ""
    measure = next(name for name in PPCC.measures if found.records[0].get(name))
    changed = [{**row, measure: str(1.5 * float(row[measure]))} for row in found.records]
    said = replay.find_stale_reason(PPCC, settings, dataclasses.replace(found, records=changed))
    assert said.startswith("differs in ") and f": {measure} " in said
    few = [new if new["scheme"] == "newreno" else row for row, new in zip(found.records, changed, strict=True)]
    said = replay.find_stale_reason(PPCC, settings, dataclasses.replace(found, records=few))
    assert re.match(r"differs in (\d+) of \1 runs .* newreno", said) and ";" not in said
    nobody = [{**row, "scheme": "nobody"} for row in found.records]
    assert replay.find_stale_reason(PPCC, settings, dataclasses.replace(found, records=nobody)).startswith(
        "has no row of the runs"
    )


def test_the_row_of_a_claim_is_that_of_the_rival_furthest_from_it():
    values = {"a": 0.10, "b": -0.10, "c": 0.01}
    sure = {rival: verdicts.judge_change(HIGHER, compute_interval([value] * 3), 0.05) for rival, value in values.items()}
    assert {rival: one[1] for rival, one in sure.items()} == {"a": HOLDS, "b": OPPOSITE, "c": SLIGHT}
    row = verdicts.make_row("more", "5", sure)
    assert row == ["more, against a, b, c", "5", "-9.5 % [-9.5, -9.5] (b)", "holds against 1 of 3"]
    assert verdicts.make_row("more", "5", {"c": sure["c"]}) == ["more, against c", "5", "+1.0 % [+1.0, +1.0]", SLIGHT]
    assert verdicts.make_row("more", "5", {}) is None
    assert verdicts.format_source(Claim("", "8, 9", "x", (), HIGHER, 0.05)) == "5 %, Fig. 8, 9"


# ---- the command


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder in no checkout, the package being imported from none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checkout, "PACKAGE", tmp_path / "site-packages" / "netbuf_gym")
    return tmp_path


def test_outside_of_a_checkout_the_command_says_how_to_get_studies(elsewhere, capsys):
    assert main(["reproduce", "rlbm", "seeds=1"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "git clone https://" in error and "--studies DIR" in error
    assert main(["reproduce", "--help"]) == 0 and "git clone https://" in capsys.readouterr().out


def test_studies_are_those_of_the_folder_or_of_the_one_that_is_given(elsewhere, capsys):
    for given in (ROOT, ROOT / "studies"):
        assert main(["reproduce", "rlbm", "--studies", str(given), "--cfg", "job"]) == 0
        assert "thesis-code" in capsys.readouterr().out
    assert main(["reproduce", "rlbm", f"--studies={elsewhere}"]) == 2
    assert "is no checkout of this project with studies; valid: a clone" in capsys.readouterr().err
    (elsewhere / "studies").mkdir()
    (elsewhere / "studies" / "__init__.py").write_text("")
    (elsewhere / "setup.cfg").write_text("[metadata]\nname = another\n")
    assert not checkout.is_checkout(elsewhere)
    (elsewhere / "setup.cfg").write_text("[metadata]\nname = netbuf-gym\n")
    (elsewhere / "deep" / "er").mkdir(parents=True)
    assert checkout.is_checkout(elsewhere) and not checkout.is_checkout(elsewhere / "deep")


def test_studies_of_another_checkout_take_their_place(tmp_path):
    """In a process of its own: what is imported of one checkout goes when another one's studies are."""
    for name, said in (("one", 1), ("two", 2)):
        folder = tmp_path / name
        (folder / "studies").mkdir(parents=True)
        shutil.copy(ROOT / "setup.cfg", folder)
        (folder / "studies" / "__init__.py").write_text("")
        (folder / "studies" / "command.py").write_text(f"SAID = {said}\n")
    (tmp_path / "two" / "studies" / "broken.py").write_text("from netbuf_gym import no_such_module\n")
    code = (
        "from pathlib import Path; from netbuf_gym import errors; from netbuf_gym.utils import checkout\n"
        f"one, two = Path({str(tmp_path / 'one')!r}), Path({str(tmp_path / 'two')!r})\n"
        "print(*(checkout.import_studies(where, 'command').SAID for where in (one, two, two, one)))\n"
        "try: checkout.import_studies(two, 'broken')\n"
        "except errors.ConfigError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "1 2 2 1" and "need another version of the package" in second
