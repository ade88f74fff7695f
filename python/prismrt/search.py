"""Indexes of vectors with ids and fields, in memory or in one file."""
from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Union

import numpy as np
import numpy.typing as npt

from . import _core

Id = Union[int, str]
Filter = Union[str, Iterable[Id], Callable[[Id], bool], None]
Method = Literal["exact", "ivf", "graph"]


@dataclasses.dataclass(frozen=True)
class Found:
    """Results of a search, best first, and how they were found.

    For one query, `ids` and `scores` have one axis; for several, a row for each query. Ids that are texts are lists.
    Where fewer than k vectors qualify, rows of several queries end with the id 2^64 - 1 and the score NaN.
    """
    ids: Any
    scores: npt.NDArray[np.float32]
    how: str

    def __len__(self) -> int:
        return len(self.ids)


def _rows(vectors: Any) -> npt.NDArray[np.float32]:
    array = np.ascontiguousarray(vectors, dtype=np.float32)
    return array.reshape(1, -1) if array.ndim == 1 else array


def _fields(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Plain numbers in place of NumPy's. A field that is a float in one row is one in all."""
    plain = [{name: value.item() if isinstance(value, np.generic) else value for name, value in row.items()}
             for row in rows]
    floats = {name for row in plain for name, value in row.items() if isinstance(value, float)}
    return [{name: float(value) if name in floats and isinstance(value, int) else value
             for name, value in row.items()} for row in plain]


class Index:
    """A set of vectors, searched exactly or approximately.

        index = prism.Index(384, dtype="f16")
        index.add([7, 8], vectors, [{"year": 1999}, {"year": 2024}])
        index.build("graph")
        ids, scores = index.search(query, k=10, filter="year > 2000").ids, ...

    Functions may be called from several threads; Python's lock is released while they work.
    """

    def __init__(self, width: int, *, metric: Literal["cosine", "dot", "l2", "hamming"] = "cosine", dtype: Any = "f32",
                 rescore: Any = None, text_ids: bool = False) -> None:
        self._index = _core._VectorIndex(width, metric, dtype, rescore, text_ids)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, writable: bool = False) -> Index:
        """Opens a file. One process at a time may have it open for writing, while others read it."""
        index = cls.__new__(cls)
        index._index = _core._VectorIndex.open(os.fspath(path), writable)
        return index

    def add(self, ids: Id | Sequence[Id] | npt.NDArray[Any], vectors: Any,
            fields: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None) -> None:
        """Adds vectors. An id that exists is an error."""
        self._change(ids, vectors, fields, False)

    def update(self, ids: Id | Sequence[Id] | npt.NDArray[Any], vectors: Any,
               fields: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None) -> None:
        """Adds vectors, or replaces those with the same ids."""
        self._change(ids, vectors, fields, True)

    def _change(self, ids: Any, vectors: Any, fields: Any, replaces: bool) -> None:
        names = [ids] if isinstance(ids, (int, str, np.integer)) else ids
        names = names.tolist() if isinstance(names, np.ndarray) else [
            int(each) if isinstance(each, np.integer) else each for each in names]
        rows = [fields] if isinstance(fields, Mapping) else fields
        self._index.add(names, _rows(vectors), None if rows is None else _fields(rows), replaces)

    def remove(self, id: Id) -> bool:
        """Returns False if there is no such vector."""
        return self._index.remove(id)

    def __contains__(self, id: Id) -> bool:
        return self._index.contains(id)

    def __len__(self) -> int:
        return int(self.info()["vectors"])

    def __getitem__(self, id: Id) -> npt.NDArray[np.float32]:
        """The vector as it is stored; KeyError if there is none."""
        found = self._index.vector(id)
        if found is None:
            raise KeyError(id)
        return np.asarray(found)

    def search(self, query: Any, k: int = 10, *, recall: float = 0.95, filter: Filter = None, method: Method | None = None,
               effort: int = 0, oversample: int = 0, group_by: str = "") -> Found:
        """The k nearest vectors of one query [width] or of several [queries, width].

        recall: the share of the exact results that should be found, if the index was built with a method.
        filter: a text such as "year >= 1990 and lang in ('en', 'de')", a collection of ids, or a function of an id.
        """
        rows = _rows(query)
        chosen = list(filter) if isinstance(filter, (set, frozenset, np.ndarray, range)) else filter
        ids, scores, how = self._index.search(rows, k, recall, chosen, method, effort, oversample, group_by)
        if np.ndim(query) != 1:
            return Found(ids, np.asarray(scores), how)
        count = int(np.count_nonzero(~np.isnan(scores[0])))
        return Found(ids[0][:count], np.asarray(scores[0][:count]), how)

    def search_within(self, query: Any, bound: float, *, filter: Filter = None) -> Found:
        """All vectors that are at least as good as the bound: a similarity or a distance."""
        ids, scores, how = self._index.search_within(_rows(query), bound, filter)
        return Found(ids[0], np.asarray(scores[0]), how)

    def build(self, method: Method = "graph", *, lists: int = 0, links: int = 32, effort: int = 100, device: str = "cpu") -> None:
        """Makes the structures of a method for all vectors and measures what it finds with which effort."""
        self._index.build(method, lists, links, effort, device)

    def set_device(self, device: str) -> None:
        """Scans run on this device from now on."""
        self._index.set_device(str(device))

    def commit(self) -> None:
        """Writes the changes to the file."""
        self._index.commit()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the whole index as a new file."""
        self._index.save(os.fspath(path))

    def compact(self) -> None:
        """Rewrites the file without removed vectors."""
        self._index.compact()

    def refresh(self) -> None:
        """Shows a reader what a writer has committed since."""
        self._index.refresh()

    def verify(self) -> None:
        """Compares all checksums of the file."""
        self._index.verify()

    def info(self) -> dict[str, Any]:
        """What the index holds: vectors, width, metric, type, method, the measured curve, and more."""
        return self._index.info()

    def __repr__(self) -> str:
        info = self.info()
        return f"Index({info['vectors']} vectors of {info['width']} numbers, {info['metric']} {info['type']}, {info['method']})"
