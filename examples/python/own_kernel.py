"""A kernel of your own: written once, run on every device. Usage: own_kernel.py [DEVICE]"""
import sys

import numpy as np
import prismrt as prism
from prismrt.kernels import f32, u32

with prism.kernel("smooth", 256) as k:
    x, y = k.in_("x", f32), k.out("y", f32)
    count = k.param("count", u32)
    i = k.global_id()
    with k.if_(i < count):
        left, right = x.load_if(i > 0, i - 1), x.load_if(i + 1 < count, i + 1)
        y[i] = (left + x[i] + right) * (1 / 3)

samples = np.sin(np.arange(1000, dtype=np.float32) * 0.1)
smooth = k.run(4, device=sys.argv[1] if len(sys.argv) > 1 else None, x=samples, y=1000, count=1000)
padded = np.pad(samples, 1)
expected = (padded[:-2] + samples + padded[2:]) / 3
print("largest difference from NumPy:", float(np.abs(smooth.numpy() - expected).max()))
print(k.source("cuda").splitlines()[-1], len(k.source("wgsl")), "characters of WGSL")
