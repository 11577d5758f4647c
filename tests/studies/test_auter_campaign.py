"""The campaign of the paper on Auter: what it runs, resumes and refuses."""

import numpy as np
import pytest

from netbuf_gym.cli.program import main
from netbuf_gym.controllers import ConstantAction
from netbuf_gym.errors import ConfigError
from netbuf_gym.tasks.host_buffers.settings import DEFAULT, GRID, NAMED
from studies.auter import auter_worlds as worlds
from studies.auter import constants, paper, trained, training, tune_constant
from studies.auter.auter_experiment import AUTER
from studies.auter.auter_schemes import LEARNED, NAMES, OTHER_CONTROLS, RECIPE, WITH_BBR, find_agent_key, make_controller
from studies.auter.auter_settings import DEFAULT_STUDIES, STUDIES, Settings
from studies.auter.auter_work import build_parts
from studies.auter.studies import ALL, PIECES
from studies.common import kept

SHORT = ["duration_s=5", "hours=0.02", "seeds=2", "jobs=2"]


@pytest.fixture(autouse=True)
def no_agents(monkeypatch):
    """None comes with the package here."""
    monkeypatch.setattr(Settings, "bundled", classmethod(lambda cls, key="agent": ""))


@pytest.mark.slow
def test_every_study_runs_and_goes_on(tmp_path, capsys, section_of):
    """Most studies, a cut end, and the same rows again; figures and the section of it."""
    output, studies = tmp_path / "out", "studies=[settings,regions,latency,memory,long_run]"
    words = ["reproduce", "auter", studies, "schemes=[default,max]", *SHORT, f"output={output}"]
    assert main(words) == 0
    runs = AUTER.read(output / "runs.csv")
    assert set(runs.values("study")) == set(DEFAULT_STUDIES) - {"bandwidth", "loss", "flow_size", "paths"}
    assert runs.values("plant") == ["sim"]
    text = (output / "runs.csv").read_text()
    assert len(list((output / "figures").glob("*.png"))) == 6
    (output / "runs.csv").write_text(text[: len(text) // 2])
    assert main([*words, "figures=false"]) == 0 and (output / "runs.csv").read_text() == text
    assert "its end was cut" in capsys.readouterr().out

    whole = runs.where(study="long_run", step=0, scheme="max")
    pieces = runs.where(study="long_run", scheme="max", seed=whole.columns["seed"][0])
    assert len(whole) == 2 and len(pieces) == PIECES + 1
    found = np.nanmean(pieces.mask(pieces.columns["step"] > 0).columns["goodput_mbps"])
    assert found == pytest.approx(whole.columns["goodput_mbps"][0], rel=0.05)
    default = runs.where(study="settings", scheme="default").columns
    assert (default["tcp_kb"] == DEFAULT.rmem_max_bytes / 1024).all() and (default["ring_packets"] == 256).all()
    assert (runs.where(study="memory", scheme="max").columns["ring_packets"] == 4096).all()

    said = section_of(AUTER, "simulated", output)
    for text in ("### Table IV", "(+17.1)", "(../figures/auter/sweep_latency.png)", "| max: 8.64 % more"):
        assert text in said, text


def test_what_is_run_by_default():
    settings = AUTER.parse([]).settings
    assert settings.command() == "netbuf-gym reproduce auter"
    parts = build_parts(settings)
    assert {part.runs[0][0] for part in parts} == set(STUDIES) - {"training"}
    assert len({part.name for part in parts}) == len(parts)
    assert all(len(part.runs[0]) == len(AUTER.keys) for part in parts)
    training_parts = build_parts(AUTER.parse(["studies=[training]", "epochs=200", "training_seeds=2"]).settings)
    assert [len(part.runs) for part in training_parts] == [200 // training.EACH] * 2


def test_agents_play_as_themselves_and_with_other_controls():
    keys = [find_agent_key(scheme) for scheme in (LEARNED, RECIPE, *OTHER_CONTROLS)]
    assert keys == ["agent", "auter", "auter", "agent", "auter", "agent"]
    assert all(find_agent_key(scheme) is None for scheme in Settings.by_default)
    agent = ConstantAction(0)
    with_bbr = make_controller(WITH_BBR[LEARNED], "regions", "es-we-long", agent)
    assert make_controller(LEARNED, "regions", "es-we-long", agent) is agent
    scenario = ALL["regions"].make_world(Settings(), "es-we-long", 0).scenario
    relays = [one.traffic.senders[0].relay for one in (scenario, with_bbr.place(scenario))]
    assert "cubic" in str(relays[0].cc) and "bbr" in str(relays[1].cc)
    with_vegas = make_controller("agent_vegas", "regions", "es-we-long", agent)
    assert "vegas" in str(with_vegas.place(scenario).traffic.senders[0].relay.cc)
    assert with_bbr.place(scenario).hosts == scenario.hosts
    live = ALL["regions"].world("es-we-long", 0, 10.0, True)
    assert live.flows and live.hosts[0].tcp_mem is None and live.capacity_mbps == worlds.LIVE_MBPS
    assert set(OTHER_CONTROLS) <= set(NAMES)


def test_every_host_begins_with_the_papers_default_or_linux_own_and_has_a_round_trip_of_its_own():
    for name, study in ALL.items():
        for cell in study.own_cells:
            first, other = (study.world(cell, seed, 60.0, False) for seed in (0, 1))
            host = first.hosts[0]
            linux = ((131_072, 6_291_456), (16_384, 4_194_304))
            begins = linux if name == "paths" else ((65_536, 212_992),) * 2
            assert (host.tcp_rmem[1:], host.tcp_wmem[1:]) == begins, (name, cell)
            assert (host.ring_packets, host.socket_bytes) == (256, 212_992)
            assert first == study.world(cell, 0, 60.0, False)
            assert first != other, (name, cell)


def test_long_paths():
    study = ALL["paths"]
    live, simulated = (study.cells(Settings(studies=("paths",), plant=plant)) for plant in ("linux", "sim"))
    assert set(live) < set(simulated) and (len(live), len(simulated)) == (12, 24)
    assert all(path.rtt_ms >= 40 for path in worlds.PATHS) and {path.connections for path in worlds.PATHS} == {1, 4}
    both = [study.world(live[2], 3, 30.0, plant) for plant in (False, True)]
    assert both[0] == both[1] and live[2] == "5mbps-104ms-2bdp-x4-0.1%"
    assert both[0].links[1].loss == 0.001 and len(both[0].flows) == 4


def test_agents_on_long_paths_are_compared_cell_by_cell(tmp_path):
    cells = [worlds.PATHS[4].name, worlds.PATHS[3].name]  # a deep queue, a shallow one
    rival = ((10.0, 4.0, 2.0), (4.0, 1.0, 2.0))
    means = {
        "seed 0": [(10.0, 1.2, 2.0), (8.0, 1.4, 2.0)],
        "seed 1": [(5.0, 1.6, 2.0), (8.0, 1.4, 2.0)],
        **dict.fromkeys(("default", "autotuning", "constant"), rival),
        "max": [(10.0, 4.0, 8.0), (4.0, 1.0, 8.0)],
    }
    rows = [
        dict(zip(trained.COLUMNS, (who, cell, *values), strict=True))
        for who, own in means.items()
        for cell, values in zip(cells, own, strict=True)
    ]
    kept.write_rows(tmp_path, "auter", "trained", {"command": "by hand", "worlds": 1}, kept.format_rows(trained.COLUMNS, rows))
    text = trained.format_section(kept.read_rows(tmp_path, "auter", "trained"))
    said = [[one.strip() for one in line.split("|")[1:-1]] for line in text.splitlines()[4:]]
    root = f"{2**0.5:.3f}"
    assert said[0] == ["0", *[f"{root} (1.000)"] * 4, "1.30", "1.20", "0.250"]
    assert said[1] == ["1", *["1.000 (0.500)"] * 4, "1.50", "1.60", "0.250"]


def test_what_is_no_folder_of_agents_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="holds no seed"):
        trained.main([f"runs={tmp_path}"])
    with pytest.raises(ConfigError, match="'kettle=1' is unknown; valid: runs="):
        trained.main(["kettle=1"])


def test_cells_are_the_papers_points():
    assert worlds.parse_cell("0.01%+40ms") == ("0.01%", 40.0) and worlds.parse_cell("100MB+0ms") == ("100MB", 0.0)
    assert ALL["latency"].own_cells == ("0ms", "20ms", "40ms", "80ms", "100ms")
    assert ALL["loss"].own_cells[:5] == ("0%+0ms", "0.01%+0ms", "0.1%+0ms", "0.5%+0ms", "1%+0ms")
    slow = ALL["bandwidth"].world("10mbps+0ms", 0, 10.0, False)
    assert slow.capacity_mbps == 10
    lossy = ALL["loss"].world("0.5%+0ms", 0, 10.0, False)
    assert lossy.links[lossy.bottleneck].loss == pytest.approx(0.005)
    assert worlds.resolve_hours(None, False) == paper.HOURS and worlds.resolve_hours(None, True) * 60 == pytest.approx(20)


def test_a_run_is_the_same_whoever_plays_beside_it():
    settings = Settings(duration_s=9.0, seeds=2)
    study = ALL["regions"]
    both = study.play(make_controller("max", "regions", "es-we-short"), settings, "es-we-short", [5, 6])
    alone = study.play(make_controller("max", "regions", "es-we-short"), settings, "es-we-short", [6])
    assert both[1] == alone[0] and both[0] != both[1]


def test_the_best_constant_is_the_fastest_and_of_equals_the_one_that_takes_least():
    """By hand: settings of three cells, and which is best in one and in all together."""

    def rows(cell, *found):
        names = ("ring_packets", "throughput_mbps", "memory_mb")
        same = {"study": "x", "cell": cell, "tcp_bytes": 1, "socket_bytes": 1}
        return [same | dict(zip(names, (ring, *one), strict=True)) for ring, one in enumerate(found, 1)]

    table = [*rows("a", (10.0, 5.0), (9.96, 4.0), (9.0, 1.0)), *rows("b", (1.0, 5.0), (2.0, 4.0), (1.9, 1.0))]
    assert constants.find_best_name(table, "x", "a") == constants.find_best_name(table, "x", "b") == "ring 2, tcp 1, socket 1"
    assert constants.find_best_name(rows("a", (10.0, 5.0), (9.0, 4.0), (9.96, 1.0)), "x", "a") == "ring 3, tcp 1, socket 1"
    assert constants.find_best_name(table) == "ring 2, tcp 1, socket 1" == constants.find_best_name(table, "x", "nowhere")
    for study, cell in tune_constant.list_cells():
        assert constants.get_best_setting(study, cell) in GRID.values()


@pytest.mark.slow
def test_the_search_plays_every_setting_of_the_grid():
    found = tune_constant.search_constants([0], 1, where=[("regions", "es-es-short")])
    assert len(found) == len(GRID) == 75 and {constants.get_grid_name(row) for row in found} == set(GRID)
    assert all(row["throughput_mbps"] > 0 and row["memory_mb"] > 0 for row in found)


def test_studies_without_anyone_to_play_are_refused():
    settings = Settings(studies=("settings",), schemes=(WITH_BBR[LEARNED],), agent="x")
    with pytest.raises(ConfigError, match="studies holds 'settings', in which none of the schemes plays; valid there: default"):
        build_parts(settings)


def test_live_runs_are_parts_of_their_own():
    words = ["plant=linux", "studies=[regions]", "schemes=[default,max]", "seeds=2"]
    settings = AUTER.parse(words).settings
    parts = build_parts(settings)
    assert len(parts) == 6 * 2 * 2 and all(len(part.runs) == 1 and part.runs[0][2] == "linux" for part in parts)
    assert settings.command().endswith("studies=[regions] schemes=[default,max] plant=linux seeds=2")
    long = AUTER.parse(["plant=linux", "studies=[long_run]", "schemes=[default,max,autotuning]", "seeds=1"]).settings
    assert len(build_parts(long)) == 3


def test_settings_that_are_hand_tuned_are_the_papers():
    for name, (ring, tcp, socket) in paper.SETTINGS.items():
        own = NAMED[name]
        assert (own.ring_packets, own.rmem_default_bytes, own.socket_bytes) == (ring, tcp, socket)
