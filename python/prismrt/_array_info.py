"""What the array API asks about types and devices."""
from __future__ import annotations

import dataclasses
from typing import Any

from . import _core
from ._core import DType, Tensor, bool_, float32, float64, int8, int16, int32, int64, uint8

_SIGNED, _UNSIGNED, _FLOATING = (int8, int16, int32, int64), (uint8,), (float32, float64)
_KINDS = {"bool": (bool_,), "signed integer": _SIGNED, "unsigned integer": _UNSIGNED, "integral": _SIGNED + _UNSIGNED,
          "real floating": _FLOATING, "complex floating": (), "numeric": _SIGNED + _UNSIGNED + _FLOATING}
_DTYPES = {each.name: each for each in (bool_, *_SIGNED, *_UNSIGNED, *_FLOATING)}


@dataclasses.dataclass(frozen=True)
class FloatInfo:
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclasses.dataclass(frozen=True)
class IntegerInfo:
    bits: int
    max: int
    min: int
    dtype: DType


def _type_of(given: Any) -> DType:
    return given.dtype if isinstance(given, Tensor) else DType(given)


def finfo(type: Any, /) -> FloatInfo:
    dtype = _type_of(type)
    if dtype == float32:
        return FloatInfo(32, 2.0**-23, (2 - 2.0**-23) * 2.0**127, -(2 - 2.0**-23) * 2.0**127, 2.0**-126, dtype)
    if dtype == float64:
        return FloatInfo(64, 2.0**-52, (2 - 2.0**-52) * 2.0**1023, -(2 - 2.0**-52) * 2.0**1023, 2.0**-1022, dtype)
    raise TypeError(f"finfo: {dtype} is no float of the standard")


def iinfo(type: Any, /) -> IntegerInfo:
    dtype = _type_of(type)
    if dtype not in _SIGNED + _UNSIGNED:
        raise TypeError(f"iinfo: {dtype} is no integer")
    bits = 8 * dtype.itemsize
    if dtype in _UNSIGNED:
        return IntegerInfo(bits, 2**bits - 1, 0, dtype)
    return IntegerInfo(bits, 2**(bits - 1) - 1, -2**(bits - 1), dtype)


def isdtype(dtype: DType, kind: Any) -> bool:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    for each in kinds:
        if isinstance(each, str) and each not in _KINDS:
            raise ValueError(f"isdtype: no kind {each!r}; the kinds are {', '.join(_KINDS)}")
    return any(dtype in _KINDS[each] if isinstance(each, str) else dtype == each for each in kinds)


def can_cast(from_: Any, to: DType, /) -> bool:
    try:
        return bool(result_type(from_, to) == to)
    except TypeError:
        return False


def _promoted(a: DType, b: DType) -> DType:
    if a == b:
        return a
    for kind in (_SIGNED, _FLOATING):
        if a in kind and b in kind:
            return max(a, b, key=lambda each: each.itemsize)
    signed = {a, b} - {uint8}
    if len(signed) == 1 and (other := signed.pop()) in _SIGNED:
        return int16 if other == int8 else other
    raise TypeError(f"result_type: the standard does not combine {a} and {b}")


def result_type(*arrays_and_dtypes: Any) -> DType:
    types = [_type_of(each) for each in arrays_and_dtypes if not isinstance(each, (int, float, complex))]
    if not types:
        raise ValueError("result_type: give an array or a type")
    result = types[0]
    for each in types[1:]:
        result = _promoted(result, each)
    for each in arrays_and_dtypes:
        if isinstance(each, float) and result in _SIGNED + _UNSIGNED + (bool_,):
            result = float32
    return result


class _Info:
    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> _core.Device:
        return _core.default_device()

    def devices(self) -> list[_core.Device]:
        return _core.devices()

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        return {"real floating": float32, "complex floating": float32, "integral": int32, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        return {name: each for name, each in _DTYPES.items() if kind is None or isdtype(each, kind)}


def __array_namespace_info__() -> _Info:
    return _Info()
