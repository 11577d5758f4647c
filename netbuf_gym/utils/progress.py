"""Progress of what takes long, on standard error: a bar of tqdm on a terminal, a line now and then elsewhere.

The light install lacks tqdm; there are lines on a terminal too then.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

FORM = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining} {postfix}"


class ProgressBar:
    """A context that shows how much is done; called with it: `bar(done, total)`.

    A call with `last` writes a line whatever the time.

    Args:
        what: is under way.
        line_seconds: between lines where there is no bar; None: no lines.
        shown: whether anything is.
        leave: whether the bar stays when it is done.
    """

    def __init__(self, what: str, line_seconds: float | None = 15.0, shown: bool = True, leave: bool = True):
        self.what, self.line_seconds, self.shown, self.leave = what, line_seconds, shown, leave
        self._bar: Any = None
        self._started = self._last = time.monotonic()

    def __enter__(self) -> ProgressBar:
        self._started = self._last = time.monotonic()
        if self.shown and sys.stderr is not None and sys.stderr.isatty():
            bar = _tqdm()
            if bar is not None:
                look = {"bar_format": FORM, "file": sys.stderr, "dynamic_ncols": True, "leave": self.leave}
                self._bar = bar(total=1.0, desc=self.what, **look)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __call__(self, done: float, total: float, text: str = "", last: bool = False) -> None:
        share = min(1.0, done / total) if total > 0 else 1.0
        counted = f"{done:,}/{total:,}" if isinstance(total, int) else ""
        said = ", ".join(part for part in (counted, text) if part)
        if self._bar is not None:
            self._bar.set_postfix_str(said, refresh=share >= 1.0)
            self._bar.update(share - self._bar.n)
        elif self.shown and self.line_seconds is not None and sys.stderr is not None:
            now = time.monotonic()
            if last or now - self._last >= self.line_seconds:
                self._last = now
                print(f"{self.what} {share:4.0%}  {said}  {now - self._started:.0f} s", file=sys.stderr, flush=True)


def say(text: str) -> None:
    """A line on standard output, above whatever bar there is."""
    bar = _tqdm() if "tqdm" in sys.modules else None
    if bar is None:
        print(text, flush=True)
    else:
        bar.write(text, file=sys.stdout)
        sys.stdout.flush()


def duration(seconds: float) -> str:
    """A time as people say it: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _tqdm() -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm
