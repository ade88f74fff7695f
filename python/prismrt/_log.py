"""What a training run reports: a progress line, a log as JSON lines, and a curve as SVG."""
from __future__ import annotations

import os
from collections.abc import Sequence

from . import _core


class Progress:
    """Times a run and writes its progress line.

    unit: what a step processes, "images" or "tokens", so many at a time. done: steps of an earlier part of the run.
    """

    def __init__(self, steps: int, units_per_step: int, unit: str, done: int = 0) -> None:
        self._core = _core._Progress(steps, units_per_step, unit, done)

    def line(self, step: int, loss: float) -> str:
        """As in "step 120 of 2,000, loss 2.134, 8,310 tokens/s, 2 min 53 s left"."""
        return self._core.line(step, loss)

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return self._core.seconds()


class TrainingLog:
    """Rows of named numbers by step. JSON lines are appended to the file, if there is one."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._core = _core._TrainingLog("" if path is None else os.fspath(path))

    def add(self, step: int, **values: float) -> None:
        """A row; infinite and NaN values are written as null."""
        self._core.add(step, values)

    def svg(self, *names: str) -> str:
        """A picture with a curve for each name against the step."""
        return self._core.svg(list(names))

    def write_svg(self, path: str | os.PathLike[str], *names: str) -> None:
        """Writes the picture to a file."""
        self._core.write_svg(os.fspath(path), list(names))
