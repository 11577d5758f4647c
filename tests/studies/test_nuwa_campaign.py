"""Nuwa's campaign: its studies, their worlds, what is refused, and that it goes on."""

import json

import numpy as np
import pytest

from netbuf_gym import traces
from netbuf_gym.cli.program import main
from netbuf_gym.errors import ConfigError
from netbuf_gym.traces.types import DeliveryTrace, RateTrace
from netbuf_gym.zoo import library
from studies.common.campaign import Campaign
from studies.nuwa import nuwa_claims as claims
from studies.nuwa import nuwa_schemes as schemes
from studies.nuwa import nuwa_worlds as worlds
from studies.nuwa import studies
from studies.nuwa.nuwa_experiment import NUWA
from studies.nuwa.nuwa_settings import DEFAULT_STUDIES, STUDIES, Settings
from studies.nuwa.nuwa_work import build_parts
from studies.rlbm.rlbm_experiment import RLBM

SEED = 1_000_000


def tiny(output, **changes) -> Campaign:
    values = {"studies": ("mobile",), "schemes": ("cubic", "nuwa_k7"), "seeds": 2, "duration_s": 3.0} | changes
    return Campaign(NUWA, Settings(**values), output, jobs=2)


def quiet(done: int, total: int) -> None:
    pass


@pytest.mark.slow
def test_a_row_a_run(tmp_path):
    campaign = tiny(
        tmp_path, studies=("mobile", "networks", "change"), networks=("wifi",), schemes=("cubic", "nuwa_k2", "nuwa_k3")
    )
    runs = NUWA.read(campaign.run(quiet))
    # the two mobile networks, Wi-Fi without the extra gain, and six speeds of change at two rates
    assert len(runs) == campaign.runs == 2 * (2 * 3 + 1 * 2 + 12 * 3)
    assert runs.comment.endswith("netbuf-gym reproduce nuwa studies=[mobile,networks,change] schemes=[cubic,nuwa_k2,nuwa_k3]"
                                 " networks=[wifi] seeds=2 duration_s=3")  # fmt: skip
    column = runs.columns
    assert (column["data_mb"] > 0).all() and (column["share"] < 1.1).all() and (column["queue_delay_mean_ms"] > 0).all()
    np.testing.assert_allclose(column["goodput_mbps"] * 3 / 8, column["data_mb"], rtol=1e-6)
    assert ((column["utility"] > -1.5) & (column["utility"] < 1)).all() and (column["rtt_mean_ms"] > worlds.RTT_MS).all()
    assert np.isnan(column["jain"]).all() and np.isnan(column["step"]).all()


def test_every_scheme_meets_the_same_world(tmp_path):
    settings = Settings(duration_s=2.0)
    for name in DEFAULT_STUDIES:
        study = studies.ALL[name]
        cell = study.cells(settings)[0]
        first, again, other = (study.make_worlds(settings, cell, [seed])[0] for seed in (SEED, SEED, SEED + 1))
        assert first.scenario == again.scenario and first.seed == again.seed
        assert first.scenario != other.scenario


def test_the_grid_has_two_queues(tmp_path):
    settings = Settings(studies=("grid",), seeds=1, duration_s=3.0)
    study = studies.ALL["grid"]
    assert len(study.cells(settings)) == 9
    world = study.make_worlds(settings, "far-20", [SEED])[0].scenario
    assert world.base_rtt_ms(0) == pytest.approx(worlds.DISTANCES_MS["far"] + worlds.RADIO_MS, abs=2)
    assert world.links[0].rate_mbps == 20
    row = study.play(schemes.make_controller("cubic"), settings, "far-20", [SEED])[0]
    assert row["rtt_mean_ms"] == pytest.approx(
        worlds.DISTANCES_MS["far"] + worlds.RADIO_MS + row["queue_delay_mean_ms"], rel=0.25
    )


@pytest.mark.parametrize("rate", worlds.MEANS_MBPS)
@pytest.mark.parametrize("mean_s", worlds.SPEEDS_S)
def test_links_change_as_fast_as_they_are_to(mean_s, rate):
    cell = worlds.format_jumping_cell(rate, mean_s)
    assert worlds.parse_jumping_cell(cell) == (rate, mean_s)
    trace = worlds.make_jumping_scenario(cell, SEED, 200 * mean_s).links[0].trace
    assert set(trace.rate_mbps) == {0.4 * rate, 1.6 * rate} and (np.diff(trace.rate_mbps) != 0).all()
    assert np.diff(trace.time_s).mean() == pytest.approx(mean_s, rel=0.3)


def test_flows_join_one_by_one(tmp_path):
    runs = NUWA.read(tiny(tmp_path, studies=("fairness",), duration_s=50.0, seeds=1).run(quiet))
    assert runs.values("network") == [worlds.OWN, worlds.WITH_CUBIC]
    columns = runs.columns
    assert (columns["goodput_mbps"] > 7).all() and ((columns["jain"] > 0.25) & (columns["jain"] <= 1)).all()
    assert np.isnan(columns["data_mb"]).all()
    cubic = runs.where(scheme="cubic")
    np.testing.assert_allclose(cubic.columns["jain"][0], cubic.columns["jain"][1])  # CUBIC with CUBIC is CUBIC alone


@pytest.mark.slow
def test_what_video_clients_take_links_for(tmp_path):
    campaign = tiny(tmp_path, studies=("video",), schemes=("cubic", "nuwa_k7", "vegas"), duration_s=40.0, seeds=2)
    runs = NUWA.read(campaign.run(quiet))
    assert set(runs.values("scheme")) == {"cubic", "nuwa_k7"} and len(runs) == 2 * 2 * 6
    steered, plain = (runs.where(scheme=scheme).columns for scheme in ("nuwa_k7", "cubic"))
    assert np.isfinite(steered["window_off"]).all() and np.isnan(plain["window_off"]).all()
    even = runs.where(network="24mbps-rate").columns
    assert (even["estimate_off"] < 0.15).all() and (even["bitrate_mbps"] > 10).all() and (even["stalled_share"] == 0).all()
    np.testing.assert_allclose(np.abs(even["estimate_ratio"] - 1), even["estimate_off"], atol=0.05)
    said = claims.build_estimates_table(runs)
    assert said.count("Nuwa, k = 7") == 6 and "CUBIC |" not in said.replace("CUBIC's", "")
    assert [path.stem for path in campaign.draw(tmp_path / "figures")] == ["video"]


@pytest.mark.slow
def test_the_command_draws_and_prints_its_settings(tmp_path, capsys):
    words = ["schemes=[cubic,nuwa_k1,nuwa_paper_k7]", "seeds=2", "duration_s=3", f"output={tmp_path / 'out'}", "jobs=2"]
    assert main(["reproduce", "nuwa", "studies=[mobile,networks,grid,change]", "networks=[4g]", *words]) == 0
    drawn = {path.stem for path in (tmp_path / "out" / "figures").iterdir()}
    assert drawn >= {
        "mobile_bars",
        "mobile_scatter",
        "gain_boxes",
        "robustness_5g",
        "gain_series_4g",
        "networks",
        "grid",
        "change",
    }
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (tmp_path / "out" / "figures").iterdir())
    capsys.readouterr()
    assert main(["reproduce", "nuwa", "--cfg", "job", "studies=[grid]"]) == 0
    assert 'studies: ["grid"]' in capsys.readouterr().out.splitlines()
    assert json.loads((tmp_path / "out" / "campaign.json").read_text())["columns"]["step"]


def folder_of_traces(folder, rates=(3.0, 12.0)):
    for network in worlds.MOBILE:
        (folder / network).mkdir(parents=True)
        traces.write(RateTrace([0, 4], list(rates), 8.0), folder / network / "one.csv")
    return folder


def test_real_traces_take_the_place_of_generated_ones(tmp_path, capsys):
    folder = folder_of_traces(tmp_path / "mine")
    settings = Settings(traces=str(folder))
    for network in worlds.MOBILE:
        trace = worlds.get_trace(settings, network, SEED, 60.0)
        assert set(trace.rate_mbps) <= {3.0, 12.0} and trace.mean_mbps() == pytest.approx(7.5, rel=0.01)
    assert worlds.get_trace(settings, "4g", SEED, 60.0) != worlds.get_trace(settings, "4g", SEED + 1, 60.0)  # begun elsewhere
    assert worlds.get_trace(settings, "wifi", SEED, 9.0) == worlds.get_trace(Settings(), "wifi", SEED, 9.0)
    tiny(tmp_path / "out", traces=str(folder)).run(quiet)
    (folder / "5g" / "one.csv").write_text("time_s,mbps\n0,5\n1,6\n")
    worlds._read_trace.cache_clear()
    with pytest.raises(ConfigError, match="was begun with another file as the traces"):
        tiny(tmp_path / "out", traces=str(folder))
    (folder / "4g" / "one.csv").unlink()
    worlds._list_files.cache_clear()
    assert main(["reproduce", "nuwa", f"traces={folder}", f"output={tmp_path / 'other'}"]) == 2
    assert "4g holds no file; valid: a folder with folders 4g and 5g of traces" in capsys.readouterr().err


def test_a_trace_turned_is_the_same_trace_later():
    deliveries = DeliveryTrace([1, 5, 5, 9, 20])
    turned = worlds.rotate_trace(deliveries, 0.006)
    assert turned.time_ms.tolist() == [3, 14, 15, 19, 19] and turned.period_ms == 20
    rates = RateTrace([0, 2, 5], [1.0, 2.0, 3.0], 8.0)
    turned = worlds.rotate_trace(rates, 3.5)
    at = np.linspace(0, 7.99, 50)
    np.testing.assert_array_equal(turned.rate_at_mbps(at), rates.rate_at_mbps(at + 3.5))


@pytest.mark.parametrize("experiment", [NUWA, RLBM])
def test_the_trained_agent_by_default_is_one_that_is_shipped(experiment, capsys):
    settings = experiment.settings
    assert settings.shipped in library.names() and settings.shipped.startswith(f"{settings.task}/")
    assert experiment.parse([f"schemes=[{settings.learned}]"]).settings.agent.endswith(f"{settings.shipped}/model.zip")
    assert main(["reproduce", experiment.name, "--help"]) == 0
    assert f"{settings.shipped}, which comes with the package" in capsys.readouterr().out


def test_the_default_is_all_but_training():
    settings = NUWA.parse([]).settings
    assert settings.command() == "netbuf-gym reproduce nuwa" and set(settings.studies) == set(STUDIES) - {"learning"}
    parts = build_parts(settings)
    assert {part.runs[0][0] for part in parts} == set(DEFAULT_STUDIES)
    assert len({part.name for part in parts}) == len(parts)
    assert NUWA.parse(["duration_s=null"]).settings == settings
