"""Telemetry schema and controls of a shared-buffer switch with any number of queues."""

from __future__ import annotations

from functools import lru_cache

from netbuf_gym.plants.kinds import AgentKind, Control
from netbuf_gym.plants.telemetry import Field, TelemetrySchema
from netbuf_gym.scenarios.limits import MAX_ALPHA

VERSION = 2

SHARED = (
    Field("elapsed_s", "s", "length of the interval"),
    Field("capacity", "1", "the shared buffer, in packets or bytes as the switch counts"),
    Field("free", "1", "free buffer at the end of the interval, in the same unit"),
    Field("free_fraction", "1", "free buffer as a share of the whole"),
    Field("packets_received", "1", "data packets that reached their receivers", privileged=True),
    Field("delivered_bytes", "B", "bytes delivered in order to receiving applications", privileged=True),
    Field("flows_started", "1", "flows whose first packet was sent", privileged=True),
    Field("flows_completed", "1", "flows whose last byte arrived in order", privileged=True),
    Field("worst_difference_s", "s", "largest FCT - ideal FCT of the flows completed; NaN without one", privileged=True),
    Field("worst_ratio", "1", "largest FCT / ideal FCT of the flows completed; NaN without one", privileged=True),
    Field("packets_dropped", "1", "packets not admitted to the buffer"),
    Field("drop_head", "1", "1 where the oldest packet of a queue is dropped, 0 where the one that arrives"),
)
"""Fields of the whole switch."""

PER_QUEUE = (
    Field("alpha", "1", "the agent's factor of the queue's threshold at the end of the interval, but for a cut"),
    Field("queue_packets", "1", "packets queued at the end of the interval"),
    Field("queue_bytes", "B", "bytes queued at the end of the interval"),
    Field("arrivals", "1", "packets that arrived, admitted or not"),
    Field("drops", "1", "packets not admitted"),
    Field("drained_bytes", "B", "bytes that left the queue"),
    Field("queue_delay_mean_s", "s", "mean time in the queue of the packets that left it; NaN without one"),
    Field("flows_completed", "1", "flows of this priority completed", privileged=True),
    Field("ratio_sum", "1", "FCT / ideal FCT, summed over the flows completed", privileged=True),
    Field("log_ratio_sum", "1", "natural logarithm of FCT / ideal FCT, summed over the flows completed", privileged=True),
    Field("worst_ratio", "1", "largest FCT / ideal FCT of the flows completed; NaN without one", privileged=True),
    Field("queue_packets_max", "1", "most packets queued at any moment of the interval"),
    Field("queue_bytes_min", "B", "fewest bytes queued at any moment of the interval"),
    Field("syns", "1", "SYNs that arrived, admitted or not, sent again ones too"),
    Field("flows_opened", "1", "SYNs that left the queue"),
    Field("flows_closed", "1", "last segments of flows (FIN) that left the queue, sent again ones too"),
)
"""Fields of each queue, over all ports; the queue's number follows the name: `alpha_0`."""

AT_LAST_COMPLETION = (
    Field("at_free_fraction", "1", "free buffer as a share of it, when the interval's last flow completed; else NaN", True),
    Field("at_flows_completed", "1", "flows completed from the start of the interval to that moment; NaN likewise", True),
    Field("at_packets_dropped", "1", "packets not admitted until that moment; NaN likewise", True),
    Field("at_elapsed_s", "s", "time from the start of the interval to that moment; NaN likewise", True),
)
AT_LAST_COMPLETION_PER_QUEUE = Field("at_drained_bytes", "B", "bytes that left the queue until that moment; NaN likewise", True)
LEVERS_PER_QUEUE = (
    Field("share", "1", "share of a port that the scheduler gives the queue where all are backlogged; strict: 1 to queue 0"),
    Field("slots_used", "1", "slots of the queue's flow tables, over all ports, that have packets; 0 without a table"),
    Field("largest_share", "1", "bytes of the largest slot as a share of the queue's; 0 if it is empty or has no table"),
)
"""Further fields of each queue of switches whose agents set more than thresholds, behind all others."""


@lru_cache
def switch_telemetry(queues: int, levers: bool = False) -> TelemetrySchema:
    """Return the telemetry schema of a switch with `queues` queues; `levers`: as in `switch_kind`."""
    per_queue = [_number_field(field, q) for q in range(queues) for field in PER_QUEUE]
    drained = [_number_field(AT_LAST_COMPLETION_PER_QUEUE, q) for q in range(queues)]
    own = [_number_field(field, q) for q in range(queues) for field in LEVERS_PER_QUEUE] if levers else []
    return TelemetrySchema(VERSION, (*SHARED, *per_queue, *AT_LAST_COMPLETION, *drained, *own))


@lru_cache
def switch_kind(queues: int, levers: bool = False) -> AgentKind:
    """Return the agent kind of a switch with `queues` queues.

    Args:
        queues: Queues at each port.
        levers: Whether agents also set the scheduler of all ports, and whom drops hit, and are told of flow tables.
    """
    further = (
        *(Control("scheduler", "1", "0: round robin by packet, 1: deficit round robin, 2: strict priority", 0.0, 2.0),),
        *(Control(f"quantum_{q}", "B", f"bytes a turn of queue {q} by deficit round robin", 1.0, 1e9) for q in range(queues)),
        *(Control("large_victims", "1", "1: drops and marks hit large slots of the flow table only; 0: any", 0.0, 1.0),),
    )
    return AgentKind(
        name="switch",
        telemetry=switch_telemetry(queues, levers),
        controls=(
            *(
                Control(f"alpha_{q}", "1", f"factor of queue {q}'s threshold, in force until the next one", 0.0, MAX_ALPHA)
                for q in range(queues)
            ),
            *(
                Control(f"cut_alpha_{q}", "1", f"another factor of queue {q}'s, for `cut_s`; NaN: none", 0.0, MAX_ALPHA)
                for q in range(queues)
            ),
            Control("cut_s", "s", "how long from now the factors of the cut hold; NaN: no other cut than before", 0.0, 100.0),
            Control("drop_head", "1", "1: where a queue may not grow, its oldest packet goes; 0: what arrives", 0.0, 1.0),
            Control("mark", "1", "1: where a queue may not grow, what speaks ECN is marked; 0: it is dropped", 0.0, 1.0),
            *(further if levers else ()),
        ),
        event="the worst slowdown of the flows completed has changed, looked at after each `interval_ns`",
        counters="netbuf_gym.plants.counters.Counters",
        parameters={"queues": queues, **({"levers": True} if levers else {})},
    )


def _number_field(field: Field, queue: int) -> Field:
    return Field(f"{field.name}_{queue}", field.unit, field.meaning, field.privileged)
