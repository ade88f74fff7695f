"""Gradients and compiled functions."""
import pytest

import prismrt as prism


def test_backward():
    x = prism.tensor([[1.0, 2.0], [3.0, 4.0]])
    w = prism.full((2, 2), 0.5).requires_grad_()
    loss = ((x @ w) - 1.0).square().mean()
    loss.backward()
    assert loss.item() == 3.25 and w.grad.tolist() == [[4, 4], [5.5, 5.5]]  # as in examples/tensors.cpp
    loss = ((x @ w) - 1.0).square().mean()
    loss.backward()
    assert w.grad.tolist() == [[8, 8], [11, 11]]
    w.zero_grad()
    assert w.grad is None


def test_update_without_history():
    w = prism.tensor([1.0], requires_grad=True)
    (w * 3).sum().backward()
    with prism.no_grad():
        assert not prism.is_grad_enabled()
        w -= 0.1 * w.grad
    assert prism.is_grad_enabled() and w.requires_grad and w.item() == pytest.approx(0.7)

    @prism.no_grad()
    def square(x):
        return x * x

    assert not square(w).requires_grad and not w.detach().requires_grad


def test_value_and_grad():
    f = prism.value_and_grad(lambda w, x: (w * x).sum())
    value, (of_w, of_x) = f(prism.tensor([1.0, 2.0]), prism.tensor([3.0, 4.0]))
    assert value.item() == 11 and of_w.tolist() == [3, 4] and of_x.tolist() == [1, 2]
    assert prism.grad(lambda x: (x ** 3).sum())(prism.tensor([2.0])).tolist() == [12]
    assert prism.grad(lambda x: prism.grad(lambda y: (y ** 3).sum())(x).sum())(prism.tensor([2.0])).tolist() == [12]
    value, gradient = prism.value_and_grad(lambda x, scale: (x * scale).sum())(prism.tensor([1.0, 1.0]), 5)
    assert value.item() == 10 and gradient.tolist() == [5, 5]


def test_recomputed_parts():
    w, x = prism.normal((8, 8), key=1), prism.normal((4, 8), key=2)

    def loss(w, again):
        y = x * 1.0
        for _ in range(3):
            y = prism.recompute(lambda y: (y @ w).tanh(), y) if again else (y @ w).tanh()
        return y.square().sum()

    kept, again = (prism.value_and_grad(loss)(w, each) for each in (False, True))
    assert kept[0].item() == again[0].item() and kept[1].tolist() == again[1].tolist()
    with pytest.raises(TypeError, match="recompute"):
        prism.recompute(lambda y: 3, x)


def test_wrong_functions():
    with pytest.raises(TypeError, match="tensor"):
        prism.value_and_grad(lambda x: 3)(prism.tensor([1.0]))
    with pytest.raises(ZeroDivisionError):
        prism.grad(lambda x: x / (1 // 0))(prism.tensor([1.0]))
    with pytest.raises(ValueError):
        prism.tensor([1], requires_grad=True)


def test_compile_plans_once():
    calls = []

    @prism.compile
    def f(a, b):
        """A product."""
        calls.append(1)
        return prism.softmax(a @ b), a.sum()

    for i in range(3):
        a, b = prism.full((2, 4), 0.1 * i), prism.eye(4)
        product, total = f(a, b)
        assert total.item() == pytest.approx(0.8 * i) and product.shape == (2, 4)
    assert len(calls) == 1 and f.plans == 1 and f.__doc__ == "A product."
    f(prism.ones((3, 4)), prism.eye(4))
    assert f.plans == 2 and "softmax" in f.explain(prism.ones((3, 4)), prism.eye(4))
    with pytest.raises(TypeError, match="tensors"):
        f(1, 2)


def test_compiled_training_step():
    @prism.compile
    def step(w, x, y):
        loss, gradient = prism.value_and_grad(lambda w: (x @ w - y).square().mean())(w)
        return loss, w - 0.1 * gradient

    x = prism.normal((32, 3), key=1)
    wanted = prism.tensor([[1.0], [-2.0], [0.5]])
    y, w = x @ wanted, prism.zeros((3, 1))
    for _ in range(200):
        loss, w = step(w, x, y)
    assert loss.item() < 1e-6 and (w - wanted).abs().max().item() < 1e-3 and step.plans == 1


def test_errors_inside_a_compiled_function():
    @prism.compile
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        f(prism.ones(2))


def test_parameters_are_made_with_gradients():
    for made in (prism.zeros(3, requires_grad=True), prism.ones((3,), requires_grad=True), prism.full(3, 2.0, requires_grad=True),
                 prism.rand(3, requires_grad=True), prism.randn(3, requires_grad=True)):
        made.sum().backward()
        assert made.requires_grad and made.grad.tolist() == [1, 1, 1]
    assert not prism.zeros(3).requires_grad
    with pytest.raises(ValueError):
        prism.ones(3, dtype="int32", requires_grad=True)
