"""`netbuf-gym list`: every list as text and as JSON, with the same content; defaults that are the ones in force."""

import inspect
import json
import re
import subprocess
import sys

import pytest

import netbuf_gym as nb
from netbuf_gym import tasks, traces
from netbuf_gym.cli.list import TOPICS, _convert_to_json
from netbuf_gym.cli.program import main
from netbuf_gym.scenarios.glossary import GLOSSARY
from netbuf_gym.traces import generators
from netbuf_gym.utils.docstrings import extract_headline, find_range, find_unit, parse_arguments
from tests.helpers.release_cases import for_release


def listed(capsys, *arguments):
    assert main(["list", *arguments]) == 0
    return capsys.readouterr().out


def squeezed(text):
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("topic", TOPICS)
def test_json_and_text_say_the_same(topic, capsys):
    entries = json.loads(listed(capsys, topic, "--json"))
    text = squeezed(listed(capsys, topic))
    assert entries and isinstance(entries, list)
    for entry in entries:
        assert entry["name"] in text and squeezed(entry.get("meaning", "")) in text
        for one in entry.get("parameters", ()):
            assert one["name"] in text and one["range"] in text and squeezed(one["meaning"]) in text and one["unit"] in text


def test_all_lists_as_json(capsys):
    everything = json.loads(listed(capsys, "--json"))
    assert list(everything) == list(TOPICS)
    assert everything["agents"] == json.loads(listed(capsys, "agents", "--json"))


def entries_of(capsys, topic):
    return {entry["name"]: entry for entry in json.loads(listed(capsys, topic, "--json"))}


def parameters_in(entry):
    return {one["name"]: one for one in entry["parameters"]}


def test_scenarios_have_their_parameters_defaults_units_and_ranges(capsys):
    entries = entries_of(capsys, "scenarios")
    assert set(nb.scenarios.names()) <= set(entries)
    own = parameters_in(entries["ppcc/2"])
    assert own["rate_mbps"] == {
        "name": "rate_mbps",
        "default": 10.0,
        "unit": "Mbit/s",
        "range": "1e-06 to 1e+06",
        "meaning": "rate of the bottleneck on the wire",
    }
    assert own["rtt_ms"]["default"] == 48 and own["duration_s"]["unit"] == "s"
    assert parameters_in(entries["ppcc/random"])["rate_mbps"]["default"] == [1, 100]
    for name in nb.scenarios.names():
        assert list(parameters_in(entries[name])) == nb.scenarios.parameters_of(name)
        for one in entries[name]["parameters"]:
            assert one["meaning"] and one["range"], f"{name}: {one['name']}: say what it is in scenarios/glossary.py"


def test_the_glossary_has_what_there_is_and_no_more():
    taken = {key for name in nb.scenarios.names() for key in nb.scenarios.parameters_of(name)}
    taken |= set(nb.scenarios.parameters_of("trace:PATH"))
    assert set(GLOSSARY) == taken
    taken = {key for kind in traces.GENERATORS for key in generators.list_parameters(kind)}
    assert set(generators.GLOSSARY) == taken


CHECKED = ["rate_mbps", "rtt_ms", "buffer_packets", "loss", "stagger_s", "access_delay_ms", "duration_s", "n"]


@pytest.mark.parametrize("name", CHECKED)
def test_ranges_of_the_glossary_are_those_that_are_checked(name):
    low = GLOSSARY[name].range.removeprefix("above ").split(" ")[0]
    with pytest.raises(nb.errors.ScenarioError):
        nb.scenarios.get("dumbbell", **{name: float(low) - (1 if name in ("n", "buffer_packets") else 1e-6)})


def test_a_scenario_of_ones_own_is_listed_as_it_is_documented(capsys, monkeypatch):
    def mine(*, speed_mbps=3.0, wobble=1):
        """My world.

        Args:
            speed_mbps: Of the link, 1 to 9 Mbit/s.
            wobble: How much
                it wobbles.
        """

    monkeypatch.setitem(nb.scenarios.named._REGISTRY, "mine/world", mine)
    own = parameters_in(entries_of(capsys, "scenarios")["mine/world"])
    assert own["speed_mbps"] == {
        "name": "speed_mbps",
        "default": 3.0,
        "unit": "Mbit/s",
        "range": "1 to 9",
        "meaning": "Of the link, 1 to 9 Mbit/s.",
    }
    assert own["wobble"]["meaning"] == "How much it wobbles."


def test_rewards_by_task_with_their_parameters(capsys):
    entries = json.loads(listed(capsys, "rewards", "--json"))
    found = {(entry["task"], entry["name"]): entry for entry in entries}
    assert set(found) == {(record.name, name) for record in tasks.records() for name in record.rewards}
    one = found["congestion_window", "log_utility"]
    assert one["terms"] == ["throughput", "delay", "loss"] and one["default_of"] == ["default", "bare", "robust"]
    assert parameters_in(one)["floor"] == {
        "name": "floor",
        "default": 0.05,
        "unit": "",
        "range": "1e-4 to 1",
        "meaning": "least throughput ratio that the logarithm sees, 1e-4 to 1.",
    }
    for entry in entries:
        kind = tasks.get(entry["task"]).rewards[entry["name"]]
        assert {key: one["default"] for key, one in parameters_in(entry).items()} == {
            key: list(value.default) if isinstance(value.default, tuple) else value.default
            for key, value in inspect.signature(kind).parameters.items()
        }


def test_truth_values_are_listed_as_such(capsys):
    for entry in json.loads(listed(capsys, "rewards", "--json")):
        for one in entry["parameters"]:
            assert (one["range"] == "true or false") == isinstance(one["default"], bool), (entry["name"], one["name"])


def test_steps_of_agents_are_whole_numbers(capsys):
    assert all(type(one["steps"]) is int for one in json.loads(listed(capsys, "agents", "--json")))


def test_agents_have_what_a_user_chooses_by(capsys):
    entries = entries_of(capsys, "agents")
    assert list(entries) == nb.zoo.names()
    one = entries["congestion_window/ppo"]
    assert (one["task"], one["environment"]) == ("congestion_window", "netbuf/CongestionWindow-v0")
    assert (one["algorithm"], one["recipe"], one["trained_on"]["name"]) == ("ppo", "default", "paths/training")
    assert one["score"] == "utility" and set(one["scores"]) == {"ppcc/1", "ppcc/2", "ppcc/3", "ppcc/4"}
    assert -0.1 < one["scores"]["ppcc/4"] < -0.02 and one["lower_is_better"] is False
    assert f"ppcc/4 {one['scores']['ppcc/4']:.4g}" in listed(capsys, "agents")


def test_baselines_and_controllers(capsys):
    baselines = json.loads(listed(capsys, "baselines", "--json"))
    for record in tasks.records():
        assert [one["name"] for one in baselines if one["task"] == record.name] == list(record.measures.baselines)
    controllers = json.loads(listed(capsys, "controllers", "--json"))
    rule = next(one for one in controllers if one["name"] == "queue_target")
    assert rule["acts"] == "decides as an agent" and rule["recipes"] == ["default", "bare", "robust"] and rule["compared_with"]
    assert not next(one for one in controllers if one["name"] == "prague")["compared_with"]


WRONG = [("agent", "agents"), ("reward", "rewards"), ("congestion", "congestion-controls")]


@pytest.mark.parametrize(("wrong", "guess"), WRONG)
def test_an_unknown_list_is_answered_in_a_line_with_those_that_there_are(wrong, guess, capsys):
    assert main(["list", wrong]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and f"did you mean {guess!r}?" in err and all(name in err for name in TOPICS)


def test_words_may_be_joined_by_underscores(capsys):
    assert listed(capsys, "congestion_controls") == listed(capsys, "congestion-controls")


@pytest.mark.slow
def test_lists_need_no_learner():
    code = (
        "import builtins\n"
        "load = builtins.__import__\n"
        "def without(name, *rest):\n"
        "    if name.partition('.')[0] in ('torch', 'stable_baselines3', 'omegaconf', 'hydra', 'matplotlib', 'pandas'):\n"
        "        raise ModuleNotFoundError(name, name=name)\n"
        "    return load(name, *rest)\n"
        "builtins.__import__ = without\n"
        "from netbuf_gym.cli.program import main\n"
        "raise SystemExit(main(['list', '--json']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and list(json.loads(done.stdout)) == list(TOPICS), done.stderr


def test_docstrings_are_read():
    def documented():
        """A thing,
        in two lines.

        More.

        Args:
            a, b_ms: both, 0 to 2**40; or
                more.
            c: 3 or more.

        Returns:
            d: not an argument.
        """

    assert extract_headline(documented) == "A thing, in two lines." and extract_headline(3.0) is not None
    both = "both, 0 to 2**40; or more."
    assert parse_arguments(documented) == {"a": both, "b_ms": both, "c": "3 or more."}
    said = {"0 to 2**40; or": "0 to 2**40", "c, 3 or more.": "3 or more", "at least 1, say": "at least 1", "none": ""}
    said |= {"1e-4 to 1.": "1e-4 to 1", "2 to 10 million.": "2 to 10 million"}
    assert {text: find_range(text) for text in said} == said
    assert [find_unit(name) for name in ("a_ms", "rate_mbps", "flows_per_s", "x_s", "alpha")] == [
        "ms",
        "Mbit/s",
        "1/s",
        "s",
        "",
    ]


ENDS = re.compile(
    r"(?P<each>a list, each )?(?P<open>above )?(?P<low>[-+\d.e]+) to "
    r"(?P<below>below )?(?P<high>[-+\d.e]+)(?P<million> million)?"
)


def tried(one, value, each):
    whole = isinstance(one["default"], int) or (each and isinstance(one["default"][0], int))
    value = round(value) if whole else value
    return [value] * len(one["default"]) if isinstance(one["default"], list) else value


def ends_of(one):
    """Values at and beyond both ends of the range that is listed, and whether they are in it."""
    found = ENDS.fullmatch(one["range"]) if one["default"] is not None else None
    if found is None:
        return []
    low, high, step = float(found["low"]), float(found["high"]) * (1e6 if found["million"] else 1), 1e-9
    whole = isinstance(one["default"], int)
    beyond = (low - 1, high + 1) if whole else (low - max(step, 1e-3 * abs(low)), high * 1.001 + step)
    ends = ((low, not found["open"]), (high, not found["below"]), (beyond[0], False), (beyond[1], False))
    return [(tried(one, value, found["each"]), inside) for value, inside in ends]


@pytest.mark.parametrize("record", tasks.records(), ids=lambda record: record.name)
def test_ranges_of_rewards_are_those_that_are_checked(record, capsys):
    for entry in json.loads(listed(capsys, "rewards", "--json")):
        if entry["task"] != record.name:
            continue
        kind = record.rewards[entry["name"]]
        for one in entry["parameters"]:
            assert _convert_to_json(getattr(kind(), one["name"])) == one["default"]
            for value, inside in ends_of(one):
                try:
                    kind(**{one["name"]: value})
                    accepted = True
                except nb.errors.ConfigError:
                    accepted = False
                assert accepted == inside, f"{entry['name']}: {one['name']} = {value}, listed as {one['range']}"


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, *for_release(1)])
def test_ranges_of_scenarios_are_those_that_are_checked(part, capsys):
    entries = entries_of(capsys, "scenarios")
    for name in nb.scenarios.names()[part::2]:
        entry = entries[name]
        for one in entry["parameters"]:
            for value, inside in ends_of(one):
                try:
                    nb.scenarios.get(name, **{one["name"]: value})
                    refused = ""
                except nb.errors.ScenarioError as error:
                    refused = str(error)
                said = f"{name}: {one['name']} = {value}, listed as {one['range']}: {refused}"
                assert bool(refused) or inside, said
                assert not inside or not refused.startswith(f"{one['name']}"), said  # others may not go together with it
