"""What is wrong with an override, in one line: the word, what was probably meant, and where to see all that is valid."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hydra.errors import OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from netbuf_gym.errors import ConfigError, NetbufError, shown
from netbuf_gym.training import config_reference
from netbuf_gym.utils.overrides import word
from netbuf_gym.utils.suggestions import did_you_mean

MOST = 100_000
"""Characters of an override; Hydra's reader takes a second for as many."""
NOBODY = ("null", "''", '""', "")
"""Choices that only a group may be that is none by default."""
APART = ("experiment", "tuned")
"""Such groups, whose files speak of the whole configuration."""
SEVERAL = re.compile(r",|^(choice|range|glob|interval|sort|shuffle|tag|extend_list|str|int|float|bool|json_str)\(")
QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
HYDRA = {
    "hydra.run.dir": "run_dir=DIR says where a run is written",
    "hydra.sweep.dir": "it says where --multirun writes",
    "hydra.sweep.subdir": "it says where --multirun writes",
    "hydra/launcher": "it says who runs the jobs of --multirun",
    "hydra.job.chdir": "jobs run where they are started",
}


def check(override: str, job: str, folders: Sequence[Path]) -> None:
    """Refuses what Hydra would take for something else, or would answer with a trace back.

    Raises:
        ConfigError: as said.
    """
    key, equals, value = override.partition("=")
    try:
        override.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"argument {shown(override)} is no valid Unicode") from None
    if len(override) > MOST:
        raise ConfigError(f"argument {shown(override)} has {len(override)} characters; valid: up to {MOST}")
    if not equals and not override.startswith("~"):
        hint = did_you_mean(override, [f"{name}=" for name in known(job)])
        raise ConfigError(f"argument {shown(override)} is not of the form key=value; {hint}{_see(job)}")
    name = key.lstrip("+~").partition("@")[0]
    if not name.strip():
        raise ConfigError(f"argument {shown(override)} names no key; valid: key=value; {_see(job)}")
    if (alone := name.partition(".")[0]) != name and alone in config_reference.ALIASES.get(job, {}):
        raise ConfigError(f"argument {shown(override)}: {unknown(alone, job)}")
    if re.match(r"hydra\b", name):
        hint = HYDRA.get(name, f"see netbuf-gym {job} --help")
        raise ConfigError(f"argument {shown(override)}: a setting of Hydra's that has no effect here; {hint}")
    if key.startswith("~") and ".kwargs." not in name and not (name in config_reference.groups(job) and name in APART):
        raise ConfigError(f"argument {shown(override)}: only what stands below kwargs can be taken away")
    group = name if name in config_reference.groups(job) or name in config_reference.ALIASES.get(job, {}) else None
    if group in (None, "scenario") or key.startswith("~") or "@" in key or several(value):
        return
    choice, valid = value.strip().strip("'\""), config_reference.choices(group, *folders)
    if group == "tuned" and any(one.startswith(f"{choice}/") for one in valid):
        return
    if group in APART and (value.strip() in NOBODY or value.startswith("[")):
        return
    if choice not in valid:
        hint = did_you_mean(choice, valid)
        raise ConfigError(f"{group} = {shown(choice)} is unknown; {hint}valid: {', '.join(valid) or 'none, there is none yet'}")


def several(value: str) -> bool:
    """Whether a value may be a sweep: it holds a comma or begins as a function does, and is not one text in quotes."""
    value = value.strip()
    return SEVERAL.search(value) is not None and QUOTED.fullmatch(value) is None


def known(job: str) -> list[str]:
    """Every key and group that may stand before `=`, those of `kwargs` in our files among them."""
    found = [
        *config_reference.groups(job),
        *config_reference.ALIASES.get(job, {}),
        *(key.name for key in config_reference.keys(job)),
    ]
    for group in config_reference.groups(job):
        if group not in (*APART, "logger"):
            found += [name for choice in config_reference.choices(group) for name in config_reference.kwargs_of(group, choice)]
    return list(dict.fromkeys(found))


def unknown(key: str, job: str) -> str:
    """What is said of a key that there is not."""
    if key in config_reference.ALIASES.get(job, {}):
        valid = ", ".join(config_reference.choices(key))
        return f"in {job} {key!r} is a task's name and has no keys; valid: {key}=NAME, of {valid}"
    return f"there is no key {shown(key)}; {did_you_mean(key, known(job))}{_see(job)}"


def explained(error: Exception, overrides: Sequence[str], job: str) -> ConfigError:
    """What Hydra or OmegaConf says, in our words where we know better."""
    if isinstance(error, NetbufError):
        return ConfigError(str(error))
    said = one_line(error)
    if isinstance(error, OverrideParseException):
        said = said.removeprefix("LexerNoViableAltException: ")
        key, equals, value = str(error.override).partition("=")
        text = equals and value[:1] not in ("[", "{", "'", '"') and not several(value)
        hint = f"; as a text: {word(key, value)}" if text and len(value) < 200 else ""
        return ConfigError(f"argument {shown(error.override)} cannot be read: {said}{hint}")
    ambiguous = re.match(r"Ambiguous value for argument '(.*?)' 1\.|Sweep parameters '(.*)' requires --multirun", said)
    if ambiguous:
        return ConfigError(
            f"{shown(ambiguous[1] or ambiguous[2])} names several values; valid: one, a list in brackets (key=[a,b]),"
            " or each in turn by --multirun (-m)"
        )
    names = known(job)
    for override in overrides:
        key = override.partition("=")[0].lstrip("+~")
        if not _is_known(key, names):
            return ConfigError(f"argument {shown(override)}: {unknown(key, job)}")
    merging = re.match(r"Error merging override (\S+?)=(.*?) ((?:Value|field|Cannot|Invalid|Key|Merge).*)", said)
    if merging:
        kinds = {one.name: one.kind for one in config_reference.keys(job)}
        valid = f"; valid: {kinds[merging[1]]}" if merging[1] in kinds else ""
        return ConfigError(f"{merging[1]} = {shown(merging[2])}: {merging[3]}{valid}")
    what = said if isinstance(error, OmegaConfBaseException) or said else type(error).__name__
    return ConfigError(f"{shown(' '.join(overrides))[1:-1]}: {what}" if overrides else what)


def one_line(error: Exception) -> str:
    """An error's message and its reason, without search paths and line breaks."""
    messages = [str(error)]
    if isinstance(error.__cause__, OmegaConfBaseException):
        messages.append(str(error.__cause__))
    kept = []
    for message in messages:
        for line in map(str.strip, message.splitlines()):
            if line.startswith(("Config search path", "See https")):
                break
            if line.strip("^") and not line.startswith(("full_key:", "object_type=", "reference_type=", "Set the env")):
                kept.append(line if len(line) <= 200 else f"{line[:197]}...")
    return " ".join(kept)


def _is_known(key: str, names: Sequence[str]) -> bool:
    if key in names or ".kwargs." in key or ".policy_kwargs." in key or key.startswith("search."):
        return True
    return any(name.startswith(f"{key}.") for name in names)


def _see(job: str) -> str:
    return f"netbuf-gym {job} --help lists all"
