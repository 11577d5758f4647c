from dataclasses import replace

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import traces
from netbuf_gym.errors import ScenarioError, TraceError
from netbuf_gym.scenarios import Flow, Link, Scenario, UdpSource
from netbuf_gym.traces import DeliveryTrace, RateTrace
from netbuf_gym.traces.windows import cut_window


def put(tmp_path, text, name="trace"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_reads_mahimahi(tmp_path):
    trace = traces.read(put(tmp_path, "0\n0\n3\n10\n"))
    assert isinstance(trace, DeliveryTrace)
    assert trace.time_ms.tolist() == [0, 0, 3, 10] and trace.period_ms == 10 and trace.name == "trace"


def test_reads_rate_csv(tmp_path):
    path = put(tmp_path, "time_s,mbps\n0.0,13.5\n0.5,0\n1.0,7\n")
    trace = traces.read(path)
    assert isinstance(trace, RateTrace)
    assert trace.time_s.tolist() == [0, 0.5, 1] and trace.rate_mbps.tolist() == [13.5, 0, 7] and trace.period_s == 1.5
    assert traces.read(path, loop=False).period_s is None
    time_s, mbps = traces.read_rate_steps(path)
    assert time_s.tolist() == [0, 0.5, 1] and mbps.tolist() == [13.5, 0, 7]


def test_reads_two_columns_from_any_start(tmp_path):
    trace = traces.read(put(tmp_path, "100 1.5\n101\t2.5\n\n102 0.0\n"))
    assert trace.time_s.tolist() == [0, 1, 2] and trace.rate_mbps.tolist() == [1.5, 2.5, 0]
    assert traces.read(put(tmp_path, "time_s,mbps\n100,1.5\n101,2.5\n")).time_s.tolist() == [0, 1]
    assert traces.read(put(tmp_path, "100\n101\n")).time_ms.tolist() == [100, 101]
    assert "a file that begins later than 0 s begins at 0" in " ".join((traces.read.__doc__ or "").split())


@pytest.mark.parametrize("text", ["time,Mbit/s\n0,1.5\n1,0\n2,4\n", "0,1.5\n1,0\n2,4\n", "TIME_S,MBPS\n0,1.5\n1,0\n2,4\n"])
def test_reads_csv_with_either_header_or_none(tmp_path, text):
    trace = traces.read(put(tmp_path, text))
    assert trace.time_s.tolist() == [0, 1, 2] and trace.rate_mbps.tolist() == [1.5, 0, 4]


def test_writes_either_header(tmp_path):
    trace = traces.RateTrace([0, 1], [1.5, 3], 2)
    for header, first in traces.HEADERS.items():
        traces.write(trace, tmp_path / header, header)
        assert (tmp_path / header).read_text().startswith(first + "\n")
        assert traces.read(tmp_path / header).rate_mbps.tolist() == [1.5, 3]
    with pytest.raises(ScenarioError, match="header = 'x' is unknown; valid: csv"):
        traces.write(trace, tmp_path / "x", "x")


def test_a_single_rate_is_a_constant_link(tmp_path):
    trace = traces.read(put(tmp_path, "time_s,mbps\n0,5\n"))
    assert trace.mean_mbps(100) == 5 and trace.period_s is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: the file is empty"),
        ("\n\n", ":1: the file is empty"),
        ("hello world\n", ":1: 'hello world' is not the first line of a known trace format"),
        ("time_s,colour\n0,1\n", ":1: header 'time_s,colour' names no column of rates; valid: time_s,mbps, or time,Mbit/s"),
        ("when,mbps\n0,1\n", ":1: header 'when,mbps' names no column of times"),
        ("0,1\n1\n", ":2: '1' has 1 fields"),
        ("time_s,mbps\n", ":1: has a header but no rows"),
        ("time_s,mbps\n0,1\n1\n", ":3: '1' has 1 fields"),
        ("time_s,mbps\n0,1\n1,x\n", ":3: mbps = 'x'"),
        ("time_s,mbps\n0,1\n1,\n", ":3: mbps = ''"),
        ("time_s,mbps\n0,1\n1,-2\n", ":3: mbps = '-2'"),
        ("time_s,mbps\n0,1\n1,nan\n", ":3: mbps = 'nan'"),
        ("time_s,mbps\n0,1\n1,inf\n", ":3: mbps = 'inf'"),
        ("time_s,mbps\n0,1\n2,1\n1,1\n", ":4: time_s = 1 is not after 2"),
        ("time_s,mbps\n0,0\n1,0\n", ":2: rate_mbps is 0 throughout"),
        ("0 1\n1 2 3\n", ":2: '1 2 3' has 3 fields"),
        ("1\n2\nx\n", ":3: 'x'; valid: one whole number of milliseconds"),
        ("1\n2.5\n", ":2: '2.5'"),
        ("1\n\n2.5\n", ":3: '2.5'"),
        ("1\n-2\n", ":2: -2 ms is negative"),
        ("1\n99999999999999999999\n", ":2: time_ms[1] = 1e+20 is out of range"),
        ("5\n4\n", ":2: 4 ms comes after 5 ms"),
        ("0\n0\n", ":2: ends at 0 ms"),
        (b"\xff\xfe\x00", ":1: is not text"),
        (b"1\n2\n\xff\xfe\x00", ":3: is not text"),
        (b"1\n2\x00\n", ":2: "),
        ("time,Mbit/s\n0,0\n1,0\n", ":2: rate_mbps is 0 throughout"),
        ("time_s,mbps\n0,5\n\n1,2e6\n2,1\n", ":4: rate_mbps[1] = 2e+06 is out of range"),
        ("0,5\n2e6,5\n", ":2: time_s[1] = 2e+06 is out of range"),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path, text, message):
    path = put(tmp_path, text)
    with pytest.raises(TraceError) as error:
        traces.read(path)
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(TraceError, match=f"{path}: cannot be read"):
            traces.read(path)


@pytest.mark.parametrize("kind", traces.GENERATORS)
def test_what_is_written_is_read_again(tmp_path, kind):
    made = traces.generate(kind, duration_s=5, seed=2)
    traces.write(made, tmp_path / "out")
    back = traces.read(tmp_path / "out")
    if isinstance(made, RateTrace):
        steps = len(made.time_s)
        assert np.array_equal(back.time_s[:steps], made.time_s) and np.array_equal(back.rate_mbps[:steps], made.rate_mbps)
        assert back.period_s == pytest.approx(made.period_s) and back.mean_mbps() == pytest.approx(made.mean_mbps())
    else:
        assert np.array_equal(back.time_ms, made.time_ms) and back.period_ms == made.period_ms


@pytest.mark.parametrize(("time_s", "period_s"), [([0, 2, 4], 5), ([0, 2, 4], 9), ([0], 5)])
def test_a_last_step_of_another_length_is_written_in_two_halves(tmp_path, time_s, period_s):
    made = RateTrace(time_s, [6.0, 1.0, 3.0][: len(time_s)], period_s)
    traces.write(made, tmp_path / "out")
    back = traces.read(tmp_path / "out")
    assert back.period_s == period_s and back.mean_mbps() == made.mean_mbps()
    at = np.linspace(0, 2 * period_s, 91)
    np.testing.assert_array_equal(back.rate_at_mbps(at), made.rate_at_mbps(at))
    traces.write(back, tmp_path / "again")
    assert (tmp_path / "again").read_text() == (tmp_path / "out").read_text()


def test_writing_refuses_what_the_format_cannot_hold(tmp_path):
    with pytest.raises(TraceError, match="whole milliseconds"):
        traces.write(DeliveryTrace([0.5, 1]), tmp_path / "out")
    with pytest.raises(TraceError, match="repeats after its last time"):
        traces.write(DeliveryTrace([1], period_ms=2), tmp_path / "out")
    with pytest.raises(TraceError, match="cannot be written"):
        traces.write(DeliveryTrace([1]), tmp_path / "none" / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_every_recorded_trace_can_be_read(shared):
    files = [*shared.glob("traces/mahimahi/*.*"), *shared.glob("traces/ucc_5g/*/*"), *shared.glob("traces/deepcc*/trace*")]
    assert len(files) > 30
    for path in files:
        trace = traces.read(path)
        assert 0.1 < trace.mean_mbps() < 500 and trace.duration_s > 60


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("1\n1_000\n", 2),
        ("1\n\u0662\n", 2),
        ("1\n4\u2028\n5\n", 2),
        ("1\n\xa0\n5\n", 2),
        ("1\n2\n\x1c\n", 3),
        ("time_s,mbps\n0,1\n1,1_0\n", 3),
        ("0 1\n1 \u0665\n", 2),
        ("time_s,mbps\n0,1\x0c\r1,2\x0b\n2,x\n", 4),
    ],
)
def test_digits_are_ascii_and_lines_end_as_lines_do(tmp_path, text, line):
    with pytest.raises(TraceError, match=f"trace:{line}: "):
        traces.read(put(tmp_path, text))


def test_a_file_that_never_ends_is_refused():
    with pytest.raises(TraceError, match="/dev/zero: cannot be read: not a regular file"):
        traces.read("/dev/zero")


@pytest.mark.parametrize(("per_ms", "spread"), [(1, 1), (2, 1), (1, 3)])
def test_a_full_packet_fills_an_opportunity_of_a_mahimahi_file(tmp_path, per_ms, spread):
    """mm-link reads packets from a TUN device with 4 bytes of packet information each, which count."""
    (tmp_path / "even.down").write_text("".join(f"{ms}\n" * per_ms for ms in range(spread, 6001, spread)))
    trace = traces.read(tmp_path / "even.down")
    assert trace.packet_overhead_bytes == 4 and replace(trace, packet_overhead_bytes=0) != trace
    assert trace.to_mahimahi() == trace and cut_window(trace, 1, 3).packet_overhead_bytes == 4
    made = {}
    for overhead in (4, 0):
        links = [Link(name="bottleneck", trace=replace(trace, packet_overhead_bytes=overhead)), Link(name="return")]
        late = Flow(path=(0,), return_path=(1,), start_s=6.0)
        world = Scenario(links=links, flows=[late], udp=[UdpSource(path=(0,), rate_mbps=100)], duration_s=6.0)
        made[overhead] = nb.simulate(world, sample_interval_s=None).udp[0].packets_received
    opportunities = len(trace.time_ms)
    assert made[4] == pytest.approx(opportunities, abs=2)
    assert made[0] == pytest.approx(opportunities * 1504 / 1500, abs=2)
