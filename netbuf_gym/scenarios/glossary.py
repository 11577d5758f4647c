"""What the arguments of named scenarios mean, and which values they take: one entry for all scenarios that have it."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """The values that an argument takes, and its meaning; where worlds are drawn at random, a range of such values."""

    range: str
    meaning: str


RATE, DELAY, TIME, SHARE = "1e-06 to 1e+06", "0 to 1e+05", "above 0 to 1e+06", "0 to 1"

GLOSSARY: dict[str, Entry] = {
    "n": Entry("1 to 10000", "number of flows, where senders does not say it"),
    "senders": Entry("congestion controls", "one for each flow, by name or as an object of name and parameters"),
    "reverse": Entry("congestion controls", "of senders the other way, whose data share the way back with the ACKs"),
    "return_rate_mbps": Entry(f"{RATE}; null: the bottleneck's, or none", "rate of the way back"),
    "return_buffer_packets": Entry("1 or more; null: the bottleneck's, or none", "queue limit of the way back"),
    "rate_mbps": Entry(RATE, "rate of the bottleneck on the wire"),
    "low_mbps": Entry(RATE, "the lower rate of the bottleneck"),
    "high_mbps": Entry(RATE, "the higher rate of the bottleneck"),
    "half_period_s": Entry("0.001 to 1e+04", "how long each rate holds"),
    "rtt_ms": Entry(DELAY, "propagation there and back"),
    "delay_ms": Entry(DELAY, "propagation over the bottleneck, one way"),
    "buffer_packets": Entry("1 or more; null: no limit", "queue limit of the bottleneck, without the packet in service"),
    "buffer_bdp": Entry("above 0 to 1e+04", "queue limit of the bottleneck in bandwidth-delay products"),
    "queue_packets": Entry("1 or more", "size of a queue of the switch; its queues share twice that"),
    "loss": Entry("0 to below 1", "probability that a data packet is lost after the bottleneck"),
    "loss_probability": Entry(SHARE, "share of the worlds that lose packets at random"),
    "change_probability": Entry(SHARE, "share of the worlds whose rate changes at random moments"),
    "change_interval_s": Entry("0.01 to 1e+06", "time between two changes of the rate"),
    "change_factor": Entry("1 to 1e+06", "what a change multiplies the rate by at most, or divides it by"),
    "duration_s": Entry(TIME, "length of the world"),
    "stop_s": Entry(TIME, "when flows cease to be opened"),
    "stagger_s": Entry("0 to 1e+06", "flow i starts at i times this"),
    "stack": Entry("linux or ns3", "whose TCP it is"),
    "access_mbps": Entry(f"{RATE}; null: the stack's", "rate of each access link"),
    "access_delay_ms": Entry(f"{DELAY}; null: the stack's", "delay of each access link, part of rtt_ms"),
    "hystart": Entry("true or false", "whether CUBIC leaves slow start by HyStart"),
    "trace_seed": Entry("0 to 2**63 - 1", "decides the random deliveries of the bottleneck"),
    "loop": Entry("true or false", "whether the trace starts again at its end"),
    "cc": Entry("a congestion control", "of all senders, by name or as an object of name and parameters"),
    "load": Entry("above 0 to 1000", "traffic that is offered, as a share of the bottleneck's rate"),
    "scheme": Entry("a scheme", "buffer management (netbuf-gym list schemes)"),
    "hosts": Entry("1 to 10000", "number of senders"),
    "sizes": Entry("a name or a CSV file", "distribution of flow sizes (netbuf-gym list sizes)"),
    "flow_list": Entry("a CSV file; null: none", "flows to open instead of random ones"),
    "incast": Entry("a mapping; null: none", "bursts of several senders at once: interval_s, fan_in, size_bytes, random, ..."),
    "incast_probability": Entry(SHARE, "share of the worlds that have bursts"),
    "interval_s": Entry("1e-06 to 1e+06", "time between two bursts"),
    "fan_in": Entry("1 to hosts", "senders that start in a burst"),
    "size_bytes": Entry("1 to 2**40", "size of a flow of a burst"),
    "random": Entry("true or false", "whether bursts come at random moments"),
    "scheduler": Entry("round_robin, drr, strict_priority", "which queue of a port is served next"),
    "per_queue_cap": Entry("true or false", "whether no queue exceeds queue_packets, whatever its threshold"),
    "priority_below": Entry("rising sizes", "flows below the first size in bytes have priority 0, below the second 1, ..."),
    "mss_bytes": Entry("100 to 9000; null: the stack's", "largest segment"),
    "min_rto_ms": Entry("1 to 60000; null: the stack's", "least retransmission time-out"),
    "receiver": Entry("a receiver control", "of the flows that a receiver drives, where no agent does; by name or object"),
    "path": Entry("a trace file (nuwa/traces: folders, too); null: generated", "what the bottleneck's rate follows"),
    "network": Entry("a generator", "whose trace it is where there is no file; of files those that the split names (4g, 5g)"),
    "mean_mbps": Entry("0.01 or more; null: drawn", "mean rate of the generated trace"),
    "spread": Entry("0 to 3", "how far generated paths are from their network's mean, times what they are"),
    "outages": Entry("0 to 100", "how often there are outages, times the network's"),
    "unchanged_probability": Entry(SHARE, "share of the worlds whose senders keep to a window of their own, too (CUBIC)"),
    "clock_offset_ms": Entry("0 to 1e+06", "how far the receiver's clock may be off, either way"),
    "clock_drift_ppm": Entry("0 to 1000", "what it may gain or lose, parts in a million"),
    "timestamp_us": Entry("1, 1000", "resolution of time stamps"),
    "step_probability": Entry(SHARE, "share of the worlds whose route changes once"),
    "step_ms": Entry("above 0 to 1e+05", "how much longer or shorter it becomes, drawn from this range"),
    "drop_probability": Entry(SHARE, "share of the worlds whose bottleneck's queue is dropped at outages"),
    "seconds_probability": Entry(SHARE, "share of the worlds whose path is even within each second, as measured by the second"),
    "on_outage": Entry("hold or drop", "what becomes of the bottleneck's queue at outages"),
    "part": Entry("calibration, validation or evaluation", "which of the files that the project's split names"),
    "competitor_probability": Entry(SHARE, "share of the worlds in which another flow joins for a while"),
    "competitors": Entry("congestion controls", "of that flow, each as likely"),
    "reverse_probability": Entry(SHARE, "share of the worlds with a flow on the way back"),
    "delayed_ack": Entry("1 to 1000; null: the stack's", "an ACK at the latest after so many segments"),
}
