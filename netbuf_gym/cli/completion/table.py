"""Table of everything that can be typed, as plain data: commands with options, jobs with groups and keys, names."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

from netbuf_gym import plants, scenarios, tasks, traces
from netbuf_gym.cli import jobs as job_commands
from netbuf_gym.cli.inventory import TOPICS
from netbuf_gym.cli.program import build_parser
from netbuf_gym.envs import registration
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.suites import SUITES
from netbuf_gym.evaluation.suites.config import KEYS
from netbuf_gym.traces.generators import list_parameters
from netbuf_gym.training import config_reference
from netbuf_gym.training.schema import ACTIVATIONS
from netbuf_gym.utils import checkout
from netbuf_gym.utils.executors import EXECUTORS
from netbuf_gym.zoo import library

TAKES = {
    "scenario": "named:scenarios",
    "senders": "list:congestion_controls",
    "scheme": "one:schemes",
    "set": "set:--scenario",
    "what": "one:topics",
    "overrides": "overrides:",
    "settings": "overrides:reproduce",
}
"""Values of arguments, by name, that parsers do not state."""
VALUES: dict[str, dict[str, Any]] = {
    "train": {
        "env.name": "one:tasks",
        "env.id": "one:environments",
        "scenario.name": "named:scenarios",
        "reward.name": "one:rewards",
        "algo.name": "one:algorithms",
        "algo.activation": dict.fromkeys(ACTIVATIONS, ""),
        "run_dir": "dir",
        "resume": "dir",
        "start_from": "named:agents",
        "env.kwargs.recipe": "one:recipes",
    },
    "evaluate": {
        "model": "named:agents",
        "env": "one:tasks",
        "task": "one:tasks",
        "env_id": "one:environments",
        "recipe": "one:recipes",
        "scenario.name": "named:scenarios",
        "baselines": "list:controllers",
        "plant": "one:plants",
        "run_dir": "dir",
    },
}
EXTRA_KEYS = {"train": {}, "evaluate": {"env": "the same as task"}}


def make_table() -> dict[str, Any]:
    """Make the table, with studies of the checkout found from here, if there is one."""
    studies = _describe_studies()
    return {
        "commands": {"": _describe_command(build_parser(), "", {name: one["summary"] for name, one in studies.items()})},
        "jobs": {"train": _describe_job("train"), "evaluate": _describe_job("evaluate")}
        | {f"reproduce {name}": _describe_study(name, one) for name, one in studies.items()}
        | {"suite": _describe_suite()},
        "names": _collect_names()
        | {f"{key} of {name}": own for name, one in studies.items() for key, own in one["lists"].items()},
        "arguments": _collect_arguments(),
    }


def _describe_studies() -> dict[str, Any]:
    """Return `studies.catalogue.describe_settings()`; empty without a checkout that fits this package."""
    found = checkout.find_checkout()
    try:
        return {} if found is None else checkout.import_studies(found, "catalogue").describe_settings()
    except ConfigError:
        return {}


def _describe_command(parser: argparse.ArgumentParser, name: str, studies: dict[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {"help": "", "options": {}, "positionals": [], "endless": False, "commands": {}}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            said = {one.dest: one.help or "" for one in action._choices_actions}
            for word, own in action.choices.items():
                made["commands"][word] = _describe_command(own, word, studies) | {"help": said.get(word, "")}
        elif not action.option_strings:
            made["positionals"].append(_resolve_takes(action, name, studies))
            made["endless"] = action.nargs in ("*", "+")
        else:
            takes = None if action.nargs == 0 else _resolve_takes(action, name, studies)
            repeated = isinstance(action, argparse._AppendAction)
            option = {"help": action.help or "", "takes": takes, "optional": action.nargs == "?", "repeated": repeated}
            made["options"] |= dict.fromkeys(action.option_strings, option)
    return made


def _resolve_takes(action: argparse.Action, command: str, studies: dict[str, str]) -> Any:
    if action.choices is not None:
        return {str(choice): "" for choice in action.choices}
    if action.dest == "overrides":
        return f"overrides:{job_commands.CONFIGURATION[command]}"
    if action.dest == "experiment":
        return studies
    if action.dest == "suite":
        return {one.name: one.summary for one in SUITES.values()}
    if action.dest == "settings" and command == "suite":
        return "overrides:suite"
    if action.dest == "set" and command == "generate":
        return "set:"
    if action.dest in TAKES:
        return TAKES[action.dest]
    what = {"FILE": "file", "DIR": "dir"}.get(str(action.metavar), "file" if action.dest in ("file", "out") else "any")
    return what


def _describe_job(job: str) -> dict[str, Any]:
    groups, keys = config_reference.read_groups(job), config_reference.list_keys(job)
    said = {key.name: f"{key.meaning} ({key.kind}, {config_reference.format_value(key.default)})" for key in keys}
    of_groups = {group: f"a file of conf/{group} (default: {choice or 'null'})" for group, choice in groups.items()}
    values: dict[str, Any] = dict(VALUES[job])
    for key in keys:
        if key.name not in values and key.kind.startswith("bool"):
            values[key.name] = {"true": "", "false": ""}
        elif key.name not in values and "null" in key.kind:
            values[key.name] = {"null": "none"}
    for group in groups:
        values[group] = "named:scenarios" if group == "scenario" else config_reference.read_choices(group)
    kwargs, named = {}, {}
    for group in ("algo", "scenario", "reward", "env"):
        if group in groups:
            own = {
                choice: config_reference.read_choice_kwargs(group, choice) for choice in config_reference.read_choices(group)
            }
            kwargs[group] = {
                choice: {name: config_reference.format_value(value) for name, value in found.items() if ".kwargs." in name}
                for choice, found in own.items()
            }
            named[group] = {choice: str(found.get(f"{group}.name") or choice) for choice, found in own.items()}
    return {
        "keys": of_groups | said | EXTRA_KEYS[job],
        "values": values,
        "defaults": groups,
        "kwargs": kwargs,
        "named": named,
    }


def _describe_study(name: str, study: dict[str, Any]) -> dict[str, Any]:
    own = {key: f"list:{key} of {name}" if key in study["lists"] else found for key, found in study["choices"].items()}
    values = {**own, "output": "dir", "executor": _describe_executors(), "figures": {"true": "", "false": ""}}
    return {"keys": dict.fromkeys(study["keys"], ""), "values": values, "defaults": {}, "kwargs": {}, "named": {}}


def _describe_executors() -> dict[str, str]:
    return {one.name: one.says for one in EXECUTORS.values()}


def _describe_suite() -> dict[str, Any]:
    """Return the keys and values of all suites; controllers are those of the first suite's task."""
    own = list(SUITES.values())
    values = {
        "controller": f"list:controllers of {own[0].task}",
        "families": "list:families",
        "output": "dir",
        "against": "file",
        "executor": _describe_executors(),
        "beside": "file",
        "figures": {"true": "", "false": ""},
    }
    return {"keys": dict(KEYS), "values": values, "defaults": {}, "kwargs": {}, "named": {}}


def _collect_names() -> dict[str, dict[str, str]]:
    own = {name: scenarios.describe(name) for name in scenarios.names()}
    patterns = {form.partition("PATH")[0]: p.description for form, p in scenarios.PATTERNS.items() if form.endswith(":PATH")}
    files = {name: said for name, said in config_reference.read_choices("scenario").items() if name not in own}
    return {
        "scenarios": own | patterns | files,
        "congestion_controls": {name: one.meaning for name, one in scenarios.CONGESTION_CONTROLS.items()},
        "schemes": {name: one.description for name, one in scenarios.SCHEMES.items()},
        "tasks": {record.name: record.summary for record in tasks.records()},
        "environments": {name: record.summary for name, record in registration.environment_records().items()},
        "rewards": {name: record.name for record in tasks.records() for name in record.rewards},
        "controllers": {name: record.name for record in tasks.records() for name in record.controllers},
        **{
            f"controllers of {record.name}": {
                **dict.fromkeys(record.controllers, "controller"),
                **{name: "comes with the package" for name in library.names() if name.startswith(f"{record.name}/")},
            }
            for record in tasks.records()
        },
        "families": {name: said for one in SUITES.values() for name, said in one.families.items()},
        "recipes": {recipe: record.name for record in tasks.records() for recipe in record.rules.recipes},
        "algorithms": config_reference.read_choices("algo"),
        "plants": dict.fromkeys(plants.names(), ""),
        "topics": {"all": ""} | dict.fromkeys(TOPICS, ""),
        "agents": {"null": "baselines alone"} | dict.fromkeys(library.names(), "comes with the package"),
    }


def _collect_arguments() -> dict[str, list[str]]:
    """Return the arguments of scenarios, trace generators, rewards and tasks, by name."""
    found = {name: list(scenarios.parameters_of(name)) for name in scenarios.names()}
    for form, pattern in scenarios.PATTERNS.items():
        if pattern.example and form.endswith(":PATH"):
            found[form.partition("PATH")[0]] = list(scenarios.parameters_of(pattern.example))
    found |= {name: list(list_parameters(name)) for name in traces.GENERATORS}
    for record in tasks.records():
        found[record.name] = [name for name in inspect.signature(record.rules).parameters if name not in ("self", "kwargs")]
        for name, reward in record.rewards.items():
            found[name] = [one for one in inspect.signature(reward).parameters if one != "self"]
    return found
