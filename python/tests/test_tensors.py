"""Tensors: creation, operators, functions and text, compared with NumPy."""
import math

import numpy as np
import pytest

import prismrt as prism

SAMPLE = np.linspace(-2, 2, 24, dtype=np.float32).reshape(2, 3, 4)


def same(tensor, expected, tolerance=1e-6):
    values = tensor.numpy()
    assert values.shape == np.shape(expected)
    np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)


def test_types_of_numbers():
    assert prism.tensor([1, 2]).dtype == prism.int32
    assert prism.tensor([1, 2**40]).dtype == prism.int64
    assert prism.tensor([1, 2.5]).dtype == prism.float32
    assert prism.tensor([True, False]).dtype == prism.bool
    assert prism.tensor([1, 2], dtype="float16").dtype == prism.float16
    assert prism.tensor(np.arange(3)).dtype == prism.int64
    assert prism.tensor(3.5).shape == () and prism.tensor([]).shape == (0,)


def test_wrong_numbers():
    with pytest.raises(ValueError, match="2 items beside one of 3|3 items beside one of 2"):
        prism.tensor([[1, 2], [1, 2, 3]])
    with pytest.raises(TypeError):
        prism.tensor(["a"])
    with pytest.raises(OverflowError, match="300"):
        prism.tensor([300], dtype=prism.uint8)
    with pytest.raises(ValueError, match="complex64"):
        prism.zeros(3, dtype="complex64")


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "bool"])
def test_numpy_types(name):
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(name)
    tensor = prism.tensor(array)
    assert tensor.dtype.name == name and tensor.numpy().dtype == array.dtype
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert tensor.tolist() == array.tolist()


def test_creation():
    same(prism.zeros((2, 3)), np.zeros((2, 3)))
    same(prism.ones(4), np.ones(4))
    same(prism.full((2,), 7.5), np.full(2, 7.5))
    same(prism.arange(5), np.arange(5))
    same(prism.arange(1, 2, 0.25), np.arange(1, 2, 0.25))
    same(prism.linspace(0, 1, 5), np.linspace(0, 1, 5))
    same(prism.eye(3), np.eye(3))
    assert prism.zeros_like(prism.ones(3, dtype="int8")).dtype == prism.int8
    assert prism.empty((2, 2)).shape == (2, 2)


def test_random_numbers_depend_on_the_seed():
    prism.seed(7)
    first = prism.rand(4, 5).tolist()
    prism.seed(7)
    assert prism.rand((4, 5)).tolist() == first
    assert prism.uniform(10, key=3).tolist() == prism.uniform(10, key=3).tolist()
    assert abs(prism.normal(10000, key=1).mean().item()) < 0.05


@pytest.mark.parametrize("name", ["exp", "sin", "cos", "tanh", "abs", "square", "floor", "ceil", "round", "sign"])
def test_elementwise(name):
    expected = getattr(np, name)(SAMPLE)
    same(getattr(prism, name)(prism.tensor(SAMPLE)), expected, 1e-5)
    same(getattr(prism.tensor(SAMPLE), name)(), expected, 1e-5)


@pytest.mark.parametrize("sides", [(SAMPLE, SAMPLE + 1), (SAMPLE, 2.5), (2.5, SAMPLE), (SAMPLE, 3), (SAMPLE, SAMPLE[0, 0])])
def test_operators(sides):
    a, b = sides
    left = prism.tensor(a) if isinstance(a, np.ndarray) else a
    right = prism.tensor(b) if isinstance(b, np.ndarray) else b
    same(left + right, a + b)
    same(left - right, a - b)
    same(left * right, a * b)
    same(left / (right + 5), a / (b + 5), 1e-5)
    same(left < right, a < b)
    same(left >= right, a >= b)
    same(left == right, a == b)
    same((left - right) ** 2, (a - b) ** 2, 1e-5)
    same((left - right) // 0.7, (a - b) // np.float32(0.7))


def test_operators_with_arrays_give_tensors():
    result = SAMPLE + prism.tensor(SAMPLE)
    assert isinstance(result, prism.Tensor)
    same(result, 2 * SAMPLE)
    same(prism.tensor(SAMPLE) * np.float32(2), 2 * SAMPLE)


def test_integers():
    x = prism.tensor([7, -7, 3])
    assert (x // 2).tolist() == [3, -4, 1] and (x % 4).tolist() == [3, 1, 3]
    assert (x * 2).dtype == prism.int32 and (x * 0.5).dtype == prism.float32
    assert (x / 2).tolist() == [3.5, -3.5, 1.5]
    large = prism.tensor([2**60])
    assert (large + 1).item() == 2**60 + 1


def test_logic():
    a, b = prism.tensor([True, True, False]), prism.tensor([True, False, False])
    assert (a & b).tolist() == [True, False, False] and (a | b).tolist() == [True, True, False]
    assert (~a).tolist() == [False, False, True] and (a ^ b).tolist() == [False, True, False]
    with pytest.raises(NotImplementedError, match="bool"):
        prism.tensor([1, 2]) & 1


def test_in_place_changes_the_tensor_and_no_other():
    x = prism.tensor([1.0, 2.0])
    y, z = x, x.clone()
    x += 1
    assert y.tolist() == [2, 3] and z.tolist() == [1, 2]


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_reductions(name):
    x = prism.tensor(SAMPLE)
    same(getattr(x, name)(), getattr(np, name)(SAMPLE), 1e-5)
    same(getattr(x, name)(1), getattr(np, name)(SAMPLE, 1), 1e-5)
    same(getattr(x, name)(axis=(0, 2), keepdims=True), getattr(np, name)(SAMPLE, (0, 2), keepdims=True), 1e-5)
    same(getattr(x, name)(dim=-1, keepdim=True), getattr(np, name)(SAMPLE, -1, keepdims=True), 1e-5)
    same(getattr(prism, name)(x, axis=0), getattr(np, name)(SAMPLE, 0), 1e-5)


def test_other_reductions():
    x = prism.tensor(SAMPLE)
    same(x.var(axis=1), SAMPLE.var(1), 1e-5)
    same(x.std(), SAMPLE.std(), 1e-5)
    same(x.argmax(), SAMPLE.argmax())
    same(x.argmin(axis=1), SAMPLE.argmin(1))
    same(x.cumsum(axis=1), SAMPLE.cumsum(1), 1e-5)
    assert (x > -3).all().item() is True and (x > 3).any().item() is False
    with pytest.raises(ValueError, match="axis 5|5"):
        x.sum(axis=5)


def test_shapes():
    x = prism.tensor(SAMPLE)
    same(x.reshape(6, 4), SAMPLE.reshape(6, 4))
    same(x.reshape((4, -1)), SAMPLE.reshape(4, -1))
    same(x.T, SAMPLE.T)
    same(x.permute(2, 0, 1), SAMPLE.transpose(2, 0, 1))
    same(x.transpose(0, 2), np.swapaxes(SAMPLE, 0, 2))
    same(x.unsqueeze(1).squeeze(1), SAMPLE)
    same(x.flatten(), SAMPLE.ravel())
    same(prism.concat([x, x], axis=1), np.concatenate([SAMPLE, SAMPLE], 1))
    same(prism.stack([x, x]), np.stack([SAMPLE, SAMPLE]))
    same(prism.flip(x, 0), np.flip(SAMPLE, 0))
    same(prism.roll(x, 1, 2), np.roll(SAMPLE, 1, 2))
    same(prism.tile(x, (2, 1, 1)), np.tile(SAMPLE, (2, 1, 1)))
    same(x.repeat(2, 1), SAMPLE.repeat(2, 1))
    same(prism.pad(x, [(1, 2)]), np.pad(SAMPLE, [(0, 0), (0, 0), (1, 2)]))
    assert [part.shape for part in prism.split(x, 2, axis=2)] == [(2, 3, 2), (2, 3, 2)]
    with pytest.raises(ValueError, match="reshape"):
        x.reshape(5, 5)


def test_products():
    a, b = SAMPLE[0], SAMPLE[1].T
    same(prism.tensor(a) @ prism.tensor(b), a @ b, 1e-5)
    same(prism.linear(prism.tensor(a), prism.tensor(b.T)), a @ b, 1e-5)
    with pytest.raises(ValueError, match="matmul"):
        prism.tensor(a) @ prism.tensor(a)


def test_sorting():
    x = prism.tensor([3.0, 1.0, 2.0])
    assert prism.sort(x).tolist() == [1, 2, 3] and x.argsort(descending=True).tolist() == [0, 2, 1]
    values, indices = x.topk(2)
    assert values.tolist() == [3, 2] and indices.tolist() == [0, 2]


def test_where_and_clip():
    x = prism.tensor([-1.0, 2.0])
    assert prism.where(x > 0, x, 0).tolist() == [0, 2]
    assert prism.where(x > 0, 1.5, x).tolist() == [-1, 1.5]
    assert x.clip(0, 1).tolist() == [0, 1] and x.clamp(max=0).tolist() == [-1, 0]


def test_layers():
    x = prism.tensor(SAMPLE)
    same(prism.softmax(x, axis=-1), np.exp(SAMPLE) / np.exp(SAMPLE).sum(-1, keepdims=True), 1e-5)
    same(prism.rms_norm(x), SAMPLE / np.sqrt((SAMPLE**2).mean(-1, keepdims=True) + 1e-5), 1e-5)
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    same(prism.max_pool2d(prism.tensor(image), 2), [[[[5, 7], [13, 15]]]])
    same(prism.conv2d(prism.tensor(image), prism.ones((1, 1, 2, 2))), [[[[10, 14, 18], [26, 30, 34], [42, 46, 50]]]])
    logits, target = prism.tensor([[2.0, 0.0], [0.0, 3.0]]), prism.tensor([0, 1])
    expected = (math.log(1 + math.exp(-2)) + math.log(1 + math.exp(-3))) / 2
    assert prism.cross_entropy(logits, target).item() == pytest.approx(expected, rel=1e-5)


def test_quantised_weights():
    weight = prism.randn(4, 64)
    packed = prism.quantise(weight, "q8_0")
    assert packed.dtype.name == "q8_0" and packed.dtype.kind == "quantised"
    assert (prism.dequantise(packed) - weight).abs().max().item() < 0.05
    with pytest.raises(ValueError, match="dequantise"):
        packed.numpy()


def test_numbers_of_python():
    assert float(prism.tensor(2.5)) == 2.5 and int(prism.tensor(7)) == 7 and bool(prism.tensor(1))
    assert type(prism.tensor(3).item()) is int and type(prism.tensor(True).item()) is bool
    assert [10, 20, 30][prism.tensor(1)] == 20 and len(prism.zeros((3, 2))) == 3
    with pytest.raises(ValueError, match="item"):
        prism.zeros(2).item()


def test_text():
    assert repr(prism.tensor([[1.0, 2.5], [3.0, 4.0]])) == (
        "tensor([[  1, 2.5],\n        [  3,   4]], dtype=float32, device='cpu:0')")
    assert repr(prism.tensor([True, False])) == "tensor([ True, False], dtype=bool, device='cpu:0')"
    assert repr(prism.tensor(3)) == "tensor(3, dtype=int32, device='cpu:0')"
    assert "shape=[0, 3]" in repr(prism.zeros((0, 3)))


def test_files(tmp_path):
    x = prism.tensor(SAMPLE)
    prism.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), SAMPLE)
    same(prism.load(tmp_path / "x.npy"), SAMPLE)
    prism.save(tmp_path / "x.safetensors", {"a": x, "b": prism.arange(3)})
    assert prism.load_safetensors(tmp_path / "x.safetensors")["b"].tolist() == [0, 1, 2]
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff")
    with pytest.raises(prism.CorruptFile):
        prism.load(tmp_path / "bad.npy")
    with pytest.raises(prism.NotFound):
        prism.load(tmp_path / "absent.npy")


def test_close_values():
    a = np.array([1.0, 2.0, np.nan, np.inf, -np.inf], np.float32)
    b = np.array([1.0000001, 2.1, np.nan, np.inf, np.inf], np.float32)
    assert prism.isclose(a, b).tolist() == np.isclose(a, b).tolist()
    assert prism.isclose(prism.tensor(a), b, equal_nan=True).tolist() == np.isclose(a, b, equal_nan=True).tolist()
    assert prism.allclose(prism.ones(3), np.ones(3)) and not prism.allclose(prism.ones(3), [1.0, 1.0, 1.1])
    assert prism.allclose(prism.ones(3), 1.1, atol=0.2)


def test_truth_and_layout():
    with pytest.raises(ValueError, match=r"any\(\) or all\(\)"):
        bool(prism.ones(3))
    assert bool(prism.ones((1, 1))) and not prism.zeros(())
    x = prism.arange(6).reshape(2, 3)
    assert x.stride() == (3, 1) and x.T.stride() == (1, 3) and x.is_contiguous() and not x.T.is_contiguous()
    assert x.T.contiguous().is_contiguous()
    for wrong in ("a", {}):
        with pytest.raises(TypeError, match="index"):
            x[wrong]
