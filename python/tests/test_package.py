"""The package: the program, exceptions, documentation, leaks, and a clean development mode."""
import gc
import inspect
import json
import os
import pathlib
import signal
import subprocess
import sys
import tracemalloc

import pytest

import prismrt as prism


def run(*words, input=None, **environment):
    return subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, input=input,
                          env={**os.environ, **environment}, timeout=300)


def test_the_program():
    result = run("-m", "prismrt", "version")
    assert result.returncode == 0 and prism.__version__ in result.stdout
    assert run("-m", "prismrt", "no-such-command").returncode == 2


def test_the_program_is_in_the_module_only():
    folder = pathlib.Path(prism.__file__).parent
    files = [each for each in folder.rglob("*") if each.is_file()]
    assert [each.name for each in files if each.read_bytes()[:4] == b"\x7fELF"] == [pathlib.Path(prism._core.__file__).name]


def test_the_program_reads_and_writes(model_path):
    result = run("-m", "prismrt", "tokenize", model_path, "-f", "-", "--json", input="Once upon a time")
    assert json.loads(result.stdout)["ids"] and result.stderr == "" and result.returncode == 0
    name = "caf\u00e9 \udcff.gguf"  # a name that is not UTF-8 arrives as it is
    result = subprocess.run([sys.executable.encode(), b"-m", b"prismrt", b"model", b"info", os.fsencode(name)], capture_output=True)
    assert result.returncode == 2 and "caf\u00e9".encode() in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_the_program_ends_by_signals(model_path):
    words = [sys.executable, "-m", "prismrt"]
    with subprocess.Popen([*words, "help"], stdout=subprocess.PIPE) as process:
        process.stdout.close()  # nobody reads
        assert process.wait(60) == -signal.SIGPIPE
    endless = [*words, "run", model_path, "-p", "Once", "-n", "1000000", "--ignore-end", "--device", "cpu", "--quiet"]
    for sent, status in ((signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)):
        with subprocess.Popen(endless, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout.read(1)
            process.send_signal(sent)
            _, errors = process.communicate(timeout=60)
            assert process.returncode == status and b"Traceback" not in errors


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
