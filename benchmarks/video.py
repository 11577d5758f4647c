"""What video clients take a path for, beside what it is: the chunk's size / download time, and the receiver's window / RTT.

    python benchmarks/video.py [--seeds N] [--duration S] [--json FILE]

After Fig. 2 of Jiang, Gong and Jin (Nuwa), which streams over a link of 24 Mbit/s, over 4G and over 5G for 120 s and compares
the client's estimate with the bandwidth. Here the mobile links are generated (`netbuf_gym.traces`), a new one for each seed,
the base RTT is 40 ms and the queue holds four bandwidth-delay products. The sender is CUBIC, or it leaves the window to a
receiver that steers it (`nuwa`), whose window / last round trip is the second estimate. The ladder ends at 16 Mbit/s, which
some of the links do not carry; chunks are of 4 s.

The columns are medians over all chunks of all seeds: estimate / capacity, and how far off it is either way.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import netbuf_gym as nb
from netbuf_gym.scenarios import Flow, Link, Scenario, Video
from netbuf_gym.tables import markdown_table, number

RTT_MS, BDP = 40.0, 4.0
NETWORKS = {"24 Mbit/s": None, "4g": "4g", "5g": "5g"}
SENDERS = {"cubic": {"cc": "cubic"}, "nuwa": {"cc": "receiver_driven", "receiver": "nuwa"}}
LADDER = (0.3, 0.75, 1.2, 1.85, 2.85, 4.3, 8, 16)


def world(network: str | None, sender: dict, abr: str, seed: int, duration_s: float) -> Scenario:
    """A client behind the link."""
    if network is None:
        capacity, mean_mbps = {"rate_mbps": 24.0}, 24.0
    else:
        trace = nb.traces.generate(network, duration_s=duration_s, seed=seed)
        capacity, mean_mbps = {"trace": trace}, trace.mean_mbps(duration_s)
    queue = max(20, round(BDP * mean_mbps * RTT_MS * 1e3 / 8 / 1500))
    links = [
        Link(name="bottleneck", delay_ms=RTT_MS / 2, queue_packets=queue, **capacity),
        Link(name="return", delay_ms=RTT_MS / 2),
    ]
    flow = Flow(path=[0], return_path=[1], app=Video(bitrates_mbps=LADDER, abr=abr), **sender)
    return Scenario(links=links, flows=[flow], duration_s=duration_s)


def main() -> None:
    """Runs it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--duration", type=float, default=120.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for network, name in NETWORKS.items():
        for sender, what in SENDERS.items():
            for abr in ("rate", "buffer"):
                worlds = [world(name, what, abr, seed, arguments.duration) for seed in range(arguments.seeds)]
                videos = [nb.simulate(one, seed=1, sample_interval_s=None).videos[0] for one in worlds]
                row = {"network": network, "sender": sender, "abr": abr, "chunks": sum(len(v.chunks) for v in videos)}
                for field in ("estimate_mbps", "window_mbps"):
                    errors = np.concatenate([video.error(field) for video in videos])
                    errors = errors[np.isfinite(errors)]
                    of = field.removesuffix("_mbps")
                    row[f"{of}_of_capacity"] = float(np.median(1 + errors)) if len(errors) else None
                    row[f"{of}_off"] = float(np.median(np.abs(errors))) if len(errors) else None
                row["bitrate_mbps"] = float(np.mean([video.bitrate_mean_mbps for video in videos]))
                row["stalled_share"] = float(np.mean([video.stalled_share for video in videos]))
                rows.append(row)
    cells = [[one if isinstance(one, str) else number(one) for one in row.values()] for row in rows]
    print(markdown_table(list(rows[0]), cells))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
