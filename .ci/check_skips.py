"""Fail if pytest skipped a test that this machine could have run.

    python .ci/check_skips.py build/pytest.xml

A skip is allowed for two reasons only: the reference data beside the checkout are absent
("../shared is not here"), or its reason names a capability that this script finds to be missing too.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

SHARED = Path(__file__).resolve().parents[2] / "shared"


def has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def has_live_worlds() -> bool:
    """As root, with what links between namespaces are made of: the tests of live worlds must run."""
    return os.geteuid() == 0 and Path("/dev/net/tun").exists() and Path("/proc/self/ns/net").exists()


def has_module(name: str) -> bool:
    return importlib.util.find_spec(name.split(".")[0]) is not None


#: pattern of a skip's reason -> whether this machine has what the reason says is missing
CAPABILITIES = {
    r"\.\./shared is not here": lambda match: SHARED.is_dir(),
    r"could not import '([\w.]+)'": lambda match: has_module(match[1]),
    r"needs a GPU": lambda match: has_gpu(),
    r"needs (bash|zsh|fish)\b": lambda match: shutil.which(match[1]) is not None,
    r"needs root": lambda match: os.geteuid() == 0,
    r"^(no live worlds|not root|no network namespaces?\b|no unshare|no user namespaces)": lambda match: has_live_worlds(),
    r"^(ss-server|ss-local) is not installed": lambda match: shutil.which(match[1]) is not None,
    r"needs (\d+) cores": lambda match: (os.cpu_count() or 1) >= int(match[1]),
}


def allowed(reason: str) -> bool:
    """Whether `reason` names something that this machine really lacks."""
    for pattern, present in CAPABILITIES.items():
        match = re.search(pattern, reason)
        if match:
            return not present(match)
    return False


def main(path: str) -> int:
    cases = list(ET.parse(path).getroot().iter("testcase"))
    skips = [
        (f"{case.get('classname')}.{case.get('name')}", skip.get("message") or "")
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
    sys.exit(main(sys.argv[1]))
