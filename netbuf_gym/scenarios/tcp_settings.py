"""Settings of the kernel's TCP that a single connection, or a host, may have for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from netbuf_gym.scenarios.fields import boolean, number

HANDSHAKE_OPTIONS = ("window_scaling", "timestamps", "sack")
"""Settings that both ends must have for a connection to use them."""


@dataclass(frozen=True, kw_only=True)
class TcpSettings:
    """Settings of a connection, or of all connections at a host.

    Args:
        max_rto_ms, slow_start_after_idle, window_scaling, timestamps, sack: As in `Scenario`; None: not set here.
    """

    max_rto_ms: float | None = field(default=None, metadata=number(1000, 120_000, core="max_rto_ns"))
    slow_start_after_idle: bool | None = field(default=None, metadata=boolean(core="slow_start_after_idle"))
    window_scaling: bool | None = field(default=None, metadata=boolean(core="window_scaling"))
    timestamps: bool | None = field(default=None, metadata=boolean(core="timestamps"))
    sack: bool | None = field(default=None, metadata=boolean(core="sack"))


def list_settings(record: TcpSettings) -> list[str]:
    """Return the names of the settings that a record has."""
    return [field.name for field in fields(TcpSettings) if getattr(record, field.name) is not None]


def uses_option(option: str, ends: Any, hosts: Sequence[Any], usual: bool) -> bool:
    """Return whether a connection uses one of the `HANDSHAKE_OPTIONS`.

    Both ends must have the option. An end has it unless the connection or its host is without it; where both say nothing, as
    in the scenario.

    Args:
        option: Name of the option.
        ends: Flow, sender or relay.
        hosts: Hosts of the scenario.
        usual: The scenario's setting.
    """
    if not hosts and getattr(ends, option) is None:
        return usual
    at_hosts = {host.name: getattr(host, option) for host in hosts}
    for name in (ends.sender_host, ends.receiver_host):
        said = {getattr(ends, option), at_hosts.get(name)} - {None}
        if not (all(said) if said else usual):
            return False
    return True
