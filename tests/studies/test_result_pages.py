"""Pages of results: tables between marks, and everything else as it was."""

import re
from dataclasses import replace

import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.leaderboard import best, rows, scoring
from netbuf_gym.leaderboard import standings as leaderboard
from netbuf_gym.utils.statistics import Interval
from netbuf_gym.version import __version__
from netbuf_gym.zoo import library
from studies.pages import code_tables, practice_table, result_tables


@pytest.fixture(scope="module")
def standings():
    return {"queue_threshold": leaderboard.compute_standings("queue_threshold")}


@pytest.fixture
def site(standings, tmp_path, monkeypatch):
    """A checkout's pages, of one task."""
    made = result_tables.Pages(tmp_path)
    vars(made).update(standings=standings, studies={"rlbm default": "| a |\n| --- |\n| 1 |"})
    (tmp_path / "docs" / "appendix").mkdir(parents=True)
    return made


def marked(name):
    return f"<!-- results: {name} -->\nold\n<!-- end of results -->\n"


def test_tables_are_written_between_their_marks_and_stamped(site):
    text = f"before\n{marked('rlbm default')}between\n{marked('nothing kept')}{marked('leaderboard queue_threshold')}after\n"
    new = site.renew(text, result_tables.Path("docs", "x.md"))
    assert new.startswith("before\n<!-- results: rlbm default -->\n| a |") and new.endswith("after\n")
    assert marked("nothing kept") in new and new.count(f"*Written by netbuf-gym {__version__}.*") == 2
    best = site.standings["queue_threshold"][0]
    name = f"**{best.name}**" if best.role == scoring.AGENT else best.name
    assert f"| 1 | {name} | {best.role} | {best.middle} |" in new
    assert site.renew(new, result_tables.Path("docs", "x.md")) == new


def test_a_mark_without_its_end_is_refused(site):
    for text in ("<!-- results: a -->\n", "<!-- end of results -->\n", f"<!-- results: a -->\n{marked('b')}"):
        with pytest.raises(ConfigError, match=r"docs/x.md: \d marks of results, \d ends; valid"):
            site.renew(text, result_tables.Path("docs", "x.md"))


def test_rows_that_do_not_fit_stop_all_pages(site, tmp_path, monkeypatch):
    own = result_tables.results.list_ranking_suites()[0]
    monkeypatch.setattr(result_tables.rows, "FOLDER", tmp_path / "rows")
    path = rows.get_file(own, "naive")
    path.parent.mkdir(parents=True)
    path.write_text("damaged\n")
    page = site.root / "docs" / "x.md"
    page.write_text(marked("rlbm default"))
    with pytest.raises(ConfigError, match=rf"{re.escape(str(path))}: .*`netbuf-gym results make {own.name}`"):
        site.write()
    assert page.read_text() == marked("rlbm default")


def test_agents_stand_in_tables_with_links_to_their_cards(site):
    new = site.renew(marked("zoo queue_threshold"), result_tables.Path("docs", "appendix", "zoo.md"))
    for name in (name for name in library.names() if name.startswith("queue_threshold/")):
        metrics = library.read_metrics(library.FOLDER / name)
        assert f"| [{name.partition('/')[2]}](../../zoo/agents/{name}/card.md) | {metrics['algo']} |" in new
    card = site.renew(
        marked("card queue_threshold/ppo"), result_tables.Path("zoo", "agents", "queue_threshold", "ppo", "card.md")
    )
    assert re.search(r"^\| family \| worlds \| flows \| queue_threshold/ppo \|", card, re.M)
    assert "queue_threshold/a2c" not in card
    assert len(re.findall(r"^\| (?!family|---)", card, re.M)) == len(site.standings["queue_threshold"][0].scores)


def test_tables_of_pages_are_renewed():
    page = "text\n<!-- table: environments -->\nof before\n<!-- end of table -->\nmore\n"
    new = code_tables.renew_tables(page)
    assert new.startswith("text\n") and new.endswith("more\n")
    assert "netbuf/CongestionWindow-v0" in new and "of before" not in new
    with pytest.raises(ConfigError, match="no table 'features x'"):
        code_tables.renew_tables(page.replace("environments", "features x"))


@pytest.mark.slow
def test_all_pages_of_a_checkout_are_written(site, monkeypatch):
    monkeypatch.setattr(result_tables.suites_of_the_field, "SUITES", result_tables.suites_of_the_field.SUITES[-1:])
    monkeypatch.setattr(result_tables.field_reports, "SUITES", result_tables.suites_of_the_field.SUITES)
    page = site.root / "docs" / "leaderboard.md"
    code = "<!-- table: environments -->\n<!-- end of table -->\n"
    page.write_text(marked("leaderboard queue_threshold") + code + marked("x y"))
    written = {path.relative_to(site.root).as_posix() for path in site.write()}
    assert written >= {"docs/leaderboard.md", "docs/appendix/leaderboard.md", "docs/figures/leaderboard.png"}
    assert "docs/appendix/field/bbr3-conformance/report.md" in written
    assert "netbuf/CongestionWindow-v0" in page.read_text() and site.find_unknown() == ["docs/leaderboard.md: x y"]
    report = (site.root / "docs/appendix/field/bbr3-conformance/report.md").read_text()
    assert "`netbuf-gym results make bbr3/conformance`" in report and "| bbr3 |" in report


def test_the_page_for_practitioners_names_the_best_of_each_kind(site):
    new = site.renew(marked("practice") + marked("practice advice"), result_tables.Path("docs", "practice.md"))
    standing = site.standings["queue_threshold"]
    chosen = best.select_best("queue_threshold", standing)
    table = [line.strip("| ").split(" | ") for line in new.splitlines() if line.startswith("| QueueThreshold-v0")]
    assert [cells[2] for cells in table if cells[2].startswith("**")] == [f"**{chosen.name}**"]
    for role, kind in (("agent", "network"), ("rule", "rule"), ("constant", "constant"), ("other control", "other control")):
        first = next(one for one in standing if one.role == role)
        shown = [cells for cells in table if cells[1] == kind and cells[2].strip("*") == first.name]
        assert shown and shown[0][3] == str(first.middle) and shown[0][-1]
        assert ("parameters" in shown[0][-2]) is (role == "agent")
    assert f"* QueueThreshold-v0: `{chosen.name}`" in new


def test_whether_a_network_is_worth_it_is_said_by_its_intervals():
    standing = leaderboard.compute_standings("queue_threshold")
    low, high = Interval(0.1, -0.1, 0.3), Interval(0.2, 0.1, 0.3)
    for over, said in ((low, "not surely ahead of both"), (high, ": surely ahead of both")):
        known = [
            replace(one, over_rules=over, over_constant=high) if one.name == "queue_threshold/ppo" else one for one in standing
        ]
        known.sort(key=lambda one: one.name != "queue_threshold/ppo")
        assert said in practice_table.format_advice({"queue_threshold": known})
