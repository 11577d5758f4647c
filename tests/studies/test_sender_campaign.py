"""The campaign about senders on real paths: what it runs and refuses, its bounds, how its claims are judged."""

import json
import math

import numpy as np
import pytest

from netbuf_gym import traces
from netbuf_gym.cli.program import main
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.traces.types import DeliveryTrace, RateTrace
from netbuf_gym.zoo import library
from studies.common import kept, table
from studies.common.campaign import Campaign
from studies.common.cells import KEYS, TEXTS, make_parts
from studies.common.results import Runs
from studies.sender import bounds, seeds, trace_cells
from studies.sender import sender_claims as claims
from studies.sender import sender_measures as measures
from studies.sender import sender_schemes as schemes
from studies.sender import sender_sections as sections
from studies.sender import sender_tables as tables
from studies.sender import sender_worlds as worlds
from studies.sender.sender_experiment import SENDER
from studies.sender.sender_measures import MEASURES
from studies.sender.sender_schemes import CLASSIC, NAMES, PLACES, make_controller
from studies.sender.sender_settings import DEFAULT_SCHEMES, DEFAULT_STUDIES, STUDIES, TRACES, Settings
from studies.sender.studies import ALL
from tests.studies.hand_made_runs import make_runs

SEED = 1_000_000
QUICK = tuple(name for name in STUDIES if name not in ("grid", "strangers", TRACES))


def row(scheme: str, seed: int = 0, study="ppcc", cell="2", step=0, **values) -> dict:
    return {"study": study, "cell": cell, "scheme": scheme, "step": float(step), "seed": float(seed)} | values


def said(runs: Runs, study: str, scheme: str) -> dict[str, str]:
    """The verdicts on a scheme by the claims' words."""
    lines = [[part.strip() for part in line.split(" | ")] for line in claims.format_claims_table(runs, study).splitlines()]
    at = next(i for i, part in enumerate(lines[0]) if part.strip(" |") == schemes.label(scheme))
    return {line[0].strip("| "): line[at].strip(" |") for line in lines[2:]}


@pytest.fixture
def folder(tmp_path):
    """A folder with traces of the names that are wanted: 2 Mbit/s, of 5G with a second of next to nothing."""
    for family, names in trace_cells.FILES.items():
        below = tmp_path / "traces" / family
        below.mkdir(parents=True)
        for name in names if family != trace_cells.NR_ZEROED else ():
            if family == trace_cells.NR:
                (below / name).write_text("0 2\n1 0.001\n2 2\n3 2\n")
            else:
                traces.write(DeliveryTrace(np.arange(6.0, 4002.0, 6)), below / name)
    return tmp_path / "traces"


@pytest.mark.slow
def test_studies_run_and_go_on(tmp_path, capsys, section_of):
    """Short runs of all studies but the large ones, a cut end, the same rows again; figures and the section of it."""
    output = tmp_path / "out"
    words = [f"studies=[{','.join(QUICK)}]", "schemes=[cubic,copa,constant]", "seeds=2", "duration_s=3", f"output={output}"]
    assert main(["reproduce", "sender", *words]) == 0
    runs, text = SENDER.read(output / "runs.csv"), (output / "runs.csv").read_text()
    assert set(runs.values("study")) == set(QUICK)
    whole = runs.where(step=0)
    cells = sum(len(ALL[name].cells) for name in QUICK)
    assert len(whole) == 2 * 3 * cells
    series = runs.mask(runs.columns["step"] > 0)
    assert set(series.values("study")) == {"start", "outage", "delay_step"} and series.values("seed") == [SEED]
    assert series.where(study="start", cell="1", scheme="cubic").columns["step"].tolist() == [0.5 * k for k in range(1, 7)]
    (output / "runs.csv").write_text(text[: len(text) // 2])
    assert main(["reproduce", "sender", *words, "figures=false"]) == 0 and (output / "runs.csv").read_text() == text
    assert "its end was cut" in capsys.readouterr().out
    drawn = {path.stem for path in (output / "figures").iterdir()}
    assert drawn == {"start", "outage", "delay_step", "rivals", "agents", "joining"}

    columns = whole.columns
    assert (columns["goodput_mbps"] > 0).all() and (columns["use"] < 1).all() and (columns["loss"] < 0.5).all()
    shares = whole.where(study="rivals").columns["share"]
    assert ((shares > 0) & (shares < 1)).all()
    constant = whole.where(study="rivals", scheme="constant", cell=worlds.RIVAL_CELLS[0], seed=SEED)
    settings = SENDER.parse(words).settings
    assert schemes.read_best_constant(schemes.TASK) == "constant:5"
    ours = make_controller("constant:5")
    (again,) = ALL["rivals"].play(ours, settings, worlds.RIVAL_CELLS[0], [SEED])
    assert constant.columns["utility"][0] == pytest.approx(again["utility"], 1e-6)

    text = section_of(SENDER, "events", output)
    for part in ("### Outages", "10 Mbit/s, queue held", "(../figures/sender/rivals.png)", "4 joining, 1 BDP"):
        assert part in text, part
    assert "### Links of all sizes" not in text


def test_the_default_needs_neither_agent_nor_traces(monkeypatch, folder):
    settings = SENDER.parse([]).settings
    assert settings.command() == "netbuf-gym reproduce sender" and settings.schemes == DEFAULT_SCHEMES
    assert settings.studies == DEFAULT_STUDIES and TRACES not in DEFAULT_STUDIES and "agent" not in DEFAULT_SCHEMES
    parts = make_parts(settings, settings.studies, ALL)
    assert {part.runs[0][0] for part in parts} == set(DEFAULT_STUDIES) and len({part.name for part in parts}) == len(parts)
    assert SENDER.parse([f"traces={folder}"]).settings.studies == tuple(name for name in STUDIES if name != "strangers")
    assert Settings.shipped in library.names() and set(SENDER.parse(["schemes=all"]).settings.schemes) == set(NAMES)
    monkeypatch.setattr(Settings, "bundled", classmethod(lambda cls, key="agent": ""))
    assert "agent" not in SENDER.parse(["schemes=all"]).settings.schemes


def test_the_agent_plays_by_its_name():
    """The package's, as several that join, and beside a rival."""
    settings = SENDER.parse(["schemes=[agent]", "studies=[agents,rivals]", "seeds=1", "duration_s=3"]).settings
    work = SENDER.work(settings)
    assert work.identity["agent_sha256"] and not work.identity["traces_sha256"]
    agent = work.controllers["agent"]
    (joining,) = ALL["agents"].play(agent, settings, "join-1", [SEED])
    (beside,) = ALL["rivals"].play(agent, settings, "cubic-1", [SEED])
    assert 0 < joining["converge_s"] <= 1.5 and 0 < joining["use"] < 1 and 0 < beside["share"] < 1


def test_traces_that_lack_or_change_are_told(tmp_path, folder):
    words = [f"traces={folder}", "studies=[traces]", "schemes=[cubic]", "seeds=1", "duration_s=3"]
    settings = SENDER.parse(words).settings
    Campaign(SENDER, settings, tmp_path / "out", 1)
    with (folder / "lte" / "trace-1553114405-bus").open("a") as file:
        file.write("4010\n")
    with pytest.raises(Exception, match="was begun with another file as the traces; valid: another folder"):
        Campaign(SENDER, settings, tmp_path / "out", 1)
    (folder / "3g" / "TMobile-UMTS-driving.up").unlink()
    trace_cells._find_files.cache_clear()
    with pytest.raises(Exception, match=r"lacks TMobile-UMTS-driving\.up; valid: a folder with all traces"):
        SENDER.work(settings)


def test_windows_and_what_counts_as_an_outage(folder):
    """Seeds take one window after the other; 5gz is 5g with the second of next to nothing as an outage."""
    cells = {family: trace_cells.list_cells(family)[0] for family in trace_cells.FILES}
    assert sum(len(trace_cells.list_cells(family)) for family in cells) == len(trace_cells.CELLS) == 3 * (14 + 3 + 8 + 8)
    written, zeroed = (trace_cells.read_window(str(folder), cells[family], 0, 3.0) for family in ("5g", "5gz"))
    assert written.rate_mbps.tolist() == [2, 0.001, 2] and zeroed.rate_mbps.tolist() == [2, 0, 2]
    assert trace_cells.read_window(str(folder), cells["5g"], 1, 1.0).rate_mbps.tolist() == [
        2
    ]  # the second of nothing is left out
    made = [worlds.make_trace(cell, written).scenario for cell in trace_cells.list_cells("5g")[:3]]
    product = written.mean_mbps() * 40e3 / 8 / 1500
    assert [one.buffer_packets for one in made] == [max(4, round(product)), round(4 * product), 250]


def test_what_a_trace_carries():
    rates = RateTrace([0.0, 1.0, 2.0], [12.0, 0.0, 6.0], period_s=3.0)
    packets = bounds.compute_carried_packets(rates, 4.0, 1500)
    assert [packets[at] for at in (0, 500, 1000, 2000, 3000, 4000)] == pytest.approx([0, 500, 1000, 1000, 1500, 2500])
    deliveries = DeliveryTrace([10.0, 20.0, 20.0, 100.0])
    packets = bounds.compute_carried_packets(deliveries, 0.2, 1500)
    assert [packets[at] for at in (9, 10, 20, 99, 110, 120)] == [0, 1, 3, 3, 5, 7]


def test_bounds_know_a_capacity_that_changes(folder):
    """On a rate that doubles every second the oracle has more than the causal bound, and that more than CUBIC."""
    steps = RateTrace(np.arange(8) * 0.5, [4.0, 12.0] * 4, period_s=4.0)
    made = worlds.make_trace(trace_cells.list_cells("lte")[1], steps)
    found = {}
    for name in ("oracle", "causal", "cubic"):
        reports = []
        play = make_controller(name)
        rollout.play(
            play, [worlds.draw_world(made, SEED)], lambda view, to=reports: to.extend(view.report()), task=schemes.TASK
        )
        found[name] = reports[0]
    assert found["oracle"]["utility"] > found["causal"]["utility"] > found["cubic"]["utility"] + 0.1
    assert found["oracle"]["goodput_mbps"] > 6.9 and found["oracle"]["queue_delay_mean_ms"] < 12
    with pytest.raises(Exception, match="oracle has no trace in"):
        make_controller("oracle").place(worlds.draw_world(worlds.make_ppcc("1", SEED, 5.0), SEED).scenario)
    settings = SENDER.parse([f"traces={folder}", "studies=[traces]", "schemes=[causal]", "seeds=1", "duration_s=3"]).settings
    rows = ALL[TRACES].play(make_controller("causal"), settings, trace_cells.list_cells("3g")[0], [SEED])
    assert len(rows) == 1 and rows[0]["choice"] in bounds.SCALES and rows[0]["utility"] > -0.5


def test_every_scheme_meets_the_same_world():
    settings = Settings(duration_s=6.0)
    for study in ALL.values():
        if study.name != TRACES:
            for cell in study.cells[-2:]:
                (first,), (again,) = (study.build_worlds(settings, cell, [SEED]) for _ in range(2))
                assert first == again and first.agents <= len(first.scenario.flows)
    outage = worlds.make_outage("10-drop", SEED, 60.0)
    assert 20 <= outage.at_s <= 21 and outage.until_s - outage.at_s == pytest.approx(10)
    up, down = (worlds.make_delay_step(cell, SEED, 80.0) for cell in ("up-10", "down-10"))
    for made, before_ms, after_ms in ((up, 40, 90), (down, 100, 50)):
        back_ms, ahead = made.scenario.links[1].delay_ms, made.scenario.links[0].delay_ms
        assert [float(back_ms + ahead.delay_at_ms(at)) for at in (19.9, 22.0)] == [before_ms, after_ms]
    starts = worlds.make_agents("join-1", SEED, 50.0).starts_s
    assert len(starts) == 4 and all(10 * k <= at <= 10 * k + 1 for k, at in enumerate(starts))
    assert len(worlds.GRID_CELLS) == 6 * 6 * 3 * 3
    assert (
        worlds.compute_grid_duration("1-5-1-0") == 40
        and worlds.compute_grid_duration("1000-5-1-0") == 5
        and worlds.compute_grid_duration("1000-400-1-0") == 10
    )


class Seen:
    """A world of one flow that delivers at given rates, second by second, as a log looks at it."""

    def __init__(self, rates_mbps, rtt_ms=40.0):
        self.rates, self.rtt_ms = rates_mbps, rtt_ms

    def log(self, made: worlds.StudyWorld) -> measures.DeliveryLog:
        log = measures.DeliveryLog(made)
        arrived = 0.0
        for k in range(10 * len(self.rates)):
            arrived += self.rates[k // 10] * 1e5 / 8
            log._times.append((k + 1) / 10)
            log._arrived.append([round(arrived)] * len(made.scenario.flows))
            log._rtts.append(((k + 1) * self.rtt_ms * 1e-3, k + 1))
        return log


def test_times_are_from_the_event_on():
    log = Seen([100.0, 400.0, 950.0, 950.0]).log(worlds.make_start("1", SEED, 10.0))
    assert measures.measure_start(log, {})["reach_s"] == pytest.approx(2.5, abs=0.11)
    assert measures.measure_start(Seen([100.0, 800.0]).log(worlds.make_start("1", SEED, 10.0)), {})["reach_s"] == pytest.approx(
        2.0
    )

    held, dropped = (worlds.make_outage(cell, SEED, 12.0)._replace(at_s=4.0, until_s=6.0) for cell in ("10-hold", "10-drop"))
    rates = [9.6] * 4 + [0, 0] + [0, 0, 4, 9.6, 9.6, 9.6]
    assert measures.measure_outage(Seen(rates).log(held), {})["first_s"] == pytest.approx(2.1)
    assert measures.measure_outage(Seen(rates).log(held), {})["recover_s"] == pytest.approx(3.4, abs=0.11)
    assert measures.measure_outage(Seen(rates).log(dropped), {})["recover_s"] == pytest.approx(1.3, abs=0.11)
    nothing = measures.measure_outage(Seen([9.6] * 4 + [0.0] * 8).log(dropped), {})
    assert nothing["first_s"] == pytest.approx(6.0) and nothing["recover_s"] >= 0

    step = worlds.make_delay_step("up-10", SEED, 8.0)._replace(at_s=4.0)
    found = measures.measure_delay_step(Seen([8.0] * 4 + [6.0] * 4).log(step), {})
    assert found["kept"] == pytest.approx(0.75) and math.isnan(found["settle_s"])
    down = worlds.make_delay_step("down-10", SEED, 8.0)._replace(at_s=4.0)
    assert measures.measure_delay_step(Seen([8.0] * 8, rtt_ms=55.0).log(down), {})["settle_s"] == pytest.approx(1.0)
    assert measures.measure_delay_step(Seen([8.0] * 8, rtt_ms=75.0).log(down), {})["settle_s"] == pytest.approx(4.0)


def test_claims_are_judged_by_their_limits():
    """Within, beyond, across, on one seed alone, and where nothing was measured."""
    rows = [row("cubic", seed, utility=-0.035 + 1e-4 * seed) for seed in range(3)]
    rows += [row("bbr", seed, utility=-0.110 + 1e-4 * seed) for seed in range(3)]
    rows += [row("vegas", seed, utility=-0.036 + 0.01 * (seed - 1)) for seed in range(3)]
    rows += [row("copa", 0, utility=-0.02)]
    rows += [row("newreno", seed, utility=math.nan if seed else -0.01) for seed in range(3)]
    found = {scheme: said(make_runs(SENDER, rows), "ppcc", scheme) for scheme in ("cubic", "bbr", "vegas", "copa", "newreno")}
    claim = "ppcc/2: utility at least -0.036"
    assert all(list(one) == [claim] for one in found.values())  # nothing was run in the other scenarios
    assert found["cubic"][claim].endswith("]: holds") and found["bbr"][claim].endswith(": does not hold")
    assert found["vegas"][claim].endswith(": not shown") and found["copa"][claim] == "-0.0200: not judged, of one seed"
    assert found["newreno"][claim] == "not measured in 2 of 3 runs: does not hold"


def test_twice_cubics_share_is_enough_beside_bbr():
    def shares(scheme, value):
        return [row(scheme, seed, "rivals", "bbr-1", share=value + 1e-3 * seed) for seed in range(3)]

    claim = "BBR, 1 BDP: 0.25, or twice CUBIC's share there"
    with_cubic = make_runs(SENDER, [*shares("copa", 0.2), *shares("cubic", 0.08)])
    assert said(with_cubic, "rivals", "copa")[claim].endswith(": holds")
    assert said(with_cubic, "rivals", "cubic")[claim].endswith(": does not hold")
    assert said(make_runs(SENDER, shares("copa", 0.2)), "rivals", "copa")[claim].endswith(": does not hold")


def test_the_grid_counts_cells_behind_the_best_other_classic():
    cells = worlds.GRID_CELLS[:40]
    utilities = {"cubic": -0.5, "bbr": -0.2, "queue_target": -0.21}
    rows = [
        row(scheme, seed, "grid", cell, utility=value, use=0.9, queue_delay_ms=5.0)
        for scheme, value in utilities.items()
        for cell in cells
        for seed in range(2)
    ]
    for one in rows:
        if one["scheme"] == "queue_target" and one["cell"] in cells[:2]:
            one["utility"] = -0.25
    claim = "at most 5 % of the cells more than 0.02 behind the best classic control"
    runs = make_runs(SENDER, rows)
    assert said(runs, "grid", "queue_target")[claim] == "5.0 % [5.0, 5.0]: holds"
    assert said(runs, "grid", "cubic")[claim] == "100.0 % [100.0, 100.0]: does not hold"
    assert said(runs, "grid", "bbr")[claim] == "0.0 % [0.0, 0.0]: holds"  # CUBIC is the best other one
    rows[-1]["utility"] = math.nan  # nothing was acknowledged
    assert claims.compute_margins(make_runs(SENDER, rows), "queue_target")[cells[-1], 1.0] == -math.inf
    table = tables.format_grid_table(runs)
    assert "| 2 | -0.05 (" in table and tables.choose_featured_scheme(runs) == "queue_target"


def test_the_way_to_the_causal_bound():
    """Shares of the gap from the best single classic of a family, with intervals over traces and buffers."""
    cells = trace_cells.list_cells("lte")
    rng = np.random.default_rng(1)
    noise = dict(zip(cells, 0.1 * rng.random(len(cells)), strict=True))
    utilities = {"cubic": -0.7, "vegas": -0.4, "causal": -0.3, "agent": -0.32, "copa": -0.36, "queue_target": -0.41}
    rows = [
        row(scheme, 0, "traces", cell, utility=value + noise[cell] + 0.002 * rng.random(), loss=0.001 if value > -0.4 else 0.02)
        for scheme, value in utilities.items()
        for cell in cells
    ]
    runs = make_runs(SENDER, rows)
    claim = "LTE: two thirds of the way from the best classic to the causal bound"
    gap = claims.compute_gap(runs.where(study="traces"), "agent")
    assert gap.rival == "copa" and gap.closed.mean == pytest.approx(2 / 3, abs=0.02) and gap.ahead.low > 0.03
    without = runs.mask(runs.columns["scheme"] != "copa")
    assert said(without, "traces", "agent")[claim].endswith(": holds")
    assert said(without, "traces", "queue_target")[claim].endswith(": does not hold")
    better = make_runs(SENDER, [one | {"utility": one["utility"] - 0.05 * (one["scheme"] == "agent")} for one in rows])
    assert said(better.mask(better.columns["scheme"] != "copa"), "traces", "agent")[claim].endswith(": in sign only")
    assert claims.compute_gap(runs.mask(runs.columns["scheme"] != "causal"), "agent") is None
    assert "-0.3" in tables.format_traces_table(runs) and "LTE" in tables.format_traces_table(runs)


def test_claims_speak_of_measures_and_cells_that_there_are():
    for claim in claims.LIMITS:
        assert claim.measure in MEASURES and set(claim.cells) <= set(ALL[claim.study].cells), claim
        assert claim.cells and (claim.low > -math.inf or claim.high < math.inf)
    assert {claim.study for claim in claims.LIMITS} == set(STUDIES) - {"grid", "strangers"}
    assert len({(claim.study, claim.text) for claim in claims.LIMITS}) == len(claims.LIMITS)
    assert set(CLASSIC) < set(PLACES) < set(NAMES) and "receiver_driven" not in NAMES
    assert set(sections.WORLDS) == set(sections.TITLES) == set(STUDIES)


def test_claims_of_several_training_seeds_stand_beside_the_same_others(tmp_path):
    """Agents' campaigns, here two made by hand, and the runs of others that are kept."""
    others = [row("cubic", seed, "rivals", "bbr-1", share=0.1) for seed in range(3)]
    others += [row("agent", seed, "rivals", "bbr-1", share=0.9) for seed in range(3)]
    for part, rows in (("links", [row("cubic", seed, utility=-0.5) for seed in range(3)]), ("events", others)):
        kept.write_rows(tmp_path, "sender", part, {"command": "by hand"}, make_runs(SENDER, rows).to_csv(8))
    for name, share, utility in (("7", 0.22, -0.03), ("12", 0.15, -0.05)):
        for part, own in (("links", {"utility": utility}), ("events", {"study": "rivals", "cell": "bbr-1", "share": share})):
            folder = tmp_path / "agents" / name / part
            folder.mkdir(parents=True)
            (folder / "campaign.json").write_text(json.dumps({"command": f"netbuf-gym reproduce sender of {part}"}))
            rows = [dict.fromkeys(SENDER.columns) | row("agent", seed, **own) for seed in range(3)]
            (folder / "runs.csv").write_text(table.format_table("by hand", SENDER.columns, rows))
    seeds.keep_seeds(tmp_path / "agents", tmp_path)
    found = kept.read_rows(tmp_path, "sender", "seeds")
    text = SENDER.sections["seeds"](found)
    assert "| claim | over training seeds | holds | 7 | 12 |" in text and "likewise of seeds 7." in text
    assert "| ppcc/2: utility at least -0.036 | -0.0400 [-0.1671, 0.0871] | 1 of 2 | **-0.0300** | -0.0500 |" in text
    assert "| BBR, 1 BDP: 0.25, or twice CUBIC's share there | 0.18 [-0.26, 0.63] | 1 of 2 | **0.22** | 0.15 |" in text
    assert found.runs(KEYS, TEXTS, MEASURES).where(study="rivals").values("scheme") == ["7", "12"]
    (tmp_path / "agents" / "7" / "links" / "runs.csv").unlink()
    with pytest.raises(ConfigError, match="holds no finished campaign"):
        seeds.keep_seeds(tmp_path / "agents", tmp_path)
    with pytest.raises(ConfigError, match="holds no folder of a training seed"):
        seeds.keep_seeds(tmp_path, tmp_path)
    kept.build_path(tmp_path, "sender", "events").unlink()
    with pytest.raises(ConfigError, match=r"events\.csv\.gz is not there; valid: the rows of events before those of seeds"):
        SENDER.sections["seeds"](found)


def test_verdicts_tell_the_cell_that_is_furthest_from_its_target():
    shares = {"cubic-1": 0.5, "cubic-4": 0.7}
    rows = [row("agent", seed, "rivals", cell, share=one + 0.01 * seed) for seed in range(3) for cell, one in shares.items()]
    table = claims.format_verdicts(make_runs(SENDER, rows), sections.TITLES)
    assert table.splitlines()[2:] == [
        "| Beside other controls: 0.35 to 0.65 of the link | 0.35 to 0.65 | 0.71 [0.69, 0.73] (CUBIC, 4 BDP) |"
        " holds in 1, does not hold in 1 |"
    ]
