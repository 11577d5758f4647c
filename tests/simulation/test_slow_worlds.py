"""Progress of simulations, and warnings of worlds that are slow for a reason that nobody would guess."""

import json
import subprocess
import sys
import warnings

import pytest

import netbuf_gym as nb
from netbuf_gym.cli.program import main
from netbuf_gym.errors import ScenarioTypeError, SlowWorldWarning
from netbuf_gym.scenarios import (
    WEB_SEARCH,
    Bulk,
    Flow,
    FlowList,
    GilbertElliott,
    Incast,
    Link,
    OnOff,
    PoissonArrivals,
    Scenario,
    Sender,
    Sized,
    Traffic,
)
from netbuf_gym.simulation import monitor


def world(app=None, rate_mbps=None, duration_s=1.0, loss=0.0, start_s=0.0, delay_ms=10, **flow):
    links = [
        Link(name="access", delay_ms=delay_ms, loss=loss),
        Link(name="wire", rate_mbps=rate_mbps, delay_ms=delay_ms, queue_packets=100 if rate_mbps else None),
        Link(name="back", delay_ms=delay_ms),
    ]
    flows = [Flow(path=("access", "wire"), return_path=("back",), app=app or Bulk(), start_s=start_s, **flow)]
    return Scenario(links=links, flows=flows, duration_s=duration_s)


def warned(scenario, **kwargs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nb.simulate(scenario, sample_interval_s=None, **kwargs)
    return [one for one in caught if one.category is SlowWorldWarning]


@pytest.mark.parametrize(
    ("scenario", "says"),
    [
        (world(Sized(size_bytes=10**9)), ["flow 0 (finite, 1000000000 bytes)", "without bound", "6.9e+05 packets"]),
        (world(send_buffer_bytes=2**28, duration_s=0.7), ["flow 0 (endless)", "only its buffer of 2.684e+08 bytes"]),
        (world(receive_buffer_bytes=2**28, duration_s=0.7), ["flow 0 (endless)", "only its buffer of 2.684e+08 bytes"]),
    ],
)
def test_flows_that_no_link_holds_back(scenario, says):
    [warning] = warned(scenario)
    text = str(warning.message)
    assert all(word in text for word in [*says, "'access', 'wire'", "valid:"])
    assert warning.filename == __file__  # the line of whoever called it
    assert issubclass(SlowWorldWarning, UserWarning)


@pytest.mark.parametrize(
    "scenario",
    [
        world(Sized(size_bytes=10**9), rate_mbps=100),
        world(rate_mbps=10),
        world(Sized(size_bytes=10**6)),
        world(Sized(size_bytes=10**9), duration_s=0.3),  # in so few round trips it does not grow large
        world(Sized(size_bytes=10**9), start_s=0.9),
        world(receive_buffer_bytes=2**18),
        world(Sized(size_bytes=10**9), loss=1e-3),
        world(OnOff(on_s=1, off_s=1, rate_mbps=50), send_buffer_bytes=2**30),
        nb.scenarios.dumbbell(buffer_packets=None, duration_s=20),
        nb.scenarios.dumbbell(rate_mbps=1000, buffer_packets=1000, senders=["cubic", "bbr"], duration_s=3),
    ],
)
def test_ordinary_worlds_are_not_warned_of(scenario):
    assert warned(scenario) == []


def traffic(arrivals, rate_mbps=None, duration_s=1.0, loss=0.0):
    links = [Link(name="wire", rate_mbps=rate_mbps, delay_ms=5, loss=loss), Link(name="back", delay_ms=5)]
    senders = [Sender(path=("wire",), return_path=("back",))] * 2
    return Scenario(links=links, traffic=Traffic(senders=senders, arrivals=[arrivals]), duration_s=duration_s)


HUGE = FlowList(start_s=[0.0], sender=[1], size_bytes=[2**40], priority=[0])
OFTEN = PoissonArrivals(flows_per_s=1000, sizes=WEB_SEARCH)
BURSTS = Incast(interval_s=0.1, fan_in=2, size_bytes=10**8)


@pytest.mark.parametrize(
    ("arrivals", "who"), [(HUGE, "sender 1"), (OFTEN, "sender 0 and 1 more"), (BURSTS, "sender 0 and 1 more")]
)
def test_finite_flows_that_no_link_holds_back(arrivals, who):
    [cause] = monitor.find_slow_causes(traffic(arrivals))
    assert all(word in cause for word in (f"{who} (finite flows)", "'wire'", "packets)", "valid:"))
    for ordinary in (traffic(arrivals, rate_mbps=10), traffic(arrivals, loss=1e-3), traffic(arrivals, duration_s=0.02)):
        assert not list(monitor.find_slow_causes(ordinary))


def test_a_run_warns_of_finite_flows():
    [warning] = warned(traffic(FlowList(start_s=[0.0], sender=[0], size_bytes=[10**9], priority=[0])))
    assert "finite flows" in str(warning.message)
    assert not warned(traffic(PoissonArrivals(flows_per_s=2, sizes=WEB_SEARCH)))


def test_no_named_scenario_is_warned_of():
    for name in nb.scenarios.names():
        scenario = nb.scenarios.get(name)
        if isinstance(scenario, Scenario):
            assert list(monitor.find_slow_causes(scenario)) == [], name


def test_losses_of_gilbert_and_elliott_count():
    scenario = world(Sized(size_bytes=10**9))
    lossy = Link(name="wire", gilbert_elliott=GilbertElliott(p_good_to_bad=0.01, p_bad_to_good=0.3, loss_bad=0.5))
    links = (scenario.links[0], lossy, scenario.links[2])
    assert list(monitor.find_slow_causes(Scenario(links=links, flows=scenario.flows, duration_s=1.0))) == []


def test_queues_that_run_away(monkeypatch):
    monkeypatch.setattr(monitor, "QUEUED_PACKETS", 20_000)
    scenario = nb.scenarios.dumbbell(
        rate_mbps=500, buffer_packets=None, senders=["newreno"], duration_s=20, access_mbps=None, hystart=False
    )
    found = [str(one.message) for one in warned(scenario)]
    assert any("link 'bottleneck' has" in text and "buffer_packets" in text for text in found)
    assert any("flow 0 (endless) has a window of" in text for text in found)
    assert len(found) == 2  # each once


def test_progress_is_told():
    shares = []
    nb.simulate(nb.scenarios.dumbbell(rate_mbps=1000, buffer_packets=500, duration_s=30), progress=shares.append)
    assert shares[0] == 0 and shares[-1] == 1 and shares == sorted(shares) and len(shares) > 2
    few = []
    nb.simulate(nb.scenarios.dumbbell(duration_s=0.1), progress=few.append, sample_interval_s=0.001)
    assert few[0] == 0 and few[-1] == 1


def test_progress_may_end_the_run():
    def enough(share):
        if share > 0:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        nb.simulate(nb.scenarios.dumbbell(rate_mbps=1000, duration_s=1e5), progress=enough)


def test_progress_changes_nothing():
    scenario = nb.scenarios.dumbbell(rate_mbps=100, loss=1e-4, duration_s=10)
    assert repr(nb.simulate(scenario).flows) == repr(nb.simulate(scenario, progress=lambda share: None).flows)


@pytest.mark.parametrize("progress", ["yes", 1, None])
def test_what_is_no_progress(progress):
    with pytest.raises(ScenarioTypeError, match=r"progress = .*valid: True, False, or a function"):
        nb.simulate(nb.scenarios.dumbbell(duration_s=0.1), progress=progress)


WITHOUT_TQDM = """
import sys
if sys.argv[1] == "without":
    sys.modules["tqdm"] = None
import netbuf_gym as nb
nb.simulate(nb.scenarios.dumbbell(rate_mbps=1000, duration_s=5), progress=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("tqdm", ["with", "without"])
def test_a_bar_is_drawn(tqdm):
    if tqdm == "with":
        pytest.importorskip("tqdm")
    found = subprocess.run([sys.executable, "-c", WITHOUT_TQDM, tqdm], capture_output=True, text=True, timeout=300)
    assert found.returncode == 0 and found.stdout == ""
    assert "simulated" in found.stderr and "0%" in found.stderr.replace(" ", "")


def test_the_command_line_warns_in_a_line(tmp_path, capsys):
    path = tmp_path / "world.json"
    path.write_text(json.dumps(world(Sized(size_bytes=10**9)).to_dict()))
    assert main(["simulate", "--scenario", f"file:{path}"]) == 0
    out, said = capsys.readouterr()
    assert "flow" in out and said.splitlines()[0].startswith("netbuf-gym: warning: flow 0 (finite, 1000000000 bytes)")
    assert len(said.splitlines()) == 1
