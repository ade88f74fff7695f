"""Initialisers: new values in the memory of a parameter, from the seed of prismrt.seed()."""
from __future__ import annotations

from . import _core
from ._core import Tensor


def constant(parameter: Tensor, value: float) -> None:
    """The value everywhere."""
    _core._init_constant(parameter, value)


def zeros(parameter: Tensor) -> None:
    """Zeros."""
    _core._init_constant(parameter, 0)


def ones(parameter: Tensor) -> None:
    """Ones."""
    _core._init_constant(parameter, 1)


def uniform(parameter: Tensor, low: float = 0, high: float = 1) -> None:
    """Uniform in [low, high)."""
    _core._init_uniform(parameter, low, high)


def normal(parameter: Tensor, mean: float = 0, deviation: float = 1) -> None:
    """Normally distributed."""
    _core._init_normal(parameter, mean, deviation)


def xavier_uniform(parameter: Tensor, gain: float = 1) -> None:
    """Glorot and Bengio, 2010: uniform, by the numbers of inputs and outputs."""
    _core._init_xavier_uniform(parameter, gain)


def xavier_normal(parameter: Tensor, gain: float = 1) -> None:
    """Glorot and Bengio, 2010: normal."""
    _core._init_xavier_normal(parameter, gain)


def kaiming_uniform(parameter: Tensor, gain: float = 2**0.5) -> None:
    """He et al., 2015, for relu: uniform, by the number of inputs."""
    _core._init_kaiming_uniform(parameter, gain)


def kaiming_normal(parameter: Tensor, gain: float = 2**0.5) -> None:
    """He et al., 2015, for relu: normal."""
    _core._init_kaiming_normal(parameter, gain)
