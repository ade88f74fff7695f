"""The Python array API standard over Prism's tensors: https://data-apis.org/array-api.

What the standard asks for and Prism lacks is listed in docs/python.md. Functions that the library has no kernel for are
composed of those that it has.
"""
from __future__ import annotations

import builtins
import math
from collections import namedtuple
from typing import Any

from . import _core, _elementary
from ._array_info import __array_namespace_info__, can_cast, finfo, iinfo, isdtype, result_type  # noqa: F401
from ._core import Tensor, bool_, float32, float64, int8, int16, int32, int64, uint8
from ._elementary import (  # noqa: F401
    acos, acosh, asin, asinh, atan, atan2, atanh, copysign, cosh, exp, expm1, floor_divide, hypot, isfinite, isinf, isnan,
    log, log1p, log2, log10, logaddexp, pow, reciprocal, remainder, sign, signbit, sinh, sqrt, tan, trunc)

__array_api_version__ = "2024.12"

bool = bool_
e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None
_INTEGERS = (int8, int16, int32, int64, uint8)
_FLOATS = (float32, float64)
_all_of, _any_of, _max_of, _min_of, _abs_of = builtins.all, builtins.any, builtins.max, builtins.min, builtins.abs


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted(each % ndim for each in axes))


# --- creation
def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Tensor:
    if copy is False and not hasattr(obj, "__dlpack__"):
        raise ValueError("asarray: the object cannot be used without a copy")
    return _core.asarray(obj, dtype=dtype, device=device, copy=copy)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    return _core.zeros(shape, dtype, device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    return _core.ones(shape, dtype, device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    return _core.empty(shape, dtype, device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    value = _core.tensor(fill_value, dtype, device)
    return _core.broadcast_to(value, (shape,) if isinstance(shape, int) else shape) + _zero(value)


def _zero(like: Tensor) -> Any:
    return False if like.dtype == bool_ else 0


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    return _core.zeros_like(x, dtype, device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    return _core.ones_like(x, dtype, device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    return _core.empty_like(x, dtype, device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device or x.device)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        is_integer = _all_of(isinstance(each, int) for each in (start, stop, step))
        dtype = (int64 if _max_of(_abs_of(start), _abs_of(stop)) > 2**31 - 1 else int32) if is_integer else float32
    count = _max_of(0, math.ceil((stop - start) / step))
    return astype(_core.arange(count, dtype=float64, device=device) * float(step) + float(start), dtype)


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: builtins.bool = True) -> Tensor:
    steps = num - 1 if endpoint else num
    counts = _core.arange(num, dtype=float64, device=device)
    values = counts * ((stop - start) / steps if steps > 0 else 0.0) + float(start)
    if endpoint and num > 1:
        values = _core.where(counts == num - 1, float(stop), values)
    return astype(values, float32 if dtype is None else dtype)


def eye(n_rows: int, n_cols: Any = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    rows = _core.arange(n_rows, device=device)[:, None]
    columns = _core.arange(n_rows if n_cols is None else n_cols, device=device)
    return astype(columns == rows + k, float32 if dtype is None else dtype)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    return _triangle(x, lambda row, column: column <= row + k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    return _triangle(x, lambda row, column: column >= row + k)


def _triangle(x: Tensor, keeps: Any) -> Tensor:
    rows, columns = _core.arange(x.shape[-2], device=x.device)[:, None], _core.arange(x.shape[-1], device=x.device)
    return where(keeps(rows, columns), x, zeros_like(x))


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is {indexing!r}; use 'xy' or 'ij'")
    count = len(arrays)
    grids = [each.reshape(*(-1 if i == j else 1 for j in range(count))) for i, each in enumerate(arrays)]
    if indexing == "xy" and count > 1:
        grids = [each.permute(1, 0, *range(2, count)) for each in grids]
    return broadcast_arrays(*grids)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Tensor:
    return _core.from_dlpack(x, device=device, copy=copy)


# --- types
def astype(x: Tensor, dtype: Any, /, *, copy: builtins.bool = True, device: Any = None) -> Tensor:
    result = x.astype(dtype)
    return result if device is None else result.to(device)


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    return _core.broadcast_to(x, shape)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    rank = _max_of(0, *(len(each) for each in shapes))
    result = [1] * rank
    for shape in shapes:
        for axis, length in enumerate(shape, rank - len(shape)):
            if length != 1 and result[axis] not in (1, length):
                raise ValueError(f"broadcast_shapes: {shapes} do not fit")
            result[axis] = length if length != 1 else result[axis]
    return tuple(result)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    shape = broadcast_shapes(*(each.shape for each in arrays))
    return [_core.broadcast_to(each, shape) for each in arrays]


# --- elementwise
def abs(x: Tensor, /) -> Tensor:
    return x if x.dtype == uint8 else _core.abs(x)


def add(x1: Any, x2: Any, /) -> Tensor:
    return _core.add(x1, x2)


def subtract(x1: Any, x2: Any, /) -> Tensor:
    return _core.subtract(x1, x2)


def multiply(x1: Any, x2: Any, /) -> Tensor:
    return _core.multiply(x1, x2)


def divide(x1: Any, x2: Any, /) -> Tensor:
    return _core.divide(x1, x2)


def negative(x: Tensor, /) -> Tensor:
    return -x


def positive(x: Tensor, /) -> Tensor:
    return x


def square(x: Tensor, /) -> Tensor:
    return x * x


def sin(x: Tensor, /) -> Tensor:
    return _core.sin(x)


def cos(x: Tensor, /) -> Tensor:
    return _core.cos(x)


def tanh(x: Tensor, /) -> Tensor:
    return _core.tanh(x)


def _step(x: Tensor, function: Any) -> Tensor:
    return x if x.dtype in _INTEGERS else function(x)


def floor(x: Tensor, /) -> Tensor:
    return _step(x, _core.floor)


def ceil(x: Tensor, /) -> Tensor:
    return _step(x, _core.ceil)


def round(x: Tensor, /) -> Tensor:
    return _step(x, _core.round)


def equal(x1: Any, x2: Any, /) -> Tensor:
    return _core.equal(x1, x2)


def not_equal(x1: Any, x2: Any, /) -> Tensor:
    return _core.not_equal(x1, x2)


def less(x1: Any, x2: Any, /) -> Tensor:
    return _core.less(x1, x2)


def less_equal(x1: Any, x2: Any, /) -> Tensor:
    return _core.less_equal(x1, x2)


def greater(x1: Any, x2: Any, /) -> Tensor:
    return _core.greater(x1, x2)


def greater_equal(x1: Any, x2: Any, /) -> Tensor:
    return _core.greater_equal(x1, x2)


def maximum(x1: Any, x2: Any, /) -> Tensor:
    return _core.maximum(x1, x2)


def minimum(x1: Any, x2: Any, /) -> Tensor:
    return _core.minimum(x1, x2)


def logical_not(x: Tensor, /) -> Tensor:
    return _core.logical_not(x)


def logical_and(x1: Any, x2: Any, /) -> Tensor:
    return _core.logical_and(x1, x2)


def logical_or(x1: Any, x2: Any, /) -> Tensor:
    return _core.logical_or(x1, x2)


def logical_xor(x1: Any, x2: Any, /) -> Tensor:
    return _core.not_equal(x1, x2)


def _only_bool(x1: Any, x2: Any) -> None:
    if _any_of(isinstance(each, Tensor) and each.dtype != bool_ for each in (x1, x2)):
        raise _core.NotSupported("bitwise functions work on bool only")


def bitwise_and(x1: Any, x2: Any, /) -> Tensor:
    _only_bool(x1, x2)
    return _core.logical_and(x1, x2)


def bitwise_or(x1: Any, x2: Any, /) -> Tensor:
    _only_bool(x1, x2)
    return _core.logical_or(x1, x2)


def bitwise_xor(x1: Any, x2: Any, /) -> Tensor:
    _only_bool(x1, x2)
    return _core.not_equal(x1, x2)


def bitwise_invert(x: Tensor, /) -> Tensor:
    return ~x if x.dtype == bool_ else -x - 1 if x.dtype != uint8 else astype(255 - astype(x, int16), uint8)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    result = x
    if min is not None:
        result = astype(_core.maximum(result, min), x.dtype)
    if max is not None:
        result = astype(_core.minimum(result, max), x.dtype)
    return result


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    if isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.dtype != x2.dtype:
        dtype = result_type(x1, x2)
        x1, x2 = x1.astype(dtype), x2.astype(dtype)
    return _core.where(condition, x1, x2)


# --- reductions
def _sum_type(x: Tensor, dtype: Any) -> Any:
    if dtype is not None:
        return dtype
    return int32 if x.dtype in (bool_, int8, int16, uint8) else x.dtype


def _reduced(x: Tensor, function: Any, axis: Any, keepdims: builtins.bool) -> Tensor:
    if axis == () or x.ndim == 0:
        return x
    return function(x, axis=axis, keepdims=keepdims)


def sum(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False) -> Tensor:
    return _reduced(x.astype(_sum_type(x, dtype)), _core.sum, axis, keepdims)


def prod(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False) -> Tensor:
    result = x.astype(_sum_type(x, dtype))
    for each in reversed(_axes(axis, x.ndim)):
        result = _product(result, each)
        if keepdims:
            result = _core.expand_dims(result, each)
    return result


def _product(x: Tensor, axis: int) -> Tensor:
    """The product along an axis, by halves."""
    rows = x.permute(*(i for i in range(x.ndim) if i != axis), axis) if x.ndim > 1 else x
    while rows.shape[-1] > 1:
        half = (rows.shape[-1] + 1) // 2
        rest = rows[..., half:]
        if rest.shape[-1] < half:
            rest = _core.concat([rest, ones_like(rest[..., :1])], axis=-1)
        rows = rows[..., :half] * rest
    return rows[..., 0] if rows.shape[-1] else ones(rows.shape[:-1], dtype=x.dtype, device=x.device)


def mean(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor:
    return _reduced(x, _core.mean, axis, keepdims)


def max(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor:
    return _reduced(x, _core.max, axis, keepdims)


def min(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor:
    return _reduced(x, _core.min, axis, keepdims)


def var(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    if axis == ():  # of single elements
        return x * 0 / (1.0 - correction)
    return _core.var(x, axis=axis, correction=float(correction), keepdims=keepdims)


def std(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    return _core.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def all(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor:
    return _reduced(x.astype(bool_), _core.all, axis, keepdims)


def any(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor:
    return _reduced(x.astype(bool_), _core.any, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor:
    return sum(x.astype(bool_), axis=axis, keepdims=keepdims)


def cumulative_sum(x: Tensor, /, *, axis: Any = None, dtype: Any = None, include_initial: builtins.bool = False) -> Tensor:
    return _cumulative(x.astype(_sum_type(x, dtype)), axis, include_initial, 0, _core.cumsum)


def cumulative_prod(x: Tensor, /, *, axis: Any = None, dtype: Any = None, include_initial: builtins.bool = False) -> Tensor:
    return _cumulative(x.astype(_sum_type(x, dtype)), axis, include_initial, 1, _running_product)


def _cumulative(x: Tensor, axis: Any, include_initial: builtins.bool, initial: int, function: Any) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError("cumulative: give the axis of an array with several axes")
        axis = 0
    axis %= x.ndim
    result = astype(function(x, axis=axis), x.dtype) if x.shape[axis] else x
    if not include_initial:
        return result
    shape = tuple(1 if i == axis else length for i, length in enumerate(x.shape))
    return _core.concat([full(shape, initial, dtype=x.dtype, device=x.device), result], axis=axis)


def _part(x: Tensor, axis: int, start: Any, stop: Any) -> Tensor:
    return x[(slice(None),) * (axis % x.ndim) + (slice(start, stop),)]


def _running_product(x: Tensor, axis: int) -> Tensor:
    """Each element times those before it, by doubling distances."""
    distance, length = 1, x.shape[axis]
    while distance < length:
        moved = _part(x, axis, distance, None) * _part(x, axis, None, length - distance)
        x = _core.concat([_part(x, axis, None, distance), moved], axis=axis)
        distance *= 2
    return x


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Tensor:
    x = _core.concat([each for each in (prepend, x, append) if each is not None], axis=axis)
    for _ in range(n):
        later, earlier = _part(x, axis, 1, None), _part(x, axis, None, -1)
        x = later != earlier if x.dtype == bool_ else later - earlier
    return x


# --- searching, sorting, sets
def argmax(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor:
    return _core.argmax(x, axis=axis, keepdims=keepdims)


def argmin(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor:
    return _core.argmin(x, axis=axis, keepdims=keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    return _core.nonzero(x)


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    ordered = x1 if sorter is None else _core.take(x1, sorter)
    values = x2[..., None]
    return sum(ordered < values if side == "left" else ordered <= values, axis=-1, dtype=int64)


def sort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    return _core.sort(x, axis=axis, descending=descending)


def argsort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    return _core.argsort(x, axis=axis, descending=descending)


UniqueAll = namedtuple("UniqueAll", ["values", "indices", "inverse_indices", "counts"])
UniqueCounts = namedtuple("UniqueCounts", ["values", "counts"])
UniqueInverse = namedtuple("UniqueInverse", ["values", "inverse_indices"])


def unique_all(x: Tensor, /) -> UniqueAll:
    flat = x.flatten()
    order = _core.argsort(flat) if flat.size else _core.arange(0)
    ordered = flat[order]
    is_first = _core.concat([_core.ones(_min_of(1, flat.size), dtype=bool_, device=x.device), ordered[1:] != ordered[:-1]], axis=0)
    starts = _core.nonzero(is_first)[0]
    group = _sum_up(is_first.astype(int32)) - 1
    inverse = zeros(flat.shape, dtype=int32, device=x.device)
    if flat.size:
        inverse[order] = group
    ends = _core.concat([starts[1:], _core.tensor([flat.size], dtype=int64, device=x.device)], axis=0) if starts.size else starts
    return UniqueAll(ordered[starts], order[starts], inverse.reshape(x.shape), (ends - starts).astype(int32))


def _sum_up(x: Tensor) -> Tensor:
    return _core.cumsum(x, axis=0) if x.size else x


def unique_counts(x: Tensor, /) -> UniqueCounts:
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: builtins.bool = False) -> Tensor:
    first = x1 if isinstance(x1, Tensor) else _core.tensor(x1)
    second = x2 if isinstance(x2, Tensor) else _core.tensor(x2)
    found = any(first[..., None] == second.flatten(), axis=-1)
    return ~found if invert else found


# --- shapes
def concat(arrays: Any, /, *, axis: Any = 0) -> Tensor:
    dtype = result_type(*arrays)
    return _core.concat([each.astype(dtype) for each in arrays], axis=axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    dtype = result_type(*arrays)
    return _core.stack([each.astype(dtype) for each in arrays], axis=axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    return tuple(moveaxis(x, axis, 0))


def expand_dims(x: Tensor, /, *, axis: int = 0) -> Tensor:
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise IndexError(f"expand_dims: axis {axis} of an array with {x.ndim} axes")
    return _core.expand_dims(x, axis)


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    return _core.squeeze(x, axis) if axis != () else x


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    return _core.flip(x, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: Any = None) -> Tensor:
    return x.reshape(shape)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    return x.permute(axes) if x.ndim else x


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    sources = [each % x.ndim for each in (source if isinstance(source, tuple) else (source,))]
    places = [each % x.ndim for each in (destination if isinstance(destination, tuple) else (destination,))]
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources)):
        order.insert(place, axis)
    return x.permute(order) if order else x


def matrix_transpose(x: Tensor, /) -> Tensor:
    if x.ndim < 2:
        raise ValueError("matrix_transpose: the array needs two axes")
    return x.mT


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    if axis is None:
        return _core.roll(x.flatten(), shift, 0).reshape(x.shape) if x.size else x
    shifts, axes = (each if isinstance(each, tuple) else (each,) for each in (shift, axis))
    for each, place in zip(shifts * (len(axes) // len(shifts)), axes):
        x = _core.roll(x, each, place) if x.size else x
    return x


def repeat(x: Tensor, repeats: Any, /, *, axis: Any = None) -> Tensor:
    if isinstance(repeats, int):
        return _core.repeat(x, repeats, axis)
    flat = x.flatten() if axis is None else x
    counts = repeats.tolist() * (1 if repeats.size != 1 else flat.shape[axis or 0])
    places = [i for i, count in enumerate(counts) for _ in range(count)]
    return _core.take(flat, _core.tensor(places, dtype=int64, device=x.device), axis or 0)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    return _core.tile(x, repetitions) if repetitions else x


def take(x: Tensor, indices: Tensor, /, *, axis: Any = None) -> Tensor:
    return _core.take(x, indices, axis)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    lengths = [_max_of(1, *(1 if i == axis % x.ndim else length for length in pair))
               for i, pair in enumerate(zip(x.shape, indices.shape))]
    source = _core.broadcast_to(x, tuple(x.shape[i] if i == axis % x.ndim else each for i, each in enumerate(lengths)))
    places = _core.broadcast_to(indices, tuple(indices.shape[i] if i == axis % x.ndim else each for i, each in enumerate(lengths)))
    return _core.take_along_axis(source, _core.where(places < 0, places + x.shape[axis], places), axis)


# --- products
def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    if x1.dtype in _INTEGERS or x2.dtype in _INTEGERS:  # the library multiplies floats
        return astype(_core.matmul(x1.astype(float64), x2.astype(float64)), result_type(x1, x2))
    return _core.matmul(x1, x2)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: lengths {x1.shape[axis]} and {x2.shape[axis]} along axis {axis}")
    a, b = broadcast_arrays(moveaxis(x1, axis, -1), moveaxis(x2, axis, -1))
    return astype(_core.sum(a * b, axis=-1), result_type(x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    if isinstance(axes, int):
        axes = (tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes)))
    first, second = ([each % x.ndim for each in given] for x, given in zip((x1, x2), axes))
    free1, free2 = ([i for i in range(x.ndim) if i not in used] for x, used in ((x1, first), (x2, second)))
    inner = math.prod(x1.shape[i] for i in first)
    shape = tuple(x1.shape[i] for i in free1) + tuple(x2.shape[i] for i in free2)
    a = permute_dims(x1, (*free1, *first)).reshape(math.prod(x1.shape[i] for i in free1), inner)
    b = permute_dims(x2, (*second, *free2)).reshape(inner, math.prod(x2.shape[i] for i in free2))
    return matmul(a, b).reshape(shape)



def _namespace(self: Tensor, /, *, api_version: Any = None) -> Any:
    import sys
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"the array API of {api_version} is not known; this is {__array_api_version__}")
    return sys.modules[__name__]


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    return self.to(device)


Tensor.__array_namespace__ = _namespace  # type: ignore[attr-defined]
Tensor.to_device = _to_device  # type: ignore[attr-defined]
