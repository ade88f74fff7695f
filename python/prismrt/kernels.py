"""The kernel language: one source for every device.

    with prismrt.kernel("add", 256) as k:
        a, b, y = k.in_("a", f32), k.in_("b", f32), k.out("y", f32)
        i = k.global_id()
        with k.if_(i < k.param("count", u32)):
            y[i] = a[i] + b[i]
    y = k.run(1, a=[1.0, 2.0], b=[10.0, 20.0], y=2, count=2)
"""
from __future__ import annotations

from ._core import Kernel, KernelArray, KernelBlock, KernelFragment, Var
from ._core import KernelValue as Value

b1, i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64 = (
    "b1", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64")


def kernel(name: str, group_size: int = 256) -> Kernel:
    """A kernel that is written inside `with`, verified at its end, and then run, interpreted or printed."""
    return Kernel(name, group_size)
