"""Senders behind one shared-buffer switch: the topology of the thesis on learned queue thresholds (RLBM)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from netbuf_gym.errors import ScenarioTypeError, quote
from netbuf_gym.scenarios.catalogue import parse_sender_list
from netbuf_gym.scenarios.codec import build_dataclass
from netbuf_gym.scenarios.limits import HOST_DEFAULTS, STACKS
from netbuf_gym.scenarios.links import Link
from netbuf_gym.scenarios.senders import Sender
from netbuf_gym.scenarios.switches import SCHEDULERS, Admission, Scheduler, Switch
from netbuf_gym.scenarios.traffic import Arrivals, Probe, Traffic
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.utils import checks

HOSTS = 10
SMALL_BYTES = 2000 * 1000
"""Size below which flows have priority 0 (larger ones 1): 2000 packets of 1000 bytes."""


def shared_buffer(
    *,
    senders: str | dict | Iterable[str | dict] = "cubic",
    hosts: int = HOSTS,
    arrivals: Arrivals | Iterable[Arrivals],
    rate_mbps: float = 10.0,
    delay_ms: float = 10.0,
    access_mbps: float = 100.0,
    access_delay_ms: float = 0.1,
    buffer_packets: int | None = None,
    buffer_bytes: int | None = None,
    queue_cap: int | None = None,
    drop: str = "tail",
    protect_syn: bool = False,
    ecn: bool = False,
    congested: str = "drop",
    scheme: str | dict | Admission = "naive",
    scheduler: str | dict | Scheduler = "round_robin",
    priority_below: int | Sequence[int] = (SMALL_BYTES,),
    queues: int | None = None,
    duration_s: float = 60.0,
    stack: str = "linux",
    device_packets: int | None = None,
    ping: bool = True,
    mss_bytes: int | None = None,
    min_rto_ms: float | None = None,
    delayed_ack: int | None = None,
    hystart: bool | str = True,
    name: str = "",
) -> Scenario:
    """Build a world of senders with an access link each, a shared-buffer switch, and one bottleneck to a sink.

    The return path has the same links: the bottleneck's rate and delay without a queue limit, then each sender's access
    link.

    Args:
        senders: Congestion controls as in `Flow`, one for each sender, or a single one for all of `hosts`.
        hosts: Number of senders for a single congestion control, 1 to 10000.
        arrivals: Times and sizes of the flows: `PoissonArrivals`, `Incast`, `FlowList`, or several of these.
        rate_mbps, delay_ms: Rate and delay of the bottleneck.
        access_mbps, access_delay_ms: Rate and delay of each access link.
        buffer_packets, buffer_bytes: Shared buffer of the switch; default 1000 packets.
        queue_cap: Largest length of a queue, in the buffer's unit; None: no such limit.
        drop, protect_syn, congested: As in `Switch`.
        ecn: Whether senders and receivers use ECN.
        scheme: Buffer management scheme; see `Scenario.with_scheme`.
        scheduler: "round_robin" (by packet), "drr" (quanta of 1500 bytes), "strict_priority", or a dict of `kind` and
            the scheduler's fields.
        priority_below: As in `Traffic`.
        queues: Number of priority queues; None: the number of priorities that `priority_below` defines.
        duration_s, stack, hystart, mss_bytes, min_rto_ms, delayed_ack, name: As in `Scenario`.
        device_packets: As in `Link`, for the bottleneck; None: 1 in the ns3 stack, 0 in the linux stack.
        ping: Whether sender 0 sends a datagram of 64 bytes a second at priority 0, the first at 0.5 s.

    Raises:
        ScenarioError: A value out of range.
    """
    checks.choice("stack", stack, STACKS)
    hosts = checks.integer("hosts", hosts, 1, 10_000)
    names = parse_sender_list(senders)
    if names is None:
        names = (senders,) * hosts
    if isinstance(arrivals, Arrivals):
        arrivals = (arrivals,)
    if not isinstance(priority_below, Iterable):
        priority_below = (priority_below,)
    if buffer_packets is None and buffer_bytes is None:
        buffer_packets = 1000
    priority_below = tuple(priority_below)
    queues = len(priority_below) + 1 if queues is None else queues
    links = [
        Link(
            name="bottleneck",
            rate_mbps=rate_mbps,
            delay_ms=delay_ms,
            device_packets=HOST_DEFAULTS[stack].device_packets if device_packets is None else device_packets,
        ),
        Link(name="return", rate_mbps=rate_mbps, delay_ms=delay_ms),
    ]
    hosts_made = []
    for i, cc in enumerate(names):
        first = len(links)
        for end in ("sender", "sender-back"):
            links.append(Link(name=f"{end}-{i}", rate_mbps=access_mbps, delay_ms=access_delay_ms))
        hosts_made.append(Sender(cc=cc, path=(first, 0), return_path=(1, first + 1), ecn=ecn))
    ping = checks.boolean("ping", ping)
    world = Scenario(
        links=links,
        duration_s=duration_s,
        stack=stack,
        name=name,
        hystart=hystart,
        switches=(
            Switch(
                ports=(0,),
                queues=queues,
                buffer_packets=buffer_packets,
                buffer_bytes=buffer_bytes,
                scheduler=_parse_scheduler(scheduler, queues),
                queue_cap=queue_cap,
                drop=drop,
                congested=congested,
                protect_syn=protect_syn,
            ),
        ),
        traffic=Traffic(senders=hosts_made, arrivals=tuple(arrivals), priority_below=priority_below),
        probes=(Probe(path=(2, 0), start_s=0.5, bytes=HOST_DEFAULTS[stack].ping_bytes),) if ping else (),
        mss_bytes=mss_bytes,
        min_rto_ms=min_rto_ms,
        delayed_ack=delayed_ack,
    )
    return world.with_scheme(scheme)


def _parse_scheduler(scheduler: object, queues: int) -> Scheduler:
    if isinstance(scheduler, Scheduler):
        return scheduler
    if isinstance(scheduler, str):
        scheduler = {"kind": scheduler}
    if not isinstance(scheduler, dict):
        raise ScenarioTypeError(f"scheduler = {quote(scheduler)}; valid: {', '.join(SCHEDULERS)}, or a dict of kind and fields")
    kind = checks.choice("scheduler", scheduler.get("kind"), SCHEDULERS)
    values = {key: value for key, value in scheduler.items() if key != "kind"}
    return build_dataclass("scheduler", SCHEDULERS[kind], values) if values else SCHEDULERS[kind].make_default(queues)
