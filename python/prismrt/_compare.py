"""Comparisons with a tolerance."""
from __future__ import annotations

import math
from typing import Any

from . import _core
from ._core import Tensor


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether |a - b| <= atol + rtol * |b|, for each element."""
    x, y = _core.asarray(a), _core.asarray(b)
    near = (x - y).abs() <= y.abs() * rtol + atol
    close: Tensor = (near & (y.abs() < math.inf)) | (x == y)
    return close | ((x != x) & (y != y)) if equal_nan else close


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are close to each other."""
    return bool(isclose(a, b, rtol, atol, equal_nan).all())
