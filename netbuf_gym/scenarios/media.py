"""Media that links share: Wi-Fi, and cells of mobile networks.

A link with a medium keeps its queue, loss and propagation; the medium decides when it may send, and what arrives. Links whose
media are equal share one; `channel` tells media of the same settings apart. Each medium of the native core has a class here,
generated from its record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from netbuf_gym import _core
from netbuf_gym.scenarios.catalogue import MEDIUM_RECORDS
from netbuf_gym.scenarios.parameter_records import ParameterRecord, build_class, parse_record
from netbuf_gym.utils.checks import choice


@dataclass(frozen=True, kw_only=True)
class Medium(ParameterRecord):
    """Base of the media: numeric and boolean fields with defaults and ranges.

    Attributes:
        kind: Name in JSON and in the core.
        record: The core's description.
    """

    @staticmethod
    def check_together(kind: str, parameters: dict[str, float]) -> None:
        """Raise ValueError, in the core's words, where parameters do not go together."""
        _core.check_medium(kind, parameters)

    def capacity_mbps(self, *, up: bool = False, gain_db: float = 0.0) -> float:
        """Return what a link carries that always has packets of 1500 bytes to send, beside the medium's own further stations
        or users but no other link, Mbit/s.

        Wi-Fi by Bianchi's model of saturated stations (2000); a cell by the mean of what each TTI's user is served.

        Args:
            up: Whether the link is an uplink.
            gain_db: Its `Link.gain_db`.
        """
        return _core.medium_capacity_bps(self.kind, self.parameters(), up, gain_db) * 1e-6


_NAMES = {"wifi": "Wifi", "cellular": "Cellular"}
MEDIA: dict[str, type[Medium]] = {
    name: build_class(Medium, record, _NAMES.get(name, name.title().replace("_", "")), __name__)
    for name, record in MEDIUM_RECORDS.items()
}
"""Medium classes by name in JSON and in the core."""

globals().update({cls.__name__: cls for cls in MEDIA.values()})  # where pickle looks for them
Wifi, Cellular = (MEDIA[name] for name in _NAMES)

WIFI_STANDARDS: dict[str, dict[str, Any]] = {
    "a": {"rate_mbps": 54.0, "preamble_us": 20.0, "ampdu_packets": 1},
    "n": {"rate_mbps": 65.0, "preamble_us": 36.0},
    "ac": {"rate_mbps": 390.0, "preamble_us": 40.0, "ampdu_bytes": 1_048_575},
    "ax": {"rate_mbps": 600.5, "preamble_us": 44.0, "symbol_us": 13.6, "ampdu_packets": 256, "ampdu_bytes": 6_500_631},
}
"""Settings of IEEE 802.11a, n (20 MHz), ac and ax (80 MHz): one stream, highest modulation; by the letters of the standard."""
CELLULAR_GENERATIONS: dict[str, dict[str, Any]] = {
    "lte": {},
    "5g": {"tti_ms": 0.5, "blocks": 106, "uplink_blocks": 106, "harq_ms": 4.0, "sr_ms": 5.0, "grant_ms": 3.0},
}
"""Settings of a cell: LTE of 10 MHz; 5G of 40 MHz with a subcarrier spacing of 30 kHz."""


def wifi(standard: str = "n", **changes: Any) -> Medium:
    """Return Wi-Fi by a standard, with the settings of `WIFI_STANDARDS`.

    Args:
        standard: A key of `WIFI_STANDARDS`.
        **changes: Fields of `Wifi` to set otherwise.

    Raises:
        ScenarioError: An unknown standard, or a value out of range.
    """
    return _build("wifi", WIFI_STANDARDS[choice("standard", standard, WIFI_STANDARDS)], changes)


def cellular(generation: str = "lte", **changes: Any) -> Medium:
    """Return a cell of a generation, with the settings of `CELLULAR_GENERATIONS`.

    Args:
        generation: A key of `CELLULAR_GENERATIONS`.
        **changes: Fields of `Cellular` to set otherwise.

    Raises:
        ScenarioError: An unknown generation, or a value out of range.
    """
    return _build("cellular", CELLULAR_GENERATIONS[choice("generation", generation, CELLULAR_GENERATIONS)], changes)


def _build(kind: str, usual: dict[str, Any], changes: dict[str, Any]) -> Medium:
    return parse_medium(kind, {"name": kind, **usual, **changes})


def parse_medium(label: str, value: object) -> Medium:
    """Build a medium from a value of `Link.medium`: a medium, a name, or a dict of `name` and parameters.

    Raises:
        ScenarioError: An unknown name or parameter, or a value out of range.
    """
    return parse_record(label, value, Medium, MEDIA, "a medium")
