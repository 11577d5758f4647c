"""Files of worlds: written and read as they were, and refused where they are others or none."""

import json
from dataclasses import replace
from functools import partial

import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.suites import freeze, frozen, get_suite, paths, task_suites
from netbuf_gym.evaluation.suites.catalogue import DRAW_WORLDS
from netbuf_gym.tasks.congestion_window.paths import GeneratedTrace, Path, PathWorld


def path_world(family="x", **path):
    return {"family": family, "duration_s": 3, "paths": [{"rtt_ms": 9, "buffer_packets": 9, **path}]}


def frozen_file(tmp_path, **changes):
    call = GeneratedTrace("lte", 3.0, 5, {"start_mbps": 4.0})
    world = PathWorld(family="cellular", duration_s=3.0, paths=(Path(rtt_ms=30.0, buffer_packets=20, generated=call),))
    one = {
        "name": "cellular-1",
        "seed": 4,
        "world": world.to_dict(),
        "capacities_mbps": paths.compute_capacities(world),
        **changes,
    }
    frozen.write(tmp_path / "set.json", "gate", 2, [one])
    return tmp_path / "set.json"


def test_a_file_of_worlds_is_read_as_it_was_written(tmp_path):
    edition = frozen.read(frozen_file(tmp_path), "gate", paths.place_world, paths.OURS)
    assert edition.version == 2 and edition.cells[0].seed == 4 and edition.cells[0].scenario.name == "cellular-1"
    assert edition.cells[0].scenario.links[0].trace.name == "lte-5"


def test_starts_are_drawn_by_the_seed_where_a_world_says_so(tmp_path):
    for changes, jitter_ms in (({}, 0), ({"start_jitter_ms": 70}, 70)):
        edition = frozen.read(frozen_file(tmp_path, **changes), "gate", paths.place_world, paths.OURS)
        assert edition.cells[0].scenario.start_jitter_ms == jitter_ms
        (tmp_path / frozen.EDITIONS).unlink()


@pytest.mark.parametrize("name", ["gate", "v1/receiver_window"])
def test_later_versions_draw_starts_and_first_ones_do_not(name):
    assert all("start_jitter_ms" not in one for one in freeze.draw_worlds(name, 1))
    assert {one["start_jitter_ms"] for one in freeze.draw_worlds(name, 2)} == {frozen.START_JITTER_MS}
    assert {cell.scenario.start_jitter_ms for cell in get_suite(name).load().cells} == {0.0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start_jitter_ms": -1}, r"worlds\[0\]\.start_jitter_ms = -1.* valid: 0 to 60000"),
        ({"capacities_mbps": []}, "capacities_mbps has 0 values for 1 generated"),
        ({"capacities_mbps": [99.0]}, "'cellular-1': generator 'lte' gives a trace of .* not of 99"),
        (
            {"world": {"family": "x", "duration_s": 3, "paths": [{"rtt": 1}]}},
            r"world 'cellular-1': cannot be made: world\.paths\[0\] has no field 'rtt'; valid: rtt_ms, ",
        ),
        ({"world": {"family": "x", "duration_s": 3, "paths": 5}}, r"world\.paths = 5 is not a list"),
        ({"world": path_world(rate_mbps=1.0) | {"duration_s": "3"}}, r"world\.duration_s = '3' is not a number"),
        ({"world": {"family": "x", "path": []}}, r"world has no field 'path'; valid: family, duration_s, paths"),
        ({"world": {"family": "x", "duration_s": 3}}, r"world\.paths is missing"),
        ({"world": path_world(rtt_ms="9")}, r"world\.paths\[0\]\.rtt_ms = '9' is not a number"),
        ({"world": path_world(starts_s=0)}, r"world\.paths\[0\]\.starts_s = 0 is not a list"),
        ({"world": path_world(rivals=[{"c": "bbr"}])}, r"rivals\[0\] has no field 'c'; valid: cc, start_s, stop_s"),
        ({"world": path_world(rivals=[{"cc": "cubik"}])}, "cannot be made: .*'cubik'"),
        ({"world": path_world(rate_mbps=5.0, family="moon"), "capacities_mbps": []}, "family = 'moon'; valid: ppcc, fixed, "),
        (
            {"world": path_world(generated={"kind": "6g", "duration_s": 3, "seed": 1, "arguments": {}})},
            "world 'cellular-1': cannot be made: .*6g",
        ),
        (
            {"world": path_world(generated={"kind": "4g", "duration_s": 3, "seed": 1, "arguments": {}, "by_seconds": "no"})},
            r"generated\.by_seconds = 'no'",
        ),
    ],
)
def test_worlds_that_are_not_what_they_were_are_refused(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message) as caught:
        frozen.read(frozen_file(tmp_path, **changes), "gate", paths.place_world, paths.OURS)
    assert "__init__" not in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rat_mbps": 5}, r"'long-01': cannot be made: world has no field 'rat_mbps'; did you mean 'rate_mbps'\? valid: rate"),
        ({"rate_mbps": None}, r"world\.rate_mbps = None is not a number"),
        ({"rtt_ms": "9"}, r"world\.rtt_ms = '9' is not a number"),
        ({"connections": 0}, "connections = 0 is out of range"),
    ],
)
def test_worlds_of_other_tasks_that_are_none_are_refused(tmp_path, changes, message):
    (one, *_) = json.loads(frozen.get_file("v1/host_buffers").read_text())["worlds"]
    one["world"] |= changes
    frozen.write(tmp_path / "set.json", "hosts", 1, [one])
    with pytest.raises(ConfigError, match=message):
        frozen.read(tmp_path / "set.json", "hosts", partial(task_suites.place_world, "host_buffers"), ["long"])
    del one["world"]["rtt_ms"], one["family"]
    one["world"] = {"rtt_ms": 9.0, "rate_mbps": 5.0}
    frozen.write(tmp_path / "set.json", "hosts", 2, [one])
    with pytest.raises(ConfigError, match="family = 'None'; valid: long"):
        frozen.read(tmp_path / "set.json", "hosts", partial(task_suites.place_world, "host_buffers"), ["long"])


WORLD = {"name": "a", "seed": 1, "world": {}}


@pytest.mark.parametrize(
    ("worlds", "message"),
    [
        (5, "worlds = 5; valid: a list of at least one world"),
        ([], r"worlds = \[\]; valid"),
        ([5], r"worlds\[0\] = 5; valid: a mapping"),
        ([{**WORLD, "name": 3}], r"worlds\[0\]\.name = 3; valid"),
        ([WORLD, WORLD], r"worlds\[1\]\.name = 'a'; valid: .* no other world's"),
        ([{**WORLD, "seed": -1}], r"worlds\[0\]\.seed = -1 is out of range; valid: 0\.\."),
        ([{**WORLD, "seed": "1"}], r"worlds\[0\]\.seed = '1' is not a whole number; valid: 0\.\."),
        ([{"name": "a", "world": {}}], r"worlds\[0\]\.seed = None is not a whole number"),
        ([{**WORLD, "world": 5}], r"worlds\[0\]\.world = 5; valid: a mapping"),
        ([{**WORLD, "capacities_mbps": 5}], r"worlds\[0\]\.capacities_mbps = 5; valid: a list"),
        ([{**WORLD, "capacities_mbps": ["x"]}], r"worlds\[0\]\.capacities_mbps\[0\] = 'x' is not a number"),
    ],
)
def test_what_is_no_list_of_worlds_is_refused_whoever_writes_it(tmp_path, worlds, message):
    file = frozen_file(tmp_path)
    with pytest.raises(ConfigError, match=message):
        frozen.write(file, "gate", 3, worlds)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"worlds": worlds}))
    with pytest.raises(ConfigError, match=message):
        frozen.read(file, "gate", paths.place_world, paths.OURS)


@pytest.mark.parametrize("version", ["x", 1, 2.0, True, None])
def test_a_version_that_nobody_froze_is_refused_with_those_that_there_are(tmp_path, version):
    file = frozen_file(tmp_path)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"version": version}))
    with pytest.raises(ConfigError, match=rf"version = {version!r} of suite gate is unknown; valid: 2 \(digest [0-9a-f]+\)"):
        frozen.read(file, "gate", paths.place_world, paths.OURS)


def test_worlds_with_a_digest_of_their_own_are_not_those_of_the_version(tmp_path):
    file = frozen_file(tmp_path)
    data = json.loads(file.read_text())
    data["worlds"][0]["seed"] = 5
    file.write_text(json.dumps(data | {"digest": frozen.compute_digest(data["worlds"])}))
    with pytest.raises(ConfigError, match="its worlds are not those of version 2: digest"):
        frozen.read(file, "gate", paths.place_world, paths.OURS)


def test_files_of_other_worlds_are_refused(tmp_path):
    file = frozen_file(tmp_path)
    with pytest.raises(ConfigError, match=r"of suite 'gate'; valid: .* of 'cards'"):
        frozen.read(file, "cards", paths.place_world, paths.OURS)
    file.write_text(file.read_text().replace('"seed":4', '"seed":5'))
    with pytest.raises(ConfigError, match="its worlds are not those of version 2: digest"):
        frozen.read(file, "gate", paths.place_world, paths.OURS)
    for text, said in (("[]", "is no file of worlds"), ("[" * 100_000, "is no file of worlds"), ("{}", "'schema' is missing")):
        file.write_text(text)
        with pytest.raises(ConfigError, match=said):
            frozen.read(file, "gate", paths.place_world, paths.OURS)
    with pytest.raises(ConfigError, match="cannot be read"):
        frozen.read(tmp_path / "none.json", "gate", paths.place_world, paths.OURS)


def test_a_digest_in_the_head_that_is_another_is_said(tmp_path):
    file = frozen_file(tmp_path)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"digest": "abc"}))
    with pytest.raises(ConfigError, match=r"not those of version 2: digest 'abc', not [0-9a-f]{16}; valid"):
        frozen.read(file, "gate", paths.place_world, paths.OURS)


@pytest.mark.parametrize("family", [["fixed"], {"fixed": 1}, None])
def test_a_family_that_is_no_name_is_refused(tmp_path, family):
    file = tmp_path / "gate.json"
    frozen.write(file, "gate", 2, [WORLD])
    with pytest.raises(ConfigError, match=r"world 'a': family = .*; valid: "):
        frozen.read(file, "gate", lambda one: (family, None, ()), paths.OURS)


@pytest.mark.parametrize("text", ["[1]", "{", '{"gate": [1]}', '{"gate": {"x": "abc"}}'])
def test_a_damaged_list_of_editions_is_refused(tmp_path, text):
    file = frozen_file(tmp_path)
    (tmp_path / frozen.EDITIONS).write_text(text)
    with pytest.raises(ConfigError, match=r"editions\.json: is no list of editions \(.*\); valid: "):
        frozen.read(file, "gate", paths.place_world, paths.OURS)


def test_a_version_is_frozen_once(tmp_path, monkeypatch, capsys):
    drawn = {1: [{"name": "a", "seed": 1, "world": {}}], 2: [{"name": "b", "seed": 2, "world": {}}]}
    monkeypatch.setattr(frozen, "FOLDER", tmp_path)
    monkeypatch.setitem(DRAW_WORLDS, "gate", lambda version: drawn[version])
    assert freeze.main(["gate"]) == freeze.main(["gate"]) == 0 and "version 1, digest" in capsys.readouterr().out
    drawn[1] = drawn[2]
    with pytest.raises(ConfigError, match=r"version 1 of gate has other worlds, digest .*; valid: --version 2"):
        freeze.freeze("gate", 1)
    freeze.freeze("gate", 2)
    drawn[1] = [{"name": "c", "seed": 3, "world": {}}]
    with pytest.raises(ConfigError, match=r"version 1 of gate has other worlds, .*; valid: --version 3"):
        freeze.freeze("gate", 1)
    assert json.loads((tmp_path / "gate.json").read_text())["worlds"] == freeze.draw_worlds("gate", 2)


@pytest.mark.parametrize("name", ["v1/congestion_window", "validation/host_buffers", "v1/receiver_window"])
def test_an_outline_has_the_names_of_the_worlds_without_making_them(name, monkeypatch):
    suite = get_suite(name)
    whole = suite.load()
    monkeypatch.setattr(frozen, "_make_cell", None)
    short = suite.outline()
    assert (short.version, short.digest) == (whole.version, whole.digest) and short.families == whole.families
    assert [(one.name, one.family, one.seed) for one in short.cells] == [
        (one.name, one.family, one.seed) for one in whole.cells
    ]
    assert replace(suite, load=lambda: whole).outline() is whole
