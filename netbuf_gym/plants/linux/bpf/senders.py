"""Trained senders in integers as congestion controls of this machine's kernel (`cpp/bpf/sender.bpf.c`).

Without a pin a control goes with the last process that holds its link, however that ends. Needs the core alone.
"""

from __future__ import annotations

import errno
import re
import select
import struct
from pathlib import Path

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.plants.linux import system
from netbuf_gym.plants.linux.bpf import syscalls
from netbuf_gym.plants.linux.bpf.objects import load_object
from netbuf_gym.plants.linux.bpf.struct_ops import NAME_CHARACTERS, BpfError, StructOps, explain_unavailable

CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
BPF_FOLDER = Path("/sys/fs/bpf")
PINS = BPF_FOLDER / "netbuf-gym"
"""Folder of the links that outlive their process."""
SETTINGS = struct.Struct("<3Q64s")
"""`struct settings`: largest window in bytes, highest rate in bytes a second, largest growth in 2^-10, name; 0: any."""
USUAL_WINDOW_MB = 64.0


def pack_settings(window_mb: float = USUAL_WINDOW_MB, rate_mbps: float = 0, growth: float = 0, agent: str = "") -> bytes:
    """Return `struct settings`; a rate or growth of 0: any."""
    rate = max(1, round(rate_mbps * 125_000)) if rate_mbps else 0
    return SETTINGS.pack(round(window_mb * 1e6), rate, round(growth * 1024), agent.encode(errors="replace")[:63])


class InstalledSender:
    """A control that this process has installed, and that goes with it unless it is pinned.

    Args:
        name: Name for TCP_CONGESTION, new on this machine.
        policy: `struct nb_policy`.
        settings: `pack_settings`: bounds that the kernel keeps, and a name to be shown.
        unrestricted: Whether every socket may take it, not only those of CAP_NET_ADMIN.

    Raises:
        ConfigError: The name is taken or no name, or the kernel lacks what it takes, or privileges are missing.
        BpfError: The kernel refuses.
    """

    def __init__(self, name: str, policy: bytes, settings: bytes | None = None, unrestricted: bool = False):
        check_name(name)
        require_support()
        source = load_object("sender")
        sizes = {key: spec.value_bytes for key, spec in source.maps.items()}
        if (sizes["policies"], sizes["settings"]) != (len(policy), SETTINGS.size):
            raise RuntimeError("the BPF object 'sender' is another version's: make bpf")
        contents = {"policies": policy, "settings": settings or pack_settings()}
        try:
            self._ops = StructOps(source, {}, name, unrestricted, contents)
        except BpfError as error:
            if error.errno == errno.EEXIST:
                raise _name_taken(name) from None
            raise
        self.name = name
        self._removed = select.poll()
        self._removed.register(self._ops.link, 0)

    def pin(self) -> Path:
        """Keep the control beyond this process, until `remove` or the next boot; return the file that stands for it.

        Raises:
            ConfigError: As of `check_pin`.
        """
        check_pin(self.name)
        PINS.mkdir(mode=0o700, exist_ok=True)
        path = PINS / self.name
        path.unlink(missing_ok=True)  # of a control that was detached since
        syscalls.pin_object(self._ops.link, str(path))
        return path

    def is_removed(self) -> bool:
        """Return whether somebody has removed the control meanwhile (kernel 6.11; earlier ones do not tell)."""
        return any(events & select.POLLHUP for _, events in self._removed.poll(0))

    def close(self) -> None:
        """Let the control go, for good if it is not pinned; sockets that use it keep it until they are closed."""
        self._ops.close()


def check_name(name: str) -> None:
    """Check that a control may have a name.

    Raises:
        ConfigError: It is too long, has other characters, or is taken.
    """
    if not re.fullmatch(rf"[A-Za-z0-9_.]{{1,{NAME_CHARACTERS}}}", name):
        raise ConfigError(f"name = {quote(name)}; valid: 1 to {NAME_CHARACTERS} letters, digits, underscores and dots")
    if name in _list_controls():
        raise _name_taken(name)


def check_pin(name: str) -> None:
    """Check that a control of this name can be pinned.

    Raises:
        ConfigError: There is no BPF file system, or the name has dots, which such file systems keep for themselves.
    """
    if not is_bpf_folder(BPF_FOLDER):
        raise ConfigError(f"no BPF file system at {BPF_FOLDER}; valid: mount -t bpf bpf {BPF_FOLDER}, then pin")
    if "." in name:
        raise ConfigError(f"name = {quote(name)} cannot be pinned; valid: letters, digits and underscores")


def _name_taken(name: str) -> ConfigError:
    return ConfigError(f"name = {quote(name)} is taken; valid: a name that is not among {', '.join(_list_controls())}")


def _list_controls() -> list[str]:
    return CONTROLS.read_text(encoding="utf-8").split()


def require_support() -> None:
    """Raise ConfigError where congestion controls of BPF cannot be installed: by this kernel, or by this process."""
    if reason := explain_unavailable():
        raise ConfigError(f"no congestion control can be installed: {reason}")
    if not system.may_register_bpf():
        raise ConfigError(f"no congestion control can be installed: privileges are missing; valid: {system.BPF_PRIVILEGES}")


def is_bpf_folder(folder: Path) -> bool:
    """Return whether a BPF file system is mounted at a folder."""
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    kinds = [line.split()[2] for line in mounts if line.split()[1] == str(folder)]
    return kinds[-1:] == ["bpf"]
