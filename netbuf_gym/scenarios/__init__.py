"""Scenarios: typed descriptions of worlds, named scenarios, and distributions over scenarios.

Tasks register most of the names; `register` adds a scenario, `register_scheme` a buffer management scheme for switches.

>>> world = netbuf_gym.scenarios.dumbbell(rate_mbps=10, rtt_ms=48, buffer_packets=150, senders=["cubic", "bbr"])
>>> world = netbuf_gym.scenarios.get("ppcc/2", n=4)
"""

from __future__ import annotations

from netbuf_gym.scenarios.catalogue import (
    CONGESTION_CONTROLS,
    QUEUE_DISCIPLINES,
    RECEIVER_CONTROLS,
    TARGET_DELAYS_MS,
    CongestionControl,
    ReceiverControl,
    congestion_controls,
    sender_controls,
)
from netbuf_gym.scenarios.distributions import Distribution, Mixture, RandomDumbbell, flows_of
from netbuf_gym.scenarios.flows import Application, Bulk, Flow, OnOff, Paused, Route, Sized
from netbuf_gym.scenarios.hosts import Host
from netbuf_gym.scenarios.impairments import DelaySchedule, Jitter, LossSchedule
from netbuf_gym.scenarios.limits import AGENT, STACKS
from netbuf_gym.scenarios.links import GilbertElliott, Link
from netbuf_gym.scenarios.media import CELLULAR_GENERATIONS, MEDIA, WIFI_STANDARDS, Cellular, Medium, Wifi, cellular, wifi
from netbuf_gym.scenarios.named import (
    PATTERNS,
    Pattern,
    defaults_of,
    describe,
    get,
    glossary_of,
    names,
    parameters_of,
    register,
    register_pattern,
    takes_number,
)
from netbuf_gym.scenarios.python_control import AckEvent, OwnControl
from netbuf_gym.scenarios.topologies import chain, dumbbell, last_hop, parking_lot
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.traces.types import DeliveryTrace, RateTrace
from netbuf_gym.utils.late_members import late_members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netbuf_gym.scenarios.compiled_control import CompiledControl, compiled
    from netbuf_gym.scenarios.delays import delay_walk, handovers, interruptions, leo_delays, route_change
    from netbuf_gym.scenarios.disciplines import (
        CAKE,
        DISCIPLINES,
        FQ,
        PIE,
        RED,
        TBF,
        AckFilter,
        CoDel,
        Discipline,
        DropTail,
        DualPI2,
        FqCoDel,
        FqPIE,
        Policer,
    )
    from netbuf_gym.scenarios.laws import Constant, Exponential, Law, Lognormal, Mixed, Pareto, Weibull
    from netbuf_gym.scenarios.schemes import DT_ALPHAS, SCHEMES, Scheme, register_scheme
    from netbuf_gym.scenarios.senders import Relay, Sender
    from netbuf_gym.scenarios.sizes import DATA_MINING, IMIX, SIZES, WEB_SEARCH, SizeDistribution, sizes_of
    from netbuf_gym.scenarios.switched import shared_buffer
    from netbuf_gym.scenarios.switches import (
        ABM,
        DRR,
        Admission,
        AgentThresholds,
        DynamicThresholds,
        RoundRobin,
        Scheduler,
        StaticThresholds,
        StrictPriority,
        Switch,
    )
    from netbuf_gym.scenarios.traffic import (
        WEB_MODELS,
        Arrivals,
        FlowList,
        Incast,
        PoissonArrivals,
        Probe,
        RenewalArrivals,
        Traffic,
        WebSessions,
    )
    from netbuf_gym.scenarios.udp import PacketReplay, UdpSource, make_self_similar_sources
    from netbuf_gym.scenarios.video import Video

__getattr__, __dir__ = late_members(
    __name__,
    {
        "compiled_control": ["CompiledControl", "compiled"],
        "delays": ["delay_walk", "handovers", "interruptions", "leo_delays", "route_change"],
        "disciplines": [
            "AckFilter",
            "CAKE",
            "CoDel",
            "DISCIPLINES",
            "Discipline",
            "DropTail",
            "DualPI2",
            "FQ",
            "FqCoDel",
            "FqPIE",
            "PIE",
            "Policer",
            "RED",
            "TBF",
        ],
        "laws": ["Constant", "Exponential", "Law", "Lognormal", "Mixed", "Pareto", "Weibull"],
        "schemes": ["DT_ALPHAS", "SCHEMES", "Scheme", "register_scheme"],
        "senders": ["Relay", "Sender"],
        "switched": ["shared_buffer"],
        "sizes": ["DATA_MINING", "IMIX", "SIZES", "SizeDistribution", "WEB_SEARCH", "sizes_of"],
        "switches": [
            "ABM",
            "Admission",
            "AgentThresholds",
            "DRR",
            "DynamicThresholds",
            "RoundRobin",
            "Scheduler",
            "StaticThresholds",
            "StrictPriority",
            "Switch",
        ],
        "traffic": [
            "Arrivals",
            "FlowList",
            "Incast",
            "PoissonArrivals",
            "Probe",
            "RenewalArrivals",
            "Traffic",
            "WEB_MODELS",
            "WebSessions",
        ],
        "udp": ["PacketReplay", "UdpSource", "make_self_similar_sources"],
        "video": ["Video"],
    },
)

__all__ = [
    "ABM",
    "AGENT",
    "CAKE",
    "CELLULAR_GENERATIONS",
    "CONGESTION_CONTROLS",
    "DATA_MINING",
    "DISCIPLINES",
    "DRR",
    "DT_ALPHAS",
    "FQ",
    "IMIX",
    "MEDIA",
    "PATTERNS",
    "PIE",
    "QUEUE_DISCIPLINES",
    "RECEIVER_CONTROLS",
    "RED",
    "SCHEMES",
    "SIZES",
    "STACKS",
    "TARGET_DELAYS_MS",
    "TBF",
    "WEB_MODELS",
    "WEB_SEARCH",
    "WIFI_STANDARDS",
    "AckEvent",
    "AckFilter",
    "Admission",
    "AgentThresholds",
    "Application",
    "Arrivals",
    "Bulk",
    "Cellular",
    "CoDel",
    "CompiledControl",
    "CongestionControl",
    "Constant",
    "DelaySchedule",
    "DeliveryTrace",
    "Discipline",
    "Distribution",
    "DropTail",
    "DualPI2",
    "DynamicThresholds",
    "Exponential",
    "Flow",
    "FlowList",
    "FqCoDel",
    "FqPIE",
    "GilbertElliott",
    "Host",
    "Incast",
    "Jitter",
    "Law",
    "Link",
    "Lognormal",
    "LossSchedule",
    "Medium",
    "Mixed",
    "Mixture",
    "OnOff",
    "OwnControl",
    "PacketReplay",
    "Pareto",
    "Pattern",
    "Paused",
    "PoissonArrivals",
    "Policer",
    "Probe",
    "RandomDumbbell",
    "RateTrace",
    "ReceiverControl",
    "Relay",
    "RenewalArrivals",
    "RoundRobin",
    "Route",
    "Scenario",
    "Scheduler",
    "Scheme",
    "Sender",
    "SizeDistribution",
    "Sized",
    "StaticThresholds",
    "StrictPriority",
    "Switch",
    "Traffic",
    "UdpSource",
    "Video",
    "WebSessions",
    "Weibull",
    "Wifi",
    "cellular",
    "chain",
    "compiled",
    "congestion_controls",
    "defaults_of",
    "delay_walk",
    "describe",
    "dumbbell",
    "flows_of",
    "get",
    "glossary_of",
    "handovers",
    "interruptions",
    "last_hop",
    "leo_delays",
    "make_self_similar_sources",
    "names",
    "parameters_of",
    "parking_lot",
    "register",
    "register_pattern",
    "register_scheme",
    "route_change",
    "sender_controls",
    "shared_buffer",
    "sizes_of",
    "takes_number",
    "wifi",
]
