"""Progress of long work, on standard error: a tqdm bar on a terminal, occasional lines elsewhere.

The light install lacks tqdm and prints lines on a terminal too.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

FORM = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining} {postfix}"


class ProgressBar:
    """Context manager that shows progress; called as `bar(done, total)`.

    A call with `last` prints a line whatever the time since the previous one.

    Args:
        what: Description of the work.
        line_seconds: Seconds between lines if there is no bar; None: no lines.
        shown: Whether anything is shown.
        leave: Whether the bar stays on screen after the end.
    """

    def __init__(self, what: str, line_seconds: float | None = 15.0, shown: bool = True, leave: bool = True):
        self.what, self.line_seconds, self.shown, self.leave = what, line_seconds, shown, leave
        self._bar: Any = None
        self._started = self._last = time.monotonic()

    def __enter__(self) -> ProgressBar:
        self._started = self._last = time.monotonic()
        if self.shown and sys.stderr is not None and sys.stderr.isatty():
            bar = _import_tqdm()
            if bar is not None:
                look = {"bar_format": FORM, "file": sys.stderr, "dynamic_ncols": True, "leave": self.leave}
                self._bar = bar(total=1.0, desc=self.what, **look)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
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


def print_line(text: str) -> None:
    """Print a line on standard output, above any progress bar."""
    bar = _import_tqdm() if "tqdm" in sys.modules else None
    if bar is None:
        print(text, flush=True)
    else:
        bar.write(text, file=sys.stdout)
        sys.stdout.flush()


def format_duration(seconds: float) -> str:
    """Return a duration in readable units: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _import_tqdm() -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm
