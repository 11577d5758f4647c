"""Trained senders in integers as congestion controls: files that `netbuf-gym compile` writes.

    world = nb.scenarios.dumbbell(rate_mbps=10, senders=["cubic", {"name": "compiled", "agent": "sender.policy"}])

A file is a zip of `policy.json`, what it was made of, and `policy.bin`, `struct nb_policy` of cpp/policy/policy.h. The
simulator runs it as the kernel would: integers alone, a decision at the first ACK after the end of an interval.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netbuf_gym import _core
from netbuf_gym.errors import ScenarioError, quote
from netbuf_gym.scenarios.python_control import COMPILED, OwnControl
from netbuf_gym.utils.files import write_atomic

SUFFIX = ".policy"
SCHEMA = "netbuf-gym/compiled/1"
ABOUT, POLICY = "policy.json", "policy.bin"
MOST_ABOUT_BYTES = 1 << 16
_STAMP = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class CompiledAgent(OwnControl):
    """Trained sender in integers, for `Flow.cc` and `Sender.cc`; see `load_compiled_agent`.

    Attributes:
        control: Path of the file, as it was given.
        policy: `struct nb_policy`.
        about: What it was made of, JSON-able: `agent`, `model_sha256`, `network`, `recipe`, `interval_s`, and others.
    """

    control: str
    policy: bytes = field(repr=False, default=b"")
    about: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        pass  # checked where it was read

    @property
    def name(self) -> str:
        """Name of the file."""
        return Path(self.control).name

    def __str__(self) -> str:
        return self.name

    def to_dict(self, field: str) -> dict[str, Any]:
        """Return the value of a field that reads the file again."""
        return {"name": COMPILED, "agent": self.control}

    def configure_flow(self, config: _core.FlowConfig) -> None:
        """Set the agent as the congestion control of a flow's configuration."""
        config.set_compiled_agent(self.policy, self.name)


def parse_compiled_agent(name: str, parameters: Mapping[str, object]) -> CompiledAgent:
    """Return the agent that a value `{"name": "compiled", "agent": FILE}` of a field means.

    Args:
        name: Name of the field, for messages.
        parameters: What stands beside the name.

    Raises:
        ScenarioError: Other parameters, or a file that is none.
    """
    file = parameters.get("agent")
    if set(parameters) != {"agent"} or not isinstance(file, (str, os.PathLike)):
        valid = f'{{"name": "{COMPILED}", "agent": FILE}}, a file that netbuf-gym compile wrote'
        raise ScenarioError(f"{name} = {quote({'name': COMPILED, **parameters})}; valid: {valid}")
    return load_compiled_agent(file, f"{name}.agent")


def load_compiled_agent(file: str | os.PathLike[str], name: str = "agent") -> CompiledAgent:
    """Read a trained sender that `netbuf-gym compile` has written.

    Args:
        file: Path of the file.
        name: Name of the argument, for messages.

    Raises:
        ScenarioError: No such file, or another kind of file, or one of another version.
    """
    given = f"{name} = {quote(os.fspath(file))}"
    try:
        with zipfile.ZipFile(file) as packed:
            about = json.loads(_read_member(packed, ABOUT, MOST_ABOUT_BYTES))
            if not isinstance(about, dict) or about.get("schema") != SCHEMA:
                found = about.get("schema") if isinstance(about, dict) else None
                raise ScenarioError(f"{given}: schema {quote(found)}; valid: {SCHEMA}, which netbuf-gym compile writes")
            policy = _read_member(packed, POLICY, _core.POLICY_BYTES)
    except FileNotFoundError:
        raise ScenarioError(f"{given}: there is no such file; valid: one that netbuf-gym compile wrote") from None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise ScenarioError(f"{given}: {error}; valid: a file that netbuf-gym compile wrote") from None
    if hashlib.sha256(policy).hexdigest() != about.get("sha256"):
        raise ScenarioError(f"{given}: {POLICY} is damaged; valid: a file that netbuf-gym compile wrote")
    try:
        _core.IntegerPolicy(policy, 0)
    except ValueError as error:
        raise ScenarioError(f"{given}: {error}") from None
    return CompiledAgent(os.fspath(file), policy, about)


def _read_member(packed: zipfile.ZipFile, name: str, most: int) -> bytes:
    with packed.open(name) as member:
        data = member.read(most + 1)
    if len(data) > most:
        raise ValueError(f"{name} is longer than {most:,} bytes")
    return data


def write_compiled_agent(file: str | os.PathLike[str], policy: bytes, about: Mapping[str, Any]) -> None:
    """Write a policy and what it was made of; the same bytes for the same arguments.

    Raises:
        OSError: The file cannot be written.
    """
    told = {"schema": SCHEMA, **about, "sha256": hashlib.sha256(policy).hexdigest()}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr(zipfile.ZipInfo(ABOUT, _STAMP), json.dumps(told, indent=1) + "\n", zipfile.ZIP_DEFLATED)
        out.writestr(zipfile.ZipInfo(POLICY, _STAMP), policy, zipfile.ZIP_DEFLATED)
    write_atomic(file, packed.getvalue())
