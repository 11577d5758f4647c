"""A pytest plug-in: what each test module calls and how long it takes, or, with a limit, that no test runs for ever.

    NETBUF_CALLS=FILE     writes {module: {"seconds", "called": {path: [first lines of functions]}}, ...} and what failed
    NETBUF_LIMIT_S=60     a test that takes longer ends the process by SIGPROF

Times are the processor's, of child processes too, so that they mean the same on a busy machine.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

OUT, LIMIT_S = os.environ.get("NETBUF_CALLS"), float(os.environ.get("NETBUF_LIMIT_S", 0))
ROOT = str(Path.cwd()) + os.sep

_codes: set = set()
_modules: dict[str, dict] = {}
_failed: list[str] = []


def _spent():
    return sum(os.times()[:4])


def _trace(frame, event, argument):
    _codes.add(frame.f_code)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    if LIMIT_S:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    began = _spent()
    if OUT:
        _codes.clear()
        threading.settrace(_trace)
        sys.settrace(_trace)
    yield
    if OUT:
        sys.settrace(None)
        threading.settrace(None)
        module = _modules.setdefault(item.nodeid.split("::")[0], {"seconds": 0.0, "called": {}})
        module["seconds"] += _spent() - began
        for code in _codes:
            path = os.path.realpath(code.co_filename)
            if path.startswith(ROOT):
                module["called"].setdefault(path[len(ROOT) :], set()).add(code.co_firstlineno)
    if LIMIT_S:
        signal.setitimer(signal.ITIMER_PROF, 0)


def pytest_runtest_logreport(report):
    if report.failed and report.nodeid not in _failed:
        _failed.append(report.nodeid)


def pytest_sessionfinish():
    if OUT:
        for module in _modules.values():
            module["called"] = {path: sorted(lines) for path, lines in sorted(module["called"].items())}
        Path(OUT).write_text(json.dumps({"modules": _modules, "failed": _failed}))
