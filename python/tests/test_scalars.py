"""Scalars with gradients and networks of them."""
import math
import random

import pytest

import prismrt as prism
from prismrt import MLP, Layer, Neuron, Value


def test_the_example_of_micrograd():
    a, b = Value(-4.0), Value(2.0)
    c, d = a + b, a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    g.backward()
    assert [f"{x:.4f}" for x in (g.data, a.grad, b.grad)] == ["24.7041", "138.8338", "645.5773"]


FUNCTIONS = {
    "add": lambda x, y: (x + y, 3 + x, x + 3),
    "sub": lambda x, y: (x - y, 3 - x, x - 3),
    "mul": lambda x, y: (x * y, 3 * x, x * 3),
    "div": lambda x, y: (x / y, 3 / x, x / 3),
    "pow": lambda x, y: (x**3, y**-1.5, x**0.5),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operators_against_floats(name):
    x, y = random.Random(name).uniform(0.5, 2), random.Random(name + "y").uniform(0.5, 2)
    results = FUNCTIONS[name](Value(x), Value(y))
    for mine, wanted in zip(results, FUNCTIONS[name](x, y)):
        assert mine.data == pytest.approx(wanted, rel=1e-6)


def test_slopes_against_differences():
    def f(x, exp, log, tanh):
        return exp(x) / (1 + log(x) ** 2) - tanh(x * 0.7)

    x = Value(1.3)
    y = f(x, Value.exp, Value.log, Value.tanh)
    y.backward()
    at = lambda x: f(x, math.exp, math.log, math.tanh)
    assert y.data == pytest.approx(at(1.3), rel=1e-6)
    assert x.grad == pytest.approx((at(1.3 + 1e-6) - at(1.3 - 1e-6)) / 2e-6, rel=1e-5)
    y.backward()
    assert x.grad == pytest.approx((at(1.3 + 1e-6) - at(1.3 - 1e-6)) / 1e-6, rel=1e-5), "gradients accumulate"
    x.zero_grad()
    assert x.grad == 0


def test_comparisons_and_values():
    a, b = Value(1.0), Value(2.0)
    assert a < b and a <= b and b > a and b >= a and a != b and a == Value(1.0) and a == 1 and not a > 1
    assert max([a, b]).data == 2 and float(b) == 2.0 and len({a, b, a}) == 2
    assert repr(a * 1.5) == "Value(data=1.5, grad=0)" and a.device.id == "cpu:0"
    assert (a == "text") is False and Value().data == 0
    a.data = 5
    a.grad = 2
    assert (a.data, a.grad) == (5, 2) and a.to("cpu").data == 5


def test_errors():
    with pytest.raises(ValueError, match="only leaves"):
        (Value(1.0) + 1).data = 3
    for wrong in (lambda: Value(1.0) + "x", lambda: Value(1.0) ** Value(2.0), lambda: Value("x"), lambda: Value(1.0) < "x",
                  lambda: Neuron(2)(3), lambda: Neuron(2)(["a", "b"]), lambda: MLP(2, 3)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="3 inputs given, it has 2"):
        Neuron(2)([1, 2, 3])
    with pytest.raises(ValueError, match="at least one"):
        MLP(2, [])
    with pytest.raises(LookupError):
        Value(1.0, "no-such-device")


def test_devices():
    others = [device for device in prism.devices() if device.id != "cpu:0"]
    if not others:
        pytest.skip("there is only the CPU")
    there = Value(3.0, others[0])
    with pytest.raises(ValueError, match="cpu:0.*to\\(device\\)"):
        there + Value(1.0, "cpu")
    here = (there * 2).to("cpu")
    assert there.device.id == others[0].id and here.device.id == "cpu:0" and here.data == 6
    assert MLP(2, [1], device=others[0])([1.0, 2.0]).device.id == others[0].id


def test_networks():
    prism.seed(5)
    neuron, layer, model = Neuron(3), Layer(3, 2), MLP(3, [4, 2])
    assert [len(each.parameters()) for each in (neuron, layer, model)] == [4, 8, 16 + 10]
    assert isinstance(neuron([1, 2, 3]), Value) and len(layer([1, 2, 3])) == 2 and len(model([1, 2, 3])) == 2
    assert isinstance(MLP(3, [4, 1])([1, 2, 3]), Value)
    *weights, bias = [each.data for each in neuron.parameters()]
    assert bias == 0 and all(-1 <= each < 1 for each in weights)
    inputs = [0.5, -1.0, 2.0]
    assert Neuron(3, linear=True)(inputs).data != 0
    assert neuron(inputs).data == pytest.approx(max(0.0, sum(w * x for w, x in zip(weights, inputs))), rel=1e-5)
    sum(model(inputs)).backward()
    assert any(each.grad != 0 for each in model.parameters())
    model.zero_grad()
    assert all(each.grad == 0 for each in model.parameters())


def test_the_seed_decides():
    def weights(seed):
        prism.seed(seed)
        return [each.data for each in MLP(2, [3, 1]).parameters()]

    assert weights(1) == weights(1) != weights(2)
