"""Code of the user's as controllers: what words mean, C++ files, and what becomes of code that does not do."""

import json
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import controllers
from netbuf_gym.cli import program
from netbuf_gym.errors import ConfigError, ControlError
from netbuf_gym.evaluation import comparison, rollout, suites
from netbuf_gym.leaderboard import play
from netbuf_gym.leaderboard.reports import format_tables
from netbuf_gym.utils import sandbox

TASK = "congestion_window"
PLAIN = """
#include "netbuf/tcp.h"
#include <cmath>
#include <stdexcept>
#include <cstdlib>
namespace netbuf {
struct Own final : CongestionControl {
  MEMBERS
  void increase_window(Tcb& tcb, const AckEvent& ack) override {
    (void)ack;
    if (++acks_ == 40) { AT_40 }
    tcb.set_cwnd(tcb.cwnd + (tcb.in_slow_start() ? ack.acked_bytes : ack.acked_bytes * tcb.mss / tcb.cwnd));
  }
  int64_t ssthresh(Tcb& tcb) override { return std::max<int64_t>(2 * tcb.mss, tcb.cwnd / 2); }
  int acks_ = 0;
};
const Entry<CongestionControlRecord> entry{{.name = "own", .meaning = "own", .linux_kernel = make<Own>, PARAMETERS}};
}
"""


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def written(at_40="", name="own.cc", members="", parameters=""):
    text = PLAIN.replace("AT_40", at_40).replace("MEMBERS", members).replace("PARAMETERS", parameters)
    Path(name).write_text(text)
    return name


def reports(word):
    return rollout.evaluate(word, TASK, {"name": "ppcc/2", "duration_s": 5}, seeds=[1])


@pytest.mark.slow
def test_a_file_in_cpp_does_what_the_same_control_of_the_core_does():
    Path("reno.cc").write_text((Path(__file__).parent / "own_reno.cc").read_text())
    cc = nb.scenarios.compiled("reno.cc")
    world = nb.scenarios.dumbbell(rate_mbps=10, rtt_ms=40, buffer_packets=50, senders=[cc], duration_s=20)
    own, core = nb.simulate(world, seed=3), nb.simulate(world.with_senders(["newreno"]), seed=3)
    assert own.flows[0].packets_sent == core.flows[0].packets_sent
    assert own.flows[0].cc == "reno.cc"
    assert (own.series["cwnd_packets"] == core.series["cwnd_packets"]).all()


@pytest.mark.slow
def test_words_name_files_and_modules():
    assert reports(written())[0]["goodput_mbps"] > 1
    Path("mine.py").write_text(
        "import netbuf_gym as nb\n"
        "class Gentle:\n    def __call__(self, ack): return 20 * ack.mss_bytes\n"
        "def keep(observations): return [5] * len(observations)\n"
        "class Constant(nb.controllers.ConstantAction):\n    def __init__(self): super().__init__(4, 'four')\n"
        "number = 3\n"
    )
    assert reports("mine.py:Gentle")[0]["goodput_mbps"] > 1
    assert reports("mine:Gentle") == reports("mine.py:Gentle")
    made = rollout.get_controller("mine.py:Constant", TASK)
    assert made.name == "four" and made.own_code == "mine.py:Constant"
    assert isinstance(rollout.get_controller("mine.py:keep", "queue_threshold"), controllers.Callback)
    for word, said in {
        "mine.py:number": "number' = 3; valid: a congestion control",
        "mine.py:nothing": "has no 'nothing'; valid: Gentle, keep, Constant",
        "none.py:Gentle": "there is no file none.py",
        "none.cc": "there is no such file",
    }.items():
        with pytest.raises((ConfigError, ControlError), match=said.replace("(", r"\(")):
            rollout.get_controller(word, TASK)
    with pytest.raises(ConfigError, match=r"is a congestion control, for task congestion_window only"):
        rollout.get_controller("own.cc", "queue_threshold")
    with pytest.raises(ConfigError, match=r"controller = 'nomodule:Name'"):
        rollout.get_controller("nomodule:Name", TASK)


@pytest.mark.slow
def test_parameters_are_those_of_the_record():
    written(
        members='explicit Own(const Parameters& p) : w_(p["w"]) {}\n  double w_;\n'
        "  void init(Tcb& t) override { t.set_cwnd_packets(w_); }",
        parameters='.parameters = {real("w", 10, 1, 100, "packets")}',
    )
    world = nb.scenarios.dumbbell(rate_mbps=10, rtt_ms=40, senders=[nb.scenarios.compiled("own.cc", w=50)], duration_s=1)
    assert nb.simulate(world).series["cwnd_packets"][0, 0] >= 50
    refused = {"v": r"parameters\[v\] = 500: must be one of w", "w": r"parameters\[w\] = 500: must be in \[1, 100\]"}
    for given, said in refused.items():
        own = nb.scenarios.compiled("own.cc", **{given: 500})
        with pytest.raises(ControlError, match=said):
            nb.simulate(world.with_senders([own]))
    unknown = 'explicit Own(const Parameters& p) { (void)p["drain"]; }'
    written(members=unknown, parameters='.parameters = {real("w", 1, 0, 1, "w")}')
    with pytest.raises(ControlError, match=r"own.cc: no parameter drain; valid: w"):
        nb.simulate(world.with_senders([nb.scenarios.compiled("own.cc")]))
    written(parameters='.parameters = {real("keep", 0.1, 0.5, 1000, "of it")}')
    with pytest.raises(ControlError, match=r"own.cc: parameters\[keep\]: its default 0.1 must be in \[0.5, 1000\]"):
        nb.simulate(world.with_senders([nb.scenarios.compiled("own.cc")]))
    written()
    with pytest.raises(ControlError, match="no maker for the ns3 stack"):
        nb.simulate(nb.scenarios.dumbbell(senders=[nb.scenarios.compiled("own.cc")], stack="ns3", duration_s=1))
    with pytest.raises(nb.errors.ScenarioTypeError, match=r"cc = own.cc\(w=50\) is the user's code"):
        world.to_dict()


BAD = {
    "return tcb.set_cwnd(-5);": "increase_window set the window to -5 bytes; valid: 1448",
    "return tcb.set_cwnd(700);": "increase_window set the window to 700 bytes",
    "tcb.set_cwnd(int64_t{1} << 50);": "increase_window set the window to 1125899906842624 bytes",
    "tcb.pacing_rate = NAN;": r"increase_window set the pacing rate to -?nan bytes/s; valid: 0.125",
    "tcb.pacing_rate = -3;": "increase_window set the pacing rate to -3 bytes/s",
    "tcb.pacing_rate = INFINITY;": "increase_window set the pacing rate to inf bytes/s",
    'throw std::runtime_error("no more");': "increase_window threw: no more",
    "throw 5;": "increase_window threw what is no std::exception",
    "volatile double none = NAN; return tcb.set_cwnd(none);": r"increase_window set the window to what NaN \(or .*; valid",
}


@pytest.mark.slow
def test_a_window_that_is_assigned_counts_as_set():
    own = nb.scenarios.compiled(written("tcb.cwnd = 30 * tcb.mss;"))
    world = nb.scenarios.dumbbell(rate_mbps=10, senders=[own], duration_s=5)
    other = world.with_senders([nb.scenarios.compiled(written("tcb.set_cwnd(30 * tcb.mss);", "other.cc"))])
    assert (nb.simulate(world).series["cwnd_packets"] == nb.simulate(other).series["cwnd_packets"]).all()


LOOP = "for (volatile int i = 0;; i = 1) {}"
FATAL = {
    "*(volatile int*)8 = 1;": r"crashed \(SIGSEGV: Segmentation fault\)",
    "std::abort();": r"crashed \(SIGABRT: Aborted\)",
    "std::_Exit(0);": r"ended the process \(exit status 0\)",
    LOOP: "does not return: 1 s of computing in one call",
    "std::vector<char> much(size_t{8} << 30);": "needs more than 4 GiB of memory",
    'throw std::runtime_error("two\\nlines");': "threw: two lines",
}
FAULTS = (*BAD, *FATAL)


def faulty(code, monkeypatch):
    """A file with every fault, which is compiled once; this one happens at the 40th ACK."""
    monkeypatch.setenv("FAULT", str(FAULTS.index(code)))
    cases = " ".join(f"case {number}: {{ {one} break; }}" for number, one in enumerate(FAULTS))
    return written(f'switch (std::atoi(std::getenv("FAULT"))) {{ {cases} }}')


@pytest.mark.slow
@pytest.mark.parametrize("code", BAD)
def test_what_is_no_window_is_refused_by_name(code, monkeypatch):
    own = nb.scenarios.compiled(faulty(code, monkeypatch))
    world = nb.scenarios.dumbbell(rate_mbps=10, senders=["cubic", own], duration_s=5)
    with pytest.raises(ControlError, match=f"congestion control own.cc: {BAD[code]}"):
        nb.simulate(world)


WHERE = r"(in |\()world ppcc/2, seed \d+"


@pytest.mark.slow
@pytest.mark.parametrize("code", FATAL)
def test_code_that_takes_its_process_along_is_told_with_its_world(code, monkeypatch):
    monkeypatch.setattr(sandbox, "SILENT_CPU_S", 1.0)
    with pytest.raises(ControlError, match=FATAL[code]) as caught:
        reports(faulty(code, monkeypatch))
    assert re.search(WHERE, str(caught.value)), caught.value


@pytest.mark.slow
def test_a_constructor_that_does_not_return_is_told_as_soon(monkeypatch):
    monkeypatch.setattr(sandbox, "SILENT_CPU_S", 1.0)
    monkeypatch.setattr(sandbox, "SILENT_S", 60.0)
    word = written(members=f"Own() {{ {LOOP} }}")
    with pytest.raises(ControlError, match=f"does not return: 1 s of computing in one call {WHERE}"):
        reports(word)


@pytest.mark.slow
def test_a_window_that_takes_all_memory_names_who_set_it():
    word = written(
        "ten_ = true;",
        members="bool ten_ = false;\n"
        "  void on_ack(Tcb& tcb, const AckEvent&) override { if (ten_) tcb.set_cwnd(int64_t{1} << 40); }",
    )
    with pytest.raises(ControlError, match=f"own.cc.* needs more than 4 GiB of memory {WHERE}.*; valid: less"):
        rollout.evaluate(word, TASK, {"name": "ppcc/2", "duration_s": 600}, seeds=[1])


@pytest.mark.slow
def test_one_that_never_sends_is_told():
    word = written(members="void init(Tcb& tcb) override { tcb.pacing_rate = 1; tcb.next_departure = kNever; }")
    with pytest.raises(ControlError, match=r"congestion control own.cc never sends: nothing was acknowledged in 5 s"):
        reports(word)


@pytest.mark.slow
def test_what_does_not_compile_says_where():
    Path("wrong.cc").write_text('#include "netbuf/tcp.h"\n\nint f() { return nothing; }\n')
    with pytest.raises(ControlError, match=r"wrong.cc does not compile: wrong.cc:3:18: error: .*nothing"):
        nb.scenarios.compiled("wrong.cc")
    Path("none.cc").write_text('#include "netbuf/tcp.h"\n')
    world = nb.scenarios.dumbbell(senders=[nb.scenarios.compiled("none.cc")], duration_s=1)
    with pytest.raises(ControlError, match=r"congestion control none.cc: has 0 records; valid: one"):
        nb.simulate(world)
    Path("link.cc").write_text(
        PLAIN.replace("AT_40", "lacking();")
        .replace("struct Own", "void lacking();\nstruct Own")
        .replace("MEMBERS", "")
        .replace("PARAMETERS", "")
    )
    with pytest.raises(ControlError, match=r"link.cc: cannot be loaded \(.*lacking"):
        nb.simulate(nb.scenarios.dumbbell(senders=[nb.scenarios.compiled("link.cc")], duration_s=1))
    with pytest.raises(ControlError, match=r"valid: a file that ends in .cc, .cpp, .cxx"):
        nb.scenarios.compiled("mine.py")
    without = re.sub(r"  int64_t ssthresh.*\n", "", PLAIN)
    for text, said in {
        without: r"abstract.cc:\d+:\d+: .*error: static assertion.* `int64_t ssthresh\(Tcb&\) override`",
        without.replace(
            "int acks_", "std::unique_ptr<std::istream> in_ = std::make_unique<std::istream>(3);\n  int acks_"
        ).replace("<cmath>", "<istream>"): r"abstract.cc:\d+:\d+: /.*unique_ptr.h:\d+:\d+: error: ",
    }.items():
        lines = text.replace("AT_40", "").replace("MEMBERS", "").replace("PARAMETERS", "")
        Path("abstract.cc").write_text(lines)
        with pytest.raises(ControlError, match=f"abstract.cc does not compile: {said}"):
            nb.scenarios.compiled("abstract.cc")


@pytest.mark.slow
def test_one_that_owns_its_window_needs_ssthresh_alone():
    control = "void control(Tcb& tcb, const AckEvent&) override { tcb.set_cwnd(20 * tcb.mss); }"
    members = f"Own() {{ owns_window_ = true; }}\n  {control}"
    text = re.sub(r"  void increase_window.*?\n  }\n", "", PLAIN, flags=re.DOTALL)
    Path("owns.cc").write_text(text.replace("MEMBERS", members).replace("PARAMETERS", ""))
    assert reports("owns.cc")[0]["goodput_mbps"] > 1


def test_the_compiler_is_asked_for(monkeypatch):
    written()
    monkeypatch.setenv("CXX", "no-such-compiler -x")
    with pytest.raises(ControlError, match=r"no C.. compiler: CXX = 'no-such-compiler -x'"):
        nb.scenarios.compiled("own.cc")


@pytest.mark.slow
def test_it_is_compiled_once_and_anew_when_anything_changes(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    Path("own.h").write_text("#define START 10\n")
    written("int start = START; (void)start;")
    Path("own.cc").write_text('#include "own.h"\n' + Path("own.cc").read_text())
    first = nb.scenarios.compiled("own.cc").library
    made = os.stat(first).st_mtime_ns
    assert nb.scenarios.compiled("own.cc").library == first and os.stat(first).st_mtime_ns == made
    Path("own.h").write_text("#define START 20\n")
    assert nb.scenarios.compiled("own.cc").library != first
    monkeypatch.setenv("CXXFLAGS", "-O0")
    assert len({path.name for path in (tmp_path / "kept" / "netbuf-gym" / "controls").iterdir()}) == 2
    nb.scenarios.compiled("own.cc")
    assert len({path.name for path in (tmp_path / "kept" / "netbuf-gym" / "controls").iterdir()}) == 3


@pytest.mark.slow
def test_a_suite_marks_those_that_fail_and_goes_on(capsys):
    written("*(volatile int*)8 = 1;", "crash.cc")
    Path("wrong.cc").write_text("nonsense")
    words = "controller=[crash.cc,own.cc,wrong.cc,newreno]"
    written()
    assert program.main(["suite", "gate", words, "families=[ppcc]", "figures=false", "output=out"]) == 1
    said = capsys.readouterr().out
    assert "| crash.cc | congestion control crash.cc crashed" in said and "wrong.cc does not compile" in said
    result = json.loads(Path("out/result.json").read_text())
    assert set(result["failed"]) == {"crash.cc", "wrong.cc"} and set(result["controllers"]) == {"own.cc", "newreno"}


@pytest.mark.slow
def test_what_is_nothing_that_plays_is_marked_like_other_failures(capsys):
    Path("g.py").write_text(
        "import netbuf_gym as nb\n"
        "number = 3\nclass Bare: pass\nclass Wrong:\n    def __call__(self): pass\n"
        "class Needy(nb.controllers.ConstantAction): pass\n"
        "def two(ack): raise ValueError('one | two\\nlines')\n"
    )
    names = ["number", "Bare", "Needy", "Wrong", "two", "none"]
    words = f"controller=[{','.join(f'g.py:{name}' for name in names)},newreno]"
    assert program.main(["suite", "gate", words, "families=[ppcc]", "figures=false", "output=out"]) == 1
    said = capsys.readouterr().out
    assert "| g.py:number | 'g.py:number' = 3; valid: a congestion control" in said
    assert "| g.py:Bare | 'g.py:Bare': cc = <class 'netbuf_gym_own_g.Bare'>: its objects cannot be called" in said
    assert "| g.py:Needy | Needy() raised TypeError: " in said and "| g.py:none | 'g.py:none': g.py has no 'none'" in said
    wrong = r"\| Wrong \| congestion control Wrong: Wrong.__call__\(\) \(\S*g.py:5\) cannot be called with an ACK"
    assert re.search(wrong, said)
    two = r"\| two \| congestion control two raised ValueError: one \\\| two lines \(\S*g.py:7\) in world \S+, seed \d+ \|\n"
    assert re.search(two, said)
    assert set(json.loads(Path("out/result.json").read_text())["controllers"]) == {"newreno"}


def test_a_pipe_in_a_reason_is_escaped_once():
    table = format_tables(suites.get_suite("gate"), {}, {"mine.py:Own": "one | two"})
    assert table.splitlines()[-1] == r"| mine.py:Own | one \| two |"


@pytest.mark.slow
def test_words_that_name_no_controller_say_what_would(capsys):
    written()
    Path("g.py").write_text("")
    for word, said in {
        "g.py": "controller = 'g.py' names nothing in its file; valid: g.py:NAME",
        "[own.cc:target=2]": "'=' is not expected behind 'own.cc:target' in a list",
    }.items():
        assert program.main(["suite", "gate", f"controller={word}", "output=out"]) == 2
        assert said in capsys.readouterr().err
    Path("beside").mkdir()
    Path("beside/own.cc").write_text(Path("own.cc").read_text())
    assert program.main(["suite", "gate", "controller=[own.cc,beside/own.cc]", "output=out"]) == 2
    assert "two of the name 'own.cc'; valid: different names, of files of C++" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["own.cc", "g.py", "g.py:Own"])
def test_a_leaderboard_takes_no_code(word, capsys):
    pytest.importorskip("torch")
    assert program.main(["leaderboard", "submit", word]) == 2
    assert f"RUN = '{word}' is code of one's own; valid: a trained agent" in capsys.readouterr().err


@pytest.mark.slow
def test_a_worker_is_as_the_process_itself():
    own = suites.get_suite("gate")
    cells = own.load().select_cells(["steps"])[:6]
    word = written()
    told = []
    played = play.run(own, cells, rollout.get_controller(word, TASK), threads=2, each=told.append)
    one, stop = rollout.get_controller(word, TASK), sandbox.threading.Event()
    here = play._measure_cells(own, cells, one, 1, lambda cell: None, stop)
    assert repr(played.values) == repr([here[cell.name] for cell in cells])
    assert sorted(one.name for one in told) == sorted(one.name for one in cells)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vegas", "cubic"])
def test_code_under_a_name_of_the_package_takes_nobody_s_place(name, capsys):
    Path("clash.py").write_text(f"class {name}:\n    def __call__(self, event):\n        pass\n")
    assert program.main(["suite", "rfc9743", f"controller=clash.py:{name}", "figures=false", "output=out"]) == 2
    said = capsys.readouterr().err
    assert f"controller = 'clash.py:{name}' has the name '{name}' of one of the package; valid: another name" in said


@pytest.mark.slow
def test_worlds_are_shared_among_workers_and_stopped(monkeypatch):
    Path("mine.py").write_text("class Kept:\n    def __call__(self, ack):\n        return 10 * ack.mss_bytes\n")
    controller, own, shares = rollout.get_controller("mine.py:Kept", TASK), sandbox.run, []

    def counted(*arguments, **more):
        shares.append(len(arguments[2]))
        return own(*arguments, **more)

    monkeypatch.setattr(sandbox, "run", counted)
    scenario = {"name": "ppcc/2", "duration_s": 1.0}
    worlds = rollout.draw_worlds(TASK, scenario, [4, 5, 6])
    told = []
    where = {"task": TASK, "scenario": scenario}
    compared = [comparison.run(controller, worlds, threads=threads, each=told.append, **where) for threads in (1, 2)]
    assert shares == [3, 2, 1] and len(told) == 6
    for key, values in compared[0].metrics.items():
        np.testing.assert_array_equal(values, compared[1].metrics[key])
    for key, values in compared[0].series.items():
        assert len(values) > 1
        np.testing.assert_array_equal(values, compared[1].series[key])
    one, many = (rollout.evaluate("mine.py:Kept", TASK, scenario, [4, 5, 6], threads) for threads in (1, 2))
    assert shares == [3, 2, 1, 3, 2, 1] and repr(one) == repr(many)
    stop = sandbox.threading.Event()
    with pytest.raises(rollout.Stopped):
        comparison.run(controller, worlds, each=lambda name: stop.set(), stop=stop, **where)
    with pytest.raises(ConfigError, match="threads = 0 is out of range"):
        comparison.run(controller, worlds, threads=0, **where)


def test_an_interrupted_worker_is_gone():
    stop = sandbox.threading.Event()
    stop.set()
    with pytest.raises(sandbox.Stopped):
        sandbox.run("it", time.sleep, 60, stop=stop)
    with pytest.raises(ConfigError, match="cannot be sent"):
        sandbox.run("it", lambda: None)


@pytest.mark.slow
def test_a_suite_of_the_field_plays_it_and_marks_those_that_fail(capsys):
    written()
    written("tcb.set_cwnd(-5);", "negative.cc")
    words = "controller=[negative.cc,own.cc]"
    assert program.main(["suite", "bbr3/conformance", words, "families=[tiny]", "figures=false", "output=out"]) == 1
    table = capsys.readouterr().out
    assert "| own.cc | 4 | 4 |" in table and "| negative.cc | failed |  |" in table
    result = json.loads(Path("out/result.json").read_text())
    assert "own.cc" in result["ranking"] and set(result["failed"]) == {"negative.cc"} and "negative.cc" not in result["ranking"]


@pytest.mark.slow
def test_its_worlds_are_played_by_as_few_processes_as_there_are_threads(capsys, monkeypatch):
    started, own = [], sandbox.run

    def counted(*arguments, **more):
        started.append(arguments)
        return own(*arguments, **more)

    monkeypatch.setattr(sandbox, "run", counted)
    monkeypatch.setattr(play, "LONE_GROUP_SIZE", 2)
    cells = suites.get_suite("gate").load().select_cells(["delays"])
    written()
    words = ["controller=own.cc", "families=[delays]", "threads=1", "figures=false", "output=out"]
    assert program.main(["suite", "gate", *words]) == 0
    assert len(started) == len({(one.agents, one.scenario.duration_s) for one in cells}) < len(cells) / 2


def test_one_s_own_plays_in_a_scenario_of_the_command_line(capsys):
    written()
    Path("mine.py").write_text("class Kept:\n    def __call__(self, ack):\n        return 10 * ack.mss_bytes\n")
    words = ["simulate", "--senders", "own.cc,mine.py:Kept,cubic", "--duration", "3"]
    assert program.main(words) == 0
    flows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("flow-")]
    assert [flow[1] for flow in flows] == ["own.cc", "Kept", "cubic"] and 9 < float(flows[1][5]) <= 10
    for given, said in (
        ("gone.cc", "--senders = 'gone.cc': there is no file gone.cc"),
        ("gone.py:A", "--senders = 'gone.py:A': there is no file gone.py"),
        ("mine.py:Other", "mine.py has no 'Other'; valid: Kept"),
    ):
        assert program.main(["simulate", "--senders", given]) == 2
        assert said in capsys.readouterr().err
