"""Kernels: written in Python, verified, interpreted, printed and run."""
import numpy as np
import pytest

import prismrt as prism
from prismrt.kernels import f32, i32, u32


def add_kernel():
    with prism.kernel("add", 256) as k:
        a, b = k.in_("a", f32), k.in_("b", f32)
        y = k.out("y", f32)
        i = k.global_id()
        with k.if_(i < k.param("count", u32)):
            y[i] = a[i] + b[i]
    return k


def all_devices():
    return [device.id for device in prism.devices()]


@pytest.mark.parametrize("device", all_devices())
def test_add_on_every_device(device):
    a, b = np.arange(300, dtype=np.float32), np.ones(300, dtype=np.float32)
    y = add_kernel().run(2, device=device, a=a, b=prism.tensor(b), y=300, count=300)
    np.testing.assert_array_equal(y.numpy(), a + b)


@pytest.mark.parametrize("device", all_devices())
def test_row_sums(device):
    with prism.kernel("row_sum", 64) as k:
        x, y = k.in_("x", f32), k.out("y", f32)
        width = k.param("width", u32)
        row = k.group_id() * width
        total = k.var(f32, 0.0)
        with k.for_(k.local_id(), width, k.lanes()) as i:
            total += x[row + i] * x[row + i]
        total.set(k.group_sum(total))
        with k.if_(k.local_id() == 0):
            y[k.group_id()] = k.sqrt(total)
        with k.else_():
            pass
    x = np.arange(1000, dtype=np.float32).reshape(10, 100) / 100
    y = k.run(10, device=device, x=x, y=10, width=100)
    np.testing.assert_allclose(y.numpy(), np.sqrt((x * x).sum(1)), rtol=1e-5)


def test_else_and_shared_memory():
    with prism.kernel("reverse", 8) as k:
        x = k.inout("x", i32)
        tile = k.shared(i32, 8)
        lane = k.local_id()
        tile[lane] = x[lane]
        k.barrier()
        with k.if_(lane < 4):
            x[lane] = tile[7 - lane]
        with k.else_():
            x[lane] = -tile[7 - lane]
    assert k.run(1, device="cpu", x=np.arange(8, dtype=np.int32)).tolist() == [7, 6, 5, 4, -3, -2, -1, 0]
    assert k.interpret(1, x=np.arange(8, dtype=np.int32)).tolist() == [7, 6, 5, 4, -3, -2, -1, 0]


def test_interpreter_finds_mistakes():
    with prism.kernel("beyond", 64) as k:
        y = k.out("y", f32)
        y[k.global_id()] = 1.0
    with pytest.raises(prism.InvalidKernel, match="test_kernels.py"):
        k.interpret(1, y=63)


def test_source():
    k = add_kernel()
    assert "__global__" in k.source("cuda") and "@compute" in k.source("wgsl") and "kernel add" in k.source()
    assert k.source("spirv")[:4] == b"\x03\x02\x23\x07"
    with pytest.raises(ValueError, match="wgsl"):
        k.source("basic")


def test_verification_names_the_line():
    with pytest.raises(prism.InvalidKernel, match=r"test_kernels.py:\d+.*barrier|barrier.*test_kernels.py"):
        with prism.kernel("varying", 64) as k:
            k.out("y", f32)[k.global_id()] = 0.0
            with k.if_(k.local_id() < 3):
                k.barrier()
    with pytest.raises(prism.InvalidKernel, match="test_kernels.py"):
        with prism.kernel("mixed", 64) as k:
            k.out("y", f32)[k.global_id()] = k.global_id()


def test_wrong_use():
    k = add_kernel()
    with pytest.raises(TypeError, match="count is missing; its arguments are a, b, y, count"):
        k.run(1, a=[1.0], b=[1.0], y=1)
    with pytest.raises(TypeError, match="no argument z"):
        k.run(1, a=[1.0], b=[1.0], y=1, count=1, z=3)
    with pytest.raises(prism.InvalidKernel, match="with"):
        k.barrier()
    with pytest.raises(TypeError, match="if_"):
        with prism.kernel("truth", 64) as k:
            if k.global_id() < 3:
                pass
    with pytest.raises(prism.InvalidKernel, match="else must follow"):
        with prism.kernel("alone", 64) as k:
            with k.else_():
                pass
    with pytest.raises(KeyError):
        with prism.kernel("fails", 64) as k:
            with k.if_(k.global_id() < 3):
                raise KeyError("mine")
    assert add_kernel().run(1, device="cpu", a=[1.0], b=[2.0], y=1, count=1).tolist() == [3]
