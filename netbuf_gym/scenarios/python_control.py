"""User-defined congestion controls in Python: slower than the core's, but quick to write.

    class Gentle:
        def __call__(self, ack):                 # the window in bytes, or None to leave it unchanged
            return ack.cwnd_bytes + ack.mss_bytes * ack.acked_bytes // ack.cwnd_bytes

        def on_loss(self, ack):                  # slow start threshold in bytes (ssthresh)
            return max(ack.mss_bytes, ack.in_flight_bytes * 7 // 8)

    result = nb.simulate(nb.scenarios.dumbbell(rate_mbps=10, senders=["cubic", Gentle]))

A control is called with an `AckEvent`: the sender's knowledge at that moment, and nothing else. Loss detection, retransmission
and time-outs remain the stack's. There are two kinds of control:

* A control with a method `on_loss` works like the kernel's and ns-3's own: it is called for every ACK that may change the
  window (the window, not the application, was the limit), outside fast recovery. In recovery the stack reduces the window to
  the result of `on_loss` (by proportional rate reduction in the linux stack); None: half of the data in flight.
* A control without `on_loss` owns its window: it is called for every ACK that delivers data, in recovery too, and otherwise
  only a time-out changes the window (to one segment). `owns_window = True` or `False` selects the kind regardless of methods.

Further methods, all with an `AckEvent`: `start`, when the connection is established; `on_timeout`, after a retransmission
time-out. `wants_rate = True` requests `delivery_rate_bps`. In the linux stack a control may return `(window, rate)` instead of
the window, to set the pacing rate in bit/s; None for either leaves it unchanged. A window is at least one segment, since
nothing could be sent with less.

Keep state in a class: every connection of every run gets its own object (`functools.partial(Class, ...)` with arguments); an
object is copied for each connection. A function is shared by all connections, so its state outlives the run.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from netbuf_gym import _core
from netbuf_gym.errors import ControlError, ScenarioTypeError, quote

AckEvent = _core.AckEvent

COMPILED = "compiled"
"""Name of the congestion control that is a trained sender, from a file (`netbuf_gym.scenarios.compiled_agent`)."""

HOOKS = ("start", "on_loss", "on_timeout")
"""Optional methods of a control besides `__call__`."""

Control = Callable[[AckEvent], float | tuple[float | None, float | None] | None]
"""Control of one connection: (ack) -> window in bytes, (window, pacing rate in bit/s), or None for no change."""


@dataclass(frozen=True)
class OwnControl:
    """User-defined congestion control, as `Flow.cc` and `Sender.cc` store it.

    Args:
        control: A class, a function or an object; see `netbuf_gym.scenarios.python_control`.

    Raises:
        ScenarioTypeError: A class whose objects cannot be called.
    """

    control: Any

    def __post_init__(self) -> None:
        made = self._find_class()
        if made is not None and not any("__call__" in vars(one) for one in made.__mro__):
            valid = "a class with __call__(self, ack)"
            raise ScenarioTypeError(f"cc = {quote(self.control)}: its objects cannot be called; valid: {valid}")

    def _find_class(self) -> type | None:
        made = self.control.func if isinstance(self.control, functools.partial) else self.control
        return made if isinstance(made, type) else None

    @property
    def name(self) -> str:
        """Name of the class or function."""
        control = self.control.func if isinstance(self.control, functools.partial) else self.control
        return getattr(control, "__name__", type(control).__name__)

    def __str__(self) -> str:
        return self.name

    def to_dict(self, field: str) -> dict[str, Any]:
        """Return the value of a field that stands for this control in a file.

        Raises:
            ScenarioTypeError: There is none, since the control is code.
        """
        valid = "a congestion control by its name (netbuf-gym list congestion-controls)"
        raise ScenarioTypeError(f"{field} = {self.name} is the user's code, which no file holds; valid here: {valid}")

    def configure_flow(self, config: _core.FlowConfig) -> None:
        """Set the control as the congestion control of a flow's configuration."""
        config.set_own_control(self.make, self.name)

    def make(self) -> Control:
        """Return the control of one connection in one run.

        Raises:
            ControlError: An object that cannot be copied, or a method that cannot be called with an ACK.
        """
        made = self._create_control()
        for name in ("__call__", *HOOKS):
            self._require_takes_ack(name, made if name == "__call__" else getattr(made, name, None))
        return made

    def _create_control(self) -> Control:
        if self._find_class() is not None:
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
            return  # absent, or refused by the core
        try:
            signature = inspect.signature(hook, follow_wrapped=False)
        except (TypeError, ValueError):
            return  # not a Python function
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
    """Return whether `value` is an `OwnControl` or can be the `control` of one."""
    return isinstance(value, OwnControl) or (callable(value) and not isinstance(value, (str, Mapping)))
