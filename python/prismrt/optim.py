"""Optimisers, schedules of the learning rate, clipping of gradients and moving averages, with PyTorch's names.

    optimizer = optim.AdamW(model.parameters(), lr=1e-3, schedule=optim.cosine_schedule(1000))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union

from . import _core
from ._core import Tensor

Schedule = Callable[[int], float]
Parameters = Union[Iterable[Tensor], Iterable[Mapping[str, Any]]]

__all__ = [
    "Adam", "AdamW", "Lion", "MovingAverage", "Muon", "Optimizer", "RMSprop", "SGD", "clip_grad_norm", "clip_grad_value",
    "constant_schedule", "cosine_schedule", "linear_schedule", "one_cycle_schedule", "step_schedule", "warm_up",
]


def _numbers(optimizer: str, given: Mapping[str, Any]) -> dict[str, float]:
    """Settings as C++ has them: numbers, and betas one by one."""
    numbers: dict[str, float] = {}
    for name, value in given.items():
        if name == "betas":
            numbers["beta1"], numbers["beta2"] = map(float, value)
        elif isinstance(value, (int, float)):
            numbers[name] = float(value)
        else:
            raise TypeError(f"{optimizer}: {name} is {value!r}; give a number")
    return numbers


class Optimizer:
    """The base of all optimisers. Parameters are changed in place.

    params: tensors that require gradients, or groups: dictionaries with "params" and settings of their own. schedule: a
    function of the step, counted from 0, that gives a factor of the learning rates.
    """

    def __init__(self, params: Parameters, settings: Mapping[str, Any], schedule: Schedule | None = None) -> None:
        name = type(self).__name__
        given = list(params)
        groups = given if given and isinstance(given[0], Mapping) else [{"params": given}]
        core_groups = []
        for group in groups:
            if not isinstance(group, Mapping) or "params" not in group:
                raise TypeError(f"{name}: params must be tensors, or dictionaries with 'params'")
            own = {key: value for key, value in group.items() if key != "params"}
            if unknown := set(own) - set(settings):
                raise TypeError(f"{name}: no setting {sorted(unknown)[0]!r}; there are {', '.join(settings)}")
            tensors = list(group["params"])
            for each in tensors:
                if not isinstance(each, Tensor):
                    raise TypeError(f"{name}: {type(each).__name__} among the parameters; give tensors")
            core_groups.append((tensors, _numbers(name, {**settings, **own})))
        self._core = _core._Optimizer(self._kind(), core_groups)
        if schedule is not None:
            self.set_schedule(schedule)

    @classmethod
    def _kind(cls) -> str:
        """The name of the rule, also for classes derived from it."""
        for each in cls.__mro__:
            if Optimizer in each.__bases__:
                return each.__name__
        raise TypeError("Optimizer: make one of its kinds, such as AdamW")

    def step(self) -> None:
        """Changes every parameter that has a gradient."""
        self._core.step()

    def zero_grad(self) -> None:
        """Forgets the gradients of all parameters."""
        self._core.zero_grad()

    def set_schedule(self, schedule: Schedule) -> None:
        """The learning rate of each group is its own times schedule(steps)."""
        self._schedule = schedule
        self_now = weakref.ref(self)  # a reference from C++ would keep this object alive for ever

        def factor(step: int) -> float:
            own = self_now()
            return 1.0 if own is None else float(own._schedule(step))

        self._core.set_schedule(factor)

    def get_lr(self, group: int = 0) -> float:
        """The learning rate of the group in the next step, with the schedule's factor."""
        return self._core.lr(group)

    def set_lr(self, lr: float, group: int | None = None) -> None:
        """Sets the learning rate of a group, or of all."""
        for each in range(self._core.groups) if group is None else [group]:
            self._core.set_lr(each, lr)

    @property
    def lr(self) -> float:
        """The learning rate of the first group in the next step."""
        return self._core.lr(0)

    @lr.setter
    def lr(self, lr: float) -> None:
        self.set_lr(lr)

    @property
    def steps(self) -> int:
        """The steps done so far."""
        return self._core.steps

    @property
    def parameters(self) -> list[Tensor]:
        """The parameters of all groups."""
        return list(self._core.parameters)

    def state_dict(self) -> dict[str, Tensor]:
        """The state by name, "exp_avg.3" for parameter 3, with "steps"."""
        return dict(self._core.state_dict())

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Takes a state back. Other names or shapes are an error, and then nothing changes."""
        self._core.load_state_dict(dict(state))


class SGD(Optimizer):
    """Steps against the gradient, with momentum. Weight decay is added to the gradient."""

    def __init__(self, params: Parameters, lr: float = 1e-3, momentum: float = 0, dampening: float = 0,
                 weight_decay: float = 0, nesterov: bool = False, *, schedule: Schedule | None = None) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                                  "nesterov": nesterov}, schedule)


class Adam(Optimizer):
    """Kingma and Ba, 2015. Weight decay is added to the gradient."""

    def __init__(self, params: Parameters, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, *, schedule: Schedule | None = None) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}, schedule)


class AdamW(Optimizer):
    """Loshchilov and Hutter, 2019: Adam whose weight decay shrinks the parameter itself."""

    def __init__(self, params: Parameters, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, *, schedule: Schedule | None = None) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}, schedule)


class RMSprop(Optimizer):
    """Steps scaled by the root mean square of the gradients. Weight decay is added to the gradient."""

    def __init__(self, params: Parameters, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
                 momentum: float = 0, *, schedule: Schedule | None = None) -> None:
        super().__init__(params, {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum},
                         schedule)


class Lion(Optimizer):
    """Chen et al., 2023: the sign of an interpolated momentum."""

    def __init__(self, params: Parameters, lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99),
                 weight_decay: float = 0, *, schedule: Schedule | None = None) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay}, schedule)


class Muon(Optimizer):
    """Jordan et al., 2024: momentum orthogonalised by Newton-Schulz steps, for matrices only.

    Train embeddings, biases and norms with AdamW beside it.
    """

    def __init__(self, params: Parameters, lr: float = 1e-3, momentum: float = 0.95, weight_decay: float = 0.1,
                 eps: float = 1e-7, nesterov: bool = True, ns_steps: int = 5, *, schedule: Schedule | None = None) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "eps": eps,
                                  "nesterov": nesterov, "ns_steps": ns_steps}, schedule)


# --- schedules
def constant_schedule(factor: float = 1) -> Schedule:
    """The same factor for all steps."""
    return _core._constant_schedule(factor)


def linear_schedule(steps: int, first: float = 1, last: float = 0) -> Schedule:
    """From first to last in equal differences over the steps, then last."""
    return _core._linear_schedule(steps, first, last)


def cosine_schedule(steps: int, last: float = 0) -> Schedule:
    """From 1 to last along half a cosine over the steps, then last."""
    return _core._cosine_schedule(steps, last)


def step_schedule(every: int, factor: float = 0.1) -> Schedule:
    """Multiplied by the factor every so many steps."""
    return _core._step_schedule(every, factor)


def warm_up(steps: int, after: Schedule) -> Schedule:
    """Rises linearly from 1 / steps to 1 in the first steps; then `after`, counted from there."""
    return _core._warm_up(steps, after)


def one_cycle_schedule(steps: int, first_part: float = 0.3, rise: float = 25, fall: float = 1e4) -> Schedule:
    """Leslie Smith's one-cycle policy: from 1 / rise to 1 over the first part, then down to 1 / (rise * fall)."""
    return _core._one_cycle_schedule(steps, first_part, rise, fall)


# --- gradients and averages
def clip_grad_norm(parameters: Sequence[Tensor], max_norm: float) -> float:
    """Scales the gradients so that their norm together is at most max_norm. Returns the norm before."""
    return _core._clip_grad_norm(list(parameters), max_norm)


def clip_grad_value(parameters: Sequence[Tensor], max_value: float) -> None:
    """Limits every element of the gradients to max_value."""
    _core._clip_grad_value(list(parameters), max_value)


class MovingAverage:
    """An exponential moving average of parameters: decay * average + (1 - decay) * parameter."""

    def __init__(self, parameters: Iterable[Tensor], decay: float = 0.999) -> None:
        self._core = _core._MovingAverage(list(parameters), decay)

    def update(self) -> None:
        """Takes in the parameters after a step."""
        self._core.update()

    def swap(self) -> None:
        """Exchanges averages and parameters, for example around a validation."""
        self._core.swap()

    @property
    def averages(self) -> list[Tensor]:
        """The averages in the order of the parameters."""
        return list(self._core.averages)
