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


class Net(prism.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = prism.nn.Sequential(prism.nn.Linear(2, 4), prism.nn.ReLU())
        self.scale = prism.nn.Parameter([1.0])

    def forward(self, x: prism.Tensor) -> prism.Tensor:
        y: prism.Tensor = self.layers(x)
        return y * self.scale


def training(loader: prism.data.DataLoader) -> float:
    model = Net().train().to("cpu")
    optimizer = prism.optim.AdamW([{"params": model.parameters(), "lr": 1e-3}], schedule=prism.optim.cosine_schedule(10))
    step = prism.nn.TrainStep(optimizer, lambda x, y: prism.nn.mse_loss(model(x), y), average=None, model=model)
    for batch in loader:
        loss: prism.Tensor = step(*batch)
    weight: prism.Tensor = prism.nn.Linear(2, 3).weight
    state: dict[str, prism.Tensor] = model.state_dict()
    prism.nn.save_checkpoint("run.safetensors", model=model, optimizer=[optimizer], step=step, loader=loader)
    return float(loss.item()) + float(weight.sum().item()) + len(state) + optimizer.lr


def adapted(path: str) -> list[prism.LLM]:
    return [prism.LLM(path, lora="a.gguf"), prism.LLM(path, lora=("a.gguf", 0.5)), prism.LLM(path, lora=["a.gguf", ("b.gguf", 2)])]


def trained(path: str) -> float | None:
    made: prism.TrainedLora = prism.train_lora(path, [{"prompt": "a", "completion": "b"}, "text"], "a.gguf", rank=4, lr=1e-3,
                                               matrices=["ffn"], progress=lambda at: print(at.step, at.validation_loss))
    return made.validation_loss
