"""One-line error messages for overrides: the offending word, the likely intended one, and where to see all valid ones."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hydra.errors import OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError, NetbufError, quote
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


OTHER_NAMES = {
    **dict.fromkeys(("lr", "learningrate", "step_size"), "learning_rate"),
    **dict.fromkeys(("steps", "timesteps", "max_steps", "num_steps", "n_timesteps", "max_timesteps"), "total_timesteps"),
    **dict.fromkeys(("n_envs", "envs", "num_worlds", "worlds"), "num_envs"),
    **dict.fromkeys(("hidden", "layers", "hidden_sizes", "hidden_layers", "network"), "net_arch"),
    **dict.fromkeys(("entropy_coef", "entropy"), "ent_coef"),
    **dict.fromkeys(("clip", "clip_coef", "clip_param"), "clip_range"),
    **dict.fromkeys(("epochs", "update_epochs"), "n_epochs"),
    **dict.fromkeys(("lam", "gae"), "gae_lambda"),
    **dict.fromkeys(("out", "output", "output_dir", "outdir", "log_dir", "logdir", "save_dir"), "run_dir"),
    **dict.fromkeys(("minibatch_size", "batch"), "batch_size"),
    **dict.fromkeys(("episodes", "n_episodes", "n_eval_episodes", "num_episodes"), "seeds"),
    **dict.fromkeys(("agent", "checkpoint", "policy_path"), "model"),
    **dict.fromkeys(("task", "env_id", "env_name", "environment", "gym_id"), "env"),
    **dict.fromkeys(("algorithm", "algo_name", "learner"), "algo"),
    **dict.fromkeys(("minutes", "time_limit"), "max_minutes"),
    **dict.fromkeys(("discount", "discount_factor"), "gamma"),
    "buffer": "buffer_size",
    "cuda": "device",
}
"""Names that other libraries have for the last parts of keys."""
NEAREST_LEARNERS = {
    **dict.fromkeys(("sac", "td3", "ddpg", "tqc", "crossq"), "ppo, which takes continuous actions"),
    **dict.fromkeys(("trpo", "ppo_penalty"), "ppo_kl, whose updates are bounded by their divergence"),
    **dict.fromkeys(("qrdqn", "ddqn", "doubledqn", "rainbow", "c51", "iqn", "qlearning"), "dqn"),
    **dict.fromkeys(("recurrentppo", "rppo", "r2d2", "drqn", "lstm", "ppolstm"), "ppo_lstm, which has a memory"),
    **dict.fromkeys(("a3c", "impala", "acktr", "actorcritic", "reinforce"), "a2c"),
}
"""Learners of other libraries, each with the one here that is nearest."""


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
        raise ConfigError(f"argument {quote(override)} is no valid Unicode") from None
    if len(override) > MAX_OVERRIDE_CHARACTERS:
        raise ConfigError(f"argument {quote(override)} has {len(override)} characters; valid: up to {MAX_OVERRIDE_CHARACTERS}")
    if not equals and not override.startswith("~"):
        meant = guess_setting(override, job, folders)
        known = [f"{name}=" for name in list_known_keys(job)]
        hint = did_you_mean(override, known) if meant is None else f"did you mean {meant!r}? "
        raise ConfigError(f"argument {quote(override)} is not of the form key=value; {hint}{_format_help_hint(job)}")
    name = key.lstrip("+~").partition("@")[0]
    if not name.strip():
        raise ConfigError(f"argument {quote(override)} names no key; valid: key=value; {_format_help_hint(job)}")
    if (alone := name.partition(".")[0]) != name and alone in config_reference.ALIASES.get(job, {}):
        raise ConfigError(f"argument {quote(override)}: {describe_unknown_key(name, job)}")
    if re.match(r"hydra\b", name):
        hint = HYDRA_HINTS.get(name, f"see netbuf-gym {config_reference.COMMANDS.get(job, job)} --help")
        raise ConfigError(f"argument {quote(override)}: a setting of Hydra's that has no effect here; {hint}")
    if (
        key.startswith("~")
        and ".kwargs." not in name
        and not (name in config_reference.read_groups(job) and name in GLOBAL_GROUPS)
    ):
        raise ConfigError(f"argument {quote(override)}: only what stands below kwargs can be taken away")
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
        nearest = NEAREST_LEARNERS.get(re.sub("[-_ ]", "", choice).lower()) if group == "algo" else None
        if nearest is not None:
            hint = f"nearest: {nearest}; "
        elif group == "env" and (task := tasks.find_task(choice)) is not None:
            hint = f"it is an id of Gymnasium's; did you mean {task!r}? "
        raise ConfigError(f"{group} = {quote(choice)} is unknown; {hint}valid: {', '.join(valid) or 'none, there is none yet'}")


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


def guess_setting(word: str, job: str, folders: Sequence[Path] = ()) -> str | None:
    """Return the setting `key=value` that a value without a key stands for; None if there is none."""
    for group in (*config_reference.ALIASES.get(job, {}), *config_reference.read_groups(job)):
        if word in config_reference.read_choices(group, *folders):
            return format_setting(group, word)
    from netbuf_gym import scenarios
    from netbuf_gym.zoo import library

    if (task := tasks.find_task(word)) is not None:
        return format_setting("env", task)
    if word in scenarios.names():
        return format_setting("scenario", word)
    found = "\0" not in word and Path(word).exists()
    if word in library.names() or found or (job == "evaluate" and "/" in word):
        return format_setting("model" if job == "evaluate" else "resume" if found else "start_from", word)
    return None


def format_setting(key: str, value: str) -> str:
    """Return `key=value` as it is written on a command line."""
    return format_override(key, value) if value else f"{key}=..."


def find_meant_key(key: str, job: str) -> str | None:
    """Return the known key that has the same last part as `key`, by its name here or elsewhere; None if there is none."""
    above, _, last = key.lower().replace("-", "_").rpartition(".")
    names = list_known_keys(job)
    for word in (last, OTHER_NAMES.get(last))[:: 1 if above else -1]:
        same = [name for name in names if name.rpartition(".")[2] == word]
        if same and word not in ("name", "kwargs"):
            return min(same, key=lambda name: (not above or not name.startswith(above.partition(".")[0]), name.count(".")))
    return f"env.kwargs.{last}" if job != "evaluate" and not above and last in list_env_arguments() else None


def list_env_arguments() -> list[str]:
    """Return the keyword arguments that the environments of all tasks take."""
    from netbuf_gym.envs.engine import Engine

    parameters = inspect.signature(Engine).parameters.items()
    own = [option for record in tasks.records() for option in (record.rules.agents_argument, *record.rules.options)]
    return [*(name for name, one in parameters if one.kind is one.KEYWORD_ONLY), *own]


def describe_unknown_key(key: str, job: str) -> str:
    """Return the message for an unknown key."""
    alone, _, last = key.partition(".")[0], *key.rpartition(".")[1:]
    if alone in config_reference.ALIASES.get(job, {}):
        valid = ", ".join(config_reference.read_choices(alone))
        top = {"id": "env_id"}.get(last, last)
        hint = f"did you mean {top!r}? " if top in (one.name for one in config_reference.list_keys(job)) else ""
        return f"in {job} {alone!r} is a task's name and has no keys; {hint}valid: {alone}=NAME, of {valid}"
    meant = find_meant_key(key, job)
    hint = did_you_mean(key, list_known_keys(job)) if meant is None else f"did you mean {meant!r}? "
    return f"there is no key {quote(key)}; {hint}{_format_help_hint(job)}"


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
        return ConfigError(f"argument {quote(error.override)} cannot be read: {said}{hint}")
    ambiguous = re.match(r"Ambiguous value for argument '(.*?)' 1\.|Sweep parameters '(.*)' requires --multirun", said)
    if ambiguous:
        return ConfigError(
            f"{quote(ambiguous[1] or ambiguous[2])} names several values; valid: one, a list in brackets (key=[a,b]),"
            " or each in turn by --multirun (-m)"
        )
    names = list_known_keys(job)
    for override in overrides:
        key = override.partition("=")[0].lstrip("+~")
        if not _is_known(key, names):
            return ConfigError(f"argument {quote(override)}: {describe_unknown_key(key, job)}")
    merging = re.match(r"Error merging override (\S+?)=(.*?) ((?:Value|field|Cannot|Invalid|Key|Merge).*)", said)
    if merging:
        kinds = {one.name: one.kind for one in config_reference.list_keys(job)}
        valid = f"; valid: {kinds[merging[1]]}" if merging[1] in kinds else ""
        return ConfigError(f"{merging[1]} = {quote(merging[2])}: {merging[3]}{valid}")
    what = said if isinstance(error, OmegaConfBaseException) or said else type(error).__name__
    return ConfigError(f"{quote(' '.join(overrides))[1:-1]}: {what}" if overrides else what)


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
    return f"netbuf-gym {config_reference.COMMANDS.get(job, job)} --help lists all"
