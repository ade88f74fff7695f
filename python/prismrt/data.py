"""Data for training: files of common formats, and loaders of shuffled batches.

    images = data.load_idx("train-images-idx3-ubyte.gz")
    labels = data.load_idx("train-labels-idx1-ubyte.gz").astype("int32")
    for x, y in data.DataLoader((images, labels), batch_size=128):  # one epoch
        ...
"""
from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from . import _core
from ._core import Device, Tensor

__all__ = ["DataLoader", "Source", "load_csv", "load_idx", "load_text", "tensor_source", "token_file_source", "token_source"]


def load_idx(path: str | os.PathLike[str]) -> Tensor:
    """A file in the format of MNIST, packed by gzip or not, as a tensor on the CPU."""
    return _core._load_idx(os.fspath(path))


def load_csv(path: str | os.PathLike[str]) -> Tensor:
    """Numbers separated by commas, semicolons, tabs or spaces, as float32 [rows, columns]; a heading is skipped."""
    return _core._load_csv(os.fspath(path))


def load_text(path: str | os.PathLike[str]) -> str:
    """A text file in UTF-8, packed by gzip or not."""
    return _core._load_text(os.fspath(path))


class Source:
    """Samples that a loader draws from."""

    def __init__(self, core: _core._BatchSource) -> None:
        self._core = core

    def __len__(self) -> int:
        return self._core.size


def tensor_source(*tensors: Tensor) -> Source:
    """The rows of tensors with equal first axes."""
    return Source(_core._tensor_source(list(tensors)))


def token_source(tokens: Sequence[int], length: int, stride: int = 0) -> Source:
    """Windows of `length` tokens and their successors, int32 [batch, length] each.

    A window begins every `stride` tokens; 0: where the one before ends.
    """
    return Source(_core._token_source(list(tokens), length, stride))


def token_file_source(path: str | os.PathLike[str], length: int, bytes_per_token: int = 2, stride: int = 0) -> Source:
    """The same over a mapped file of little-endian numbers of 2 or 4 bytes."""
    return Source(_core._token_file_source(os.fspath(path), length, bytes_per_token, stride))


def _source(data: Any) -> Source:
    if isinstance(data, Source):
        return data
    if isinstance(data, Tensor):
        return tensor_source(data)
    if isinstance(data, (tuple, list)) and data and all(isinstance(each, Tensor) for each in data):
        return tensor_source(*data)
    if not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        raise TypeError("DataLoader: give tensors, a source, or a data set with __len__ and __getitem__")

    def batch(samples: list[int]) -> list[Any]:
        rows = [data[i] for i in samples]
        columns = zip(*rows) if isinstance(rows[0], (tuple, list)) else [rows]
        return [list(column) for column in columns]

    return Source(_core._function_source(len(data), batch))


class DataLoader:
    """An endless sequence of batches; the position alone determines those that follow.

    data: tensors with equal first axes, a source, or a data set with __len__ and __getitem__ whose samples are numbers,
    arrays, tensors or tuples of these. Iterating gives the rest of an epoch. shuffle: anew for each epoch, by seed and
    epoch alone. drop_last: leaves out a smaller last batch. prefetch: a thread prepares the next batch, unless Python makes
    the samples. device: of the batches.
    """

    def __init__(self, data: Any, batch_size: int = 32, *, shuffle: bool = True, drop_last: bool = True, seed: int = 0,
                 prefetch: bool = True, device: Device | str | None = None) -> None:
        self._core = _core._DataLoader(_source(data)._core, batch_size, shuffle, not drop_last, seed, prefetch, device)

    def next(self) -> tuple[Tensor, ...]:
        """The next batch."""
        return tuple(self._core.next())

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        for _ in range(len(self) - self.position % len(self)):
            yield self.next()

    def __len__(self) -> int:
        return self._core.batches_per_epoch

    @property
    def position(self) -> int:
        """The batches given so far."""
        return self._core.position

    @property
    def epoch(self) -> int:
        """The epochs completed."""
        return self._core.epoch

    def seek(self, position: int) -> None:
        """Continues from there."""
        self._core.seek(position)
