"""DLPack on CUDA over the double of its driver (tests/doubles), which `make test` builds; test_torch.py has the real one."""
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

LIBRARY = pathlib.Path(os.environ.get("PRISM_TEST_BUILD", "build")) / "doubles" / "libcuda_double.so"

PREAMBLE = """
import ctypes, gc, sys
import prismrt as prism

double = ctypes.CDLL({library!r})
count = double.prism_cuda_double_count
count.restype = ctypes.c_longlong


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int), ("device_id", ctypes.c_int), ("ndim", ctypes.c_int),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def look(capsule):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    seen = DLTensor.from_address(get(capsule, b"dltensor"))
    seen.capsule = capsule  # keeps it
    return seen


class Other:
    "An array of another library that uses the same driver."
    def __init__(self, tensor):
        self.tensor, self.streams = tensor, []
    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()
    def __dlpack__(self, stream=None, max_version=None):
        self.streams.append(stream)
        return self.tensor.__dlpack__(stream=stream, max_version=max_version)


gpu = prism.Device("cuda:0")
"""


def run(code):
    if not LIBRARY.exists():
        pytest.skip("there is no double of the CUDA driver: only `make test` builds it")
    library = str(LIBRARY.resolve())
    environment = {**os.environ, "PRISM_CUDA_LIBRARY": library, "PRISM_NVRTC_LIBRARY": library, "PRISM_BACKENDS": "cuda,cpu"}
    text = PREAMBLE.replace("{library!r}", repr(library)) + textwrap.dedent(code)
    result = subprocess.run([sys.executable, "-X", "dev", "-c", text], capture_output=True, text=True, env=environment, timeout=300)
    assert result.returncode == 0 and result.stdout.endswith("done\n"), result.stdout + result.stderr


def test_both_ways():
    run("""
    x = prism.arange(100, dtype="float32", device=gpu).reshape(4, 25).eval()
    assert x.__dlpack_device__() == (2, 0)
    seen = look(x.T.__dlpack__())
    assert (seen.device_type, seen.device_id, seen.ndim, seen.bits) == (2, 0, 2, 32)
    assert (seen.shape[:2], seen.strides[:2]) == ([25, 4], [1, 25])

    other = Other(x[1:, 3:])  # not at a multiple of 16 bytes
    before = count(b"allocations")
    shared = prism.from_dlpack(other)
    assert shared.device == gpu and count(b"allocations") == before
    assert look(shared.__dlpack__()).data == look(x.__dlpack__()).data + 4 * 28
    assert other.streams[0] > 2  # the producer orders our own stream
    assert (shared * 2).tolist() == [[2.0 * (25 * r + c) for c in range(3, 25)] for r in range(1, 4)]

    waits = count(b"stream_waits")
    held = x.__dlpack__(stream=-1)
    assert count(b"stream_waits") == waits
    held2 = x.__dlpack__(stream=1)
    assert count(b"stream_waits") == waits + 1
    del held  # our later work waits for the other library's
    assert count(b"stream_waits") == waits + 2
    for wrong, kind in ((0, ValueError), (-2, ValueError), ("1", TypeError)):
        try:
            x.__dlpack__(stream=wrong)
            sys.exit("accepted")
        except kind as error:
            assert "stream" in str(error)

    copy = x.__dlpack__(dl_device=(1, 0))
    assert look(copy).device_type == 1
    try:
        x.__dlpack__(dl_device=(1, 0), copy=False)
        sys.exit("accepted")
    except BufferError as error:
        assert "cuda:0" in str(error)
    try:
        prism.from_dlpack(other, device="cpu", copy=False)
        sys.exit("accepted")
    except ValueError as error:
        assert "without a copy" in str(error)
    assert prism.from_dlpack(other, device="cpu").device.id == "cpu:0"
    print("done")
    """)


def test_lifetimes_and_errors():
    run("""
    import weakref
    x = prism.ones(1000, device=gpu).eval()
    other = Other(x)
    gone = weakref.ref(other)
    y = prism.from_dlpack(other) + 1
    del other
    y.eval()
    assert y.sum().item() == 2000
    assert gone() is None
    stats = lambda: gpu.memory()["in_use_bytes"]
    held = stats()
    capsule = (x * 3).eval().__dlpack__()
    gc.collect()
    assert stats() > held
    del capsule
    gc.collect()
    assert stats() <= held

    class Elsewhere(Other):
        def __dlpack_device__(self):
            return (2, 7)
    try:
        prism.from_dlpack(Elsewhere(x))
        sys.exit("accepted")
    except prism.NotSupported as error:
        assert "device 7" in str(error) and "CPU" in str(error)

    class Host(Other):  # names a GPU, gives memory of the host
        def __dlpack__(self, stream=None, max_version=None):
            return prism.ones(10, device="cpu").__dlpack__()
    try:
        prism.from_dlpack(Host(x))
        sys.exit("accepted")
    except prism.InvalidArgument as error:
        assert "not an allocation of cuda:0" in str(error)
    print("done")
    """)
