"""Elementary functions of the array API, with the special values that the standard prescribes, composed of kernels that
the library has."""
from __future__ import annotations

import math
from typing import Any

from . import _core
from ._core import Tensor, bool_, float32, float64, int32, int64, uint8, where

_FLOATS = (float32, float64)
_INF, _NAN = math.inf, math.nan
_HALF_PI = math.pi / 2


def _number(value: float, like: Tensor) -> Tensor:
    return _core.full((), value, dtype=like.dtype, device=like.device)


def _pair(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors of one type; a number takes the type of the other."""
    if not isinstance(x1, Tensor):
        x1 = _core.full((), x1, dtype=x2.dtype, device=x2.device)
    if not isinstance(x2, Tensor):
        x2 = _core.full((), x2, dtype=x1.dtype, device=x1.device)
    return x1, x2


def isnan(x: Tensor, /) -> Tensor:
    return x != x


def isinf(x: Tensor, /) -> Tensor:
    return _core.abs(x) == _INF if x.dtype in _FLOATS else _core.zeros(x.shape, dtype=bool_, device=x.device)


def isfinite(x: Tensor, /) -> Tensor:
    return _core.abs(x) < _INF if x.dtype in _FLOATS else _core.ones(x.shape, dtype=bool_, device=x.device)


def signbit(x: Tensor, /) -> Tensor:
    return (x < 0) | ((x == 0) & (1.0 / x < 0))


def copysign(x1: Any, x2: Any, /) -> Tensor:
    x1, x2 = _pair(x1, x2)
    size = _core.abs(x1)
    return where(signbit(x2), -size, size)


def sign(x: Tensor, /) -> Tensor:
    if x.dtype not in _FLOATS:
        return (x > 0).astype(x.dtype) if x.dtype == uint8 else _core.sign(x)
    return where(isnan(x), x, _core.sign(x))


def exp(x: Tensor, /) -> Tensor:
    return _core.exp(x)


def log(x: Tensor, /) -> Tensor:
    return _core.log(x)


def log1p(x: Tensor, /) -> Tensor:
    return where(x == 0, x, _core.log1p(x))


def log2(x: Tensor, /) -> Tensor:
    return _core.log(x) / math.log(2)


def log10(x: Tensor, /) -> Tensor:
    return _core.log(x) / math.log(10)


def sqrt(x: Tensor, /) -> Tensor:
    return _core.sqrt(x)


def reciprocal(x: Tensor, /) -> Tensor:
    return 1.0 / x


def expm1(x: Tensor, /) -> Tensor:
    half = _core.tanh(x * 0.5)
    return where(_core.abs(x) < 1, 2 * half / (1 - half), _core.exp(x) - 1)


def logaddexp(x1: Any, x2: Any, /) -> Tensor:
    x1, x2 = _pair(x1, x2)
    larger = _core.maximum(x1, x2)
    sum_ = larger + _core.log1p(_core.exp(-_core.abs(x1 - x2)))
    return where((_core.abs(larger) == _INF) & ~isnan(larger), larger, sum_)


def trunc(x: Tensor, /) -> Tensor:
    if x.dtype not in _FLOATS:
        return x
    return where(x < 0, _core.ceil(x), _core.floor(x))


def tan(x: Tensor, /) -> Tensor:
    return _core.sin(x) / _core.cos(x)


def sinh(x: Tensor, /) -> Tensor:
    small = expm1(x)
    large = 0.5 * _core.exp(x) - 0.5 * _core.exp(-x)
    return where(_core.abs(x) < 1, 0.5 * (small + small / (small + 1)), large)


def cosh(x: Tensor, /) -> Tensor:
    return 0.5 * _core.exp(x) + 0.5 * _core.exp(-x)


def asinh(x: Tensor, /) -> Tensor:
    size = _core.abs(x)
    near = _core.log1p(size + size * size / (1 + _core.sqrt(size * size + 1)))
    far = _core.log(size) + math.log(2)
    return where(x == 0, x, copysign(where(size < 1e9, near, far), x))


def acosh(x: Tensor, /) -> Tensor:
    near = _core.log1p((x - 1) + _core.sqrt((x - 1) * (x + 1)))
    return where(x < 1e9, near, _core.log(x) + math.log(2))


def atanh(x: Tensor, /) -> Tensor:
    return where(x == 0, x, 0.5 * (_core.log1p(x) - _core.log1p(-x)))


def atan(x: Tensor, /) -> Tensor:
    # Newton's steps for tan(y) = t on [0, 1]; the inverse of larger numbers is there, too.
    size = _core.abs(x)
    is_large = size > 1
    t = where(is_large, 1 / size, size)
    y = t / (1 + 0.28 * t * t)  # off by at most 0.005
    for _ in range(3):
        cosine = _core.cos(y)
        y = y + cosine * (t * cosine - _core.sin(y))
    return where(x == 0, x, copysign(where(is_large, _HALF_PI - y, y), x))


def asin(x: Tensor, /) -> Tensor:
    return where(x == 0, x, atan(x / _core.sqrt((1 - x) * (1 + x))))


def acos(x: Tensor, /) -> Tensor:
    return 2 * atan(_core.sqrt(1 - x) / _core.sqrt(1 + x))


def atan2(x1: Any, x2: Any, /) -> Tensor:
    y, x = _pair(x1, x2)
    both_infinite = isinf(y) & isinf(x)
    ratio = where(both_infinite, _number(1, y), _core.abs(y) / _core.abs(x))
    angle = where((y == 0) & (x == 0), _number(0, y), atan(ratio))
    angle = where(signbit(x), math.pi - angle, angle)
    result = copysign(angle, y)
    return where(isnan(x) | isnan(y), _number(_NAN, result), result)


def hypot(x1: Any, x2: Any, /) -> Tensor:
    a, b = _pair(x1, x2)
    a, b = _core.abs(a), _core.abs(b)
    larger, smaller = where(a > b, a, b), where(a > b, b, a)
    ratio = where(larger == 0, _number(0, larger), smaller / larger)
    length = larger * _core.sqrt(1 + ratio * ratio)
    return where((a == _INF) | (b == _INF), _number(_INF, length), length)


def pow(x1: Any, x2: Any, /) -> Tensor:
    return _core.pow(x1, x2)


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    return _core.floor_divide(x1, x2)


def remainder(x1: Any, x2: Any, /) -> Tensor:
    a, b = _pair(x1, x2)
    if a.dtype not in _FLOATS:
        return _core.remainder(a, b)
    rest = a - _core.floor(a / b) * b
    rest = where(isinf(b) & isfinite(a), where((a == 0) | (signbit(a) == signbit(b)), a, b), rest)
    # The sign of a zero is that of the divisor.
    return where(rest == 0, copysign(rest, b), rest)
