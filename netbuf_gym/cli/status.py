"""`netbuf-gym status`: what installed congestion controls do."""

from __future__ import annotations

import argparse
import json
import math
from contextlib import suppress
from typing import Any

from netbuf_gym.plants.linux.bpf import installed
from netbuf_gym.utils.tables import text_table

COLUMNS = ("local", "remote", "decisions", "window kB", "Mbit/s", "RTT ms", "action", "clamped", "time-outs")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument("--json", action="store_true", help="print JSON: a list of objects")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    found = describe_all()
    print(json.dumps(found, indent=1) if arguments.json else format_all(found))
    return 0


def describe_all() -> list[dict[str, Any]]:
    """Return `describe` of each installed control.

    Raises:
        ConfigError: Privileges are missing.
    """
    found = []
    for sender in installed.find_senders():
        with suppress(installed.SenderGone):
            found.append(describe(sender))
    return found


def format_all(found: list[dict[str, Any]]) -> str:
    """Format what `describe_all` has returned."""
    if not found:
        return "no congestion control is installed (netbuf-gym install AGENT)"
    return "\n\n".join(format_sender(one) for one in found)


def describe(sender: installed.FoundSender) -> dict[str, Any]:
    """Return what a control is and has counted, JSON-able.

    Raises:
        SenderGone: It was removed meanwhile.
    """
    about: dict[str, Any] = {"name": sender.name, "pinned": sender.pinned, "readable": bool(sender.maps)}
    if not sender.maps:
        return about
    bounds, agent = sender.read_settings()
    totals = sender.read_totals()
    mean = totals.time_ns / totals.decisions * 1e-3 if totals.decisions else None
    median, most = (totals.percentile_us(percent) for percent in (50, 99))
    counted = {name: getattr(totals, name) for name in installed.TOTALS if name != "time_ns"}
    times = {"decision_mean_us": mean, "decision_median_us": _none(median), "decision_p99_us": _none(most)}
    rows = [vars(one) for one in sender.read_sockets()]
    return {**about, "agent": agent, "bounds": vars(bounds), **counted, **times, "open_sockets": rows}


def _none(value: float) -> float | None:
    return None if math.isnan(value) else value


def format_sender(about: dict[str, Any]) -> str:
    """Format what `describe` has returned."""
    pinned = "pinned" if about["pinned"] else "goes with its process"
    if not about["readable"]:
        return f"{about['name']}: {pinned}; of another version of netbuf-gym, which shows what it does"
    bounds = [f"window at most {about['bounds']['max_window_mb']:g} MB"]
    if about["bounds"]["max_rate_mbps"] is not None:
        bounds.append(f"rate at most {about['bounds']['max_rate_mbps']:g} Mbit/s")
    if about["bounds"]["max_growth"] is not None:
        bounds.append(f"growth at most {about['bounds']['max_growth']:g} a decision")
    lines = [
        f"{about['name']}: {about['agent']}, {pinned}; {', '.join(bounds)}",
        f"sockets: {about['sockets']} now, {about['opened']} ever",
        f"decisions: {about['decisions']:,}, {about['windows']:,} with a window, {about['clamped']:,} clamped, "
        f"{about['late']:,} more than 10 ms late",
    ]
    if about["decisions"]:
        times = f"median {about['decision_median_us']:g} us, 99 % within {about['decision_p99_us']:g} us"
        lines.append(f"a decision takes {about['decision_mean_us']:.1f} us in the mean; {times}")
    if about["open_sockets"]:
        rows = [
            [
                *(str(one[name]) for name in ("local", "remote", "decisions")),
                *(f"{one['window_bytes'] / 1e3:.1f}", f"{one['rate_mbps']:.2f}", f"{one['rtt_ms']:.2f}"),
                *(str(one[name]) for name in ("action", "clamped", "timeouts")),
            ]
            for one in about["open_sockets"]
        ]
        lines.append(text_table(list(COLUMNS), rows))
    return "\n".join(lines)
