"""Draws docs/figures/media.png: Wi-Fi and cells beside ns-3's runs and the models that they are held to.

python -m studies.pages.media_figure [docs/figures/media.png]
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.scenarios import Flow, Link, Scenario, Sized, UdpSource, cellular, wifi
from netbuf_gym.scenarios.media import Medium
from netbuf_gym.simulation import simulate
from netbuf_gym.utils import plots

ROOT = Path(__file__).resolve().parents[2]
ETHERNET_BYTES = 1514
PAYLOAD = 1472 / ETHERNET_BYTES
"""Bytes of a packet on the wire, and the share of them that ns-3's rows count."""
THEORY: dict[str, Any] = {"linear": True, "bler": 0.0, "fading_ms": 5.0, "pf_ms": 2000.0}


def saturate(medium: Medium, links: int = 1, duration_s: float = 20.0, *, up: bool = False) -> float:
    """Return the Mbit/s on the wire of all of several downlinks or uplinks together that always have something to send."""
    made = [Link(name=f"link-{i}", medium=medium, queue_packets=1000, uplink=up) for i in range(links)]
    aside = Link(name="aside", rate_mbps=1)
    sources = [UdpSource(path=[link.name], rate_mbps=1000, packet_bytes=ETHERNET_BYTES) for link in made]
    flow = Flow(path=["aside"], return_path=["aside"], app=Sized(size_bytes=1))
    result = simulate(Scenario(links=[*made, aside], flows=[flow], udp=sources, duration_s=duration_s), seed=1)
    return sum(source.received_mbps for source in result.udp)


def read_ns3(label: str) -> list[dict[str, str]]:
    """Return ns-3's rows of a label, 802.11n."""
    lines = (ROOT / "tests" / "data" / "ns3_wifi.csv").read_text().splitlines()
    return [row for row in csv.DictReader(lines[1:]) if row["label"] == label and row["standard"] == "802.11n"]


def draw(path: str) -> None:
    """Draw the figure."""
    figure = plots.make_figure(10.5, 3.2)
    aggregates, contention, diversity = figure.subplots(1, 3)
    ours, model, ns3 = (plots.get_style(i)[0] for i in range(3))

    packets = [1, 2, 3, 4, 6, 8, 12, 16, 24, 28]
    aggregates.plot(
        packets, [saturate(wifi(ampdu_packets=n), duration_s=5) * PAYLOAD for n in packets], color=ours, label="netbuf-gym"
    )
    rows = read_ns3("udp")
    aggregates.plot(
        [min(28, int(row["ampdu_packets"])) for row in rows],
        [float(row["goodput_w_mbps"]) for row in rows],
        "o",
        color=ns3,
        label="ns-3",
    )
    plots.start_at_zero(aggregates)
    plots.format_axes(aggregates, "packets in an aggregate", "Mbit/s", "Wi-Fi, one station", legend=2)

    counts = range(1, 21)
    media = [wifi(ampdu_packets=1, stations=n - 1) for n in counts]
    shared = wifi(ampdu_packets=1)
    contention.plot(counts, [saturate(shared, n, 10, up=True) * PAYLOAD for n in counts], color=ours, label="netbuf-gym")
    contention.plot(
        counts,
        [n * m.capacity_mbps() * 1472 / 1500 for n, m in zip(counts, media, strict=True)],
        "--",
        color=model,
        label="Bianchi",
    )
    rows = [row for row in read_ns3("stations") if row["ampdu_packets"] == "1"]
    total = [float(row["goodput_w_mbps"]) + float(row["goodput_up_w_mbps"]) for row in rows]
    contention.plot([1 + int(row["stations"]) for row in rows], total, "o", color=ns3, label="ns-3")
    plots.start_at_zero(contention)
    plots.format_axes(contention, "stations that always send", "Mbit/s of all", "Wi-Fi, contention", legend=2)

    users = np.arange(1, 13)
    alone = saturate(cellular(**THEORY), duration_s=60)
    diversity.plot(users, [saturate(cellular(**THEORY), n, 60) / alone for n in users.tolist()], color=ours, label="netbuf-gym")
    diversity.plot(users, np.cumsum(1 / users), "--", color=model, label="1 + 1/2 + ... + 1/n")
    plots.start_at_zero(diversity)
    plots.format_axes(diversity, "users n", "throughput of the cell / of one user", "Cell, proportional fairness", legend=2)
    plots.write_figure(figure, path)


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "docs" / "figures" / "media.png"))
