"""Settings of a host that can be read and changed: sysctls, and the rings of its network devices.

A setting has a value of one or more whole numbers. A knob is what is tuned: one control of the agents, and the numbers of
settings that the control is written to.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.host import rings
from netbuf_gym.plants.linux import netlink
from netbuf_gym.plants.linux.sysctls import KINDS, PLACES
from netbuf_gym.plants.linux.system import MAKE_WRITABLE, READ_ONLY
from netbuf_gym.tasks.host_buffers.actions import RANGES
from netbuf_gym.utils.suggestions import suggest_valid

Value = tuple[int, ...]

SYSCTLS = Path("/proc/sys")
LEAST_BYTES = 4096
"""Least size of any buffer on a host that is in use, unless another range is given; otherwise the task's ranges apply."""


class SettingError(ConfigError):
    """Error for a setting that does not exist, or cannot be read or written, with the reason.

    Attributes:
        cause, remedy: why the setting cannot be written, and what to do, where that is known; else "".
    """

    def __init__(self, message: str, cause: str = "", remedy: str = ""):
        super().__init__(message)
        self.cause, self.remedy = cause, remedy


class Setting(ABC):
    """Base class of settings.

    Attributes:
        name: name shown to users.
        labels: labels of the numbers of the value, in their order; one, "", where there is one.
        exact: whether the value is read back as it was written.
    """

    name: str
    labels: tuple[str, ...] = ("",)
    exact: bool = True

    @abstractmethod
    def read(self) -> Value:
        """Read the value; raises SettingError."""

    @abstractmethod
    def write(self, value: Value) -> None:
        """Set the value; raises SettingError. `read` returns what the kernel made of it."""

    @abstractmethod
    def require_writable(self) -> None:
        """Raise SettingError where the setting cannot be set, without setting anything."""

    @abstractmethod
    def limits(self, index: int) -> tuple[int, int]:
        """Return the least and the greatest value of the number at `index`."""

    def check_value(self, value: Sequence[int]) -> Value:
        """Return `value`, if the setting can have it; raises SettingError."""
        if len(value) != len(self.labels) or not all(isinstance(one, int) and not isinstance(one, bool) for one in value):
            raise SettingError(f"{self.name} = {quote(list(value))}; valid: {len(self.labels)} whole numbers")
        for index, one in enumerate(value):
            low, high = self.limits(index)
            if not low <= one <= high:
                label = f" ({self.labels[index]})" if self.labels[index] else ""
                raise SettingError(f"{self.name}{label} = {one}; valid: {low} to {high}")
        return tuple(value)


class Sysctl(Setting):
    """A sysctl of `KINDS`.

    Args:
        name: the sysctl's name, with dots.
        root: the folder that stands for /proc/sys.

    Raises:
        ConfigError: another name.
    """

    def __init__(self, name: str, root: Path = SYSCTLS):
        if name not in KINDS:
            raise ConfigError(f"setting {quote(name)} is not one that is tuned; {suggest_valid(name, KINDS)}")
        self.name, self._kind = name, KINDS[name]
        self.labels = self._kind.labels
        self.path = root.joinpath(*name.split("."))

    def read(self) -> Value:
        try:
            value = tuple(int(word) for word in self.path.read_text().split())
        except OSError as error:
            raise SettingError(f"{self.name} cannot be read: {_error_text(error)} ({self.path})") from None
        if len(value) != len(self.labels):
            raise SettingError(f"{self.name} holds {len(value)} numbers; valid: {len(self.labels)}")
        return value

    def write(self, value: Value) -> None:
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
            try:
                os.write(handle, (" ".join(map(str, value)) + "\n").encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise self._refusal(error) from None

    def require_writable(self) -> None:
        """Raise SettingError where the sysctl cannot be opened for writing: opening asks the kernel, root or not."""
        try:
            os.close(os.open(self.path, os.O_WRONLY | os.O_CLOEXEC))
        except OSError as error:
            raise self._refusal(error) from None

    def limits(self, index: int) -> tuple[int, int]:
        return self._kind.low, self._kind.high

    def check_value(self, value: Sequence[int]) -> Value:
        """Return `value`, if the sysctl can have it; of three numbers none is below its predecessor. Raises SettingError."""
        value = super().check_value(value)
        if list(value) != sorted(value):
            raise SettingError(f"{self.name} = {' '.join(map(str, value))}; valid: min <= default <= max")
        return value

    def _refusal(self, error: OSError) -> SettingError:
        denied = error.errno in (errno.EACCES, errno.EPERM)
        if error.errno == errno.EROFS:
            why, remedy = READ_ONLY, MAKE_WRITABLE
        elif denied and not self._kind.in_namespace and os.geteuid() == 0:
            why, remedy = "it is the whole machine's, and read-only in this network namespace", "run it outside of that"
        elif denied:
            why, remedy = "no privileges", "root, or CAP_NET_ADMIN in this network namespace"
        else:
            return SettingError(f"{self.name} cannot be set: {_error_text(error)}", _error_text(error))
        return SettingError(f"{self.name} cannot be set: {why}; valid: {remedy}", why, remedy)


_UNPRIVILEGED = "no privileges; valid: root, or CAP_NET_ADMIN in this network namespace"
RING_REFUSALS = {
    errno.EOPNOTSUPP: "this device has no ring that could be set, as virtual ones have none; valid: a network card",
    errno.EPERM: _UNPRIVILEGED,
    errno.EACCES: _UNPRIVILEGED,
    errno.ENODEV: "there is no such device",
    errno.ENOENT: "the kernel has no ethtool over netlink; valid: Linux 5.6 or newer",
}


class Ring(Setting):
    """The transmit ring of a network device, in packets.

    Args:
        device: the device's name.
        access: reads and writes rings; the kernel's netlink, unless a test gives another.
    """

    exact = False  # drivers round to the sizes that they support

    def __init__(self, device: str, access: rings.RingAccess | None = None):
        self.device, self.name = device, f"ring of {device}"
        self._access = access if access is not None else rings.KernelRings()
        self._most: int | None = None

    def read(self) -> Value:
        return (self._read_sizes().tx,)

    def write(self, value: Value) -> None:
        self._try_access(lambda: self._access.set(self.device, value[0]))

    def require_writable(self) -> None:
        """Raise SettingError where the ring cannot be set: the present value is written again, for which no driver stops."""
        self.write(self.read())

    def limits(self, index: int) -> tuple[int, int]:
        """See `Setting.limits`; the greatest value is the device's."""
        if self._most is None:
            self._most = self._read_sizes().tx_max
        return min(64, self._most), self._most

    def _read_sizes(self) -> rings.RingSizes:
        return self._try_access(lambda: self._access.get(self.device))

    def _try_access(self, what: Callable[[], rings.RingSizes]) -> rings.RingSizes:
        try:
            return what()
        except OSError as error:
            why = RING_REFUSALS.get(error.errno or 0) or _error_text(error)
            if isinstance(error, TimeoutError) and error.errno is None:
                why = f"the kernel has not answered for {netlink.TIMEOUT_S:g} s; its driver may be changing it still"
            raise SettingError(f"{self.name} cannot be used: {why}") from None


def _error_text(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


@dataclass(frozen=True)
class Knob:
    """One control of the agents on this host.

    Attributes:
        control: name of the control in `netbuf_gym.tasks.host_buffers`.
        places: names of settings, and which number of each.
        low, high: the range that the control is kept in, unless another is given.
    """

    control: str
    places: tuple[tuple[str, int], ...]
    low: int
    high: int


def _make_knob(control: str, places: tuple[tuple[str, int], ...]) -> Knob:
    low, high = RANGES[control]
    return Knob(control, places, max(int(low), LEAST_BYTES if control.endswith("_bytes") else 1), int(high))


KNOBS = {control: _make_knob(control, places) for control, places in PLACES.items()}


def make_ring_knob(ring: Setting) -> Knob:
    """Return the knob of the control `ring_packets`, for a device's ring."""
    return _make_knob("ring_packets", ((ring.name, 0),))


def replace_numbers(value: Value, parts: Mapping[int, int]) -> Value:
    """Return a value with some of its numbers replaced."""
    return tuple(parts.get(index, one) for index, one in enumerate(value))


def format_value(value: Value) -> str:
    """Format a value as sysctl shows it."""
    return " ".join(map(str, value))
