"""Small reference folders in the formats of the measurements, made by our own simulator so that they agree with it."""

from __future__ import annotations

import csv
from pathlib import Path

from netbuf_gym.scenarios import RateTrace, dumbbell, last_hop
from netbuf_gym.simulation.runner import simulate
from netbuf_gym.validation.cells import FAMILIES
from netbuf_gym.validation.dumbbells import LINUX_DUMBBELL, LINUX_SCHEMES, NS3_DUMBBELL, NS3_SCHEMES

NS3_COLUMNS = (
    "label,ns3,cc,N,B_mbps,rtt_prop_ms,access_mbps,buffer_pkts,buffer_bdp,qdisc,loss,T_s,warm_s,stagger_s,mss,delack,"
    "min_rto_s,hystart,sock_mb,seed,flow,goodput_w_mbps,queue_drops,sojourn_mean_w_ms"
).split(",")
LAST_HOP_COLUMNS = [*NS3_COLUMNS[:10], "rate_trace", *NS3_COLUMNS[10:]]
LINUX_COLUMNS = (
    "kernel,cc,N,B_mbps,rtt_prop_ms,buffer_pkts,loss,T_s,warm_s,seed,goodput_w_mbps,qdelay_mean_w_ms,srtt_mean_w_ms,"
    "loss_rate_w,queue_drops_w"
).split(",")
STEPS = [(0.0, 20.0), (2.0, 8.0), (4.0, 15.0)]


def ns3_row(
    cc="NewReno", flows=1, buffer=40, loss=0.0, seed=1, rate_trace=None, label="T_s3", rtt=20, rate=10.0, T=6, warm=1, **changes
):
    """An aggregate row of an ns-3 dumbbell, or of a last hop with a `rate_trace`."""
    world = {"rtt_ms": rtt, "buffer_packets": buffer, "loss": loss, "duration_s": T, "stack": "ns3"}
    senders = [NS3_SCHEMES.get(cc, "cubic")] * flows
    if rate_trace:
        time_s, mbps = zip(*STEPS, strict=True)
        scenario = last_hop(trace=RateTrace(time_s, mbps), senders=senders, return_rate_mbps=rate, **world)
    else:
        scenario = dumbbell(rate_mbps=rate, senders=senders, **world)
    values = FAMILIES[NS3_DUMBBELL].measure_quantities(simulate(scenario, seed, sample_interval_s=None, warmup_s=warm))
    row = {
        "label": label,
        "ns3": "3.44",
        "cc": cc,
        "N": flows,
        "B_mbps": rate,
        "rtt_prop_ms": rtt,
        "access_mbps": 1000,
        "buffer_pkts": buffer,
        "buffer_bdp": 0,
        "qdisc": "DropTail",
        "loss": loss,
        "T_s": T,
        "warm_s": warm,
        "stagger_s": 0.1 if flows > 1 else 0,
        "mss": 1448,
        "delack": 2,
        "min_rto_s": 1,
        "hystart": 1,
        "sock_mb": 64,
        "seed": seed,
        "flow": "agg",
        "goodput_w_mbps": values["goodput_mbps"],
        "queue_drops": int(values["queue_drops"]),
        "sojourn_mean_w_ms": values["queue_delay_ms"],
    }
    if rate_trace:
        row["rate_trace"] = rate_trace
    return row | changes


def linux_row(cc="cubic", flows=1, buffer=40, loss=0.0, seed=1, **changes):
    """A row of a Linux dumbbell."""
    scenario = dumbbell(
        rate_mbps=10,
        rtt_ms=20,
        buffer_packets=buffer,
        loss=loss,
        senders=[LINUX_SCHEMES.get(cc, "cubic")] * flows,
        duration_s=6,
        pacing=True,
    )
    values = FAMILIES[LINUX_DUMBBELL].measure_quantities(simulate(scenario, seed, sample_interval_s=None, warmup_s=1))
    return {
        "kernel": "6.18",
        "cc": cc,
        "N": flows,
        "B_mbps": 10,
        "rtt_prop_ms": 20,
        "buffer_pkts": buffer,
        "loss": loss,
        "T_s": 6,
        "warm_s": 1,
        "seed": seed,
        "goodput_w_mbps": values["goodput_mbps"],
        "qdelay_mean_w_ms": values["queue_delay_ms"],
        "srtt_mean_w_ms": 30,
        "loss_rate_w": values["loss_rate"],
        "queue_drops_w": 0,
    } | changes


def write(path: Path, rows: list[dict], columns: list[str] | None = None) -> Path:
    """Writes rows as CSV, with the columns of their kind."""
    if columns is None:
        columns = LINUX_COLUMNS if "kernel" in rows[0] else LAST_HOP_COLUMNS if "rate_trace" in rows[0] else NS3_COLUMNS
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_rates(path: Path) -> Path:
    """Writes the rate schedule that the last-hop rows were made with."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("time_s,mbps\n" + "".join(f"{t},{m}\n" for t, m in STEPS))
    return path
