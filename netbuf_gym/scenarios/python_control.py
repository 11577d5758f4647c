"""Congestion controls of one's own, in Python: slow beside the core's, and quickly written.

    class Gentle:
        def __call__(self, ack):                 # the window in bytes, or None to leave it as it is
            return ack.cwnd_bytes + ack.mss_bytes * ack.acked_bytes // ack.cwnd_bytes

        def on_loss(self, ack):                  # what to fall back to, bytes (ssthresh)
            return max(ack.mss_bytes, ack.in_flight_bytes * 7 // 8)

    result = nb.simulate(nb.scenarios.dumbbell(rate_mbps=10, senders=["cubic", Gentle]))

A control is called with an `AckEvent`: what the sender knows at that moment, and nothing else. Finding losses, retransmitting
and time-outs stay the stack's. There are two kinds:

* With a method `on_loss` it is like the kernel's and ns-3's own: called for every ACK that may change the window, which are
  those that the window (not the application) was the limit for, outside of fast recovery; there the stack brings the window
  down to what `on_loss` gave (proportional rate reduction in the linux stack). None: half of what is in flight.
* Without it owns its window: it is called for every ACK that delivers something, also in recovery, and only a time-out (to
  one segment) moves the window beside it. `owns_window = True` or `False` says so whatever methods there are.

Further methods, all with an `AckEvent`: `start`, when the connection stands; `on_timeout`, after a retransmission time-out.
`wants_rate = True` asks for `delivery_rate_bps`. In the linux stack `(window, rate)` may be given in place of the window, and
sets the pacing rate, bit/s; None for either leaves it. A window is of a segment at least: of less nothing would be sent.

State belongs into a class, of which every connection of every run gets an object of its own (`functools.partial(Class, ...)`
with arguments); an object is copied for each. A function is shared by all: what it remembers outlives the run.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from netbuf_gym import _core
from netbuf_gym.errors import ControlError, ScenarioTypeError, shown

AckEvent = _core.AckEvent

HOOKS = ("start", "on_loss", "on_timeout")
"""Methods that a control may have beside its call."""

Control = Callable[[AckEvent], float | tuple[float | None, float | None] | None]
"""What decides on a connection's window."""


@dataclass(frozen=True)
class OwnControl:
    """What `Flow.cc` and `Sender.cc` make of a congestion control in Python.

    Args:
        control: A class, a function or an object; see `netbuf_gym.scenarios.python_control`.

    Raises:
        ScenarioTypeError: It cannot be called with an ACK.
    """

    control: Any

    def __post_init__(self) -> None:
        made = self._class()
        if made is not None and not any("__call__" in vars(one) for one in made.__mro__):
            valid = "a class with __call__(self, ack)"
            raise ScenarioTypeError(f"cc = {shown(self.control)}: its objects cannot be called; valid: {valid}")

    def _class(self) -> type | None:
        made = self.control.func if isinstance(self.control, functools.partial) else self.control
        return made if isinstance(made, type) else None

    @property
    def name(self) -> str:
        """Of the class or function."""
        control = self.control.func if isinstance(self.control, functools.partial) else self.control
        return getattr(control, "__name__", type(control).__name__)

    def __str__(self) -> str:
        return self.name

    def set_in(self, config: _core.FlowConfig) -> None:
        """Makes it the congestion control of a flow in the core's terms."""
        config.set_own_control(self.make, self.name)

    def make(self) -> Control:
        """The control of one connection in one run.

        Raises:
            ControlError: It is an object that cannot be copied, or what it has cannot be called with an ACK.
        """
        made = self._made()
        for name in ("__call__", *HOOKS):
            self._require_takes_ack(name, made if name == "__call__" else getattr(made, name, None))
        return made

    def _made(self) -> Control:
        if self._class() is not None:
            return self.control()
        if inspect.isroutine(self.control) or isinstance(self.control, functools.partial):
            return self.control
        try:
            return copy.deepcopy(self.control)
        except Exception as error:
            valid = "a class, of which each connection gets an object"
            raise ControlError(f"congestion control {self.name} cannot be copied ({error}); valid: {valid}") from error

    def _require_takes_ack(self, name: str, hook: Any) -> None:
        if not callable(hook):
            return  # none, or what the core refuses
        try:
            signature = inspect.signature(hook, follow_wrapped=False)
        except (TypeError, ValueError):
            return  # not of Python's
        try:
            signature.bind(None)
        except TypeError as error:
            plain = inspect.isroutine(hook) or isinstance(hook, functools.partial)
            code = getattr(hook if plain else type(hook).__call__, "__code__", None)
            at = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
            called = self.name if name == "__call__" and plain else f"{self.name}.{name}"
            said = f"congestion control {self.name}: {called}{signature}{at} cannot be called with an ACK ({error})"
            raise ControlError(f"{said}; valid: one argument, the ACK (beside self)") from None


def is_own_control(value: object) -> bool:
    """Whether `value` is one, or stands for one."""
    return isinstance(value, OwnControl) or (callable(value) and not isinstance(value, (str, Mapping)))
