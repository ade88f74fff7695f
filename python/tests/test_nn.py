"""Modules, layers and losses; layers and losses against PyTorch's results (tests/data/nn)."""
import gc
import json
import pathlib
import re
import weakref

import numpy as np
import pytest

import prismrt as prism
from prismrt import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
VECTORS = json.loads((ROOT / "tests" / "data" / "nn" / "module_vectors.json").read_text())

LAYERS = {
    "linear": lambda: nn.Linear(5, 4),
    "embedding": lambda: nn.Embedding(7, 3),
    "conv2d": lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2),
    "conv1d": lambda: nn.Conv1d(3, 5, 3, padding=2, dilation=2),
    "layer_norm": lambda: nn.LayerNorm(7),
    "rms_norm": lambda: nn.RMSNorm(7),
    "group_norm": lambda: nn.GroupNorm(3, 6),
    "attention": lambda: nn.SelfAttention(8, 4),
    "attention_open": lambda: nn.SelfAttention(8, 2, causal=False),
    "attention_grouped": lambda: nn.SelfAttention(16, 4, kv_heads=2, rotary_base=10000),
    "batch_norm": lambda: nn.BatchNorm(5),
    "batch_norm_eval": lambda: nn.BatchNorm2d(5).eval(),
}
TARGET = prism.tensor([2, 0, -100, 3, 1])
LOSSES = {
    "cross_entropy": lambda p: nn.cross_entropy(p, TARGET),
    "cross_entropy_smooth": lambda p: nn.cross_entropy(p, TARGET, label_smoothing=0.2),
    "cross_entropy_sum": lambda p: nn.cross_entropy(p, TARGET, reduction="sum"),
    "bce": nn.bce_with_logits,
    "mse": nn.mse_loss,
    "l1": nn.l1_loss,
    "huber": lambda p, t: nn.huber_loss(p, t, delta=0.7),
    "kl": nn.kl_divergence,
    "hinge": nn.hinge_loss,
    "cosine": lambda p, t, s: nn.cosine_loss(p, t, s, margin=0.1),
}


def stored(values):
    return prism.tensor(np.array(values["values"], np.float32).reshape(values["shape"]))


def assert_near(got, wanted):
    wanted = np.array(wanted["values"])
    assert np.abs(got.numpy().ravel() - wanted).max() < 2e-5 * (np.abs(wanted).max() + 1)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_agree_with_pytorch(name):
    case, layer = VECTORS["layers"][name], LAYERS[name]()
    state = {key: stored(value) for key, value in case["parameters"].items()}
    if "before" in case:
        state |= {"running_mean": stored(case["before"]["mean"]), "running_var": stored(case["before"]["var"])}
    layer.load_state_dict(state)
    x = stored(case["x"])
    x = x.astype("int32") if name == "embedding" else x.requires_grad_()
    y = layer(x)
    assert_near(y, case["y"])
    (y * stored(case["factors"])).sum().backward()
    if "x_gradient" in case:
        assert_near(x.grad, case["x_gradient"])
    for key, parameter in layer.named_parameters():
        assert_near(parameter.grad, case["gradients"][key])
    if "after" in case:
        assert_near(layer.running_mean, case["after"]["mean"])
        assert_near(layer.running_var, case["after"]["var"])


def test_all_cases_are_used():
    assert set(LAYERS) == set(VECTORS["layers"]) and set(LOSSES) == set(VECTORS["losses"])


@pytest.mark.parametrize("name", LOSSES)
def test_losses_agree_with_pytorch(name):
    case = VECTORS["losses"][name]
    prediction = stored(case["prediction"]).requires_grad_()
    value = LOSSES[name](prediction, *map(stored, case["more"]))
    assert value.item() == pytest.approx(case["value"], abs=1e-5)
    value.backward()
    assert_near(prediction.grad, case["gradient"])


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.2}, {"reduction": "sum"}])
def test_chunks_of_cross_entropy(options):
    layer, x = nn.Linear(3, 4), prism.normal((5, 3), key=4).requires_grad_()
    whole = nn.cross_entropy(layer(x), TARGET, **options)
    whole.backward()
    wanted = x.grad.numpy().copy()
    x.zero_grad()
    parts = nn.chunked_cross_entropy(x, layer, TARGET, rows_at_once=2, **options)
    assert parts.item() == pytest.approx(whole.item(), rel=1e-5)
    parts.backward()
    assert np.abs(x.grad.numpy() - wanted).max() < 1e-5


def test_reductions():
    a, b = prism.tensor([1.0, 2.0, 5.0]), prism.tensor([0.0, 0.0, 1.0])
    assert nn.mse_loss(a, b, reduction="none").tolist() == [1, 4, 16] and nn.l1_loss(a, b, reduction="sum").item() == 7
    with pytest.raises(ValueError, match="mean, sum or none"):
        nn.mse_loss(a, b, reduction="max")
    with pytest.raises(ValueError, match="one shape"):
        nn.mse_loss(a, b[:2])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(2, 32)
        self.dropout = nn.Dropout(0.1)
        self.output = nn.Linear(32, 2)

    def forward(self, x):
        return self.output(self.dropout(prism.relu(self.hidden(x))))


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.Sequential(nn.RMSNorm(4), nn.GELU())])
        self.parts = [nn.Linear(4, 3, bias=False)]
        self.named = {"norm": nn.BatchNorm(4)}
        self.scale = nn.Parameter([2.0])
        self.count = prism.tensor([0.0])
        self.size = 4

    def forward(self, x):
        for each in self.blocks:
            x = each(x)
        return self.parts[0](self.named["norm"](x) * self.scale)


def test_the_summary_is_that_of_cpp():
    page = (ROOT / "docs" / "training.md").read_text()
    lines = re.search(r"```text\n(model .*?)```", page, re.S)[1].splitlines()
    model = Classifier()
    mine = model.summary().splitlines()
    assert mine[0].split() == ["Classifier", "162"] and mine[1:] == lines[1:-1]
    assert " ".join(name for name, _ in model.named_parameters()) == lines[-1]


def test_members():
    model = Stack()
    assert [name for name, _ in model.named_parameters()] == [
        "blocks.0.weight", "blocks.0.bias", "blocks.1.0.weight", "parts.0.weight", "named.norm.weight", "named.norm.bias",
        "scale"]
    assert [name for name, _ in model.named_buffers()] == ["named.norm.running_mean", "named.norm.running_var", "count"]
    assert model.parameter_count() == 16 + 4 + 4 + 12 + 8 + 1
    assert [name for name, _ in model.named_modules()] == [
        "", "blocks", "blocks.0", "blocks.1", "blocks.1.0", "blocks.1.1", "parts.0", "named.norm"]
    assert len(list(model.children())) == 3 and "(1): GELU()" in repr(model) and len(model.blocks) == 2
    seen = []
    model.apply(lambda part: seen.append(type(part).__name__))
    assert seen[-1] == "Stack" and seen[0] == "Linear" and len(seen) == 8
    del model.scale
    assert model.parameter_count() == 44


def test_shared_weights():
    model = Classifier()
    model.tied = model.output.weight
    other = nn.Linear(32, 2, bias=False)
    other.weight = model.output.weight
    model.other = other
    assert model.parameter_count() == 162 and len(model.parameters()) == 4
    assert len(model.named_parameters()) == 6
    model.to("cpu")
    nn.init.constant(model.tied, 3)
    assert model.output.weight[0, 0].item() == other.weight[0, 0].item() == 3
    with pytest.raises(ValueError, match="shape"):
        other.weight = prism.zeros((3, 3))


def test_training_and_evaluation():
    prism.seed(2)
    model, x = Classifier(), prism.ones((64, 2))
    assert model.training and model(x).numpy().std() > 1e-4 and np.ptp(model(x).numpy()[:, 0]) > 0
    assert model.eval() is model and not model.training and not model.dropout.training
    assert np.ptp(model(x).numpy()[:, 0]) == 0
    assert model.train().dropout.training and np.ptp(model(x).numpy()[:, 0]) > 0


def test_states_round_trip(tmp_path):
    model, other = Stack(), Stack()
    prism.save(tmp_path / "model.safetensors", model.state_dict())
    x = prism.normal((5, 4), key=1)
    wanted = model.eval()(x).numpy()
    assert not np.array_equal(other.eval()(x).numpy(), wanted)
    other.load_state_dict(prism.load_safetensors(tmp_path / "model.safetensors"))
    assert np.array_equal(other(x).numpy(), wanted)
    before = other.scale.item()
    state = {name: value * 2 for name, value in model.state_dict().items()}
    for wrong, message in ((state | {"more": prism.zeros(1)}, 'no "more"'),
                           ({k: v for k, v in state.items() if k != "count"}, '"count" is missing'),
                           (state | {"scale": prism.zeros(2)}, "has shape")):
        with pytest.raises(ValueError, match=message):
            other.load_state_dict(wrong)
    assert other.scale.item() == before
    with pytest.raises(TypeError):
        other.load_state_dict({"scale": 3})


def test_other_devices():
    others = [device for device in prism.devices() if device.id != "cpu:0"]
    if not others:
        pytest.skip("there is only the CPU")
    model = Classifier().eval()
    x = prism.normal((3, 2), key=4)
    wanted = model(x).numpy()
    assert model.to(others[0]) is model and model.hidden.weight.device.id == others[0].id
    np.testing.assert_allclose(model(x.to(others[0])).cpu().numpy(), wanted, atol=1e-5)
    with pytest.raises(ValueError):
        model(x)
    assert nn.Linear(2, 3, device=others[0]).weight.device.id == others[0].id


def test_the_seed_decides():
    def weights(seed):
        prism.seed(seed)
        return Classifier().hidden.weight.tolist()

    assert weights(1) == weights(1) != weights(2)


def test_initialisers():
    prism.seed(3)
    weight = nn.Parameter(prism.zeros((200, 100)))
    for fill, deviation in ((nn.init.normal, 1), (lambda w: nn.init.uniform(w, -3, 3), 3**0.5),
                            (nn.init.xavier_uniform, (2 / 300) ** 0.5), (nn.init.xavier_normal, (2 / 300) ** 0.5),
                            (nn.init.kaiming_uniform, 0.02**0.5), (nn.init.kaiming_normal, 0.02**0.5)):
        fill(weight)
        assert weight.numpy().std() == pytest.approx(deviation, rel=0.03) and weight.requires_grad
    nn.init.ones(weight)
    assert weight.mean().item() == 1
    nn.init.zeros(weight)
    assert weight.mean().item() == 0
    with pytest.raises(ValueError, match="two axes"):
        nn.init.xavier_normal(nn.Parameter([1.0]))


def test_layers_without_tensors():
    x = prism.normal((2, 3, 4, 6), key=5)
    assert nn.Flatten()(x).shape == (2, 72) and nn.MaxPool2d(2)(x).shape == nn.AvgPool2d(2, 2)(x).shape == (2, 3, 2, 3)
    for layer, function in ((nn.ReLU(), prism.relu), (nn.GELU(), prism.gelu), (nn.SiLU(), prism.silu),
                            (nn.Tanh(), prism.tanh), (nn.Sigmoid(), prism.sigmoid)):
        assert np.array_equal(layer(x).numpy(), function(x).numpy())
    attention = nn.SelfAttention(8, 2, bias=False)
    assert attention.query.weight.shape == attention.output.weight.shape == (8, 8) and attention.key.bias is None


def test_copies_keep_their_values():
    weight = nn.Parameter([1.0, 2.0])
    copy, shown = weight.clone(), weight.detach()
    nn.init.constant(weight, 7)
    assert copy.tolist() == [1, 2] and shown.tolist() == [7, 7]


def test_errors():
    class Forgotten(nn.Module):
        def __init__(self):
            self.layer = 3

    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Forgotten()

    with pytest.raises(TypeError, match=r'"part" is not initialised; call super\(\).__init__\(\)'):
        Holder().parameters()
    loop = nn.Sequential(nn.ReLU())
    loop.again = loop
    with pytest.raises(ValueError, match="contains itself"):
        loop.parameters()
    with pytest.raises(NotImplementedError, match="Module: forward"):
        nn.Module()(1)
    with pytest.raises(ValueError, match="would be empty"):
        nn.Linear(0, 3)
    with pytest.raises(ValueError, match="divide into 4 groups"):
        nn.Conv2d(6, 8, 3, groups=4)
    with pytest.raises(ValueError, match="below 1"):
        nn.Dropout(1.5)
    with pytest.raises(ValueError, match="heads"):
        nn.SelfAttention(10, 3)
    for wrong in (lambda: nn.Linear("a", 3), lambda: nn.ModuleList([3]), lambda: nn.Linear(2, 3, device=3),
                  lambda: nn.Linear(2, 2)("x")):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(IndexError):
        nn.Sequential(nn.ReLU())[1]


def test_modules_with_cycles_are_collected():
    model = Classifier()
    model.forward_twice = lambda x, own=model: own(own(x))
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None
