"""Fail if pytest skipped a test that this machine could have run.

    python .ci/check_skips.py build/quick.xml build/slow.xml

A skip is allowed for two reasons only: the reference data beside the checkout are absent
("../shared is not here"), or its reason names a capability that this script finds to be missing too.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

SHARED = Path(__file__).resolve().parents[2] / "shared"


def has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def has_live_worlds() -> bool:
    """Whether one can be made: then the tests of live worlds must run."""
    from netbuf_gym.plants.linux import machine

    return not machine.look().missing


def has_kernel_windows() -> bool:
    from netbuf_gym.plants.linux import system
    from netbuf_gym.plants.linux.bpf import struct_ops

    return system.may_register_bpf() and not struct_ops.explain_unavailable()


def has_user_namespaces() -> bool:
    return subprocess.run(["unshare", "-Ur", "true"], capture_output=True).returncode == 0


def has_program(name: str) -> bool:
    return shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin:/usr/local/bin") is not None


def has_linux(version: str) -> bool:
    """A kernel of this version or newer, as "6.7"."""
    release = os.uname().release.split("-")[0].split(".")[:2]
    return [int(part) for part in release] >= [int(part) for part in version.split(".")]


def has_recorded_sums() -> bool:
    """Whether numpy adds as where the digests of worlds were recorded."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tests.envs import digests

    return json.loads(digests.RECORDED.read_text())["sums"] == digests.sums()


def has_congestion_control(name: str) -> bool:
    from netbuf_gym.plants.linux.setup import available_controls

    return name in available_controls()


def has_module(name: str) -> bool:
    return importlib.util.find_spec(name.split(".")[0]) is not None


#: pattern of a skip's reason -> whether this machine has what the reason says is missing
CAPABILITIES = {
    r"\.\./shared is not here": lambda match: SHARED.is_dir(),
    r"could not import '([\w.]+)'": lambda match: has_module(match[1]),
    r"needs a GPU": lambda match: has_gpu(),
    r"needs (bash|zsh|fish|unshare|nsenter|ss-server|ss-local)\b": lambda match: has_program(match[1]),
    r"needs root": lambda match: os.geteuid() == 0,
    r"needs user namespaces": lambda match: has_user_namespaces(),
    r"needs Linux (\d+\.\d+)": lambda match: has_linux(match[1]),
    r"needs (\w+) in the kernel": lambda match: has_congestion_control(match[1]),
    r"^no live worlds: ": lambda match: has_live_worlds(),
    r"^no windows in the kernel: ": lambda match: has_kernel_windows(),
    r"needs numpy's sums as recorded": lambda match: has_recorded_sums(),
    r"needs (\d+) cores": lambda match: (os.cpu_count() or 1) >= int(match[1]),
}


def allowed(reason: str) -> bool:
    """Whether `reason` names something that this machine really lacks."""
    for pattern, present in CAPABILITIES.items():
        match = re.search(pattern, reason)
        if match:
            return not present(match)
    return False


def main(paths: list[str]) -> int:
    cases = [case for path in paths for case in ET.parse(path).getroot().iter("testcase")]
    skips = [  # of a module that was skipped as a whole, only the text has the reason
        (f"{case.get('classname')}.{case.get('name')}", f"{skip.get('message') or ''} {skip.text or ''}")
        for case in cases
        for skip in case.findall("skipped")
        if skip.get("type") != "pytest.xfail"
    ]
    wrong = [(name, reason) for name, reason in skips if not allowed(reason)]
    for name, reason in wrong:
        print(f"skipped although it could run: {name}: {reason}", file=sys.stderr)
    print(f"{len(cases)} tests, {len(skips)} skipped, {len(wrong)} of them without a reason that holds here")
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
