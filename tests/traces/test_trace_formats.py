"""Files as measurements leave them: named columns, units, dates, reports of iperf, archives."""

import gzip
import json
import warnings

import numpy as np
import pytest

from netbuf_gym import traces
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, TraceError
from netbuf_gym.traces import DeliveryTrace, ImplausibleTraceWarning, RateTrace, logs
from netbuf_gym.traces.units import compute_rate_factor, parse_date, read_column_name
from netbuf_gym.utils.files import MAX_TEXT_BYTES, read_text

UCC = (
    "Timestamp,Longitude,Latitude,Speed,Operatorname,CellID,NetworkMode,RSRP,DL_bitrate,UL_bitrate,State,PINGAVG\n"
    "2019.12.14_10.16.30,-8.39,51.88,0,B,11,5G,-94,3500,12,D,-\n"
    "2019.12.14_10.16.30,-8.39,51.88,0,B,11,5G,-94,4500,14,D,-\n"
    "2019.12.14_10.16.32,-8.39,51.88,7,B,11,5G,-94,0,13,D,-\n"
)
HSDPA = (
    "1289406399 549 59.851754 10.781778 137250 549\n"
    "1289406400 1549 59.851754 10.781778 250000 1000\n"
    "1289406401 2600 59.851754 10.781778 0 1000\n"
)
IPERF3 = """Connecting to host 10.0.0.1, port 5201
[  5] local 10.0.0.2 port 50 connected to 10.0.0.1 port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec  1.12 MBytes  9.43 Mbits/sec    0   31.1 KBytes       (omitted)
[  5]   0.00-1.00   sec  1.12 MBytes  9.43 Mbits/sec    0   31.1 KBytes
[  5]   1.00-2.00   sec   512 KBytes   419 Kbits/sec    0   31.1 KBytes
[  5]   2.00-3.00   sec  0.00 Bytes  0.00 bits/sec    0   31.1 KBytes
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-3.00   sec  1.62 MBytes  4.54 Mbits/sec    2             sender
[  5]   0.00-3.04   sec  1.60 MBytes  4.40 Mbits/sec                  receiver
"""
IPERF2 = """[  3]  0.0- 1.0 sec  1.12 MBytes  1.00 MBytes/sec
[  4]  0.0- 1.0 sec  1.12 MBytes  1.00 MBytes/sec
[SUM]  0.0- 1.0 sec  2.24 MBytes  2.00 MBytes/sec
[  3]  1.0- 2.0 sec  1.12 MBytes  0.50 MBytes/sec
[  4]  1.0- 2.0 sec  1.12 MBytes  0.50 MBytes/sec
[SUM]  1.0- 2.0 sec  1.12 MBytes  1.00 MBytes/sec
[SUM]  0.0- 2.0 sec  3.36 MBytes  1.50 MBytes/sec
"""
IPERF2_CSV = """20180212161403,10.0.0.2,50000,10.0.0.1,5001,3,0.0-1.0,131072,1048576
20180212161404,10.0.0.2,50000,10.0.0.1,5001,3,1.0-2.0,262144,2097152
20180212161404,10.0.0.2,50000,10.0.0.1,5001,3,0.0-2.0,393216,1572864
"""
STREAMS = """[  5]   0.00-0.50   sec  1.12 MBytes  9 Mbits/sec
[ *7]   0.00-0.50   sec  1.12 MBytes  3 Mbits/sec
[  5]   0.50-1.00   sec  1.12 MBytes  8 Mbits/sec
[ *7]   0.50-1.00   sec  1.12 MBytes  0.50 Mbits/sec
[  5]   1.00-1.00   sec  0.00 Bytes  0.00 bits/sec
[  5]   0.00-1.00   sec  1.12 MBytes  8.5 Mbits/sec    receiver
[ *7]   0.00-1.00   sec  1.12 MBytes  1.75 Mbits/sec   receiver
"""
LUMOS = (
    "run_num,seq_num,movingSpeed,nr_ssRsrp,Throughput,mobility_mode,tower_id\n"
    "1,1,0.1,,40,walking,5\n1,2,0.1,,60,walking,\n1,3,0.1,,20,walking,\n"
)
STARLINK = (
    "datetimestamp_utc,pop_ping_drop_rate,pop_ping_latency_ms,downlink_throughput_bps,uplink_throughput_bps\n"
    "2022-01-01T00:00:00+00:00,0,40,12000000,800000\n2022-01-01T00:00:01+00:00,0.1,41,14000000,900000\n"
)
GHENT = "1453120790686 1 51.03 3.73 0 0\n1453120791686 1001 51.03 3.73 4500000 1000\n1453120792686 2001 51.03 3.73 0 1000\n"
BOTH = """[  5][TX-C]   0.00-1.00   sec  1.12 MBytes  9.00 Mbits/sec    0   31.1 KBytes
[  7][RX-C]   0.00-1.00   sec  1.12 MBytes  3.00 Mbits/sec
[  5][TX-C]   1.00-2.00   sec  1.12 MBytes  8.00 Mbits/sec    0   31.1 KBytes
[  7][RX-C]   1.00-2.00   sec  1.12 MBytes  2.00 Mbits/sec
"""
INTERVALS = [
    {"streams": [], "sum": {"start": k, "end": k + 1, "bits_per_second": bps, "omitted": k == 0}}
    for k, bps in enumerate([9e6, 1e6, 0, 2.5e6])
]
BOTH_JSON = json.dumps({"intervals": [one | {"sum_bidir_reverse": one["sum"] | {"bits_per_second": 1e7}} for one in INTERVALS]})


def put(tmp_path, text, name="trace"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture(autouse=True)
def strict():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize(
    ("text", "time_s", "mbps", "period_s"),
    [
        ("3.97,Mbits/sec\n850,Kbits/sec\n0.00,bits/sec\n1.2,Gbits/sec\n", [0, 1, 2, 3], [3.97, 0.85, 0, 1200], 4),
        ("3.97 Mbits/sec\n4.2 Mbits/sec\n", [0, 1], [3.97, 4.2], 2),
        ("3.97Mbps\n850kbps\n", [0, 1], [3.97, 0.85], 2),
        ("time,throughput\n0,3.5\n0.5,4.5\n", [0, 0.5], [3.5, 4.5], 1),
        ("time_ms,throughput_kbps\n100,2800\n600,4500\n", [0, 0.5], [2.8, 4.5], 1),
        ("Time (ms)\tRate [MB/s]\n0\t3.5\n100\t4.5\n", [0, 0.1], [28, 36], 0.2),
        ("timestamp;throughput (kbit/s)\n1579173123000;3500,5\n1579173124000;4500\n", [0, 1], [3.5005, 4.5], 2),
        ("1579173123000 3.5\n1579173124000 4.5\n", [0, 1], [3.5, 4.5], 2),
        ("1579173123.5,3.5\n1579173124.5,4.5\n", [0, 1], [3.5, 4.5], 2),
        ("time,throughput,unit\n0,3,Mbps\n1,900,kbps\n", [0, 1], [3, 0.9], 2),
        ("0,a,3,Mbps\n1,b,900,kbps\n", [0, 1], [3, 0.9], 2),
        ("3.5\n4.5\n0\n2\n", [0, 1, 2, 3], [3.5, 4.5, 0, 2], 4),
        ("throughput_mbps\n5\n4\n", [0, 1], [5, 4], 2),
        ('time,"throughput\n(kbit/s)"\n0,3000\n1,4000\n', [0, 1], [3, 4], 2),
        ("# a drive\n# time (ms), rate (kbit/s)\n0 3000\n\n1000 4000  # a tunnel\n", [0, 1], [3, 4], 2),
        ("% of 2019\n// by hand\n0,3\n1,4\n", [0, 1], [3, 4], 2),
        ("2020-01-02T23:59:59.5Z,3\n2020-01-03T00:00:01.5Z,4\n", [0, 2], [3, 4], 4),
        ("2020-01-02 23:59:59 3\n2020-01-03 00:00:01 4\n", [0, 2], [3, 4], 4),
        ("date,time,rate/Mbps\n2020-01-02,23:59:59,3\n2020-01-03,00:00:01,4\n", [0, 2], [3, 4], 4),
        ("clock,rate\n23:59:59,3\n00:00:01,4\n", [0, 2], [3, 4], 4),
        ("0.0-1.0,3\n1.0-2.0,4\n", [0, 1], [3, 4], 2),
        ('"time_s","mbps"\r\n"0","3"\r\n"1","4"\r\n', [0, 1], [3, 4], 2),
        (
            "run_num,seq_num,latitude,Throughput,mobility_mode\n1,1,44.9,340,driving\n1,2,44.9,350,driving\n",
            [0, 1],
            [340, 350],
            2,
        ),
        (
            "unit_id,dtime,fetch_time,bytes_sec\n1,2014-01-01 00:00:01,9,250000\n1,2014-01-01 00:00:06,8,350000\n",
            [0, 5],
            [2, 2.8],
            10,
        ),
        (UCC, [0, 2], [4, 0], 4),
        (HSDPA, [0, 0.549, 1.6], [2, 2, 0], 2.6),
        (IPERF3, [0, 1, 2], [9.43, 0.419, 0], 3),
        (IPERF2, [0, 1], [16.777216, 8.388608], 2),
        (IPERF2_CSV, [0, 1], [1.048576, 2.097152], 2),
        (STREAMS, [0, 0.5], [12, 8.5], 1),
        (LUMOS, [0, 1, 2], [40, 60, 20], 3),
        (STARLINK, [0, 1], [12, 14], 2),
        (GHENT, [0, 1], [36, 0], 2),
        (UCC.replace(",-\n", ",\n"), [0, 2], [4, 0], 4),
        ("a\tDL_bitrate\tUL_bitrate\t\n1\t3000\t1\t\n1\t4000\t1\t\n", [0, 1], [3, 4], 2),
        ('"time_s","mbps"\n"0,5","3,7"\n"1,5","4,25"\n', [0, 1], [3.7, 4.25], 2),
        ("0,5 3,7\n1,5 4,25\n", [0, 1], [3.7, 4.25], 2),
        ("Time (s) Rate (Mbps)\n0 3\n1 4\n", [0, 1], [3, 4], 2),
        ("seconds;Megabits per second\n0;3\n1;4\n", [0, 1], [3, 4], 2),
        ("time,mbps\n20191231235959,3\n20200101000001,4\n", [0, 2], [3, 4], 4),
        ("2018-02-12 16:14 3\n2018-02-12 16:15 4\n", [0, 60], [3, 4], 120),
        ("interval,mbps\n0-1,3\n1-5,4\n", [0, 1], [3, 4], 5),
        (json.dumps({"start": {}, "intervals": INTERVALS, "end": {}}, indent=1), [0, 1, 2], [1, 0, 2.5], 3),
        ("\n".join(json.dumps({"event": "interval", "data": one}) for one in INTERVALS), [0, 1, 2], [1, 0, 2.5], 3),
        (json.dumps({"intervals": [{"streams": [one["sum"]] * 3} for one in INTERVALS]}), [0, 1, 2], [3, 0, 7.5], 3),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else None,
)
def test_reads_what_measurements_leave(tmp_path, text, time_s, mbps, period_s):
    trace = traces.read(put(tmp_path, text))
    assert isinstance(trace, RateTrace)
    assert trace.time_s == pytest.approx(time_s) and trace.rate_mbps == pytest.approx(mbps)
    assert trace.period_s == pytest.approx(period_s)


@pytest.mark.parametrize("text", ["time_s,mbps\n0,3\n1,4\n", "0;3\n1;4\n"])
def test_reads_archives_and_utf_16(tmp_path, text):
    usual = traces.read(put(tmp_path, text))
    for raw in (gzip.compress(text.encode()), text.encode("utf-16"), text.encode("utf-16-le"), text.encode("utf-8-sig")):
        assert traces.read(put(tmp_path, raw)) == usual
    assert usual.rate_mbps.tolist() == [3, 4]
    with pytest.raises(TraceError, match="cannot be unpacked"):
        traces.read(put(tmp_path, gzip.compress(text.encode())[:-6]))
    with pytest.raises(TraceError, match="unpacks to more than 256 MiB"):
        traces.read(put(tmp_path, gzip.compress(bytes(MAX_TEXT_BYTES + 1), 1)))


def test_mahimahi_files_may_hold_blank_lines_and_comments(tmp_path):
    trace = traces.read(put(tmp_path, "# a drive\n\n1\n2\n \n\n5\n\n"))
    assert isinstance(trace, DeliveryTrace) and trace.time_ms.tolist() == [1, 2, 5]
    with pytest.raises(TraceError, match=":5: 1 ms comes after 2 ms"):
        traces.read(put(tmp_path, "1\n\n2\n\n1\n"))


def test_what_the_file_does_not_say_the_caller_does(tmp_path):
    path = put(tmp_path, "0 3000\n1000 2800\n")
    trace = traces.read(path, unit="kbit/s", time_unit="ms")
    assert trace.time_s.tolist() == [0, 1] and trace.rate_mbps.tolist() == [3, 2.8]
    assert traces.read(put(tmp_path, "5\n4\n"), unit="MB/s").rate_mbps.tolist() == [40, 32]
    assert traces.read(put(tmp_path, UCC), column="ul_bitrate").rate_mbps == pytest.approx([0.013, 0.013])
    assert traces.read(put(tmp_path, UCC), column=9).rate_mbps == pytest.approx([4, 0])
    assert traces.read(put(tmp_path, "0,1,2,3\n1,1,5,3\n"), column=3).rate_mbps.tolist() == [2, 5]
    assert traces.read(put(tmp_path, BOTH), column="RX-C").rate_mbps.tolist() == [3, 2]
    assert traces.read(put(tmp_path, BOTH_JSON), column="sum_bidir_reverse").rate_mbps.tolist() == [10, 10, 10]


def test_reads_a_part(tmp_path):
    path = put(tmp_path, "0,1\n1,2\n2,3\n")
    part = traces.read(path, start_s=1)
    assert part.rate_mbps.tolist() == [2, 3] and part.period_s == 2
    part = traces.read(path, start_s=0.5, duration_s=3)
    assert part.time_s.tolist() == [0, 0.5, 1.5, 2.5] and part.rate_mbps.tolist() == [1, 2, 3, 1] and part.period_s == 3
    assert traces.read(path, start_s=1, loop=False).period_s is None
    assert traces.read(put(tmp_path, "0,5\n"), duration_s=2).period_s == 2
    part = traces.read(put(tmp_path, "10\n20\n30\n"), start_s=0.01, duration_s=0.05)
    assert part.time_ms.tolist() == [10, 20, 30, 40, 50] and part.period_ms == 50
    for more, message in (
        ({"start_s": 3}, "start_s = 3 is not below"),
        ({"start_s": -1}, "start_s = -1"),
        ({"duration_s": 0}, "= 0"),
    ):
        with pytest.raises(ScenarioError, match=message):
            traces.read(path, **more)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time_s,a_mbps,b_mbps\n0,1,2\n", ":1: has 2 columns of rates; valid: column=a_mbps or column=b_mbps"),
        ("rate,a,time\n3\n", ":2: '3' has 1 fields; valid: 3"),
        ('time,rate\n0,1\n2,"3\n"4\n', ":3: is not CSV"),
        ("3.5\n.\n2\n1\n", ":2: mbps = '.'; valid: a finite number"),
        (IPERF3.replace("419", "41.9.0"), ":6: rate = '41.9.0'; valid: a number"),
        ("0,1,2\n", ":1: has 3 columns and no header; valid: column=1 to 3"),
        ("time,rtt_ms\n0,1\n", ":1: header 'time,rtt_ms' names no column of rates"),
        ("3,Mbps\n4,furlongs\n", ":2: unit = 'furlongs'; valid: bit/s"),
        ("time,rate\n2020-01-01 00:00:05,1\n2020-01-01 00:00:01,1\n", ":3: time = "),
        ("5\n4\n", "one rate a second: unit=Mbit/s"),
        (HSDPA + "1 2\n", ":4: '1 2'; valid: time stamp, ms, latitude"),
        (BOTH, "the report has 2 sides; valid: column=RX-C or column=TX-C"),
        (BOTH_JSON, "the report has 2 sides; valid: column=sum or column=sum_bidir_reverse"),
        (IPERF3 + IPERF3, ":16: holds several tests"),
        (
            IPERF2.replace("[SUM]", "[  9]").replace("[  3]", "- 3 -").replace("[  4]", "- 4 -") + STREAMS,
            ":8: holds several tests",
        ),
        (json.dumps({"intervals": INTERVALS}, indent=1) * 2, "holds several tests"),
        (json.dumps({"intervals": INTERVALS}) + "\n" + json.dumps({"intervals": INTERVALS}), ":2: holds several tests"),
        ("time_s,bandwidth (MHz)\n0,20\n1,20\n", ":1: header 'time_s,bandwidth (MHz)' names no column of rates"),
        ('time_s,kbps\n0,"3,500"\n1,"4,500"\n', ":2: kbps = '3,500'"),
        ("time,mbps\n02/12/2018 16:14:02,3\n", "or a date such as 2018-02-12 16:14:02"),
        (IPERF3.split("\n")[9] + "\n", "the report has no interval"),
        ('{"error": "no route", "intervals": []}', "reports a failure: 'no route'"),
        ("{}", "JSON without intervals"),
        ('{"a":', ":1: is not JSON"),
        ('{"intervals": [{}]}', "intervals[0] has no sum"),
        ("[" * 10, "is not the first line"),
        ('{"a":' + "[" * 100_000, "is nested too deeply"),
        ("0,3000000\n1,2800000\n", "; rates about 2.9e+06 are read as Mbit/s; if they are bit/s: unit=bit/s"),
        (b"1\n2\n" + bytes(1000), ":3: is not text"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_read_is_named(tmp_path, text, message):
    with pytest.raises(TraceError) as error:
        traces.read(put(tmp_path, text))
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"unit": "furlong"}, "unit = 'furlong' is unknown; valid: bit/s"),
        ({"time_unit": "fortnight"}, "time_unit = 'fortnight' is unknown; valid: s, ms"),
        ({"column": 3}, r"column = 3; valid: 1 to 2"),
        ({"column": True}, "column = True"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, arguments, message):
    with pytest.raises((ScenarioError, ScenarioTypeError, TraceError), match=message):
        traces.read(put(tmp_path, "0 1\n1 2\n"), **arguments)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("time,throughput\n0,3000\n1,2800\n", "if they are kbit/s: unit=kbit/s"),
        ("0 1500\n1 1100\n2 400\n", "rates about 1100 are read as Mbit/s; if they are kbit/s: unit=kbit/s"),
        ("time_s,throughput\n1579173123000,3\n1579173124000,2\n", "if they are ms: time_unit=ms"),
        (
            "time,mbps\n2020-01-01 10:00:01,3\n2020-01-01 10:00:02,4\n2020-01-01 10:00:03,5\n2020-01-02 10:00:02,2\n",
            "the rate of line 4 holds for 8.64e\\+04 s, until the next row",
        ),
        ("Zeit;rate;cell\n0;3;1\n0.5;2;1\n", "read as one a second; if 'Zeit' is their time: name that column time_s"),
        ("0 3\n1000 2\n2000 3\n", "times 1000 apart are read as seconds; if they are ms: time_unit=ms"),
    ],
)
def test_implausible_values_get_a_hint(tmp_path, text, hint):
    path = put(tmp_path, text)
    with pytest.warns(ImplausibleTraceWarning, match=hint):
        traces.read(path)
    if "unit=" in hint:
        traces.read(path, unit="kbit/s", time_unit="ms")  # said, and so without a hint


def test_large_files_are_refused_at_once(tmp_path):
    path = tmp_path / "sparse"
    for size, message in ((2**30, "cannot be read: larger than 256 MiB; valid: at most that"), (2**27, ":1: is not text")):
        with path.open("wb") as file:
            file.truncate(size)
        with pytest.raises(TraceError, match=message):
            traces.read(path)
    with path.open("wb") as file:
        file.truncate(2**30)
    with pytest.raises(OSError, match="larger than 256 MiB"):
        read_text(path)


@pytest.mark.parametrize("header", ["", "time_s,mbps\n\n"])
def test_large_tables_are_read_as_small_ones(tmp_path, header, monkeypatch):
    rows = "".join(f"{k / 10},{k % 7 + 0.5}\n" for k in range(2000))
    usual = traces.read(put(tmp_path, header + rows))
    monkeypatch.setattr(logs, "PLAIN_BYTES", 1)
    monkeypatch.setattr(logs, "_split", None)
    assert traces.read(put(tmp_path, header + rows)) == usual
    monkeypatch.undo()
    monkeypatch.setattr(logs, "PLAIN_BYTES", 1)
    for fault, message in (
        ("1,x", "mbps = 'x'"),
        ("1,-1", "mbps = '-1'"),
        ("1,2,3", "has 3 fields"),
        ("1,2", "is not after 199.9"),
    ):
        with pytest.raises(TraceError, match=f":{2001 + header.count(chr(10))}: .*{message}"):
            traces.read(put(tmp_path, f"{header}{rows}{fault}\n"))
    with pytest.raises(TraceError, match=f":{2001 + header.count(chr(10))}: rate_mbps"):
        traces.read(put(tmp_path, f"{header}{rows}500,2e6\n"))


def test_deliveries_of_a_large_file_are_exact(tmp_path):
    time_ms = np.sort(np.random.default_rng(1).integers(0, 10**9, 20_000))
    assert np.array_equal(traces.read(put(tmp_path, "\n".join(map(str, time_ms.tolist())))).time_ms, time_ms)


@pytest.mark.parametrize(
    ("unit", "mbps"),
    [
        *[("bit/s", 1e-6), ("bps", 1e-6), ("bits per second", 1e-6), ("kbit/s", 1e-3), ("Kbits/sec", 1e-3), ("mbit", 1)],
        *[("Mbps", 1), ("MBPS", 1), ("Mbit / s", 1), ("Gbit/s", 1e3), ("B/s", 8e-6), ("bytes_per_second", 8e-6)],
        *[("kB/s", 8e-3), ("MB/s", 8), ("MBytes/sec", 8), ("MiB/s", 8 * 1.048576)],
        *[("bytes", None), ("m", None), ("ms", None), ("km/h", None), ("", None)],
    ],
)
def test_units_of_rates(unit, mbps):
    assert compute_rate_factor(unit) == (None if mbps is None else pytest.approx(mbps))


@pytest.mark.parametrize(
    ("name", "role", "factor", "direction"),
    [
        ("throughput_mbps", "rate", 1, ""),
        ("throughputKbps", "rate", 1e-3, ""),
        ("Downlink throughput (Mbit/s)", "rate", 1, "down"),
        ("bits_per_second", "rate", 1e-6, ""),
        ("UL_bitrate", "rate", 1e-3, "up"),
        ("download", "rate", None, "down"),
        ("elapsed_ms", "time", 1e-3, ""),
        ("ms", "time", 1e-3, ""),
        ("Unix Timestamp", "time", None, ""),
        ("rtt_ms", "", None, ""),
        ("pop_ping_drop_rate", "", None, ""),
        ("dl_bandwidth_mhz", "", None, ""),
        ("Bandwidth [MHz]", "", None, ""),
        ("rate (%)", "", None, ""),
        ("loss rate", "", None, ""),
        ("Speed", "", None, ""),
        ("fetch_time", "", None, ""),
        ("Units", "unit", None, ""),
    ],
)
def test_names_of_columns(name, role, factor, direction):
    assert read_column_name(name) == (role, factor if factor is None else pytest.approx(factor), direction)


def test_dates():
    assert parse_date("1970-01-02 00:00:01.25") == 86401.25 == parse_date("1970-01-02T01:00:01.25+01:00")
    assert parse_date("1970-01-02 00:00:01 CDT") == 86401 and parse_date("1970-01-01 13:00:00 PM") is None
    assert [parse_date(f"1970-01-01 {one}") for one in ("12:00:01 AM", "1:00 AM", "12:00 PM", "1:00:00 pm")] == [
        1,
        3600,
        43200,
        46800,
    ]
    assert parse_date("01:00:01") == 3601 and parse_date("2020-13-01 00:00:00") is None and parse_date("5") is None
