"""Capacity that varies over time: types, files and generators.

>>> trace = netbuf_gym.traces.read("lte.down")
>>> trace.mean_mbps(), trace.longest_gap_s
"""

from netbuf_gym.traces.capacity import capacity_steps
from netbuf_gym.traces.types import OPPORTUNITY_BYTES, TUN_HEADER_BYTES, DeliveryTrace, RateTrace, Trace
from netbuf_gym.utils.late_members import late_members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netbuf_gym.traces.generators import GENERATORS, generate
    from netbuf_gym.traces.reading import FORMATS, HEADERS, ImplausibleTraceWarning, read, read_rate_steps, write

__getattr__, __dir__ = late_members(
    __name__,
    {
        "generators": ["GENERATORS", "generate"],
        "reading": ["FORMATS", "HEADERS", "ImplausibleTraceWarning", "read", "read_rate_steps", "write"],
    },
)

__all__ = [
    "FORMATS",
    "GENERATORS",
    "HEADERS",
    "OPPORTUNITY_BYTES",
    "TUN_HEADER_BYTES",
    "DeliveryTrace",
    "ImplausibleTraceWarning",
    "RateTrace",
    "Trace",
    "capacity_steps",
    "generate",
    "read",
    "read_rate_steps",
    "write",
]
