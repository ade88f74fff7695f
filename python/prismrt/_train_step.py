"""Compiled training steps, and checkpoints of whole runs."""
from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from ._core import Tensor
from .optim import MovingAverage, Optimizer

if TYPE_CHECKING:
    from .data import DataLoader
    from .nn import Module


def _list(optimizers: Optimizer | Sequence[Optimizer]) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


class TrainStep:
    """A training step as one plan: forward pass, backward pass, clipping and update, recorded once and replayed.

        step = nn.TrainStep(optimizer, lambda images, labels: nn.cross_entropy(model(images), labels))
        loss = step(images, labels)

    The function is recorded once for each set of shapes of the batch. Everything that changes between steps must be in
    the batch; parameters, buffers and the learning rate may change, too.

    clip_norm, clip_value: limits of the gradients, 0 for none. accumulate: batches that make one update. seed: of dropout.
    compute: the type of products: float32, bfloat16 or float16, whose loss is scaled. average: a MovingAverage, updated
    with the parameters. detect_anomaly: a loss or gradient that is not finite raises an error that names the step and the
    layer of `model` where it began.
    """

    def __init__(self, optimizer: Optimizer | Sequence[Optimizer], loss: Callable[..., Tensor], *, clip_norm: float = 0,
                 clip_value: float = 0, accumulate: int = 1, seed: int = 0, compute: Any = "float32",
                 average: MovingAverage | None = None, detect_anomaly: bool = False, model: Module | None = None) -> None:
        functools.update_wrapper(self, loss)
        self._loss = loss
        self._kept = (_list(optimizer), average, model)  # C++ refers to them
        self._core = _core._TrainStep([each._core for each in self._kept[0]], clip_norm, clip_value, accumulate, seed, compute,
                                      None if average is None else average._core, detect_anomaly, model)

    def __call__(self, *batch: Tensor) -> Tensor:
        """Updates the parameters. Returns the loss before, which is not waited for until it is read."""
        return self._core(self._loss, batch)

    def explain(self, *batch: Tensor) -> str:
        """The steps of the plan for this batch."""
        return self._core.explain(self._loss, batch)

    def estimate_memory(self, *batch: Tensor) -> dict[str, int]:
        """Bytes by device that steps with such batches need beside parameters and the optimiser's state."""
        return dict(self._core.estimate_memory(self._loss, batch))

    @property
    def gradient_norm(self) -> Tensor | None:
        """The norm of the last gradients before clipping; None without clip_norm."""
        return self._core.gradient_norm

    @property
    def batches(self) -> int:
        """The batches done so far."""
        return self._core.batches

    @property
    def plans(self) -> int:
        """The number of plans so far."""
        return self._core.plans


def _parts(model: Module | None, optimizer: Optimizer | Sequence[Optimizer], step: TrainStep | None,
           average: MovingAverage | None, loader: DataLoader | None) -> tuple[Any, ...]:
    return (model, [each._core for each in _list(optimizer)], None if step is None else step._core,
            None if average is None else average._core, None if loader is None else loader._core)


def save_checkpoint(path: str | os.PathLike[str], *, model: Module | None = None,
                    optimizer: Optimizer | Sequence[Optimizer] = (), step: TrainStep | None = None,
                    average: MovingAverage | None = None, loader: DataLoader | None = None) -> None:
    """Writes the state of a run to a .safetensors file: these parts and the state of random numbers.

    The file appears under its name only when it is complete.
    """
    _core._save_checkpoint(os.fspath(path), *_parts(model, optimizer, step, average, loader))


def load_checkpoint(path: str | os.PathLike[str], *, model: Module | None = None,
                    optimizer: Optimizer | Sequence[Optimizer] = (), step: TrainStep | None = None,
                    average: MovingAverage | None = None, loader: DataLoader | None = None) -> None:
    """Continues a run: the next steps give the same bits as without the interruption, on the same device.

    A checkpoint of another model or of other parts raises InvalidArgument and changes nothing.
    """
    _core._load_checkpoint(os.fspath(path), *_parts(model, optimizer, step, average, loader))
