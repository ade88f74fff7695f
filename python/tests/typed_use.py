"""Uses of the package that mypy checks: they need the stubs."""
from __future__ import annotations

import prismrt as prism


def tensors() -> float:
    x: prism.Tensor = prism.tensor([1.0, 2.0], dtype=prism.float32)
    y = (x * 2 + 1)[0:1]
    shape: tuple[int, ...] = y.shape
    gradient: prism.Tensor | None = x.grad
    assert gradient is None and shape
    return float(y.sum().item())


def devices() -> list[str]:
    return [device.id for device in prism.devices() if not device.is_software]


def text(llm: prism.LLM) -> str:
    for piece in llm.stream("Once", max_tokens=3):
        print(piece.upper())
    several: list[prism.Generation] = llm.generate(["a", "b"])
    return several[0].text + llm.generate("Once").text


def kernel() -> prism.Kernel:
    with prism.kernel("one", 64) as k:
        y = k.out("y", "f32")
        with k.if_(k.global_id() < 3):
            y[k.global_id()] = 1.0
    return k


def scalars() -> float:
    model = prism.MLP(2, [4, 1], device="cpu")
    loss: prism.Value = (1 - model([0.5, prism.Value(1.0)]) ** 2) * 3
    loss.backward()
    return loss.data + sum(each.grad for each in model.parameters())
