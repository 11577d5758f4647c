"""Units of rates and times, and what the name of a column says: `DL_bitrate`, `throughput (Mbits/sec)`, `time_ms`."""

from __future__ import annotations

import math
import re
from datetime import datetime, timezone
from typing import Any, NamedTuple

_RATE = re.compile(r"([kKmMgGtT]?)(i?)(bits?|Bits?|BITS?|b|B|[bB]ytes?|BYTES?|[oO]ctets?)(ps|PS|/?(?:s|S|sec|SEC|second)s?)?")
_TIME = {
    "h": 3600.0,
    "min": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
    **dict.fromkeys(("hour", "hours"), 3600.0),
    **dict.fromkeys(("minute", "minutes"), 60.0),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("msec", "msecs", "millis", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("µs", "μs", "usec", "usecs", "micros", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("nsec", "nanos", "nanosecond", "nanoseconds"), 1e-9),
}
RATE_UNITS = "bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s, GB/s"
TIME_UNITS = "s, ms, us, ns, min, h"
_TIME_WORDS = set("time timestamp timestamps ts t epoch date datetime dtime elapsed interval clock".split())
_BESIDE_TIME = set("stamp unix utc local relative since start from of day system measurement test".split())
_RATE_WORDS = {"throughput", "bandwidth", "bitrate", "rate", "goodput", "capacity", "tput", "thpt", "bw", "datarate"}
_DOWN = {"dl", "down", "download", "downlink", "downstream", "rx", "received"}
_UP = {"ul", "up", "upload", "uplink", "upstream", "tx", "sent"}
_NO_RATE = set(
    "loss error errors drop drops dropped retransmission retransmissions retransmit retrans retx success hit".split()
)
_NO_RATE |= set("frame sample sampling refresh symbol code coding heart std stddev variance".split())
_OTHER_UNITS = set("hz khz mhz ghz percent pct db dbm pps packets pkts segments".split())
_BARE_DATA = {"bytes_sec": "B/s", "dl_bitrate": "kbit/s", "ul_bitrate": "kbit/s"}
"""Names whose unit their public data sets define elsewhere: FCC's Measuring Broadband America, G-NetTrack's logs."""
_DATE = re.compile(
    r"(\d{4})[-./](\d\d?)[-./](\d\d?)[ T_]+(\d\d?)[:.](\d\d)(?:[:.](\d\d)(?:[.,](\d{1,9}))?)?\s*([A-Z]{1,5}|[+-]\d\d:?\d\d)?",
    re.I,
)
_COMPACT_DATE = re.compile(r"((?:19|20)\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)()()")  # as many groups as a date has
_CLOCK = re.compile(r"(\d\d?):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")


def compute_rate_factor(unit: str) -> float | None:
    """Return how many Mbit/s a unit of rates is: kbit/s, `Mbits/sec`, `Kbps`, MB/s, `bits_per_second`; None if it is none.

    A small b is a bit and a capital B a byte, but in `MBPS`; `MiB/s` counts 1024.
    """
    text = re.sub(r"(?i)(kilo|mega|giga|tera)[\s-]*(?=bit|byte)", lambda found: found[0][0], unit.strip())
    text = re.sub(r"[\s_]+", "", re.sub(r"[\s_]*per[\s_]*", "/", text))
    found = _RATE.fullmatch(text)
    if found is None or (not found[4] and not (found[1] and found[3].lower().startswith("bit"))):
        return None
    byte = found[3][0] in "oO" or found[3].lower().startswith("byte") or (found[3] == "B" and found[4] != "PS")
    base = 1024.0 if found[2] else 1000.0
    return float(base ** " kmgt".index(found[1].lower() or " ") * (8 if byte else 1)) / 1e6


def compute_time_factor(unit: str) -> float | None:
    """Return how many seconds a unit of times is; None if it is none."""
    return _TIME.get(unit.strip().lower())


def scale(value: Any, factor: float) -> Any:
    """Return a number or an array times a factor; 2800 kbit/s are 2.8 Mbit/s, which no product by 0.001 is."""
    return value * factor if factor >= 1 else value / round(1 / factor, 9)


class Column(NamedTuple):
    """What the name of a column says.

    Attributes:
        role: "time", "rate", "unit" (of the row's rate), or "" for anything else.
        factor: Seconds or Mbit/s per unit; None: the name has no unit.
        direction: "down", "up" or "" of a rate.
    """

    role: str
    factor: float | None = None
    direction: str = ""


def read_column_name(name: str) -> Column:
    """Return what a column holds, by its name."""
    name = name.strip().lstrip("#").strip()
    if name.lower() in ("unit", "units"):
        return Column("unit")
    base, unit = _split_unit(name)
    words = _split_words(base)
    rate = compute_rate_factor(unit)
    direction = "" if bool(words & _DOWN) == bool(words & _UP) else "down" if words & _DOWN else "up"
    if words & _NO_RATE:
        return Column("")
    if rate is not None:
        return Column("rate", rate, direction)
    known = _BARE_DATA.get(name.lower())
    if known is not None:
        return Column("rate", compute_rate_factor(known), direction)
    time = compute_time_factor(unit)
    timed = bool(words & _TIME_WORDS) and words <= _TIME_WORDS | _BESIDE_TIME
    if timed or (not words and time is not None):
        return Column("time", time)
    if (_split_words(name) | {unit.lower()}) & _OTHER_UNITS or "%" in name:
        return Column("")
    if time is None and (words & _RATE_WORDS or (words and words <= _DOWN | _UP | {"speed"} and direction)):
        return Column("rate", None, direction)
    return Column("")


def _split_words(name: str) -> set[str]:
    return {word for word in re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) if word}


def _split_unit(name: str) -> tuple[str, str]:
    """Split the name of a column into what is measured and its unit, "" where it has none."""
    bracket = re.fullmatch(r"(.*?)[\s_]*[\[(]([^\])]*)[\])]", name)
    if bracket:
        return bracket[1], bracket[2]
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    for text, marks in ((name, r"[\s_.:,\-]+"), (apart, r"[\s_.:,\-]+"), (name, "/")):
        for start in (0, *(found.end() for found in re.finditer(marks, text))):
            tail = text[start:]
            if compute_rate_factor(tail) is not None or compute_time_factor(tail) is not None:
                return text[:start], tail
    return name, ""


def parse_date(text: str) -> float | None:
    """Return seconds since 1970 of a date with a time, or seconds of the day of `HH:MM:SS`; None if it is neither."""
    found = _DATE.fullmatch(text.strip()) or _COMPACT_DATE.fullmatch(text.strip())
    if found is not None:
        year, month, day, hour, minute, second = (int(one or 0) for one in found.groups()[:6])
        try:
            moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
        except ValueError:
            return None
        zone = (found[8] or "").upper()  # of a name, as of UTC: times count from the first
        if zone in ("AM", "PM") and not 1 <= hour <= 12:
            return None
        shift = 0 if zone[:1] not in ("+", "-") else int(zone[:3]) * 3600 + int(zone[0] + zone[-2:]) * 60
        shift += {"AM": 43200 if hour == 12 else 0, "PM": 0 if hour == 12 else -43200}.get(zone, 0)
        return moment.timestamp() - shift + float(f"0.{found[7] or 0}")
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return None
    return int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3]) + float(f"0.{found[4] or 0}")


def is_compact_date(text: str) -> bool:
    """Return whether digits are a date and its time, YYYYMMDDhhmmss, and not a number."""
    return len(text) == 14 and _COMPACT_DATE.fullmatch(text) is not None and parse_date(text) is not None


def guess_epoch_factor(time: float) -> float:
    """Return seconds per unit of a time without one: of an epoch in ms, us or ns by its size; otherwise 1."""
    return 1.0 if not time >= 1e11 or math.isinf(time) else 1e-3 if time < 1e14 else 1e-6 if time < 1e17 else 1e-9
