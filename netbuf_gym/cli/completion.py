"""`netbuf-gym completion`: completion of commands, options, configuration keys, names and files in a shell, by argcomplete."""

from __future__ import annotations

import argparse
import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argcomplete.completers import BaseCompleter, DirectoriesCompleter, FilesCompleter
from argcomplete.finders import ExclusiveCompletionFinder
from argcomplete.shell_integration import shellcode

from netbuf_gym.cli.program import JOBS, PROGRAM, build_parser, import_command
from netbuf_gym.errors import ConfigError

SHELLS = ("bash", "zsh", "fish")
EPILOG = """lines for the start-up file of the shell:
  bash  eval "$(netbuf-gym completion bash)"      ~/.bashrc
  zsh   eval "$(netbuf-gym completion zsh)"       ~/.zshrc
  fish  netbuf-gym completion fish | source       ~/.config/fish/config.fish
"""
LOAD_ZSH_COMPLETION = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -u }\n"

Names = dict[str, str]
"""Texts that can stand in the place of an unfinished word, or a part of it, with their meanings."""
Source = Names | str
"""Values that an argument or a setting takes: names, a topic of `netbuf-gym list`, `file` or `folder`."""

SOURCES: dict[str, Source] = {
    "FILE": "file",
    "AGENT": "agents",
    "DIR": "folder",
    "against": "file",
    "baselines": "controllers",
    "beside": "file",
    "controller": "controllers",
    "env.id": "environments",
    "env_id": "environments",
    "evaluation": "file",
    "figures": {"true": "", "false": ""},
    "file": "file",
    "folder": "folder",
    "handed_in": "folder",
    "imitate.agent": "agents",
    "model": "agents",
    "output": "folder",
    "plant": "plants",
    "results": "folder",
    "resume": "folder",
    "reward.name": "rewards",
    "run_dir": "folder",
    "runs": "folder",
    "scenario": "scenarios",
    "scenario.name": "scenarios",
    "scheme": "schemes",
    "senders": "congestion-controls",
    "start_from": "agents",
}
"""Sources of arguments, by placeholder or name, and of settings, by key."""
LISTS = ("baselines", "controller", "families")
"""Settings that take a list in brackets."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=SHELLS, help="name of the shell")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    print(LOAD_ZSH_COMPLETION if arguments.shell == "zsh" else "", end="")
    print(shellcode([PROGRAM], shell=arguments.shell))
    return 0


def print_completions(**output: Any) -> None:
    """Write the candidates for the unfinished word in `COMP_LINE` to where the shell's script reads them; end the process.

    Args:
        output: Another destination: `output_stream` and `exit_method` of argcomplete.
    """
    command = os.environ.get("COMP_LINE", "").split()[1:2]
    Finder()(build_parser(command), always_complete_options=False, default_completer=ArgumentCompleter(), **output)


class Finder(ExclusiveCompletionFinder):
    """Completion finder that also completes settings typed after an option, which argparse does not assign to the command."""

    def collect_completions(
        self, active_parsers: list[argparse.ArgumentParser], parsed_args: argparse.Namespace, cword_prefix: str
    ) -> list[str]:
        """Return the completions of the unfinished word."""
        found = super().collect_completions(active_parsers, parsed_args, cword_prefix)
        if found or cword_prefix.startswith("-") or not hasattr(parsed_args, "settings"):
            return found
        settings = complete_setting(cword_prefix, parsed_args)
        self.get_display_completions().update(settings)
        return [word for word in settings if word.startswith(cword_prefix)]


class ArgumentCompleter(BaseCompleter):
    """Completer of arguments that have no choices."""

    def __call__(
        self, *, prefix: str, action: argparse.Action, parser: argparse.ArgumentParser, parsed_args: argparse.Namespace
    ) -> Names:
        """Return the candidates for the unfinished value of an argument."""
        return complete_argument(action, prefix, parsed_args)


def complete_argument(action: argparse.Action, prefix: str, parsed_args: argparse.Namespace) -> Names:
    """Return the candidates for the unfinished value of an argument."""
    if action.dest == "settings":
        return complete_setting(prefix, parsed_args)
    if action.dest == "set":
        generator = getattr(parsed_args, "kind", None)
        found = list_parameters("traces", generator) if generator else list_parameters("scenarios", parsed_args.scenario)
        return {f"{name}=": meaning for name, meaning in found.items()}
    if action.dest == "experiment":
        return {name: study["summary"] for name, study in describe_studies().items()}
    if action.dest == "suite":
        from netbuf_gym.evaluation.suites import SUITES

        return {one.name: one.summary for one in SUITES.values()}
    return complete_value(SOURCES.get(str(action.metavar), SOURCES.get(action.dest, {})), prefix)


def complete_setting(typed: str, parsed_args: argparse.Namespace) -> Names:
    """Return the candidates for a setting KEY=VALUE of a command."""
    key, equals, value = typed.partition("=")
    name = key.lstrip("+~")
    sign = key[: len(key) - len(name)]
    given = dict(word.partition("=")[::2] for word in getattr(parsed_args, "settings", None) or ())
    keys, sources, lists = describe_settings(parsed_args, given)
    if equals:
        found = complete_value(sources.get(name, SOURCES.get(name, {})), value, brackets=name in lists)
        return {f"{key}={one}": meaning for one, meaning in found.items()}
    ending = "" if sign == "~" else "="
    found = shorten_keys({f"{one}{ending}": meaning for one, meaning in keys.items() if one not in given}, name)
    found = {f"{sign}{one}": meaning for one, meaning in found.items()}
    return found | complete_value("agents", typed) if parsed_args.command == "leaderboard" else found


def shorten_keys(keys: Names, typed: str) -> Names:
    """Return the keys that begin with the typed text, each up to the first dot behind which they differ."""
    found: dict[str, str] = {}
    for key, meaning in keys.items():
        if key.startswith(typed):
            part, dot, _ = key[len(typed) :].partition(".")
            found |= {f"{typed}{part}.": ""} if dot else {key: meaning}
    first = next(iter(found), "")
    return shorten_keys(keys, first) if len(found) == 1 and first.endswith(".") else found


def complete_value(source: Source, typed: str, brackets: bool = False) -> Names:
    """Return the candidates for a value.

    Args:
        source: Values that are possible.
        typed: Unfinished value; behind a comma, the next item of a list.
        brackets: True: a list in brackets.
    """
    if source == "file":
        return dict.fromkeys(FilesCompleter()(typed), "")
    if source == "folder":
        return dict.fromkeys(DirectoriesCompleter()(typed), "")
    names = list_names(source) if isinstance(source, str) else dict(source)
    if brackets or "," in typed:
        return complete_list(names, typed, brackets)
    for name in [one for one in names if one.endswith(":") and typed.startswith(one)]:  # such as trace:PATH
        names |= {f"{name}{path}": "" for path in FilesCompleter()(typed.removeprefix(name))}
    return names | complete_value("file", typed) if source == "agents" else names


def complete_list(names: Names, typed: str, brackets: bool) -> Names:
    """Return the candidates for an unfinished list of different names, separated by commas."""
    before, comma, last = typed.removeprefix("[").rpartition(",")
    start = f"{'[' if brackets else ''}{before}{comma}"
    found = {f"{start}{name}": meaning for name, meaning in names.items() if name not in before.split(",")}
    matching = [one for one in found if one.startswith(f"{start}{last}")]
    if brackets and len(matching) == 1:  # two candidates keep the shell from adding a space
        return {f"{matching[0]}{end}": found[matching[0]] for end in ",]"}
    return found


def list_names(topic: str, task: str | None = None) -> Names:
    """Return the names of a topic of `netbuf-gym list`, of one task or all, with their meanings."""
    entries = [one for one in import_command("list").TOPICS[topic]() if task in (None, one.get("task"))]
    return {one["name"].removesuffix("PATH"): one.get("meaning", one.get("task", "")) for one in entries}


def list_parameters(topic: str, name: str) -> Names:
    """Return the parameters of a named thing with their meanings; none if the topic has no such name."""
    forms = (name, f"{name.partition(':')[0]}:PATH")
    found = [one["parameters"] for one in import_command("list").TOPICS[topic]() if one["name"] in forms]
    return {one["name"]: one["meaning"] for one in found[0]} if found else {}


def describe_settings(
    parsed_args: argparse.Namespace, given: Mapping[str, str]
) -> tuple[Names, dict[str, Source], tuple[str, ...]]:
    """Return the keys that a command takes, sources of their values that `SOURCES` does not have, and the keys of lists.

    Args:
        parsed_args: Arguments before the unfinished word.
        given: Settings among them, by key.
    """
    from netbuf_gym.utils.executors import EXECUTORS

    command = parsed_args.command
    executors = {one.name: one.says for one in EXECUTORS.values()}
    if command in JOBS:
        return *describe_job(command, given, parsed_args.config_dir), LISTS
    if command == "reproduce":
        study = describe_studies().get(parsed_args.experiment, {"keys": {}, "choices": {}, "lists": ()})
        return dict.fromkeys(study["keys"], ""), {"executor": executors, **study["choices"]}, tuple(study["lists"])
    if command == "suite":
        from netbuf_gym.evaluation.suites import SUITES, config

        suite = SUITES.get(parsed_args.suite)
        if suite is None:
            return {}, {}, ()
        controllers = {**list_names("controllers", suite.task), **list_names("agents", suite.task), "best": "by kept results"}
        return config.KEYS, {"executor": executors, "controller": controllers, "families": dict(suite.families)}, LISTS
    keys = import_command(command).KEYS
    return (keys[parsed_args.verb] if command == "live" else keys), {"task": list_tasks()}, ()


def describe_job(command: str, given: Mapping[str, str], config_dir: str | None) -> tuple[Names, dict[str, Source]]:
    """Return the groups and keys of a job with their meanings, and sources of their values that `SOURCES` does not have.

    Args:
        command: Name of the job.
        given: Settings of the command line, by key.
        config_dir: Folder of further groups and files.
    """
    from netbuf_gym import tasks
    from netbuf_gym.training import config_reference, schema

    job = import_command(command).CONFIGURATION[command]
    if job == "tune" and "controller" in given:
        job = "tune_controller"
    folders = [Path(config_dir)] if config_dir else []
    groups, keys = config_reference.read_groups(job), config_reference.list_keys(job)
    found = {name: f"file of conf/{name} (default: {choice or 'null'})" for name, choice in groups.items()}
    found |= {key.name: f"{key.meaning} ({key.kind}; {config_reference.format_value(key.default)})" for key in keys}
    recipes = {recipe: record.name for record in tasks.records() for recipe in record.rules.recipes}
    own: dict[str, Source] = {group: config_reference.read_choices(group, *folders) for group in groups}
    for key in keys:
        if key.name not in SOURCES and (key.kind.startswith("bool") or "null" in key.kind):
            own[key.name] = {"true": "", "false": ""} if key.kind.startswith("bool") else {"null": ""}
    own |= dict.fromkeys(("env.name", "task"), list_tasks()) | dict.fromkeys(("recipe", "env.kwargs.recipe"), recipes)
    own |= {"algo.name": config_reference.read_choices("algo"), "algo.activation": dict.fromkeys(schema.ACTIVATIONS, "")}
    if job in config_reference.ALIASES:
        found["env"], own["env"] = "the same as task", list_tasks()
    if job != "evaluate":
        own["scenario"] = {**list_names("scenarios"), **config_reference.read_choices("scenario", *folders)}
    for group in ("algo", "env", "reward", "scenario"):
        choice = given.get(group) or groups.get(group) or ""
        values = config_reference.read_choice_kwargs(group, choice, *folders)
        found |= {key: config_reference.format_value(value) for key, value in values.items() if ".kwargs." in key}
        name = given.get(f"{group}.name") or str(values.get(f"{group}.name") or choice)
        parameters = list_parameters(f"{group}s", name) if group in ("reward", "scenario") else {}
        if group == "env" and name in tasks.names():
            parameters = dict.fromkeys(inspect.signature(tasks.get(name).rules).parameters, "")
        found |= {f"{group}.kwargs.{one}": meaning for one, meaning in parameters.items() if one != "kwargs"}
    return found, own


def list_tasks() -> Names:
    """Return the names of the tasks with their summaries."""
    from netbuf_gym import tasks

    return {record.name: record.summary for record in tasks.records()}


def describe_studies() -> dict[str, Any]:
    """Return `studies.catalogue.describe_settings()` of the checkout; empty without one that fits this package."""
    from netbuf_gym.utils import checkout

    found = checkout.find_checkout()
    try:
        return {} if found is None else checkout.import_studies(found, "catalogue").describe_settings()
    except ConfigError:
        return {}
