"""Prism: language models, tensors with gradients and your own kernels on every processor of a machine.

    import prismrt as prism

    llm = prism.LLM("model.gguf")
    print(llm.generate("Once upon a time", max_tokens=60).text)

    x = prism.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (x * x).sum().backward()
    print(x.grad)
"""
from __future__ import annotations

import typing as _typing

from . import _core, data as data, nn as nn, optim as optim
from ._core import *  # noqa: F401,F403  the functions of the C++ API
from ._core import __version__ as __version__
from ._compare import allclose as allclose, isclose as isclose
from ._functional import Compiled as Compiled, compile as compile, grad as grad, no_grad as no_grad
from ._functional import recompute as recompute, value_and_grad as value_and_grad
from ._nearest import Nearest as Nearest
from .kernels import kernel as kernel
from .llm import LLM as LLM, AsyncTextStream as AsyncTextStream, Generation as Generation
from .llm import TextStream as TextStream, TokenScore as TokenScore, embed as embed
from .lora import LoraProgress as LoraProgress, TrainedLora as TrainedLora, train_lora as train_lora
from .serving import Server as Server, serve as serve

bool = _core.bool_
div = _core.divide
sub = _core.subtract
mul = _core.multiply
power = _core.pow

if _typing.TYPE_CHECKING:
    from .search import Found as Found, Index as Index


def __getattr__(name: str) -> _typing.Any:
    if name not in ("Index", "Found"):
        raise AttributeError(f"module 'prismrt' has no attribute {name!r}")
    from . import search  # needs NumPy, which the rest of the package does without

    return getattr(search, name)


def __dir__() -> list[str]:
    return sorted([*globals(), "Index", "Found"])
