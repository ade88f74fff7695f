"""The package: the program, exceptions, documentation, leaks, and a clean development mode."""
import gc
import inspect
import os
import pathlib
import subprocess
import sys
import tracemalloc

import pytest

import prismrt as prism


def run(*words, **environment):
    return subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True,
                          env={**os.environ, **environment}, timeout=300)


def test_the_program():
    result = run("-m", "prismrt", "version")
    assert result.returncode == 0 and prism.__version__ in result.stdout
    assert run("-m", "prismrt", "no-such-command").returncode == 2


def test_exceptions():
    for name, base in {"InvalidArgument": ValueError, "InvalidKernel": ValueError, "NotSupported": NotImplementedError,
                       "NotFound": LookupError, "OutOfMemory": MemoryError, "DeviceLost": RuntimeError,
                       "DriverError": RuntimeError, "CompileError": RuntimeError, "CorruptFile": RuntimeError,
                       "IoError": OSError}.items():
        kind = getattr(prism, name)
        assert issubclass(kind, prism.Error) and issubclass(kind, base) and issubclass(kind, RuntimeError)
        assert kind.__module__ == "prismrt" and kind.__doc__


def test_out_of_memory():
    with pytest.raises(MemoryError, match="cpu|CPU"):
        prism.zeros((1 << 30, 1 << 20)).eval()


def test_everything_is_documented():
    missing = [name for name, value in vars(prism).items()
               if not name.startswith("_") and (inspect.isclass(value) or inspect.isroutine(value)) and not value.__doc__]
    assert missing == []


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cycle():
    x = prism.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    ((x @ x)[0] * 2).sum().backward()
    x.grad.numpy()
    prism.from_numpy(x.numpy())
    prism.value_and_grad(lambda w: (w * w).sum())(x.detach())
    with prism.kernel("k", 64) as k:
        k.out("y", "f32")[k.global_id()] = 1.0


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_nothing_leaks():
    for _ in range(200):
        cycle()
    gc.collect()
    tracemalloc.start()
    before, resident = tracemalloc.get_traced_memory()[0], resident_bytes()
    for _ in range(1000):
        cycle()
    gc.collect()
    grown, more = tracemalloc.get_traced_memory()[0] - before, resident_bytes() - resident
    tracemalloc.stop()
    assert grown < 20_000 and more < 4_000_000, (grown, more)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_models_do_not_leak(model_path):
    def once():
        llm = prism.LLM(model_path, device="cpu", context=64, progress=False)
        next(llm.stream("Once", max_tokens=4))

    for _ in range(5):
        once()
    resident = resident_bytes()
    for _ in range(30):
        once()
    assert resident_bytes() - resident < 10_000_000


def test_development_mode(model_path):
    code = f"""
import prismrt as prism
prism.set_default_device("cpu")
x = prism.tensor([1.0, 2.0], requires_grad=True)
(x * x).sum().backward()
print(x.grad.tolist())
print(len(prism.LLM({str(model_path)!r}, device="cpu").generate("Once", max_tokens=3).tokens))
"""
    result = run("-X", "dev", "-W", "error", "-c", code)
    assert result.returncode == 0 and result.stderr == "" and result.stdout == "[2.0, 4.0]\n3\n", result.stderr
