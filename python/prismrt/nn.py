"""Modules for training: layers, containers and losses, with PyTorch's names.

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = nn.Linear(784, 512)
            self.output = nn.Linear(512, 10)

        def forward(self, x):
            return self.output(prism.relu(self.hidden(x)))
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar, Union, overload

from . import _core
from . import _init as init
from ._core import Device, Tensor
from ._log import Progress as Progress, TrainingLog as TrainingLog
from ._train_step import TrainStep as TrainStep, load_checkpoint as load_checkpoint, save_checkpoint as save_checkpoint

__all__ = [
    "AvgPool2d", "BatchNorm", "BatchNorm1d", "BatchNorm2d", "Conv1d", "Conv2d", "Dropout", "Embedding", "Flatten", "GELU",
    "GroupNorm", "LayerNorm", "Linear", "MaxPool2d", "Module", "ModuleList", "Parameter", "Progress", "RMSNorm", "ReLU", "SelfAttention",
    "Sequential", "SiLU", "Sigmoid", "Tanh", "TrainStep", "TrainingLog", "bce_with_logits", "chunked_cross_entropy", "cosine_loss",
    "cross_entropy", "hinge_loss", "huber_loss", "init", "kl_divergence", "l1_loss", "load_checkpoint", "mse_loss", "save_checkpoint",
]

Own = TypeVar("Own", bound="Module")
DeviceLike = Union[Device, str, None]
Reduction = Literal["mean", "sum", "none"]


def Parameter(data: Any, requires_grad: bool = True) -> Tensor:
    """A tensor of its own that requires gradients, from a tensor or numbers."""
    made = _core.tensor(data, dtype=None if isinstance(data, Tensor) else "float32")
    return (made.detach() * 1).eval().requires_grad_(requires_grad)


def _not_defined(self: Module, *inputs: Any, **options: Any) -> Any:
    raise NotImplementedError(f"{type(self).__name__}: forward() is not defined")


class Module(_core._Module):
    """The base of models and layers. Define `forward`; the module is called like a function.

    Attributes are members: tensors, modules, and lists, tuples and dictionaries of them. A tensor that requires gradients
    is a parameter, any other a buffer. Names are joined by dots: "hidden.weight".
    """

    forward: Callable[..., Any] = _not_defined

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """forward() of these inputs."""
        result = self.forward(*inputs, **options)
        self._observe(result)
        return result

    def train(self: Own, mode: bool = True) -> Own:
        """Makes layers such as Dropout and BatchNorm behave as in training, or not."""
        self._train(mode)
        return self

    def eval(self: Own) -> Own:
        """train(False)"""
        return self.train(False)

    def to(self: Own, device: Device | str) -> Own:
        """Moves all tensors. Make optimisers after it: they keep the tensors that they were given."""
        self._to(device)
        return self

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module, named "", and its parts, depth first."""
        yield prefix, self
        for name, part in _modules_in(vars(self)):
            yield from part.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        """This module and its parts, depth first."""
        return (module for _, module in self.named_modules())

    def children(self) -> Iterator[Module]:
        """The direct parts."""
        return (part for _, part in _modules_in(vars(self)))

    def apply(self: Own, function: Callable[[Module], object]) -> Own:
        """Calls the function with each part and then with this module."""
        for part in self.children():
            part.apply(function)
        function(self)
        return self

    def __repr__(self) -> str:
        own, parts = self._text(), list(_modules_in(vars(self)))
        if not parts:
            return own if own.endswith(")") else own + "()"
        lines = [f"({name}): {part!r}".replace("\n", "\n  ") for name, part in parts]
        return own + "(\n  " + "\n  ".join(lines) + "\n)"


def _modules_in(members: dict[str, Any]) -> Iterator[tuple[str, Module]]:
    for name, value in members.items():
        if isinstance(value, Module):
            yield name, value
        elif isinstance(value, (list, tuple)):
            yield from ((f"{name}.{at}", part) for at, part in _modules_in({str(i): each for i, each in enumerate(value)}))
        elif isinstance(value, dict):
            yield from ((f"{name}.{at}", part) for at, part in _modules_in(value))


# --- containers
class ModuleList(Module):
    """Modules by number, each of which is a member."""

    def __init__(self, modules: Any = ()) -> None:
        super().__init__()
        self.extend(modules)

    def append(self, module: Module) -> None:
        """Adds a module at the end."""
        if not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__}: {type(module).__name__} is no Module")
        setattr(self, str(len(self)), module)

    def extend(self, modules: Any) -> None:
        """Adds several modules at the end."""
        for each in modules:
            self.append(each)

    def __len__(self) -> int:
        return sum(name.isdigit() for name in vars(self))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: int) -> Any:
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"{type(self).__name__}: no module {index} of {len(self)}")
        return getattr(self, str(place))


class Sequential(ModuleList):
    """Modules one after the other."""

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)

    def forward(self, x: Any) -> Any:
        for each in self:
            x = each(x)
        return x


# --- layers of C++
class _Member:
    """A tensor of a C++ layer as an attribute; None where the layer has none."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, layer: None, owner: type) -> _Member: ...
    @overload
    def __get__(self, layer: Module, owner: type) -> Tensor: ...
    def __get__(self, layer: Module | None, owner: type) -> Any:
        return self if layer is None else layer._tensor(self._name)

    def __set__(self, layer: Module, value: Tensor) -> None:
        layer._set_tensor(self._name, value)


class _Layer(Module):
    """A layer of the C++ API."""

    def forward(self, x: Tensor) -> Tensor:
        return self._forward(x)


def _two(given: int | tuple[int, int]) -> tuple[int, int]:
    return (given, given) if isinstance(given, int) else (given[0], given[1])


class Linear(_Layer):
    """x [..., in_features] to [..., out_features]; weight [out_features, in_features], bias."""

    weight = _Member()
    bias = _Member()

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: DeviceLike = None) -> None:
        super().__init__(_core._linear(in_features, out_features, bias, device))


class Embedding(_Layer):
    """Indices of any shape to rows of the weight [num_embeddings, embedding_dim]."""

    weight = _Member()

    def __init__(self, num_embeddings: int, embedding_dim: int, device: DeviceLike = None) -> None:
        super().__init__(_core._embedding(num_embeddings, embedding_dim, device))


class Conv2d(_Layer):
    """x [n, in_channels, height, width]; weight [out_channels, in_channels / groups, kernel_size, kernel_size], bias."""

    weight = _Member()
    bias = _Member()

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int | tuple[int, int] = 1,
                 padding: int | tuple[int, int] = 0, dilation: int | tuple[int, int] = 1, groups: int = 1, bias: bool = True,
                 device: DeviceLike = None) -> None:
        _check_groups("Conv2d", in_channels, out_channels, groups)
        super().__init__(_core._conv2d(in_channels, out_channels, kernel_size, _two(stride), _two(padding), _two(dilation),
                                       groups, bias, device))


class Conv1d(_Layer):
    """x [n, in_channels, length]; weight [out_channels, in_channels / groups, kernel_size], bias."""

    weight = _Member()
    bias = _Member()

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0,
                 dilation: int = 1, groups: int = 1, bias: bool = True, device: DeviceLike = None) -> None:
        _check_groups("Conv1d", in_channels, out_channels, groups)
        super().__init__(_core._conv1d(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
                                       device))


def _check_groups(layer: str, in_channels: int, out_channels: int, groups: int) -> None:
    if groups < 1 or in_channels % groups or out_channels % groups:
        raise ValueError(f"{layer}: {in_channels} and {out_channels} channels do not divide into {groups} groups")


class LayerNorm(_Layer):
    """Normalises the last axis: weight, bias [width]."""

    weight = _Member()
    bias = _Member()

    def __init__(self, width: int, eps: float = 1e-5, device: DeviceLike = None) -> None:
        super().__init__(_core._layer_norm(width, eps, device))


class RMSNorm(_Layer):
    """Divides the last axis by its root mean square: weight [width]."""

    weight = _Member()

    def __init__(self, width: int, eps: float = 1e-5, device: DeviceLike = None) -> None:
        super().__init__(_core._rms_norm(width, eps, device))


class GroupNorm(_Layer):
    """x [n, num_channels, ...]: normalises each group of channels; weight, bias [num_channels]."""

    weight = _Member()
    bias = _Member()

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, device: DeviceLike = None) -> None:
        super().__init__(_core._group_norm(num_groups, num_channels, eps, device))


class BatchNorm(_Layer):
    """x [n, num_features, ...]: normalises over all axes but the second, with running statistics in evaluation."""

    weight = _Member()
    bias = _Member()
    running_mean = _Member()
    running_var = _Member()

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, device: DeviceLike = None) -> None:
        super().__init__(_core._batch_norm(num_features, eps, momentum, device))


BatchNorm1d = BatchNorm2d = BatchNorm


class Dropout(_Layer):
    """Zero with probability p, else x / (1 - p); the identity in evaluation."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(_core._dropout_layer(p))


class SelfAttention(_Layer):
    """x [batch, length, width] to the same shape.

    kv_heads: fewer than heads makes grouped heads. rotary_base: 10000 is usual, 0 means no rotary positions; they rotate
    the halves of a head together, or adjacent elements. dropout: of the output.
    """

    def __init__(self, width: int, heads: int, *, kv_heads: int = 0, causal: bool = True, bias: bool = True,
                 rotary_base: float = 0, rotary_pairing: Literal["halves", "adjacent"] = "halves", dropout: float = 0,
                 device: DeviceLike = None) -> None:
        if rotary_pairing not in ("halves", "adjacent"):
            raise ValueError(f"SelfAttention: rotary_pairing {rotary_pairing!r}; give 'halves' or 'adjacent'")
        super().__init__(_core._self_attention(width, heads, kv_heads, causal, bias, rotary_base,
                                               rotary_pairing == "adjacent", dropout, device))

    def _linear(self, name: str) -> Linear:
        part = Linear.__new__(Linear)
        Module.__init__(part, self._part(name))
        return part

    @property
    def query(self) -> Linear:
        """The projection to queries."""
        return self._linear("query")

    @property
    def key(self) -> Linear:
        """The projection to keys."""
        return self._linear("key")

    @property
    def value(self) -> Linear:
        """The projection to values."""
        return self._linear("value")

    @property
    def output(self) -> Linear:
        """The projection of the result."""
        return self._linear("output")


# --- layers without tensors
class Flatten(Module):
    """[n, ...] to [n, elements]."""

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], -1)


class MaxPool2d(Module):
    """The maximum of each window."""

    def __init__(self, kernel_size: int | tuple[int, int] = 2, stride: int | tuple[int, int] | None = None,
                 padding: int | tuple[int, int] = 0) -> None:
        super().__init__()
        self._window = (kernel_size, stride, padding)

    def forward(self, x: Tensor) -> Tensor:
        return _core.max_pool2d(x, *self._window)


class AvgPool2d(MaxPool2d):
    """The mean of each window."""

    def forward(self, x: Tensor) -> Tensor:
        return _core.avg_pool2d(x, *self._window)


class ReLU(Module):
    """max(x, 0)"""

    def forward(self, x: Tensor) -> Tensor:
        return _core.relu(x)


class GELU(Module):
    """x times the normal distribution at x."""

    def forward(self, x: Tensor) -> Tensor:
        return _core.gelu(x)


class SiLU(Module):
    """x * sigmoid(x)"""

    def forward(self, x: Tensor) -> Tensor:
        return _core.silu(x)


class Tanh(Module):
    """tanh(x)"""

    def forward(self, x: Tensor) -> Tensor:
        return _core.tanh(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x))"""

    def forward(self, x: Tensor) -> Tensor:
        return _core.sigmoid(x)


# --- losses
def cross_entropy(logits: Tensor, target: Tensor, *, label_smoothing: float = 0, ignore_index: int = -100,
                  reduction: Reduction = "mean") -> Tensor:
    """logits [..., classes], target [...]: -log_softmax(logits)[target]. Targets of ignore_index do not count."""
    return _core._cross_entropy_loss(logits, target, label_smoothing, ignore_index, reduction)


def chunked_cross_entropy(x: Tensor, output: Callable[[Tensor], Tensor], target: Tensor, *, label_smoothing: float = 0,
                          ignore_index: int = -100, reduction: Reduction = "mean",
                          rows_at_once: int = 1024) -> Tensor:
    """cross_entropy(output(x), target) for many classes: memory never holds the scores of all rows.

    `output` gets some rows of x [..., width] at a time, and the gradient computes their scores again.
    """
    return _core._chunked_cross_entropy(x, output, target, label_smoothing, ignore_index, reduction, rows_at_once)


def bce_with_logits(logits: Tensor, target: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """The binary cross-entropy of sigmoid(logits)."""
    return _core._bce_with_logits(logits, target, reduction)


def mse_loss(prediction: Tensor, target: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """The squared difference."""
    return _core._mse_loss(prediction, target, reduction)


def l1_loss(prediction: Tensor, target: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """The absolute difference."""
    return _core._l1_loss(prediction, target, reduction)


def huber_loss(prediction: Tensor, target: Tensor, *, delta: float = 1, reduction: Reduction = "mean") -> Tensor:
    """Quadratic up to delta, linear beyond."""
    return _core._huber_loss(prediction, target, delta, reduction)


def kl_divergence(log_prediction: Tensor, target: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """target * (log(target) - log_prediction); the mean is over the first axis ("batchmean" in PyTorch)."""
    return _core._kl_divergence(log_prediction, target, reduction)


def hinge_loss(score: Tensor, target: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """max(0, 1 - target * score) with targets 1 and -1."""
    return _core._hinge_loss(score, target, reduction)


def cosine_loss(a: Tensor, b: Tensor, target: Tensor, *, margin: float = 0, reduction: Reduction = "mean") -> Tensor:
    """1 - cosine for pairs with target 1, max(0, cosine - margin) for pairs with target -1."""
    return _core._cosine_loss(a, b, target, margin, reduction)
