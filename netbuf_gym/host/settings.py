"""Settings of a host that can be read and changed: sysctls, and the rings of its network devices.

A setting has a value of one or more whole numbers. What is tuned is a knob: one control of the agents, and the places in
settings that it is written to.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.host import rings
from netbuf_gym.plants.linux import netlink
from netbuf_gym.plants.linux.sysctls import KINDS, PLACES
from netbuf_gym.plants.linux.system import MAKE_WRITABLE, READ_ONLY
from netbuf_gym.tasks.host_buffers.actions import RANGES
from netbuf_gym.utils.suggestions import instead

Value = tuple[int, ...]

SYSCTLS = Path("/proc/sys")
LEAST_BYTES = 4096
"""Of any buffer on a host that is in use, unless another range is given; agents' ranges are those of the task else."""


class SettingError(ConfigError):
    """A setting that is not there, cannot be read or cannot be written, and why.

    Attributes:
        cause, remedy: why it cannot be written, and what to do, where that is known; else "".
    """

    def __init__(self, message: str, cause: str = "", remedy: str = ""):
        super().__init__(message)
        self.cause, self.remedy = cause, remedy


class Setting(ABC):
    """One thing that can be set.

    Attributes:
        name: as users know it.
        labels: of the numbers of its value, in their order; one, "", where there is one.
        exact: whether it is read back as it was written.
    """

    name: str
    labels: tuple[str, ...] = ("",)
    exact: bool = True

    @abstractmethod
    def read(self) -> Value:
        """Its value; raises SettingError."""

    @abstractmethod
    def write(self, value: Value) -> None:
        """Sets it; raises SettingError. What the kernel made of it, `read` says."""

    @abstractmethod
    def require_writable(self) -> None:
        """Raises SettingError where it could not be set, without setting anything."""

    @abstractmethod
    def limits(self, index: int) -> tuple[int, int]:
        """The least and the greatest that the number at `index` of its value may be."""

    def checked(self, value: Sequence[int]) -> Value:
        """`value`, if it can be this setting's; raises SettingError."""
        if len(value) != len(self.labels) or not all(isinstance(one, int) and not isinstance(one, bool) for one in value):
            raise SettingError(f"{self.name} = {shown(list(value))}; valid: {len(self.labels)} whole numbers")
        for index, one in enumerate(value):
            low, high = self.limits(index)
            if not low <= one <= high:
                label = f" ({self.labels[index]})" if self.labels[index] else ""
                raise SettingError(f"{self.name}{label} = {one}; valid: {low} to {high}")
        return tuple(value)


class Sysctl(Setting):
    """A sysctl of `KINDS`.

    Args:
        name: with dots.
        root: the folder that stands for /proc/sys.

    Raises:
        ConfigError: another name.
    """

    def __init__(self, name: str, root: Path = SYSCTLS):
        if name not in KINDS:
            raise ConfigError(f"setting {shown(name)} is none that is tuned; {instead(name, KINDS)}")
        self.name, self._kind = name, KINDS[name]
        self.labels = self._kind.labels
        self.path = root.joinpath(*name.split("."))

    def read(self) -> Value:
        """See `Setting.read`."""
        try:
            value = tuple(int(word) for word in self.path.read_text().split())
        except OSError as error:
            raise SettingError(f"{self.name} cannot be read: {_said(error)} ({self.path})") from None
        if len(value) != len(self.labels):
            raise SettingError(f"{self.name} holds {len(value)} numbers; valid: {len(self.labels)}")
        return value

    def write(self, value: Value) -> None:
        """See `Setting.write`."""
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
            try:
                os.write(handle, (" ".join(map(str, value)) + "\n").encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise self._refused(error) from None

    def require_writable(self) -> None:
        """See `Setting.require_writable`: opening asks the kernel, root or not."""
        try:
            os.close(os.open(self.path, os.O_WRONLY | os.O_CLOEXEC))
        except OSError as error:
            raise self._refused(error) from None

    def limits(self, index: int) -> tuple[int, int]:
        """See `Setting.limits`."""
        return self._kind.low, self._kind.high

    def checked(self, value: Sequence[int]) -> Value:
        """See `Setting.checked`; of three numbers none is less than the one before it."""
        value = super().checked(value)
        if list(value) != sorted(value):
            raise SettingError(f"{self.name} = {' '.join(map(str, value))}; valid: min <= default <= max")
        return value

    def _refused(self, error: OSError) -> SettingError:
        denied = error.errno in (errno.EACCES, errno.EPERM)
        if error.errno == errno.EROFS:
            why, remedy = READ_ONLY, MAKE_WRITABLE
        elif denied and not self._kind.in_namespace and os.geteuid() == 0:
            why, remedy = "it is the whole machine's, and read-only in this network namespace", "run it outside of that"
        elif denied:
            why, remedy = "no privileges", "root, or CAP_NET_ADMIN in this network namespace"
        else:
            return SettingError(f"{self.name} cannot be set: {_said(error)}", _said(error))
        return SettingError(f"{self.name} cannot be set: {why}; valid: {remedy}", why, remedy)


class Ring(Setting):
    """The ring of a network device, in packets: what it sends from.

    Args:
        device: its name.
        access: what reads and writes rings; the kernel, through its netlink, unless a test gives another.
    """

    exact = False  # drivers round to what they have

    def __init__(self, device: str, access: rings.Access | None = None):
        self.device, self.name = device, f"ring of {device}"
        self._access = access if access is not None else rings.Kernel()
        self._most: int | None = None

    def read(self) -> Value:
        """See `Setting.read`."""
        return (self._asked().tx,)

    def write(self, value: Value) -> None:
        """See `Setting.write`."""
        self._do(lambda: self._access.set(self.device, value[0]))

    def require_writable(self) -> None:
        """See `Setting.require_writable`: setting what it is already tells, and no driver stops for it."""
        self.write(self.read())

    def limits(self, index: int) -> tuple[int, int]:
        """See `Setting.limits`; the greatest is the device's."""
        if self._most is None:
            self._most = self._asked().tx_max
        return min(64, self._most), self._most

    def _asked(self) -> rings.Rings:
        return self._do(lambda: self._access.get(self.device))

    def _do(self, what: Callable[[], rings.Rings]) -> rings.Rings:
        try:
            return what()
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                why = "this device has no ring that could be set, as virtual ones have none; valid: a network card"
            elif error.errno in (errno.EPERM, errno.EACCES):
                why = "no privileges; valid: root, or CAP_NET_ADMIN in this network namespace"
            elif error.errno == errno.ENODEV:
                why = "there is no such device"
            elif error.errno == errno.ENOENT:
                why = "the kernel has no ethtool over netlink; valid: Linux 5.6 or newer"
            elif isinstance(error, TimeoutError) and error.errno is None:
                why = f"the kernel has not answered for {netlink.TIMEOUT_S:g} s; its driver may be changing it still"
            else:
                why = _said(error)
            raise SettingError(f"{self.name} cannot be used: {why}") from None


def _said(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


@dataclass(frozen=True)
class Knob:
    """One control of the agents on this host.

    Attributes:
        control: its name, as `netbuf_gym.tasks.host_buffers` has it.
        places: names of settings, and which number of each.
        low, high: the range that it is kept in, unless another is given.
    """

    control: str
    places: tuple[tuple[str, int], ...]
    low: int
    high: int


def _knob(control: str, places: tuple[tuple[str, int], ...]) -> Knob:
    low, high = RANGES[control]
    return Knob(control, places, max(int(low), LEAST_BYTES if control.endswith("_bytes") else 1), int(high))


KNOBS = {control: _knob(control, places) for control, places in PLACES.items()}


def ring_knob(ring: Setting) -> Knob:
    """The control `ring_packets`, of a device's ring."""
    return _knob("ring_packets", ((ring.name, 0),))


def changed(value: Value, parts: Mapping[int, int]) -> Value:
    """A value with some of its numbers replaced."""
    return tuple(parts.get(index, one) for index, one in enumerate(value))


def text_of(value: Value) -> str:
    """A value as sysctl shows it."""
    return " ".join(map(str, value))
