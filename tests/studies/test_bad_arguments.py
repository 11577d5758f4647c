"""Arguments of the studies' campaigns that are refused: in one line, by name, before anything is written."""

import pytest

from netbuf_gym.cli.program import main
from studies.common.settings import Settings

REFUSED = {
    "rlbm": [
        ("schemes=[naive,foo]", "schemes = 'foo' is unknown; valid: naive, sophisticated"),
        ("schemes=[]", "schemes is empty"),
        ("schemes=[naive,naive]", "schemes holds 'naive' twice"),
        ("schemes=[naive", "the list has no end; valid: e.g. [a,b]"),
        ("schemes=naive,dt", "valid: one, or a list in brackets"),
        ("schemes=[naive,,dt]", "holds an empty value"),
        ("loads=[0]", "loads = 0.0 is out of range; valid: above 0 to 10"),
        ("loads=[-0.1]", "loads = -0.1 is out of range"),
        ("loads=[nan]", "loads = nan is out of range"),
        ("loads=[x]", "loads = 'x' is not a number"),
        ("sizes=[0]", "sizes = 0 is out of range; valid: 1.."),
        ("sizes=[1.5]", "sizes = 1.5 is not a whole number"),
        ("ccs=[cubic,tahoe]", "ccs = 'tahoe' is unknown; valid: "),
        ("seeds=0", "seeds = 0 is out of range"),
        ("seeds=many", "seeds = 'many' is not a whole number"),
        ("duration_s=0", "duration_s = 0.0 is out of range"),
        ("interval_s=0", "interval_s = 0.0 is out of range"),
        ("intervals=[0]", "intervals = 0.0 is out of range"),
        ("jobs=0", "jobs = 0 is out of range"),
        ("traffic=mine", "traffic = 'mine' is unknown; valid: thesis-code, thesis-text, default"),
        ("figures=perhaps", "figures = 'perhaps' is not a truth value; valid: true, false"),
        ("agent=/nowhere/model.zip", "no such file"),
        ("sizes", "argument 'sizes' is unknown; did you mean 'sizes='? valid: traffic="),
        ("sceme=dt", "argument 'sceme=dt' is unknown; did you mean 'schemes='? valid: traffic="),
        ("traffic=thesis_code", "traffic = 'thesis_code' is unknown; did you mean 'thesis-code'? valid: thesis-code"),
        ("=1", "argument '=1' is unknown"),
        ("seeds='3", "no closing '"),
        ("seeds=[1,2]", "seeds = [1, 2] is not a whole number"),
        ("output=a,b", "it names several values"),
        ("colour=red", "argument 'colour=red' is unknown"),
    ],
    "nuwa": [
        ("studies=[table]", "studies = 'table' is unknown; valid: mobile, networks"),
        ("studies=[video] schemes=[vegas]", "studies holds 'video', in which none of the schemes plays; valid there: nuwa_rl,"),
        ("schemes=[nuwa_k4]", "schemes = 'nuwa_k4' is unknown"),
        ("schemes=[nuwa_rl]", "schemes holds 'nuwa_rl', but there is no agent"),
        ("networks=[3g]", "networks = '3g' is unknown; valid: wired, wifi, 4g, 5g"),
        ("duration_s=0", "duration_s = 0.0 is out of range"),
        ("duration_s=[1]", "duration_s = [1] is not a number"),
        ("algorithms=[sac]", "algorithms = 'sac' is unknown; did you mean 'a2c'? valid: a2c, dqn, ppo, ppo_lstm"),
        ("steps=3", "steps = 3 is out of range"),
        ("training_seeds=0", "training_seeds = 0 is out of range"),
        ("traces=/nowhere", "/nowhere/4g holds no file"),
        ("traces=/nowhere studies=[grid]", "/nowhere/5g holds no file"),
        ("traces=/nowhere studies=[video]", "/nowhere/4g holds no file"),
        *[
            (f"traces=/nowhere {words}", "traces = '/nowhere' has no effect: ")
            for words in ("studies=[learning]", "studies=[change]", "studies=[networks] networks=[wired,wifi]")
        ],
        (
            "traces=/nowhere studies=[fairness] schemes=[cubic]",
            "traces = '/nowhere' has no effect: studies=[fairness] has no 4g or 5g link; valid with any of the studies mobile,"
            " networks, grid, video (networks: with 4g or 5g among networks=)",
        ),
        ("traffic=default", "argument 'traffic=default' is unknown; did you mean 'traces='? valid: studies="),
    ],
    "ppcc": [
        ("studies=[fig5]", "studies = 'fig5' is unknown; valid: table, ns3, series, senders, constants"),
        ("schemes=[remy]", "schemes = 'remy' is unknown"),
        ("schemes=[agent]", "schemes holds 'agent', but there is no agent; valid: agent=FILE"),
        ("schemes=[newreno,a2c]", "schemes holds 'a2c', but there is no a2c=FILE; valid: a2c=FILE, a model or run directory"),
        ("studies=[ns3] schemes=[copa]", "studies holds 'ns3', in which none of the schemes plays; valid there: newreno,"),
        ("studies=[constants] schemes=[bbr]", "in which none of the schemes plays; valid there: constant"),
        ("duration_s=1", "duration_s = 1.0 is out of range"),
        ("dqn=receiver_window/ppo_lstm", "was trained on 'netbuf/ReceiverWindow-v0'; valid: an agent for congestion_window"),
        ("ppcc=congestion_window/sender", "was trained by recipe 'default'; valid: an agent of recipe 'ppcc'"),
        ("epochs=3", "argument 'epochs=3' is unknown"),
    ],
    "sender": [
        ("studies=[slow]", "studies = 'slow' is unknown; valid: ppcc, grid, start, traces"),
        ("schemes=[agent]", "schemes holds 'agent', but there is no agent; valid: agent=FILE"),
        ("studies=[traces]", "studies holds 'traces', but there is no folder of traces; valid: traces=DIR"),
        ("traces=nowhere", "traces = 'nowhere' is no folder; valid: a folder with measured traces"),
        ("traces=. studies=[ppcc]", "traces = '.', but studies has no 'traces'; valid: both or neither"),
        ("studies=[outage] schemes=[oracle]", "in which none of the schemes plays; valid there: agent, newreno"),
        (
            "studies=[grid] schemes=[cubic,oracle]",
            "schemes holds 'oracle', which plays in none of the studies; valid with one of traces",
        ),
        ("duration_s=1", "duration_s = 1.0 is out of range"),
    ],
    "auter": [
        ("studies=[fig_3]", "studies = 'fig_3' is unknown; valid: settings, regions"),
        ("schemes=[tune_1]", "schemes = 'tune_1' is unknown; did you mean 'tune-1'?"),
        ("schemes=[agent]", "schemes holds 'agent', but there is no agent; valid: agent=FILE, a model or run directory"),
        ("schemes=[auter_bbr]", "schemes holds 'auter_bbr', but there is no auter=FILE; valid: auter=FILE"),
        ("plant=ns3", "plant = 'ns3' is unknown; valid: sim, linux"),
        ("seeds=0", "seeds = 0 is out of range"),
        ("duration_s=1", "duration_s = 1.0 is out of range"),
        ("hours=0", "hours = 0.0 is out of range"),
        ("epochs=10", "epochs = 10 is out of range"),
        ("studies=[settings] schemes=[agent_bbr] agent=x", "agent = 'x'"),
        ("plant=linux studies=[training]", "studies holds 'training' with plant = 'linux'; valid: plant=sim"),
        ("plant=linux", "the runs take"),
        ("traces=x", "argument 'traces=x' is unknown"),
    ],
}


@pytest.mark.parametrize(("experiment", "argument", "message"), [(name, *one) for name in REFUSED for one in REFUSED[name]])
def test_bad_arguments(tmp_path, capsys, experiment, argument, message, monkeypatch):
    monkeypatch.setattr(Settings, "bundled", classmethod(lambda cls, key="agent": ""))
    assert main(["reproduce", experiment, *argument.split(), f"output={tmp_path / 'out'}"]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()
