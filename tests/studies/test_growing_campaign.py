"""Finished campaigns that take more schemes."""

import json

import pytest

from netbuf_gym.errors import ConfigError
from studies.common import campaign
from studies.common.campaign import Campaign
from tests.studies.test_campaign import quiet, tiny


def test_who_was_overtaken_leaves_a_campaign_that_grew_alone(tmp_path, monkeypatch):
    changes = {"ccs": ("cubic",), "loads": (0.3,), "seeds": 1, "duration_s": 1.0}
    text = tiny(tmp_path / "out", schemes=("dt",), **changes).run(quiet).read_text()
    late = tiny(tmp_path / "out", schemes=("dt",), **changes)
    grown = tiny(tmp_path / "out", schemes=("dt", "abm"), **changes)
    larger = tiny(tmp_path / "out", schemes=("dt", "abm", "naive"), **changes)
    assert (tmp_path / "out" / "runs.csv").read_text() == text
    fresh = tiny(tmp_path / "fresh", schemes=("dt", "abm"), **changes).run(quiet).read_text()
    ran, run_chunk = [], Campaign._run_chunk
    with monkeypatch.context() as patch:
        patch.setattr(Campaign, "_run_chunk", lambda self, chunk: ran.append(chunk.runs[0][0]) or run_chunk(self, chunk))
        assert grown.run(quiet).read_text() == fresh
    assert set(ran) == {"abm"}
    with pytest.raises(ConfigError, match="holds another campaign"):
        late.run(quiet)
    assert (tmp_path / "out" / "runs.csv").read_text() == fresh
    assert larger.run(quiet).read_text().startswith(fresh.splitlines()[0].partition("schemes=")[0])


@pytest.mark.parametrize("at", ["write_json", "_take_over", "_write_rows", "_run_parts", "_merge"])
def test_a_campaign_that_is_killed_while_it_grows_loses_nothing(tmp_path, monkeypatch, at):
    """Whatever was done last: what was measured is there, and the same command completes it."""
    changes = {"ccs": ("cubic",), "loads": (0.3,), "seeds": 1, "duration_s": 1.0}
    text = tiny(tmp_path / "out", schemes=("dt", "naive"), **changes).run(quiet).read_text()
    grown = tiny(tmp_path / "out", schemes=("dt", "abm", "naive"), **changes)

    class Killed(BaseException):
        pass

    def killed(*_):
        raise Killed

    with monkeypatch.context() as patch:
        if at == "write_json":
            patch.setattr(campaign, at, killed)
        else:
            patch.setattr(Campaign, at, killed)
        with pytest.raises(Killed):
            grown.run(quiet)
    assert (tmp_path / "out" / "runs.csv").read_text() == text
    if at != "write_json":  # unfinished: its own command completes it, not one of more schemes
        with pytest.raises(ConfigError, match="holds another campaign"):
            tiny(tmp_path / "out", schemes=("dt", "abm", "naive", "sophisticated"), **changes)
    fresh = tiny(tmp_path / "fresh", schemes=("dt", "abm", "naive"), **changes).run(quiet)
    again = tiny(tmp_path / "out", schemes=("dt", "abm", "naive"), **changes)
    assert again.run(quiet).read_text() == fresh.read_text()
    assert not (tmp_path / "out" / "parts").exists()


def test_rows_of_another_machine_are_described_as_such(tmp_path):
    changes = {"ccs": ("cubic",), "loads": (0.3,), "seeds": 1, "duration_s": 1.0}
    tiny(tmp_path / "out", schemes=("dt",), **changes).run(quiet)
    path = tmp_path / "out" / "campaign.json"
    begun = json.loads(path.read_text())
    path.write_text(json.dumps(begun | {"machine": "an abacus"}))
    tiny(tmp_path / "out", schemes=("dt", "abm"), **changes).run(quiet)
    assert json.loads(path.read_text())["machine"] == f"an abacus; then {begun['machine']}"
