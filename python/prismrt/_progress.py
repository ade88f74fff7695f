"""A progress bar on standard error for downloads and loading."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Union

ProgressFunction = Callable[[str, int, int], None]
ProgressLike = Union[bool, ProgressFunction, None]

WIDTH = 30
MEGABYTE = 1 << 20


class ProgressBar:
    """Draws one line; a new task begins another."""

    def __init__(self) -> None:
        self._task = ""

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._task and what != self._task:
            self.close()
        self._task = what
        share = min(1.0, done / total) if total else 0.0
        bar = "#" * round(WIDTH * share)
        size = f"{total // MEGABYTE} MB" if total else f"{done // MEGABYTE} MB"
        sys.stderr.write(f"\r{what} [{bar:<{WIDTH}}] {100 * share:3.0f}% of {size}")
        sys.stderr.flush()

    def close(self) -> None:
        """Ends the line."""
        if self._task:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self._task = ""


def progress_function(wanted: ProgressLike) -> tuple[ProgressFunction | None, Callable[[], None]]:
    """The function to call, and what to call at the end. None: a bar if a person watches."""
    if callable(wanted):
        return wanted, lambda: None
    if wanted is None:
        wanted = sys.stderr is not None and sys.stderr.isatty()
    if not wanted:
        return None, lambda: None
    bar = ProgressBar()
    return bar, bar.close
