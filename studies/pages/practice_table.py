"""Tables of the page for practitioners: for each task the best controller of each kind, what it is worth, costs and needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netbuf_gym import tasks
from netbuf_gym.leaderboard import best, scoring, standings
from netbuf_gym.leaderboard.scoring import Standing
from netbuf_gym.training.checkpoints import digest
from netbuf_gym.utils.tables import format_number, markdown_table
from netbuf_gym.zoo import library
from studies.pages.leaderboard_page import select_firsts

HEADER = ("task", "kind", "controller", "score", "over best constant", "us a decision", "network", "needs")
KIND_NAMES = {scoring.AGENT: "network"}
"""Kinds of controllers that are called otherwise on this page."""
ORDER = (scoring.CONSTANT, scoring.HEURISTIC, scoring.AGENT, scoring.OTHER)
"""Kinds in the order of their rows."""
BYTES_OF_PARAMETER = 4
NEEDS: dict[str, dict[str, str]] = {
    "congestion_window": {
        scoring.CONSTANT: "a window that is set from outside: BPF (root, Linux 6.3), or less exactly user space",
        scoring.HEURISTIC: "the sender's own ACKs; a window as above",
        scoring.AGENT: "the sender's own ACKs; a window as above",
        scoring.OTHER: "a congestion control at the sender",
    },
    "host_buffers": {
        scoring.CONSTANT: "sysctls (root)",
        scoring.HEURISTIC: "sysctls (root)",
        scoring.AGENT: "TCP_INFO of all connections (INET_DIAG); sysctls (root)",
        scoring.OTHER: "a congestion control in the kernel, by socket option or sysctl",
        "adaptive": "TCP_INFO of its sockets; their congestion control, by socket option; sysctls (root)",
    },
    "queue_threshold": {
        scoring.CONSTANT: "a limit in time for each queue",
        scoring.HEURISTIC: "backlogs and flow starts of each queue; limits that end by themselves",
        scoring.AGENT: "backlogs, drops, starts and ends of flows of each queue; limits that end by themselves",
        scoring.OTHER: "another queue discipline (FQ-CoDel: a queue for each flow)",
        "brief_pulse-strict": "as the rule; strict priority",
        "brief_pulse-sparing": "as the rule; strict priority, drops from the largest of 256 slots of flows",
        "brief_pulse-flows": "as the rule; strict priority, 256 slots of flows that take turns, drops from the largest",
    },
    "receiver_window": {
        scoring.CONSTANT: "arrivals and time stamps of packets; the receiver's window (TCP_WINDOW_CLAMP)",
        scoring.HEURISTIC: "arrivals and time stamps of packets; the receiver's window (TCP_WINDOW_CLAMP)",
        scoring.AGENT: "arrivals and time stamps of packets; the receiver's window (TCP_WINDOW_CLAMP)",
        scoring.OTHER: "a congestion control at the sender",
        **dict.fromkeys(
            ("refill", "refill-data"), "arrivals and time stamps of packets; the receiver's window (TCP_WINDOW_CLAMP)"
        ),
    },
}
"""What controllers observe and set, and who may, by task and then by a controller's name or kind."""


def format_table(all_standings: Mapping[str, Sequence[Standing]]) -> str:
    """Format the first controller of each kind and task as a Markdown table, the best of each task in bold.

    A network's memory is that of its parameters as float32. Decision times are those of one observation at a time in Python.
    """
    made = []
    for task, standing in all_standings.items():
        chosen, firsts = best.select_best(task, standing), select_firsts(standing)
        shown = {role: [firsts[role]] for role in ORDER if role in firsts}
        if chosen not in firsts.values():
            shown[chosen.role].append(chosen)
        for role, ones in shown.items():
            made += [_format_row(task, role, one, one is chosen) for one in ones]
    return markdown_table(HEADER, made)


def _format_row(task: str, role: str, one: Standing, is_best: bool) -> list[str]:
    size, needs = _count_parameters(one.name), NEEDS.get(task, {})
    return [
        _get_title(task),
        KIND_NAMES.get(role, role),
        f"**{one.name}**" if is_best else one.name,
        str(one.middle),
        standings.format_difference(one.over_constant),
        format_number(one.average_entry("decision_us"), 2),
        "" if size is None else f"{size:,} parameters, {size * BYTES_OF_PARAMETER / 1000:.0f} kB",
        needs.get(one.name, needs.get(role, "")),
    ]


def _get_title(task: str) -> str:
    return tasks.get(task).ids[0].partition("/")[2]


def _count_parameters(name: str) -> int | None:
    """Return the number of parameters that an agent of the package decides by; None for a controller without a network."""
    if name not in library.names():
        return None
    return round(digest.sketch_parameters(library.FOLDER / name / library.MODEL)[0])


def format_advice(all_standings: Mapping[str, Sequence[Standing]]) -> str:
    """Return a list, an item a task: what to use, and whether the best network is worth it."""
    return "\n".join(f"* {_describe_task(task, standing)}" for task, standing in all_standings.items())


def _describe_task(task: str, standing: Sequence[Standing]) -> str:
    chosen, firsts = best.select_best(task, standing), select_firsts(standing)
    said = [f"{_get_title(task)}: `{chosen.name}` ({KIND_NAMES.get(chosen.role, chosen.role)})."]
    network, other = firsts.get(scoring.AGENT), firsts.get(scoring.OTHER)
    if network is not None:
        rule, constant = map(standings.format_difference, (network.over_rules, network.over_constant))
        subject = "It" if network is chosen else f"The first network, `{network.name}`,"
        earned = best.earns_network(network)
        verdict = "surely ahead of both" if earned else "not surely ahead of both, so not worth its cost"
        behind = "" if network is chosen else f", but behind `{chosen.name}`" if earned else f": take `{chosen.name}`"
        said.append(f"{subject} is {rule} over the best rule and {constant} over the best constant: {verdict}{behind}.")
    if other is not None and other is not chosen and other.over_heuristic is not None and other.over_heuristic.low > 0:
        difference = standings.format_difference(other.over_heuristic)
        said.append(f"`{other.name}`, which acts elsewhere, is {difference} over the best rule.")
    return " ".join(said)
