"""The campaign of the paper on TCP-PPCC: what it runs, resumes and refuses, how its claims are judged."""

import math
from dataclasses import replace

import numpy as np
import pytest

from netbuf_gym.cli.program import main
from netbuf_gym.evaluation import rollout
from netbuf_gym.zoo import library
from studies.common.cells import make_parts
from studies.common.judging import HIGHER, LOWER
from studies.ppcc import paper
from studies.ppcc import ppcc_claims as claims
from studies.ppcc import ppcc_measures as measures
from studies.ppcc import ppcc_schemes as schemes
from studies.ppcc import ppcc_tables as tables
from studies.ppcc import ppcc_worlds as worlds
from studies.ppcc.ppcc_experiment import PPCC
from studies.ppcc.ppcc_measures import MEASURES
from studies.ppcc.ppcc_schemes import NAMES, STYLES, compute_fitting_packets, make_controller
from studies.ppcc.ppcc_settings import DEFAULT_SCHEMES, STUDIES, Settings
from studies.ppcc.studies import ALL, WINDOWS
from tests.studies.hand_made_runs import make_runs

SEED = 1_000_000


def row(scheme: str, seed: int = 0, study="table", cell="2", step=0, **values) -> dict:
    return {"study": study, "cell": cell, "scheme": scheme, "step": float(step), "seed": float(seed)} | values


@pytest.mark.slow
def test_every_study_runs_and_goes_on(tmp_path, capsys, section_of):
    """All studies, a cut end, and the same rows again; figures and the section of it."""
    output = tmp_path / "out"
    words = ["schemes=[newreno,bbr,constant]", "seeds=2", "duration_s=3", "jobs=2", f"output={output}"]
    assert main(["reproduce", "ppcc", *words]) == 0
    runs, text = PPCC.read(output / "runs.csv"), (output / "runs.csv").read_text()
    assert set(runs.values("study")) == set(STUDIES)
    shared = len(worlds.SHARED)
    assert len(runs) == 2 * (3 * 4 + 3 * 4 + 3 * 3 * 2 + 3 * shared + len(WINDOWS) * 4)
    (output / "runs.csv").write_text(text[: len(text) // 2])
    assert main(["reproduce", "ppcc", *words, "figures=false"]) == 0 and (output / "runs.csv").read_text() == text
    assert "its end was cut" in capsys.readouterr().out
    drawn = {path.stem for path in (output / "figures").iterdir()}
    assert drawn == {
        *("table_scatter", "ns3_scatter", "senders", "constants"),
        *(f"series_{cell}{suffix}" for cell in ("2", "fluctuating") for suffix in ("", "_others")),
    }

    whole = runs.mask(runs.columns["study"] != "series").columns
    assert (whole["goodput_mbps"] > 0).all() and (whole["delay_ms"] > 0).all() and (whole["loss"] < 0.5).all()
    np.testing.assert_allclose(whole["mt"], np.log10(whole["delay_ms"] / whole["goodput_mbps"]), rtol=1e-6, atol=1e-6)
    seconds = runs.where(study="series", cell="2", scheme="bbr", seed=SEED).columns
    assert seconds["step"].tolist() == [1, 2, 3] and (seconds["rtt_ms"] > 48).all()
    of_it = runs.where(study="table", cell="2", scheme="bbr", seed=SEED).columns
    assert seconds["throughput_mbps"].mean() == pytest.approx(of_it["goodput_mbps"][0], rel=0.05)

    text = section_of(PPCC, "simulated", output)
    for part in ("### Table III: one sender", "68.44; 4.46; 2.89; 1.19", "(../figures/ppcc/senders.png)", "| 42 |", "20 x 4"):
        assert part in text, part


def test_the_default_is_what_needs_no_agent(monkeypatch):
    settings = PPCC.parse([]).settings
    assert settings.command() == "netbuf-gym reproduce ppcc" and settings.schemes == DEFAULT_SCHEMES
    assert not set(DEFAULT_SCHEMES) & set(Settings.agents)
    parts = make_parts(settings, settings.studies, ALL)
    assert {part.runs[0][0] for part in parts} == set(STUDIES) and len({part.name for part in parts}) == len(parts)
    assert all(len(part.runs[0]) == len(PPCC.keys) for part in parts)
    assert PPCC.parse(["duration_s=null"]).settings == settings
    everybody = PPCC.parse(["schemes=all"]).settings
    shipped = {key for key, (_, name) in Settings.agents.items() if name in library.names()}
    assert {"agent", "ppcc"} <= shipped and set(everybody.schemes) == {*DEFAULT_SCHEMES, *shipped}
    monkeypatch.setattr(Settings, "bundled", classmethod(lambda cls, key="agent": ""))
    assert PPCC.parse(["schemes=all"]).settings.schemes == DEFAULT_SCHEMES


@pytest.mark.slow
def test_further_learners_play_from_their_files():
    """Any agent of the task plays as what it is said to be, by its own recipe."""
    file = "congestion_window/ppo_kl-ppcc"
    settings = PPCC.parse([f"dqn={file}", "studies=[table]", "schemes=[newreno,dqn]", "seeds=1", "duration_s=2"]).settings
    work = PPCC.work(settings)
    assert work.identity["dqn_sha256"] and not work.identity["agent_sha256"]
    dqn = work.controllers["dqn"]
    assert dqn.name == "dqn" and dqn.env["recipe"] == "ppcc"
    rows = ALL["senders"].play(dqn, settings, "20-2", [SEED])
    assert len(rows) == 1 and 0 < rows[0]["goodput_mbps"] < 10 and rows[0]["jain"] <= 1


def test_every_scheme_meets_the_same_world():
    settings = Settings(duration_s=2.0)
    for study in ALL.values():
        for cell in study.cells[-2:]:
            first, again, other = (study.build_worlds(settings, cell, [seed])[0] for seed in (SEED, SEED, SEED + 1))
            assert first == again and first.seed != other.seed
    starts = [flow.start_s for flow in ALL["senders"].build_worlds(settings, "20-4", [SEED])[0].scenario.flows]
    assert starts[0] == 0 and len(set(starts)) == 4 and max(starts) < worlds.LATEST_START_S


def test_several_senders_have_the_buffer_and_the_loss_of_scenario_2():
    for cell in worlds.SHARED:
        scenario = worlds.make_shared_scenario(cell, SEED, 40.0)
        rate, _, senders = cell.partition("-")
        link = scenario.links[scenario.bottleneck]
        assert (link.queue_packets, link.loss, len(scenario.flows)) == (150_000, 1e-4, int(senders))
        assert link.mean_mbps(40.0) == pytest.approx(15 if rate == "fluctuating" else float(rate))


def test_a_constant_window_is_what_is_in_flight():
    """A window of less than the path holds is acknowledged once a round trip, and nothing queues but a delayed ACK's two."""
    study, settings = ALL["table"], Settings(duration_s=10.0)
    few = study.play(make_controller("constant", 20), settings, "1", [SEED])[0]
    assert few["goodput_mbps"] == pytest.approx(20 * 1448 * 8e-3 / few["rtt_ms"], rel=0.05) and few["delay_ms"] < 2.5
    many = study.play(make_controller("constant", 82), settings, "1", [SEED])[0]
    assert many["rtt_ms"] == pytest.approx(82 * 1500 * 8 / 10e3, rel=0.05)
    scenario = worlds.make_scenario("1", 10.0)
    assert compute_fitting_packets(scenario, 0) == 42 and compute_fitting_packets(scenario, 0, 4) == 11
    placed = make_controller("constant").place(study.build_worlds(settings, "1", [SEED])[0].scenario)
    assert dict(placed.flows[0].receiver.parameters)["window_bytes"] == 42 * 1448


def test_senders_that_hear_nothing_are_counted_and_left_out_of_delays():
    """Two senders, the second of which begins at the very end: nothing of it is acknowledged."""
    made = worlds.make_shared_scenario("10-2", SEED, 4.0)
    late = replace(made, flows=[made.flows[0], replace(made.flows[1], start_s=3.99)])
    found: list[dict] = []
    world = worlds.draw_world(late, SEED, 2)
    rollout.play(
        make_controller("bbr"), [world], lambda view: found.append(measures.measure_run(view)), task=schemes.TASK, agents=2
    )
    assert found[0]["silent"] == 1 and found[0]["jain"] == 0.5
    assert 0 < found[0]["delay_ms"] < 100 and found[0]["rtt_ms"] > 49 and 4 < found[0]["goodput_mbps"] < 5
    rows = [row("bbr", 0, "senders", "10-2", silent=1.0), row("cubic", 0, "senders", "10-2", silent=0.0)]
    said = tables.describe_silent_senders(make_runs(PPCC, rows))
    assert (
        said.endswith("BBR: 1 of 2 senders.")
        and "CUBIC" not in said
        and not tables.describe_silent_senders(make_runs(PPCC, rows[1:]))
    )


def test_chance_plays_the_papers_actions():
    assert make_controller("random").env == {"recipe": "ppcc"}
    rollout.check_controller(make_controller("random"), worlds.make_scenario("1", 2.0).to_dict(), task=schemes.TASK)


def test_table_3_is_the_papers():
    """Its Mt is log10 of the delay over the throughput, to the last digit or its truncation; its abstract follows of it."""
    for rows in paper.TABLE_3.values():
        for one in rows.values():
            assert one.mt == pytest.approx(math.log10(one.delay_ms / one.goodput_mbps), abs=0.011)
    newreno, ppcc = (paper.TABLE_3[paper.MAIN][scheme] for scheme in ("newreno", "ppcc"))
    assert 1 - ppcc.delay_ms / newreno.delay_ms == pytest.approx(paper.LESS_DELAY, abs=1e-4)
    assert ppcc.goodput_mbps / newreno.goodput_mbps - 1 == pytest.approx(paper.MORE_THROUGHPUT, abs=1e-4)


def test_claims_speak_of_schemes_measures_and_cells_that_there_are():
    every = [*claims.list_table_claims("table"), *claims.list_sender_claims(), *claims.OVER_TIME, claims.ADAPTED]
    for claim in every:
        assert set(claim.rivals) <= set(NAMES) and claim.measure in MEASURES
        cells = claim.where.get("cell", ())
        assert set(cells if isinstance(cells, tuple) else (cells,)) <= {cell for study in ALL.values() for cell in study.cells}
    expected = {claim.text: claim.expected for claim in claims.list_table_claims("table") if claim.figures == "Table III"}
    assert expected["1: Mt higher, 0.85 and 0.77"] == HIGHER and list(expected.values()).count(LOWER) == 7
    assert set(claims.IN_ITS_PLACE) <= set(NAMES) and len({one[2] for one in STYLES.values()}) == len(STYLES)


def test_the_abstract_is_judged_by_its_own_figures():
    rows = [row("newreno", seed, delay_ms=100.0, goodput_mbps=4.0, mt=1.4, loss=1e-5) for seed in range(3)]
    rows += [row("ppcc", seed, delay_ms=40.0, goodput_mbps=4.4 + 0.01 * seed, mt=1.0, loss=2e-5) for seed in range(3)]
    lines = [line.split("|") for line in claims.format_claims_table(make_runs(PPCC, rows), "table").splitlines()]
    said = {line[1].strip(): line[3].strip() for line in lines}
    assert said["2: 58.75 % less delay (abstract)"].endswith(": holds")
    assert said["2: 27.8 % more throughput (abstract)"].endswith(": in sign only")
    assert said["2: Mt lower, 0.69 and 1.19 (Table III)"] == "-0.4 [-0.4, -0.4]: holds"
    assert said["2, 4: the least loss (V-A)"].endswith(": the opposite holds")
    assert not any(text.startswith("1: ") for text in said)  # there was no such run


def test_most_of_the_time_is_more_than_half_of_the_seconds():
    def seconds(scheme: str, seed: int, values: list[float]) -> list[dict]:
        return [row(scheme, seed, "series", "2", 1 + at, rtt_ms=value) for at, value in enumerate(values)]

    rows = [one for seed in range(3) for one in seconds("newreno", seed, [60, 60, 60, 60])]
    rows += [one for seed in range(3) for one in seconds("ppcc", seed, [50, 50, 50, 70])]
    runs = make_runs(PPCC, rows)
    lower = claims.OVER_TIME[0]
    assert claims.compute_time_shares(runs, lower, "ppcc", "newreno") == [0.75] * 3
    assert claims.format_time_share(runs, lower, "ppcc", "newreno") == "75 % [75, 75]: holds"
    assert claims.format_time_share(runs, lower, "newreno", "ppcc") == "25 % [25, 25]: the opposite holds"
    assert claims.format_time_share(runs, lower, "ppcc", "qtcp") == "-"


def test_growth_is_compared_within_a_number_of_senders():
    """Twice the throughput on twice the rate, and a rival that gets nothing of it."""
    rates = {"newreno": {"10": 2.0, "20": 2.0}, "ppcc": {"10": 2.0, "20": 4.0}}
    rows = [
        row(scheme, seed, "senders", f"{rate}-{many}", goodput_mbps=value / many + 1e-3 * seed)
        for scheme, by_rate in rates.items()
        for rate, value in by_rate.items()
        for many in (2, 4)
        for seed in range(3)
    ]
    said = claims.format_adaptation(make_runs(PPCC, rows), "ppcc", "newreno")
    assert said.startswith("+99.") and said.endswith(": holds")


def test_the_best_constant_is_bold():
    rows = [
        row("constant", 0, "constants", cell, step, utility=-abs(step - 42) / 100, mt=1.0) for cell in "12" for step in (41, 42)
    ]
    lines = tables.format_constants_table(make_runs(PPCC, rows)).splitlines()
    assert lines[-1].count("**") == 4 and lines[-2].count("**") == 0
