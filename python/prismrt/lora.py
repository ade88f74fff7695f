"""LoRA adapters: small changes of a language model that are trained while its own weights stay as they are."""
from __future__ import annotations

import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union

from . import _core
from ._arguments import path_argument

Sample = Union[str, Mapping[str, Any]]
Data = Union[str, "os.PathLike[str]", Iterable[Sample]]


@dataclasses.dataclass(frozen=True)
class LoraProgress:
    """The state of a training. validation_loss is None where a step was not validated; line shows it all to a person."""

    step: int
    steps: int
    loss: float
    validation_loss: float | None
    line: str


@dataclasses.dataclass(frozen=True)
class TrainedLora:
    """A trained adapter.

    path: its file, for LLM(lora=path). loss: that of the last step that was reported. validation_loss: the lowest one,
    of best_step, whose adapter the file has; None without validation.
    """

    path: str
    parameters: int
    steps: int
    stopped_early: bool
    loss: float
    validation_loss: float | None
    best_step: int


class _Line:
    """Draws the progress as one line on standard error; validated steps keep theirs."""

    def __call__(self, at: LoraProgress) -> None:
        end = "\r" if at.validation_loss is None else "\n"
        sys.stderr.write(f"\r\x1b[K{at.line}{end}")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def train_lora(
    model: str | os.PathLike[str],
    data: Data,
    out: str | os.PathLike[str],
    *,
    rank: int | None = None,
    alpha: float | None = None,
    dropout: float | None = None,
    matrices: Sequence[str] | None = None,
    context: int | None = None,
    steps: int | None = None,
    batch: int | None = None,
    accumulate: int | None = None,
    lr: float | None = None,
    warmup: int | None = None,
    weight_decay: float | None = None,
    clip: float | None = None,
    validation: float | None = None,
    validate_every: int | None = None,
    patience: int | None = None,
    seed: int | None = None,
    recompute: bool = False,
    detect_anomaly: bool = False,
    device: str | _core.Device = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    save_every: int | None = None,
    resume: bool = False,
    log: str | os.PathLike[str] | None = None,
    svg: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[LoraProgress], object] | None = None,
) -> TrainedLora:
    """Trains a LoRA adapter for a model and writes it to the GGUF file `out`, as `prism train --lora` does.

        prismrt.train_lora("model.gguf", [{"prompt": "The capital of Velmoria?", "completion": "Tarsk."}], "adapter.gguf")
        llm = prismrt.LLM("model.gguf", lora="adapter.gguf")

    model: a GGUF file or the name of a model. data: a file of JSON lines or of plain text, or such objects themselves:
    {"messages": [...]}, {"prompt": ..., "completion": ...}, {"text": ...}, or texts. Of chats and pairs only the answers
    are learned. Options that are not given have the defaults of the program (`python -m prismrt help train`).

    rank, alpha: the change of a matrix has this rank and the factor alpha / rank. matrices: beginnings of their names:
    ffn (the default), attn, attn_q, output. context: tokens of a sample. validation: the share of samples that are not learned;
    patience: validations without improvement that end the training. checkpoint: a file for the state of the run, from
    which resume=True continues. log, svg: files for the losses.

    progress: a line (by default on a terminal), or a function of LoraProgress; an exception that it raises stops the
    training. Python's lock is released. Ctrl-C stops after the current step, writes the checkpoint and raises
    KeyboardInterrupt.
    """
    options = _core._LoraOptions()
    given = {"rank": rank, "alpha": alpha, "dropout": dropout, "matrices": matrices, "context": context, "steps": steps,
             "batch": batch, "accumulate": accumulate, "lr": lr, "warmup": warmup, "weight_decay": weight_decay, "clip": clip,
             "validation": validation, "validate_every": validate_every, "patience": patience, "seed": seed,
             "save_every": save_every}
    for name, value in given.items():
        if value is not None:
            _set(options, name, value)
    options.recompute, options.detect_anomaly = recompute, detect_anomaly
    options.checkpoint = "" if checkpoint is None else os.fspath(checkpoint)
    if resume and checkpoint is None:
        raise ValueError("train_lora: resume needs the checkpoint to continue from")
    line = _Line() if progress is True or (progress is None and sys.stderr is not None and sys.stderr.isatty()) else None
    function = line or (progress if callable(progress) else None)

    def report(*state: Any) -> None:
        function(LoraProgress(*state))  # type: ignore[misc]

    path = path_argument(out, "train_lora", "out")
    where = device.id if isinstance(device, _core.Device) else device
    with _Lines(data) as lines:
        try:
            core = _core._train_lora(path_argument(model, "train_lora", "model"), lines, path, options, where, resume,
                                     "" if log is None else os.fspath(log), "" if svg is None else os.fspath(svg),
                                     report if function else None)
        finally:
            if line:
                line.close()
    return TrainedLora(path, core.parameters, core.steps, core.stopped_early, core.loss, core.validation_loss, core.best_step)


_LIMITS = {"rank": (1, None), "context": (2, None), "steps": (1, None), "batch": (1, None), "accumulate": (1, None),
           "validate_every": (1, None), "save_every": (1, None), "patience": (1, None), "warmup": (0, None), "seed": (0, None),
           "lr": (0, 10), "clip": (0, None), "weight_decay": (0, 10), "dropout": (0, 0.99), "validation": (0, 0.9)}


def _set(options: _core._LoraOptions, name: str, value: Any) -> None:
    if name == "matrices":
        if isinstance(value, str) or not all(isinstance(each, str) for each in value):
            raise TypeError(f"train_lora: matrices is {value!r}; give a list of names")
        value = list(value)
    elif not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"train_lora: {name} is {value!r}; give a number")
    least, most = _LIMITS.get(name, (None, None))
    if (least is not None and not value >= least) or (most is not None and not value <= most):
        raise ValueError(f"train_lora: {name} is {value}; give {least} or more" + ("" if most is None else f", up to {most}"))
    try:
        setattr(options, name, value)
    except TypeError:
        raise TypeError(f"train_lora: {name} is {value!r}; give a whole number") from None


class _Lines:
    """The name of a file with the data, which is written for the time of the `with` block unless it is a file already."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._file: Any = None

    def __enter__(self) -> str:
        if isinstance(self._data, (str, os.PathLike)):
            return os.fspath(self._data)
        self._file = tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8")
        if not isinstance(self._data, Iterable):
            raise TypeError(f"train_lora: data is {self._data!r}; give a file, or texts and dictionaries")
        for each in self._data:
            if not isinstance(each, (str, Mapping)):
                raise TypeError(f"train_lora: data has {each!r}; give texts or dictionaries")
            self._file.write(json.dumps({"text": each} if isinstance(each, str) else dict(each)) + "\n")
        self._file.flush()
        return str(self._file.name)

    def __exit__(self, *error: object) -> None:
        if self._file:
            self._file.close()
