"""Sweeps by Hydra's launchers: the same models as in turn, in processes of the launcher's."""

import sys
import zipfile

import pytest
import torch as th

from netbuf_gym.cli.program import main
from netbuf_gym.training import sweep
from netbuf_gym.training.checkpoints import archive
from tests.helpers.release_cases import for_release
from tests.helpers.tiny_jobs import TINY

MODULES = {name: sweep.LAUNCHER_EXTRAS[name][1] for name in ("joblib", "submitit_local", "ray")}


def weights(run):
    with zipfile.ZipFile(run / "model.zip") as file:
        return archive.read_parameters(file, "policy.pth")


@pytest.fixture(scope="module")
def in_turn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "turn"
    assert main(["train", "-m", "seed=1,2", *TINY, f"run_dir={folder}"]) == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["joblib", *for_release(*sorted({*MODULES} - {"joblib"}))])
def test_a_sweep_by_a_launcher_makes_the_same_models(launcher, in_turn, tiny, capfd):
    pytest.importorskip(MODULES[launcher])
    overrides, folder = tiny
    words = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"] if launcher == "joblib" else [f"hydra/launcher={launcher}"]
    assert main(["train", "-m", "seed=1,2", *words, *overrides]) == 0
    assert f"2 jobs in {folder}, by the launcher {launcher}" in capfd.readouterr().out
    assert (folder / "summary.md").read_text().count("| done |") == 2
    for job in "01":
        made, known = weights(folder / job), weights(in_turn / job)
        assert all(th.equal(made[key], known[key]) for key in known) and made.keys() == known.keys()


@pytest.mark.slow
def test_a_job_that_fails_and_a_launcher_that_there_is_not_are_said(tiny, capfd, monkeypatch):
    overrides, folder = tiny
    pytest.importorskip(MODULES["joblib"])
    wrong = "reward.kwargs.delay_weight=choice(-1,-2)"
    assert main(["train", "-m", wrong, "hydra/launcher=joblib", "hydra.launcher.n_jobs=1", *overrides]) == 2
    assert (folder / "summary.md").read_text().count("failed: delay_weight = ") == 2
    capfd.readouterr()
    assert main(["train", "-m", "seed=1,2", "hydra/launcher=dask", *overrides]) == 2
    assert "Could not find 'hydra/launcher/dask'" in (said := capfd.readouterr().err) and said.count("\n") == 1
    assert main(["train", "-m", "seed=1,2", "hydra/launcher=joblib", "hydra.launcher.jobs=2", *overrides]) == 2
    assert "jobs" in (said := capfd.readouterr().err) and said.count("\n") == 1
    assert main(["train", "seed=1", "hydra/launcher=joblib"]) == 2
    assert "it chooses the launcher of --multirun" in capfd.readouterr().err
    monkeypatch.setitem(sys.modules, MODULES["joblib"], None)
    assert main(["train", "-m", "seed=1,2", "hydra/launcher=joblib", *overrides]) == 2
    assert "hydra/launcher=joblib needs" in (said := capfd.readouterr().err) and "netbuf-gym[joblib]" in said
    assert sweep.find_launcher(["hydra.launcher.x=2"]) == "basic"
