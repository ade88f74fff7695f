"""The examples, the code of docs/python.md and the Python of the README run."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPLATE = "{% for message in messages %}{{ message.content }} {% endfor %}"

EXAMPLES = {
    "devices.py": ([], "", "cpu:0"),
    "tensors.py": ([], "", r"y = [23]\.\d\d x -0\.\d\d"),
    "digits.py": (["DIGITS", "cpu", "3"], "", r"epoch 3, loss 0\.\d+, 9\d\.\d% of the test right"),
    "moons.py": (["cpu", "80"], "", r"step 79, loss 0\.\d+, 100% right"),
    "own_kernel.py": (["cpu"], "", r"NumPy: \d\.?\d*(e-0[789])?\n"),
    "chat.py": (["MODEL", TEMPLATE], "Hello\nWhat is a cat?\n\n", r"\w"),
    "stream.py": (["MODEL"], "", r"tokens/s\n"),
    "json_answer.py": (["MODEL"], "", r"Weather\(sky='\w+', degrees=-?\d+, windy=(True|False)\)"),
}


def environment():
    return {**os.environ, "PRISM_DEVICE": "cpu"}


def test_all_examples_are_listed():
    assert {path.name for path in (ROOT / "examples" / "python").glob("*.py")} == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, model_path):
    words, entered, expected = EXAMPLES[name]
    files = {"MODEL": model_path, "DIGITS": ROOT.parent / "shared" / "data" / "digits.csv.gz"}
    words = [str(files.get(word, word)) for word in words]
    result = subprocess.run([sys.executable, ROOT / "examples" / "python" / name, *words], input=entered, text=True,
                            capture_output=True, env=environment(), timeout=300)
    assert result.returncode == 0, result.stderr
    assert re.search(expected, result.stdout), result.stdout


def snippets():
    """The blocks of Python of the pages, with the text that follows as their output."""
    page = (ROOT / "docs" / "python.md").read_text() + (ROOT / "README.md").read_text()
    pattern = re.compile(r"```python\n(.*?)```\n(?:prints\n```text\n(.*?)```\n)?", re.S)
    return [pytest.param(code, output, id=f"snippet{i}") for i, (code, output) in enumerate(pattern.findall(page))]


@pytest.mark.parametrize("code, output", snippets())
def test_page(code, output, model_path, tmp_path):
    (tmp_path / "model.gguf").symlink_to(model_path)
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True,
                            env=environment(), timeout=300)
    assert result.returncode == 0, result.stderr
    assert not output or result.stdout == output
