"""One-line error messages for overrides: the offending word, the likely intended one, and where to see all valid ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hydra.errors import OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from netbuf_gym.errors import ConfigError, NetbufError, shown
from netbuf_gym.training import config_reference
from netbuf_gym.utils.overrides import format_override
from netbuf_gym.utils.suggestions import did_you_mean

MAX_OVERRIDE_CHARACTERS = 100_000
"""Maximum length of an override; Hydra's parser takes a second for as many characters."""
EMPTY_CHOICES = ("null", "''", '""', "")
"""Empty choices, valid only for groups that have no default."""
GLOBAL_GROUPS = ("experiment", "tuned")
"""Groups without a default, whose files set keys of the whole configuration."""
SWEEP_SYNTAX = re.compile(
    r"(?<!\\)(?:\\\\)*,|^(choice|range|glob|interval|sort|shuffle|tag|extend_list|str|int|float|bool|json_str)\("
)
QUOTED_TEXT = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
HYDRA_HINTS = {
    "hydra.run.dir": "run_dir=DIR sets where a run is written",
    "hydra.sweep.dir": "it sets where --multirun writes",
    "hydra.sweep.subdir": "it sets where --multirun writes",
    "hydra/launcher": "it chooses the launcher of --multirun",
    "hydra.job.chdir": "jobs run where they are started",
}


def check_override(override: str, job: str, folders: Sequence[Path]) -> None:
    """Raise ConfigError for an override that Hydra would misread, or answer with a traceback.

    Args:
        override: Override as written on the command line.
        job: Name of the job.
        folders: Folders of configuration files beside `conf/`.
    """
    key, equals, value = override.partition("=")
    try:
        override.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"argument {shown(override)} is no valid Unicode") from None
    if len(override) > MAX_OVERRIDE_CHARACTERS:
        raise ConfigError(f"argument {shown(override)} has {len(override)} characters; valid: up to {MAX_OVERRIDE_CHARACTERS}")
    if not equals and not override.startswith("~"):
        hint = did_you_mean(override, [f"{name}=" for name in list_known_keys(job)])
        raise ConfigError(f"argument {shown(override)} is not of the form key=value; {hint}{_format_help_hint(job)}")
    name = key.lstrip("+~").partition("@")[0]
    if not name.strip():
        raise ConfigError(f"argument {shown(override)} names no key; valid: key=value; {_format_help_hint(job)}")
    if (alone := name.partition(".")[0]) != name and alone in config_reference.ALIASES.get(job, {}):
        raise ConfigError(f"argument {shown(override)}: {describe_unknown_key(alone, job)}")
    if re.match(r"hydra\b", name):
        hint = HYDRA_HINTS.get(name, f"see netbuf-gym {job} --help")
        raise ConfigError(f"argument {shown(override)}: a setting of Hydra's that has no effect here; {hint}")
    if (
        key.startswith("~")
        and ".kwargs." not in name
        and not (name in config_reference.read_groups(job) and name in GLOBAL_GROUPS)
    ):
        raise ConfigError(f"argument {shown(override)}: only what stands below kwargs can be taken away")
    group = name if name in config_reference.read_groups(job) or name in config_reference.ALIASES.get(job, {}) else None
    if group in (None, "scenario") or key.startswith("~") or "@" in key or is_sweep(value):
        return
    choice, valid = value.strip().strip("'\""), config_reference.read_choices(group, *folders)
    if group == "tuned" and any(one.startswith(f"{choice}/") for one in valid):
        return
    if group in GLOBAL_GROUPS and (value.strip() in EMPTY_CHOICES or value.startswith("[")):
        return
    if choice not in valid:
        hint = did_you_mean(choice, valid)
        raise ConfigError(f"{group} = {shown(choice)} is unknown; {hint}valid: {', '.join(valid) or 'none, there is none yet'}")


def is_sweep(value: str) -> bool:
    """Return whether a value may be a sweep: not one quoted text, and with a comma or a leading function call."""
    value = value.strip()
    return SWEEP_SYNTAX.search(value) is not None and QUOTED_TEXT.fullmatch(value) is None


def list_known_keys(job: str) -> list[str]:
    """Return every key and group that may stand before `=`, including the `kwargs` keys of the files in `conf/`."""
    found = [
        *config_reference.read_groups(job),
        *config_reference.ALIASES.get(job, {}),
        *(key.name for key in config_reference.list_keys(job)),
    ]
    for group in config_reference.read_groups(job):
        if group not in (*GLOBAL_GROUPS, "logger"):
            found += [
                name
                for choice in config_reference.read_choices(group)
                for name in config_reference.read_choice_kwargs(group, choice)
            ]
    return list(dict.fromkeys(found))


def describe_unknown_key(key: str, job: str) -> str:
    """Return the message for an unknown key."""
    if key in config_reference.ALIASES.get(job, {}):
        valid = ", ".join(config_reference.read_choices(key))
        return f"in {job} {key!r} is a task's name and has no keys; valid: {key}=NAME, of {valid}"
    return f"there is no key {shown(key)}; {did_you_mean(key, list_known_keys(job))}{_format_help_hint(job)}"


@contextmanager
def explain_errors(overrides: Sequence[str], job: str) -> Iterator[None]:
    """Convert any error of Hydra or OmegaConf in the `with` block to a ConfigError of one line."""
    try:
        yield
    except Exception as error:  # any error of Hydra's parts or of a user's files
        raise explain_error(error, overrides, job) from None


def explain_error(error: Exception, overrides: Sequence[str], job: str) -> ConfigError:
    """Convert an error of Hydra or OmegaConf to a ConfigError, reworded where the cause is known."""
    if isinstance(error, NetbufError):
        return ConfigError(str(error))
    said = format_one_line(error)
    if isinstance(error, OverrideParseException):
        said = said.removeprefix("LexerNoViableAltException: ")
        key, equals, value = str(error.override).partition("=")
        text = equals and value[:1] not in ("[", "{", "'", '"') and not is_sweep(value)
        hint = f"; as a text: {format_override(key, value)}" if text and len(value) < 200 else ""
        return ConfigError(f"argument {shown(error.override)} cannot be read: {said}{hint}")
    ambiguous = re.match(r"Ambiguous value for argument '(.*?)' 1\.|Sweep parameters '(.*)' requires --multirun", said)
    if ambiguous:
        return ConfigError(
            f"{shown(ambiguous[1] or ambiguous[2])} names several values; valid: one, a list in brackets (key=[a,b]),"
            " or each in turn by --multirun (-m)"
        )
    names = list_known_keys(job)
    for override in overrides:
        key = override.partition("=")[0].lstrip("+~")
        if not _is_known(key, names):
            return ConfigError(f"argument {shown(override)}: {describe_unknown_key(key, job)}")
    merging = re.match(r"Error merging override (\S+?)=(.*?) ((?:Value|field|Cannot|Invalid|Key|Merge).*)", said)
    if merging:
        kinds = {one.name: one.kind for one in config_reference.list_keys(job)}
        valid = f"; valid: {kinds[merging[1]]}" if merging[1] in kinds else ""
        return ConfigError(f"{merging[1]} = {shown(merging[2])}: {merging[3]}{valid}")
    what = said if isinstance(error, OmegaConfBaseException) or said else type(error).__name__
    return ConfigError(f"{shown(' '.join(overrides))[1:-1]}: {what}" if overrides else what)


def format_one_line(error: Exception) -> str:
    """Join an error's message and its cause's into one line, without search paths and line breaks."""
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


def _format_help_hint(job: str) -> str:
    return f"netbuf-gym {job} --help lists all"
