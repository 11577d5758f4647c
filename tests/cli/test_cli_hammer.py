"""Whatever an argument's value: a result, or one line that says what is wrong. Random command lines, the same each time."""

import json
import random
import warnings

import pytest

from netbuf_gym import scenarios, traces
from netbuf_gym.cli import program
from netbuf_gym.errors import NetbufError
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.traces.generators import list_parameters
from studies.common.campaign import Campaign

CASES = 180
USUAL = (1, 2, 10, 0.5, 20, 1000, True, None, "cubic", "bbr", "naive", "dt", "ns3", [0.1, 0.9], [1, 2], ["cubic", "bbr"])
ODD = (
    *(None, True, False, 0, -1, 64, 65, 100_000, 2**53, 2**63, 10**30, 10**400, -0.0, 1e-12, 5e-324, 1e300),
    *(float("nan"), float("inf"), "", "x", "agent", "é", "\0", "/", "/dev/zero", ".", "x.csv", [], [None], [True], [[1], [2]]),
    *([{}], [float("nan"), 1], ["cubic"] * 100, [0, 0], {}, {"name": 1}, {"name": None}, {"name": "cubic", "beta": "x"}),
    *({"name": "dt", "alphas": 1}, {"name": "dt", "alphas": [1, 2], "x": 1}, {"name": ["cubic"]}, {"kind": []}, {"": 1}),
    *({"interval_s": 1.0}, {"interval_s": 1, "fan_in": "x", "size_bytes": 1}),
)
NAMES = ("name", "path", "kwargs", "self", "rng", "kind", "duration_s", "seed", "trace", "scenario", "args", "cls", "senders")
"""What is called so inside."""


def value(rng: random.Random) -> str:
    chosen = rng.choice(USUAL if rng.random() < 0.5 else ODD)
    return chosen if isinstance(chosen, str) and rng.random() < 0.7 else json.dumps(chosen)


def settings(rng: random.Random, known: list[str]) -> list[str]:
    chosen = {rng.choice(known if known and rng.random() < 0.8 else NAMES) for _ in range(rng.choice((1, 1, 2, 3)))}
    return [word for name in sorted(chosen) for word in ("--set", f"{name}={value(rng)}")]


def options(rng: random.Random, names: tuple[str, ...], share: float = 0.1) -> list[str]:
    return [f"{name}={value(rng)}" for name in names if rng.random() < share]


def simulate(rng: random.Random, files: dict[str, str]) -> list[str]:
    patterns = ["rlbm/cubic-500-0.6", "rlbm/x-0-0", "trace:" + files["trace"], "file:" + files["world"]]
    name = rng.choice([*scenarios.names(), *patterns])
    try:
        known = scenarios.parameters_of(name)
    except NetbufError:
        known = []
    words = ["simulate", "--scenario", name, *settings(rng, known)]
    own = ("--senders", "--scheme", "--stack", "--duration", "--seed", "--warmup", "--sample-interval")
    return words + options(rng, own) + options(rng, ("--json", "--csv", "--flows", "--plot"), 0.02)


def generate(rng: random.Random, files: dict[str, str]) -> list[str]:
    kind = rng.choice(sorted(traces.GENERATORS))
    words = ["trace", "generate", kind, "--out", files["out"], *settings(rng, list(list_parameters(kind)))]
    words += [] if rng.random() < 0.2 else ["--duration", "1"]
    return words + options(rng, ("--seed", "--format"))


def convert(rng: random.Random, files: dict[str, str]) -> list[str]:
    form = rng.choice(("csv", "mahimahi"))
    words = ["trace", "convert", files[rng.choice(("trace", "deliveries"))], files["out"], "--format", form]
    return words + options(rng, ("--duration", "--step"), 0.5)


def flows(rng: random.Random, files: dict[str, str]) -> list[str]:
    name = rng.choice([name for name in scenarios.names() if name.startswith("rlbm/")] + ["dumbbell"])
    return ["trace", "flows", "--scenario", name, "--out", files["out"], *settings(rng, scenarios.parameters_of(name))]


def reproduce(rng: random.Random, files: dict[str, str]) -> list[str]:
    keys = ("schemes", "ccs", "sizes", "loads", "seeds", "first_seed", "duration_s", "interval_s", "intervals", "agent", "jobs")
    words = [f"{key}={value(rng)}" for key in rng.sample((*keys, "figures", "traffic", "x"), rng.choice((1, 2, 3)))]
    return ["reproduce", "rlbm", f"output={files['folder']}/{rng.random()}", *words]


def validate(rng: random.Random, files: dict[str, str]) -> list[str]:
    folder = rng.choice((files["folder"], files["trace"], "", "/nowhere"))
    return ["validate", folder, *options(rng, ("--json", "--markdown", "--seeds", "--jobs", "--only"), 0.3)]


@pytest.fixture
def files(tmp_path, monkeypatch):
    paths = {"trace": "t.csv", "deliveries": "d.down", "world": "w.json", "out": "out"}
    paths = {key: str(tmp_path / name) for key, name in paths.items()} | {"folder": str(tmp_path)}
    traces.write(traces.generate("walk", duration_s=1), paths["trace"])
    traces.write(traces.generate("poisson", duration_s=1), paths["deliveries"])
    with open(paths["world"], "w") as file:
        json.dump(scenarios.get("rlbm/default").to_dict(), file)
    monkeypatch.chdir(tmp_path)
    run = Simulator.run
    monkeypatch.setattr(Simulator, "run", lambda self, until_ns: run(self, min(until_ns, 10**8)))  # worlds begin, that is all
    monkeypatch.setattr(Campaign, "run", lambda self, progress: 1 / 0)
    return paths


@pytest.mark.slow
@pytest.mark.parametrize("command", [simulate, generate, convert, flows, reproduce, validate])
def test_a_result_or_one_line(command, files, capsys):
    results = 0
    for case in range(CASES if command is simulate else CASES // 3):
        argv = command(random.Random(f"{command.__name__} {case}"), files)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                status = program.main(argv)
            except ZeroDivisionError:  # a campaign that would run
                status = 0
        _, err = capsys.readouterr()
        assert status == 0 or (status == 2 and err.count("\n") == 1 and err.startswith("netbuf-gym: error: ")), (argv, err)
        results += status == 0
    assert results > 0 or command in (flows, validate)  # most worlds are refused, some run
