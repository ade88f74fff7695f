"""Exchange with PyTorch, both ways and without a copy; on CUDA where there is one. Skipped where torch is not installed."""
import gc
import weakref

import numpy as np
import pytest

import prismrt as prism
from seeds import fresh_random

torch = pytest.importorskip("torch", reason="torch is not installed: exchange with PyTorch is not tested")

TYPES = ["float32", "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]


def address(tensor):
    array = tensor.astype("float32") if tensor.dtype == prism.bfloat16 else tensor
    return array.numpy().__array_interface__["data"][0]


def values(shape, dtype):
    numbers = fresh_random().integers(0, 2 if dtype == "bool" else 100, shape)
    return torch.tensor(numbers).to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_to_torch(dtype):
    numbers = values((3, 5), dtype)
    tensor = prism.tensor(numbers.to(torch.float64).numpy(), dtype=dtype).eval()
    shared = torch.from_dlpack(tensor)
    assert shared.dtype == numbers.dtype and shared.shape == numbers.shape
    assert torch.equal(shared, numbers)
    assert torch.from_dlpack(tensor).data_ptr() == shared.data_ptr()  # the same memory each time


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_from_torch(dtype):
    numbers = values((3, 5), dtype)
    tensor = prism.from_dlpack(numbers)
    assert str(tensor.dtype) == dtype and tensor.shape == (3, 5)
    assert torch.equal(torch.from_dlpack(tensor), numbers)
    assert torch.from_dlpack(tensor).data_ptr() == numbers.data_ptr()
    np.testing.assert_array_equal(tensor.astype("float64").numpy(), numbers.to(torch.float64).numpy())


@pytest.mark.parametrize("change", [lambda t: t.T, lambda t: t[1:, ::2], lambda t: t[:, 1], lambda t: t[0, 0], lambda t: t[2:2],
                                    lambda t: t.reshape(2, 2, 6)[:, 1]])
def test_strides(change):
    numbers = torch.arange(24.0).reshape(4, 6)
    view = change(numbers)
    tensor = prism.from_dlpack(view)
    np.testing.assert_array_equal(tensor.numpy(), view.numpy())
    np.testing.assert_array_equal((tensor * 2).numpy(), view.numpy() * 2)
    ours = change(prism.arange(24, dtype="float32").reshape(4, 6).eval())
    assert torch.equal(torch.from_dlpack(ours), view)
    if view.numel() > 1:
        assert torch.from_dlpack(ours).stride() == view.stride() and torch.from_dlpack(tensor).data_ptr() == view.data_ptr()


def test_expanded_and_reversed():
    expanded = torch.arange(3.0).expand(4, 3)
    assert prism.from_dlpack(expanded).sum().item() == 12
    reversed_ = prism.arange(4, dtype="float32").eval()[::-1]
    assert torch.from_dlpack(reversed_).tolist() == [3, 2, 1, 0]  # a copy: PyTorch has no negative strides
    with pytest.raises(BufferError, match="negative strides"):
        reversed_.__dlpack__(copy=False)


def test_changes_are_seen():
    numbers = torch.zeros(3)
    shared, copy = prism.from_dlpack(numbers), prism.from_dlpack(numbers, copy=True)
    numbers[1] = 5
    assert shared.tolist() == [0, 5, 0] and copy.tolist() == prism.zeros(3).tolist()
    assert prism.asarray(numbers).numpy().__array_interface__["data"][0] == numbers.data_ptr()
    assert prism.tensor(numbers).tolist() == [0, 5, 0]


def test_a_copy_may_be_changed():
    tensor = prism.ones(3).eval()
    copy = torch.from_dlpack(tensor.clone() * 1.0) if torch.__version__ < "2.9" else torch.from_dlpack(tensor, copy=True)
    copy += 1
    assert tensor.tolist() == [1, 1, 1] and copy.tolist() == [2, 2, 2]


def test_lifetimes():
    numbers = torch.full((1000,), 3.0)
    gone = weakref.ref(numbers)
    storage = numbers.data_ptr()
    tensor = prism.from_dlpack(numbers)
    del numbers
    gc.collect()
    assert tensor.sum().item() == 3000 and address(tensor) == storage
    later = (tensor + 1).eval()
    del tensor
    gc.collect()
    assert gone() is None and later.sum().item() == 4000
    used = prism.Device.cpu().memory()["in_use_bytes"]
    shared = torch.from_dlpack((prism.ones(100_000) * 2).eval())
    gc.collect()
    assert shared.sum().item() == 200_000
    del shared
    gc.collect()
    assert prism.Device.cpu().memory()["in_use_bytes"] <= used


def test_gradients_end_at_the_border():
    parameter = torch.nn.Parameter(torch.ones(3))
    tensor = prism.from_dlpack(parameter)
    assert not tensor.requires_grad and address(tensor) == parameter.data_ptr()
    ours = prism.ones(3, requires_grad=True)
    shared = torch.from_dlpack(ours)
    assert not shared.requires_grad and shared.tolist() == [1, 1, 1]
    (ours * prism.from_dlpack(torch.tensor([1.0, 2.0, 3.0]))).sum().backward()
    assert torch.from_dlpack(ours.grad).tolist() == [1, 2, 3]


def test_what_cannot_be_shared():
    with pytest.raises(Exception, match="(?i)sparse|layout"):
        prism.from_dlpack(torch.eye(3).to_sparse())
    with pytest.raises(TypeError, match="64 bits"):
        prism.from_dlpack(torch.zeros(2, dtype=torch.complex64))
    with pytest.raises(Exception, match="(?i)meta|device"):
        prism.from_dlpack(torch.zeros(2, device="meta"))
    with pytest.raises((BufferError, prism.InvalidArgument), match="dequantise"):
        torch.from_dlpack(prism.quantise(prism.ones((1, 32)), "q8_0"))
    if hasattr(torch, "uint16"):
        with pytest.raises(TypeError, match="16 bits"):
            prism.from_dlpack(torch.zeros(2, dtype=torch.uint16))


def test_mixed_expressions():
    numbers, ours = torch.arange(3.0), prism.ones(3)
    assert (ours + numbers).tolist() == [1, 2, 3]
    assert prism.maximum(ours, numbers).tolist() == [1, 1, 2]
    assert np.asarray(ours).dtype == np.float32


# --- CUDA
def cuda_device():
    found = [device for device in prism.devices() if device.backend == "cuda"]
    if not torch.cuda.is_available() or not found:
        pytest.skip("no CUDA device for both PyTorch and Prism: exchange on the GPU is not tested")
    return found[0]


@pytest.mark.parametrize("dtype", TYPES)
def test_cuda_both_ways(dtype):
    device = cuda_device()
    numbers = values((37, 5), dtype).to("cuda:0")
    tensor = prism.from_dlpack(numbers)
    assert tensor.device == device and torch.from_dlpack(tensor).data_ptr() == numbers.data_ptr()
    assert torch.equal(torch.from_dlpack(tensor.cpu()), numbers.cpu())
    part = prism.from_dlpack(numbers[1:, 3])  # its address is no multiple of 16
    assert torch.equal(torch.from_dlpack(part.cpu()), numbers[1:, 3].cpu())
    if dtype not in ("bool", "int8", "uint8", "int16"):
        assert torch.equal(torch.from_dlpack(tensor + tensor), numbers + numbers)


def test_cuda_order_of_streams():
    device = cuda_device()
    x = torch.ones(1 << 22, device="cuda:0")
    for turn in range(20):  # each side reads what the other has only queued
        x = torch.from_dlpack(prism.from_dlpack(x * 2) * 0.5) + 1
    assert x.max().item() == x.min().item() == 21
    with torch.cuda.stream(torch.cuda.Stream()):
        y = torch.from_dlpack(prism.from_dlpack(x) + 1) * 2
        torch.cuda.current_stream().synchronize()
    assert y.max().item() == y.min().item() == 44
    assert prism.ones(3, device=device).__dlpack_device__() == (2, 0)


def test_cuda_lifetimes():
    device = cuda_device()
    x = torch.full((1 << 20,), 3.0, device="cuda:0")
    gone = weakref.ref(x)
    y = prism.from_dlpack(x) + 1
    y.eval()
    del x
    assert y.sum().item() == 4 * (1 << 20)
    gc.collect()
    assert gone() is None
    shared = torch.from_dlpack((prism.ones(1 << 20, device=device) * 5).eval())
    gc.collect()
    prism.zeros(1 << 20, device=device).eval()
    assert shared.sum().item() == 5 * (1 << 20)
