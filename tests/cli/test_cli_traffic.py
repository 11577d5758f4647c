import csv
import json

import pytest

from netbuf_gym import scenarios
from netbuf_gym.scenarios import FlowList, Scenario
from netbuf_gym.utils.docstrings import find_unit


def test_simulate_prints_finite_flows_and_switches(command, tmp_path):
    files = {name: tmp_path / f"run.{name}" for name in ("json", "csv")}
    argv = ["--scenario", "rlbm/cubic-300-0.6", "--duration", 20, "--seed", 2, "--flows", tmp_path / "flows.csv"]
    status, out, err = command("simulate", *argv, "--json", files["json"], "--csv", files["csv"])
    assert (status, err) == (0, "")
    for text in ("rlbm/cubic-300-0.6: 10 Mbit/s", "buffer 600 packets", "slowdown", "switch: dynamic thresholds, round_robin"):
        assert text in out
    assert "finite flows completed" in out and "one-way delay of 20 of 20 probes" in out
    assert "600 packets; occupancy over the whole run: mean" in out and "; whole run)" in out
    data = json.loads(files["json"].read_text())
    counts = {row["priority"]: row["completed"] for row in data["traffic"]["by_priority"]}
    few = ", ".join(f"{count} of priority {p}" for p, count in counts.items() if 0 < count < 200)
    assert f"few flows completed, {few}: below 200 one or two of them decide a p99" in out
    flows = FlowList.read_csv(tmp_path / "flows.csv", senders=10, queues=2)
    assert data["opened"]["size_bytes"] == flows.size_bytes.tolist()
    assert len(list(csv.DictReader(files["csv"].open()))) == 200
    replay = command("simulate", "--scenario", "rlbm/default", "--set", "queue_packets=300", "--set",
                     f"flow_list={tmp_path}/flows.csv", "--duration", 20)[1]  # fmt: skip
    assert replay.splitlines()[2:] == out.splitlines()[2:]


def test_simulate_takes_schemes(command, tmp_path):
    base = ["simulate", "--scenario", "rlbm/default", "--duration", 5]
    assert "abm thresholds" in command(*base, "--scheme", "abm")[1]
    assert "switch:" not in command(*base, "--scheme", "codel")[1]
    assert command(*base, "--scheme", '{"name": "dt", "alphas": [2, 1]}')[0] == 0
    assert command("simulate", "--duration", 2, "--scheme", "pie")[0] == 0
    path = tmp_path / "world.json"
    path.write_text(json.dumps(scenarios.get("rlbm/default", duration_s=3, scheme="sophisticated").to_dict()))
    status, out, _ = command("simulate", "--scenario", f"file:{path}", "--scheme", "naive")
    assert status == 0 and "rlbm/default" in out and "statistics of 0 to 3 s" in out
    assert Scenario.from_dict(json.loads(path.read_text())).duration_s == 3


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--scheme", "best"], "scheme = 'best' is unknown; valid: naive"),
        (["--scheme", "{best}"], "argument --scheme: '{best}' is not a JSON object"),
        (["--scheme", '{"name": "dt", "alphas": [-1]}'], "dynamic.alphas[0] = -1"),
        (["--set", "load=-1"], "load = -1"),
        (["--senders", "cubic,bbr"], "senders has 2 names for 10 flows"),
        (["--scenario", "dumbbell", "--flows", "x.csv"], "--flows: scenario 'dumbbell' has no finite flows"),
        (["--scenario", "dumbbell", "--scheme", "abm"], "scenario 'dumbbell' has no switch"),
        (["--flows", "/nowhere/x.csv"], "/nowhere/x.csv: cannot be written"),
    ],
)
def test_mistakes_are_one_line(command, argv, message):
    status, out, err = command("simulate", "--scenario", "rlbm/default", "--duration", 1, *argv)
    assert (status, out) == (2, "") and err.startswith("netbuf-gym: error: ") and err.count("\n") == 1 and message in err


@pytest.mark.parametrize(
    ("argument", "text", "message"),
    [
        ("sizes", "100,0\n200,0.5\n150,1\n", "bad.csv:3: size_bytes = 150 is below 200"),
        ("sizes", "100,0\n200,0.5\n", "bad.csv:2: cumulative = 0.5 at the end; valid: 1"),
        ("sizes", "0,0\n200,1\n", "bad.csv:1: size_bytes = 0"),
        ("flow_list", "start_s,sender,size_bytes,priority\n1,0,5,0\n2,10,5,0\n", "bad.csv:3: sender = 10 is not there"),
        ("flow_list", "start_s,sender,size_bytes,priority\n-1,0,5,0\n", "bad.csv:2: start_s = -1"),
        ("flow_list", "start_s,sender,size_bytes,priority\n1,0,0,0\n", "bad.csv:2: size_bytes = 0"),
        ("flow_list", "start_s,sender,size_bytes,priority\n1,0,9,2\n", "bad.csv:2: priority = 2 is beyond the 2 queues"),
    ],
)
def test_bad_files_are_named_with_their_line(command, tmp_path, argument, text, message):
    (tmp_path / "bad.csv").write_text(text)
    status, out, err = command("simulate", "--scenario", "rlbm/default", "--set", f"{argument}={tmp_path}/bad.csv")
    assert (status, out) == (2, "") and message in err and err.count("\n") == 1


@pytest.mark.slow
def test_plots_of_finite_flows(command, tmp_path):
    for scheme in ("abm", "codel"):
        path = tmp_path / f"{scheme}.png"
        argv = ["simulate", "--scenario", "rlbm/thesis-code", "--duration", 2, "--scheme", scheme, "--plot", path]
        assert command(*argv)[0] == 0 and path.stat().st_size > 10_000


def test_trace_makes_and_shows_flow_lists(command, tmp_path):
    path = tmp_path / "flows.csv"
    argv = ["trace", "flows", "--scenario", "rlbm/default", "--set", "duration_s=30", "--seed", 3, "--out", path]
    status, made, _ = command(*argv)
    assert status == 0 and "flow list" in made and "priority 1 flows" in made
    assert command("trace", "show", path, "--json", tmp_path / "a.json")[1] == made
    assert json.loads((tmp_path / "a.json").read_text())["flows"] == len(FlowList.read_csv(path))
    sizes = tmp_path / "sizes.csv"
    sizes.write_text("size_bytes,cumulative\n100,0\n300,1\n")
    assert "mean size  200 bytes" in command("trace", "show", sizes)[1]
    sizes.write_text("100,0\n300,1\n")
    assert "mean size  200 bytes" in command("trace", "show", sizes)[1]
    assert "not a regular file" in command("trace", "show", "/dev/zero")[2]
    sizes.write_text("size_bytes,cumulative\n100,0\n300,0.5\n")
    assert "sizes.csv:3: cumulative = 0.5 at the end" in command("trace", "show", sizes)[2]
    assert "has no finite flows" in command("trace", "flows", "--scenario", "ppcc/1", "--out", path)[2]


@pytest.mark.parametrize(
    ("topic", "records"),
    [
        ("congestion-controls", scenarios.CONGESTION_CONTROLS),
        ("queue-disciplines", scenarios.QUEUE_DISCIPLINES),
        ("disciplines", scenarios.QUEUE_DISCIPLINES),
        ("receiver-controls", scenarios.RECEIVER_CONTROLS),
    ],
)
def test_list_prints_a_catalogue_with_parameters(command, topic, records):
    lines = [line.split() for line in command("list", topic)[1].splitlines()]
    for record in records.values():
        assert [record.name, *", ".join(record.stacks).split(), *record.meaning.split()] in lines
        for parameter in record.parameters:
            default = "auto" if parameter.default is None else str(parameter.default).lower()
            unit = find_unit(parameter.name).split()
            row = [record.name, parameter.name, default, *unit, *parameter.range.split(), *parameter.meaning.split()]
            (line,) = (line for line in lines if line[: len(row)] == row)
            assert ("only)" in line[-1]) == (not set(record.stacks) <= set(parameter.stacks))


def test_list_knows_schemes_and_sizes(command):
    assert all(name in command("list", "schemes")[1] for name in scenarios.SCHEMES)
    assert all(name in command("list", "sizes")[1] for name in scenarios.SIZES)
    everything = command("list")[1]
    assert "rlbm/CC-SIZE-LOAD" in everything and "fq_codel" in everything and "congestion control" in everything
