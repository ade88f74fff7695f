"""What the tests share: the CPU as the default device, and a small model."""
from __future__ import annotations

import pathlib

import pytest

import prismrt as prism

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT.parent / "shared" / "models" / "stories260K.gguf"


@pytest.fixture(autouse=True, scope="session")
def cpu() -> prism.Device:
    device = prism.Device.cpu()
    prism.set_default_device(device)
    return device


@pytest.fixture(scope="session")
def model_path() -> pathlib.Path:
    if not MODEL.exists():
        pytest.skip(f"there is no {MODEL.name} in ../shared/models")
    return MODEL


@pytest.fixture(scope="session")
def llm(model_path: pathlib.Path) -> prism.LLM:
    return prism.LLM(model_path, device="cpu", slots=3, progress=False)
