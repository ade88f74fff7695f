"""Functions of functions: gradients, and plans that are made once and replayed."""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, TypeVar

from . import _core
from ._core import Tensor

Result = TypeVar("Result")


class no_grad(contextlib.ContextDecorator):
    """Within its block, or the function that it decorates, operations record no gradients."""

    def __init__(self) -> None:
        self._scope = _core._NoGradScope()

    def __enter__(self) -> no_grad:
        self._scope.enter()
        return self

    def __exit__(self, *error: object) -> None:
        self._scope.leave()


def value_and_grad(function: Callable[..., Tensor]) -> Callable[..., tuple[Tensor, Any]]:
    """A function that returns the value of `function` and its gradients.

    There is one gradient for each argument that is a tensor: by itself if there is one, else in a tuple.
    """

    @functools.wraps(function)
    def derived(*arguments: Any) -> tuple[Tensor, Any]:
        value, gradients = _core._value_and_grad(function, arguments)
        return value, gradients[0] if len(gradients) == 1 else gradients

    return derived


def grad(function: Callable[..., Tensor]) -> Callable[..., Any]:
    """The gradients alone; see value_and_grad."""
    derived = value_and_grad(function)

    @functools.wraps(function)
    def gradients(*arguments: Any) -> Any:
        return derived(*arguments)[1]

    return gradients


def recompute(function: Callable[..., Tensor], *arguments: Any) -> Tensor:
    """function(*arguments), without keeping what it makes on the way for the gradient.

    That computes it again from the arguments: the same numbers in less memory, for one more forward pass.
    """
    return _core._recompute(function, arguments)


class Compiled:
    """A function of tensors whose plan is made once for each set of shapes and types, then replayed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._plans = _core._CompiledPlans()

    def __call__(self, *arguments: Tensor) -> Any:
        return self._plans(self._function, arguments)

    def explain(self, *arguments: Tensor) -> str:
        """The steps of the plan for these arguments: op, device, shapes, bytes and time."""
        return self._plans.explain(self._function, arguments)

    @property
    def plans(self) -> int:
        """The number of plans so far."""
        return self._plans.plans


def compile(function: Callable[..., Any]) -> Compiled:
    """Plans a function of tensors once; later calls replay the plan.

    Everything that changes between calls must be an argument. Other values that the function reads become constants.
    """
    return Compiled(function)
