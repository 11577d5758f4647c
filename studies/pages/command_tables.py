"""Page of `docs/` about the command line, made from the parsers and the configuration's types."""

from __future__ import annotations

import argparse

from netbuf_gym.cli import jobs
from netbuf_gym.training import config_reference
from netbuf_gym.utils.tables import markdown_table


def format_commands(parser: argparse.ArgumentParser) -> str:
    """Format a section per command: description, arguments and examples; for jobs also configuration groups and keys."""
    parts = []
    for name, own in _find_subparsers(parser).items():
        parts.append(_format_section(own, "##", name))
        parts += [_format_section(verb, "###", f"{name} {word}") for word, verb in _find_subparsers(own).items()]
    for job, configuration in jobs.CONFIGURATION.items():
        if job == configuration:
            parts.append(_format_configuration(job))
    return "\n\n".join(part for part in parts if part)


def _format_section(parser: argparse.ArgumentParser, depth: str, name: str) -> str:
    described, _, rest = (parser.description or "").partition("\n\n")
    parts = [f"{depth} netbuf-gym {name}", f"{described[0].upper()}{described[1:].rstrip('.')}." if described else ""]
    rows = [
        [_format_action(action), " ".join((action.help or "").split())] for action in parser._actions if _is_documented(action)
    ]
    if rows:
        parts.append(markdown_table(["Argument", ""], rows))
    more = parser.epilog or rest
    if more:
        parts.append(f"```text\n{more.strip(chr(10))}\n```")
    return "\n\n".join(part for part in parts if part)


def _format_configuration(job: str) -> str:
    groups = [
        [
            f"`{group}`",
            f"`{'null' if default is None else default}`",
            ", ".join(f"`{one}`" for one in config_reference.read_choices(group)),
        ]
        for group, default in config_reference.read_groups(job).items()
    ]
    keys = [
        [f"`{key.name}`", key.kind, f"`{config_reference.format_value(key.default)}`", key.meaning]
        for key in config_reference.list_keys(job)
    ]
    return "\n\n".join(
        [
            f"## Configuration of netbuf-gym {job}",
            markdown_table(["Group", "Default", "Choices"], groups),
            markdown_table(["Key", "Type", "Default", "Meaning"], keys),
        ]
    )


def _find_subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


def _is_documented(action: argparse.Action) -> bool:
    return not isinstance(action, (argparse._SubParsersAction, argparse._HelpAction))


def _format_action(action: argparse.Action) -> str:
    value = ""
    if action.nargs != 0:
        value = str(action.metavar or "") or ("|".join(map(str, action.choices)) if action.choices else action.dest)
        value = f"[{value}]" if action.nargs == "?" else f"{value} ..." if action.nargs == "*" else value
    if not action.option_strings:
        return f"`{value}`"
    return ", ".join(f"`{option}`" for option in action.option_strings) + (f" `{value}`" if value else "")
