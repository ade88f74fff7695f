"""Devices: how they are found, named and chosen."""
import os
import subprocess
import sys

import pytest

import prismrt as prism


def test_cpu():
    device = prism.Device.cpu()
    assert device.is_cpu and device.backend == "cpu" and device.id == "cpu:0"
    assert device == prism.Device("cpu") and hash(device) == hash(prism.Device("cpu"))
    assert device.total_bytes > 0 and device.free_bytes > 0
    assert "cpu:0" in repr(device) and str(device) == "cpu:0"


def test_devices_contain_the_cpu():
    assert prism.Device.cpu() in prism.devices()


def test_gpu_is_an_error_without_one():
    if prism.Device.is_gpu_available():
        assert not prism.Device.gpu().is_cpu
        return
    with pytest.raises(RuntimeError, match="gpu"):
        prism.Device.gpu()


def test_unknown_device():
    with pytest.raises(prism.NotFound):
        prism.Device("cuda:77")
    with pytest.raises(prism.Error, match="abacus"):
        prism.Device("abacus")
    with pytest.raises(TypeError):
        prism.Device(3)


def test_reports_have_reasons():
    reports = {report.name: report for report in prism.discover_backends()}
    assert {"cuda", "hip", "vulkan", "opencl", "cpu"} <= set(reports)
    assert reports["cpu"].available and reports["cpu"].devices == ["cpu:0"]
    for report in reports.values():
        assert report.available or report.reason


def test_init_backend_changes_the_default():
    before = prism.default_device()
    try:
        assert prism.init_backend("cpu").is_cpu and prism.default_device().is_cpu
        with pytest.raises(ValueError, match="abacus"):
            prism.init_backend("abacus")
    finally:
        prism.set_default_device(before)


def test_best_available_backend():
    assert prism.best_available_backend().id


def test_estimate_inference_memory():
    # The sizes of a Mistral 7B in f32, as in the documentation of the C++ function.
    memory = prism.estimate_inference_memory(4096, 14336, 32, 32000, 32, 8, 4096, 4)
    assert memory.total_bytes == memory.model_bytes + memory.kv_cache_bytes + memory.activation_bytes
    assert 28 < memory.total_gb < 33
    with pytest.raises(ValueError):
        prism.estimate_inference_memory(4096, 14336, 32, 32000, 33, 8, 4096)
    with pytest.raises(TypeError, match="kv_heads"):
        prism.estimate_inference_memory(4096)


def test_threads():
    code = "import prismrt as p; p.set_threads(1); p.ones(100000).sum().item(); print(p.threads()); p.set_threads(2)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                            env={**os.environ, "PRISM_DEVICE": "cpu"})
    assert result.stdout == "1\n" and "InvalidArgument" in result.stderr
