import argparse
import errno
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import types

import pytest

import netbuf_gym
from netbuf_gym import scenarios, traces
from netbuf_gym.cli import jobs
from netbuf_gym.cli import program as cli
from netbuf_gym.errors import ConfigError, SimulatorFault


def refused(outcome, message):
    """Bad input: status 2, one line on standard error that says what is wrong, nothing on standard output."""
    status, out, err = outcome
    assert (status, out) == (2, "")
    assert err.startswith("netbuf-gym: error: ") and err.count("\n") == 1 and "Traceback" not in err
    assert message in err
    return True


def test_version_and_help(command):
    assert command("--version")[:2] == (0, f"netbuf-gym {netbuf_gym.__version__}\n")
    status, out, _ = command("--help")
    assert status == 0 and all(name in out for name in (*cli.COMMANDS, *cli.JOBS))
    for name in cli.COMMANDS:
        assert command(name, "--help")[0] == 0


def test_every_command_and_verb_has_a_description():
    parsers = cli.build_parser().commands
    for name, own in list(parsers.items()):
        for action in own._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers = parsers | {f"{name} {verb}": one for verb, one in action.choices.items()}
    assert {"live tune", "live check", "trace show", "results make"} < parsers.keys()
    assert [name for name, one in parsers.items() if not (one.description or "")[:1].isupper()] == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["nonsense"], "invalid choice: 'nonsense'"),
        (["simulate", "--colour"], "unrecognized arguments: --colour"),
        (["simulate", "--seed", "-1"], "'-1' is not a whole number"),
        (["simulate", "--seed", "x"], "'x' is not a whole number"),
        (["simulate", "--seed", "1.5"], "argument --seed: '1.5' is not a whole number"),
        (["record", "queue_threshold", "--episodes", "1.5"], "argument --episodes: '1.5' is not a whole number"),
        (["leaderboard", "show", "threads=1.5"], "threads = 1.5 is not a whole number"),
        (["leaderboard", "show", "threads=1e7"], "threads = 10000000 is out of range; valid: 1..256"),
        (["suite", "gate", "controller=keep", "threads=1.5"], "threads = 1.5 is not a whole number"),
        (["live", "tune", "--range", "ring_packets=1.5:20"], "is not CONTROL=LOW:HIGH"),
        (["simulate", "--warmup", "nan"], "'nan' is not a finite number"),
        (["simulate", "--set", "novalue"], "'novalue' is not NAME=VALUE"),
        (["simulate", "--senders", "cubic,,bbr"], "holds an empty name"),
        (["validate"], "neither DIR nor --against; valid: one of them"),
        (["validate", ".", "--seeds", "1"], "'1' is not a whole number from 2"),
        (["trace"], "required"),
        (["list", "nothing"], "invalid choice"),
    ],
)
def test_mistakes_on_the_command_line_are_one_line(command, argv, message):
    assert refused(command(*argv), message)


def test_integers_may_be_written_as_floats(command):
    first, second = (command("simulate", "--set", "duration_s=1", "--seed", seed) for seed in ("20", "2e1"))
    assert first[0] == 0 and first[1] == second[1]
    assert command("leaderboard", "show", "task=host_buffers", "threads=1e0")[0] == 0
    arguments = cli.build_parser(["live"]).parse_args(["live", "tune", "--range", "ring_packets=1e3:2e3"])
    assert dict(arguments.range) == {"ring_packets": (1000, 2000)}


def test_faults_and_interruptions_have_a_status_of_their_own(command, monkeypatch):
    def raising(error):
        def run(arguments):
            raise error

        return run

    for error, status, text in (
        (SimulatorFault("time went\nbackwards"), 3, "fault of the simulator: time went backwards"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ConfigError("no"), 2, "no"),
        (PermissionError(13, "Permission denied", "/x"), 2, "/x: Permission denied"),
    ):
        monkeypatch.setattr(cli.import_command("list"), "run", raising(error))
        got, out, err = command("list")
        assert (got, out) == (status, "") and err == f"netbuf-gym: error: {text}\n"


@pytest.mark.slow
def test_jobs_are_imported_when_asked_for(command, monkeypatch):
    seen = []
    module = types.ModuleType("netbuf_gym.training.train")
    module.main = lambda job: seen.append((job.config.env.name, job.overrides, job.source.config_dir)) or 7
    monkeypatch.setitem(sys.modules, "netbuf_gym.training.train", module)
    assert command("train", "env=congestion_window", "--config-dir", ".", "algo=ppo")[0] == 7
    assert seen == [("congestion_window", ["env=congestion_window", "algo=ppo"], ".")]


@pytest.mark.parametrize("job", cli.JOBS)
def test_a_missing_extra_is_named(command, monkeypatch, job):
    def import_without_hydra(name):
        if name.startswith("netbuf_gym.training."):
            raise ModuleNotFoundError("No module named 'hydra'", name="hydra.core")
        return load(name)

    load = importlib.import_module
    monkeypatch.setattr(importlib, "import_module", import_without_hydra)
    assert refused(command(job), f"pip install netbuf-gym[{'tune' if job == 'tune' else 'train'}]")


def test_a_defect_of_our_own_is_not_taken_for_a_missing_extra(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError("No module named 'netbuf_gym.nothing'", name="netbuf_gym.nothing")

    monkeypatch.setattr(jobs.importlib, "import_module", missing)
    with pytest.raises(ModuleNotFoundError):
        cli.main(["train"])


@pytest.mark.slow
def test_nothing_below_the_zoo_loads_a_learner():
    code = (
        "import sys, netbuf_gym.cli.program; from netbuf_gym import simulate, scenarios; netbuf_gym.cli.program.build_parser();"
        "simulate(scenarios.dumbbell(duration_s=1)); heavy = {'torch', 'hydra', 'stable_baselines3', 'matplotlib', 'scipy'};"
        "print(heavy & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "set()\n", run.stderr


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error():
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run([sys.executable, "-m", "netbuf_gym", "list"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert run.returncode == 141 and run.stderr == ""


def run_program(*words, **options):
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "netbuf_gym", *map(str, words)]
    return subprocess.run(
        command, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["--help", "--version", "simulate --help", "list traces", "train --cfg job"])
def test_output_that_cannot_be_written_is_an_error(words, unbuffered):
    with open("/dev/full", "w") as full:
        done = run_program(*words.split(), stdout=full, env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    assert (done.returncode, done.stderr) == (2, "netbuf-gym: error: standard output: No space left on device\n")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_text_that_the_output_cannot_encode_is_escaped(tmp_path, encoding):
    world = scenarios.dumbbell(duration_s=0.5).to_dict() | {"name": "\ud800\u00fc"}
    (tmp_path / "world.json").write_text(json.dumps(world))
    words = [f"--{kind}={tmp_path / 'out'}.{kind}" for kind in ("json", "csv")] + [f"--plot={tmp_path / 'out.svg'}"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = run_program("simulate", "--scenario", f"file:{tmp_path / 'world.json'}", *words, env=environment, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("\\ud800\\xfc" if encoding == "ascii" else "\\ud800\u00fc")
    assert json.loads((tmp_path / "out.json").read_text())["scenario"]["name"] == world["name"]


def test_a_name_that_is_no_text_is_refused_in_one_line(command):
    assert refused(command("simulate", "--scenario", "\udcff"), r"'\udcff' is unknown")


@pytest.mark.slow
@pytest.mark.parametrize("words", ["--version", "--help"])
def test_help_and_version_import_neither_numpy_nor_gymnasium(words):
    code = f"""
import sys
sys.argv = ["netbuf-gym", {words!r}]
from netbuf_gym.__main__ import main
status = main()
print(status, {{"numpy", "gymnasium"}} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 set()"


def test_little_is_imported_before_interruptions_are_looked_after():
    code = "import sys; sys.argv, sys.orig_argv = ['-m'], ['netbuf_gym']; before = {*sys.modules}\n"
    code += "import netbuf_gym.__main__; print(*sorted({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    own = {"netbuf_gym", "netbuf_gym.__main__", "netbuf_gym.utils", "netbuf_gym.utils.interrupts"}
    assert own <= {*done.stdout.split()} and not {"typing", "pathlib", "re", "argparse"} & {*done.stdout.split()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        "netbuf_gym.cli.program",
        "argparse",
        "netbuf_gym.cli.list",
        "numpy",
        "numpy.linalg",
        "gymnasium",
        "netbuf_gym.tasks",
        "torch",
    ],
)
def test_an_interruption_while_a_module_is_imported_is_a_line(tmp_path, module):
    """Whatever the modules that import it make of exceptions."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *more):\n"
        f"        if name == {module!r} and 'netbuf_gym' in sys.modules:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", os.getcwd())])
    words = ["train", "total_timesteps=64", f"run_dir={tmp_path / 'run'}"] if module == "torch" else ["list", "scenarios"]
    done = run_program(*words, env={**os.environ, "PYTHONPATH": path})
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "netbuf-gym: error: interrupted\n")


class TestSimulate:
    def test_prints_tables_and_writes_files(self, command, tmp_path):
        files = [tmp_path / name for name in ("a.json", "a.csv", "a.png")]
        options = [word for name, file in zip(("--json", "--csv", "--plot"), files, strict=True) for word in (name, file)]
        status, out, err = command("simulate", "--scenario", "ppcc/2", "--senders", "cubic,bbr", "--duration", 5, *options)
        assert (status, err) == (0, "")
        assert out.startswith("ppcc/2: 10 Mbit/s, 48 ms, buffer 150000 packets, linux stack, seed 1, statistics of 0 to 5 s")
        assert "flow-1" in out and "bottleneck" in out and "Jain's fairness" in out
        data = json.loads(files[0].read_text())
        assert [flow["cc"] for flow in data["flows"]] == ["cubic", "bbr"] and len(data["series"]["time_s"]) == 50
        assert files[1].read_text().startswith("time_s,flow,cc,cwnd_packets,")
        assert files[2].read_bytes().startswith(b"\x89PNG")

    def test_what_no_json_can_hold_is_refused_before_the_world_is_run(self, command, tmp_path, monkeypatch):
        (tmp_path / "mine.py").write_text("class Mine:\n    def __call__(self, ack):\n        return 10\n")
        monkeypatch.setattr("netbuf_gym.cli.simulate.simulate", lambda *_, **__: pytest.fail("it was run"))
        words = ["simulate", "--senders", f"{tmp_path / 'mine.py'}:Mine", "--json", tmp_path / "out.json"]
        assert refused(command(*words), "is the user's code, which no file holds")

    def test_scenarios_of_all_kinds(self, command, tmp_path):
        trace = tmp_path / "a.csv"
        trace.write_text("time_s,mbps\n0,5\n1,3\n")
        status, out, _ = command("simulate", "--scenario", f"trace:{trace}", "--duration", 2, "--set", "rtt_ms=10")
        assert status == 0 and "4 Mbit/s, 10 ms" in out
        one, two = (command("simulate", "--scenario", "ppcc/random", "--duration", 1, "--seed", s) for s in (1, 2))
        assert one[0] == two[0] == 0 and one[1] != two[1]
        status, out, _ = command("simulate", "--set", "rate_mbps=3", "--set", "buffer_packets=null", "--duration", 1)
        assert status == 0 and "dumbbell: 3 Mbit/s" in out and "no limit" in out
        status, out, _ = command("simulate", "--scenario", "ppcc/3", "--stack", "ns3", "--duration", 2, "--all-links")
        assert status == 0 and "ns3 stack" in out and "sender-back-0" in out

    def test_a_scenario_file_with_other_senders(self, command, tmp_path):
        command("simulate", "--duration", 1, "--json", tmp_path / "r.json")
        world = tmp_path / "world.json"
        world.write_text(json.dumps(json.loads((tmp_path / "r.json").read_text())["scenario"]))
        status, out, _ = command("simulate", "--scenario", f"file:{world}", "--senders", "vegas")
        assert status == 0 and "vegas" in out

    @pytest.mark.parametrize(
        ("argv", "message"),
        [
            (["--scenario", "ppcc/9"], "scenario = 'ppcc/9' is unknown"),
            (["--senders", "tahoe"], "cc = 'tahoe' is unknown"),
            (["--set", "rate_mbps=-5"], "rate_mbps = -5"),
            (["--set", "rate_mbps=NaN"], "rate_mbps = nan"),
            (["--set", "buffer_packets=0"], "buffer_packets = 0"),
            (["--set", "loss=2"], "loss = 2"),
            (["--set", "rate_mbps=ten"], "rate_mbps = 'ten' is not a number"),
            (["--set", "colour=1"], "has no argument 'colour'"),
            (["--set", "n=1", "--set", "n=2"], "a name twice"),
            (["--set", 'senders=["cubic"]', "--senders", "bbr"], "senders is given twice"),
            (["--duration", "-1"], "duration_s = -1"),
            (["--duration", "5", "--warmup", "5"], "warmup_s = 5 leaves nothing"),
            (["--sample-interval", "0", "--json", "{tmp}/x"], "sample_interval_s = 0"),
            (["--sample-interval", "-7"], "sample_interval_s = -7"),  # though no series is asked for
            (["--duration", "1e-12"], "duration_s = 1e-12 is out of range; valid: 1e-09"),
            (["--duration", "1", "--warmup", "0.9999999999"], "leaves nothing of duration_s = 1"),
            (["--set", "name=1"], "dumbbell has no argument 'name'; valid: n, senders"),
            (["--scenario", "ppcc/2", "--set", "name=x"], "ppcc/2 has no argument 'name'; valid: n, senders"),
            (["--scenario", "trace:x", "--set", "path=x"], "has no argument 'path'; valid: n, senders"),
            (["--scenario", "rlbm/default", "--set", "senders=0"], "senders = 0 is not a list"),
            (["--scenario", "rlbm/default", "--set", "senders=100000"], "senders = 100000 is not a list"),
            (["--scenario", "rlbm/default", "--set", "senders=[]"], "senders is empty"),
            (["--scenario", "rlbm/default", "--set", "senders=NaN"], "senders = nan is not a list"),
            (["--senders", "agent"], "has no agent here"),
            (["--scenario", "trace:/nowhere"], "/nowhere: cannot be read"),
            (["--json", "/nowhere/a.json"], "/nowhere/a.json: cannot be written"),
            (["--json", "{tmp}"], "is a folder"),
            (["--json", "{tmp}/a", "--csv", "{tmp}/a"], "two outputs name the same file"),
            (["--plot", "{tmp}/a.txt"], "no known plot format"),
        ],
    )
    def test_bad_input_is_one_line_and_leaves_no_file(self, command, tmp_path, argv, message):
        assert refused(command("simulate", *(word.format(tmp=tmp_path) if "{tmp}" in word else word for word in argv)), message)
        assert list(tmp_path.iterdir()) == []


class TestTrace:
    def test_generate_show_plot_convert(self, command, tmp_path):
        made, other, plot, figures = (tmp_path / name for name in ("a.csv", "a.down", "a.svg", "a.json"))
        status, out, _ = command("trace", "generate", "lte", "--duration", 20, "--seed", 3, "--out", made, "--set", "sigma=0.2")
        assert status == 0 and "longest gap" in out and made.read_text().startswith("time_s,mbps\n0.0,")
        assert command("trace", "convert", made, other, "--format", "mahimahi")[0] == 0
        status, out, _ = command("trace", "show", other, "--json", figures)
        assert status == 0 and "opportunities" in out
        data = json.loads(figures.read_text())
        assert data["kind"] == "deliveries" and data["duration_s"] == pytest.approx(20, abs=1)
        assert command("trace", "plot", other, "--out", plot)[0] == 0 and "<svg" in plot.read_text()
        back = tmp_path / "b.csv"
        assert command("trace", "convert", other, back, "--format", "csv", "--step", 0.5)[0] == 0
        assert back.read_text().count("\n") == pytest.approx(41, abs=2)

    def test_a_rate_without_an_end_needs_a_duration(self, command, tmp_path):
        one, made = tmp_path / "one.csv", tmp_path / "o.down"
        one.write_text("time_s,mbps\n0,5\n")
        words = ("trace", "convert", one, made, "--format", "mahimahi")
        message = "--duration is missing: one.csv is one rate without an end; valid: --duration S"
        assert refused(command(*words), message) and not made.exists()
        assert refused(command(*words, "--duration", 0), "duration_s = 0.0 is out of range") and not made.exists()
        assert command(*words, "--duration", 2)[0] == 0 and made.exists()

    @pytest.mark.parametrize("step", [2, 0.3, 8])
    def test_convert_keeps_length_and_mean(self, command, tmp_path, step):
        deliveries, rates = tmp_path / "a.down", tmp_path / "a.csv"
        figures = []
        assert command("trace", "generate", "4g", "--duration", 5, "--seed", 3, "--out", deliveries)[0] == 0
        assert command("trace", "convert", deliveries, rates, "--format", "csv", "--step", step)[0] == 0
        for path in (deliveries, rates):
            assert command("trace", "show", path, "--json", tmp_path / "json")[0] == 0
            figures.append(json.loads((tmp_path / "json").read_text()))
        assert figures[1]["duration_s"] == pytest.approx(figures[0]["duration_s"])
        assert figures[1]["mean_mbps"] == pytest.approx(figures[0]["mean_mbps"])

    @pytest.mark.parametrize(
        ("kind", "words", "message"),
        [
            ("poisson", ["--format", "csv", "--step", "-7"], "step_s = -7"),
            ("poisson", ["--format", "csv", "--step", "1e-9"], "step_s = 1e-09 makes 2e+09 steps"),
            ("poisson", ["--format", "mahimahi", "--step", "1"], "--step 1 has no effect"),
            ("walk", ["--format", "csv", "--step", "1"], "--step 1 has no effect"),
            ("walk", ["--format", "mahimahi", "--step", "-7"], "--step -7 has no effect"),
            ("walk", ["--format", "mahimahi", "--duration", "1e-9"], "duration_s = 1e-09 is not one millisecond"),
            ("walk", ["--format", "mahimahi", "--duration", "1e6"], "steps; valid: at most 10000000"),
        ],
    )
    def test_options_that_do_nothing_or_too_much_are_refused(self, command, tmp_path, kind, words, message):
        trace, made = tmp_path / "a", tmp_path / "b"
        assert command("trace", "generate", kind, "--duration", 2, "--out", trace)[0] == 0
        assert refused(command("trace", "convert", trace, made, *words), message)
        assert not made.exists()

    def test_an_outage_at_the_end_stays(self, command, tmp_path):
        rates, made = tmp_path / "a.csv", tmp_path / "a.down"
        rates.write_text("time_s,mbps\n0,12\n5,0\n10,0\n")
        status, _, err = command("trace", "convert", rates, made, "--format", "mahimahi", "--duration", 10)
        assert status == 0 and err.count("\n") == 1 and "delivers nothing in its last 5 s" in err
        before, after = traces.read(rates, duration_s=10), traces.read(made)
        assert after.duration_s == 10 and after.mean_mbps() == pytest.approx(before.mean_mbps(), rel=0.001)
        assert after.longest_gap_s == pytest.approx(5, abs=0.01)

    def test_an_outage_at_the_start_is_shown(self, command, tmp_path):
        made = tmp_path / "a.down"
        made.write_text("".join(f"{ms}\n" for ms in range(5000, 10_001)))
        assert command("trace", "show", made, "--json", tmp_path / "json")[0] == 0
        figures = json.loads((tmp_path / "json").read_text())
        assert figures["outages_per_minute"] == pytest.approx(6) and figures["outage_share"] == pytest.approx(0.5)

    def test_how_a_log_is_read_can_be_said(self, command, tmp_path):
        log, made = tmp_path / "log.csv", tmp_path / "a.csv"
        log.write_text("time_ms;down;up\n" + "".join(f"{1000 * k};{2000 + k};7\n" for k in range(100)))
        words = ("--column", "down", "--unit", "kbit/s", "--start", 10, "--duration", 20)
        assert command("trace", "convert", log, made, "--format", "csv", *words)[0] == 0
        assert traces.read(made).rate_mbps == pytest.approx([2 + k / 1000 for k in range(10, 30)])
        assert "20.000 s" in command("trace", "show", log, *words)[1]
        message = "column = 'left'; valid: 1 to 3, or time_ms, down, up"
        assert refused(command("trace", "show", log, "--column", "left"), message)
        world = scenarios.get(f"trace:{log}", column="up", unit="kbit/s", start_s=5)
        assert world.links[0].trace.rate_mbps.tolist() == [0.007] * 95

    def test_a_hint_is_one_line(self, command, tmp_path):
        log = tmp_path / "log"
        log.write_text("0 3000\n1 2800\n")
        status, _, err = command("trace", "show", log)
        assert status == 0 and err.startswith("netbuf-gym: warning: ") and "unit=kbit/s" in err and err.count("\n") == 1

    def test_generate_can_write_mahimahi(self, command, tmp_path):
        argv = ("trace", "generate", "walk", "--duration", 5, "--format", "mahimahi", "--out", tmp_path / "a")
        assert command(*argv)[0] == 0 and (tmp_path / "a").read_text().split("\n")[0].isdecimal()

    @pytest.mark.parametrize(
        ("argv", "message"),
        [
            (["generate", "nothing", "--out", "x"], "invalid choice: 'nothing'"),
            (["generate", "walk"], "required: --out"),
            (["generate", "walk", "--out", "{tmp}/x", "--set", "sigma=-1"], "sigma = -1"),
            (["generate", "walk", "--out", "{tmp}/x", "--duration", "0"], "duration_s = 0"),
            (["generate", "walk", "--out", "{tmp}/no/x"], "there is no folder"),
            (["generate", "lte", "--out", "{tmp}/x", "--set", "kind=1"], "lte has no parameter 'kind'; valid: start_mbps"),
            (["generate", "lte", "--out", "{tmp}/x", "--set", "rng=1"], "lte has no parameter 'rng'"),
            (["generate", "lte", "--out", "{tmp}/x", "--set", "seed=1"], "is no argument of the generator; valid: --seed"),
            (["generate", "lte", "--out", "{tmp}/x", "--set", "duration_s=1"], "valid: --duration"),
            (["show", "{tmp}/none"], "cannot be read"),
            (["plot", "{tmp}/none", "--out", "{tmp}/x.bmp"], "no known plot format"),
            (["convert", "{tmp}/none", "{tmp}/x", "--format", "csv"], "cannot be read"),
        ],
    )
    def test_bad_input_is_one_line_and_leaves_no_file(self, command, tmp_path, argv, message):
        assert refused(command("trace", *(word.format(tmp=tmp_path) for word in argv)), message)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("topic", ["all", "scenarios", "congestion-controls", "environments", "controllers", "traces"])
def test_list(command, topic):
    status, out, _ = command("list", topic)
    assert status == 0
    words = {"scenarios": "ppcc/random", "congestion-controls": "linux, ns3", "traces": "mmwave"}
    words |= {"environments": "netbuf/CongestionWindow-v0", "controllers": "queue_target"}
    for name, word in words.items():
        assert (word in out) == (topic in ("all", name))


class TestValidate:
    HEADER = "kernel,cc,N,B_mbps,rtt_prop_ms,buffer_pkts,loss,T_s,warm_s,seed,goodput_w_mbps,qdelay_mean_w_ms,loss_rate_w\n"
    # one BDP of buffer, window 1 s to 6 s; what our simulator gives is filled in by the test
    ROW = "6.18,{cc},1,10,20,17,0,6,1,1,{goodput},{delay},{loss}\n"

    @pytest.fixture
    def ours(self, tmp_path):
        import netbuf_gym as nb

        path = {"rate_mbps": 10, "rtt_ms": 20, "buffer_packets": 17}
        world = nb.scenarios.dumbbell(**path, senders=["newreno"], pacing=True, duration_s=6)
        result = nb.simulate(world, warmup_s=1)
        return {"goodput": result.goodput_mbps, "delay": result.links[0].queue_delay_mean_ms, "loss": result.loss_rate}

    def test_status_0_when_all_is_within(self, command, tmp_path, ours):
        (tmp_path / "a.csv").write_text(self.HEADER + self.ROW.format(cc="reno", **ours))
        outputs = tmp_path / "r.json", tmp_path / "r.md"
        status, out, err = command("validate", tmp_path, "--json", outputs[0], "--markdown", outputs[1], "--jobs", 1)
        assert (status, err) == (0, "")
        assert "1 cells judged, 0 out of tolerance" in out
        assert json.loads(outputs[0].read_text())["verdict"] == "within" and "| flows |" in outputs[1].read_text()

    def test_status_1_when_something_is_out_and_the_report_is_written(self, command, tmp_path, ours):
        (tmp_path / "a.csv").write_text(self.HEADER + self.ROW.format(cc="reno", **{**ours, "goodput": 5}))
        status, out, _ = command("validate", tmp_path, "--json", tmp_path / "r.json")
        assert status == 1 and "OUT: goodput" in out and "OUT OF TOLERANCE" in out
        assert json.loads((tmp_path / "r.json").read_text())["verdict"] == "out"

    def test_cells_that_are_not_judged_never_change_the_status(self, command, tmp_path, ours):
        rows = self.ROW.format(cc="reno", **ours) + self.ROW.format(cc="dctcp", goodput=1, delay=1, loss=0.5)
        (tmp_path / "a.csv").write_text(self.HEADER + rows)
        status, out, _ = command("validate", tmp_path)
        assert status == 0 and "Not judged: congestion control dctcp is not built yet" in out

    def test_status_2_on_bad_input_and_nothing_is_written(self, command, tmp_path, ours):
        report = tmp_path / "report.json"
        assert refused(command("validate", tmp_path / "none", "--json", report), "none: no such folder")
        (tmp_path / "a.csv").write_text(self.HEADER + self.ROW.format(cc="reno", **{**ours, "goodput": "fast"}))
        assert refused(command("validate", tmp_path, "--json", report), "a.csv:2: goodput_w_mbps = 'fast'")
        (tmp_path / "a.csv").write_text(self.HEADER)
        assert refused(command("validate", tmp_path, "--json", report), "a.csv:1: has a header but no rows")
        (tmp_path / "a.csv").write_text(self.HEADER + self.ROW.format(cc="reno", **ours))
        assert refused(command("validate", tmp_path, "--only", "bbr", "--json", report), "matches none")
        assert refused(command("validate", tmp_path, "--json", "/nowhere/x"), "cannot be written")
        assert not report.exists()

    def test_the_given_linux_reno_cells_agree(self, command, references):
        status, out, _ = command("validate", references / "linux", "--only", "reno", "--seeds", 10)
        assert status == 0, out


@pytest.mark.parametrize(("words", "name"), [(["list"], "standard output"), (["train"], "a file of the run")])
def test_a_full_disk_without_a_name_says_what_was_written(command, monkeypatch, words, name):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cli, "_run_command", full)
    assert refused(command(*words), f"{name}: No space left on device")


def test_what_does_not_fit_into_memory_is_one_line(command, monkeypatch):
    monkeypatch.setattr(cli, "_run_command", lambda _: bytearray(1 << 62))
    assert refused(command("list"), "does not fit into memory")


def test_an_interruption_that_an_import_made_an_error_of_its_own_is_one(command, monkeypatch):
    def importing(_):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("initialization failed") from None

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(cli, "_run_command", importing)
        status, _, err = command("list")
        assert status == 130 and err == "netbuf-gym: error: interrupted\n"
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        monkeypatch.setattr(cli, "_run_command", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            command("list")
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interruption_that_python_can_only_ignore_comes_again(command, monkeypatch):
    class Dying:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    def busy(_):
        Dying()  # the exception of its end is ignored
        end = time.monotonic() + 60
        while time.monotonic() < end:
            pass
        return 0

    before, hook = signal.signal(signal.SIGINT, signal.default_int_handler), sys.unraisablehook
    try:
        monkeypatch.setattr(cli, "_run_command", busy)
        status, _, err = command("list")
        assert status == 130 and err == "netbuf-gym: error: interrupted\n"
        assert sys.unraisablehook is hook
    finally:
        signal.signal(signal.SIGINT, before)
