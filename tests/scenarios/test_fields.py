"""Rules of fields: the ranges that docstrings state, and the core's fields that they name."""

import re
from dataclasses import dataclass, field, fields

import pytest

from netbuf_gym import _core, scenarios
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios.fields import check_fields, copy_to_core, get_indices, links, number
from netbuf_gym.scenarios.limits import MAX_DURATION_S
from netbuf_gym.utils.docstrings import parse_arguments

NUMBER = r"-?[\d.]+(?:e-?\d+)?(?:\*\*\d+)?"
RECORDS = (
    *(scenarios.Flow, scenarios.Route, scenarios.OnOff, scenarios.Sender, scenarios.Relay, scenarios.Link),
    *(scenarios.GilbertElliott, scenarios.Jitter, scenarios.Host, scenarios.Switch, scenarios.PoissonArrivals),
    *(scenarios.Incast, scenarios.Probe, scenarios.UdpSource, scenarios.Video, scenarios.Scenario),
)


def list_stated_ranges():
    """Return record, field, its rule, and the range that the record's docstring states."""
    for cls in RECORDS:
        meanings = parse_arguments(cls)
        for entry in fields(cls):
            stated = re.search(rf"(above )?({NUMBER}) to ({NUMBER})", meanings.get(entry.name, ""))
            rule = entry.metadata.get("rule")
            if stated and rule is not None and rule.check is not None and entry.type.split(" ")[0] in ("int", "float"):
                low, high = (eval(end) for end in stated.groups()[1:])
                yield pytest.param(rule.check, stated[1] is not None, low, high, id=f"{cls.__name__}.{entry.name}")


@pytest.mark.parametrize("check, low_open, low, high", list(list_stated_ranges()))
def test_docstrings_state_the_ranges(check, low_open, low, high):
    check("field", high)
    with pytest.raises(ScenarioError, match="field = "):
        check("field", high + max(1, high // 2**30))
    if low_open:
        with pytest.raises(ScenarioError, match="field = "):
            check("field", low)
    else:
        check("field", low)
        with pytest.raises(ScenarioError, match="field = "):
            check("field", low - max(1e-9, abs(low) / 2))


@dataclass(frozen=True, kw_only=True)
class Visit:
    path: tuple = field(metadata=links(core="path"))
    start_s: float = field(default=0.0, metadata=number(0, MAX_DURATION_S, core="start_ns"))
    rate_mbps: float | None = field(default=None, metadata=number(0, 10, core="read_bps"))

    def __post_init__(self):
        check_fields(self, "visit.")


def test_a_field_of_a_record_is_checked_converted_and_set():
    config = _core.FlowConfig()
    config.read_bps = 7.0
    copy_to_core(config, Visit(path=[1, 0], start_s=2))
    assert (list(config.path), config.start_ns, config.read_bps) == ([1, 0], 2_000_000_000, 7.0)  # None leaves what is there
    copy_to_core(config, Visit(path=[1], rate_mbps=2.5))
    assert config.read_bps == 2_500_000
    with pytest.raises(ScenarioError, match=r"visit\.start_s = -1\.0 is out of range; valid: 0 to 1e"):
        Visit(path=[0], start_s=-1)


def test_names_of_links_are_no_indices():
    assert get_indices(Visit(path=[2, 3]).path) == (2, 3)
    with pytest.raises(ScenarioError, match="valid: those of a record of a Scenario"):
        get_indices(Visit(path=["bottleneck"]).path)
