"""LLM(lora=...): adapters that the program trained, with the scores of the program."""
import json
import subprocess
import sys

import numpy as np
import pytest

import prismrt as prism

TEXT = "Once upon a time there was a cat."


def program(*words):
    result = subprocess.run([sys.executable, "-m", "prismrt", *map(str, words)], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def adapters(model_path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lora")
    made = []
    for name in ("cat", "dog"):
        (folder / f"{name}.txt").write_text(f"The {name} sat on the mat and sang a long song. " * 40)
        made.append(folder / f"{name}.gguf")
        program("train", "--lora", model_path, "--data", folder / f"{name}.txt", "-o", made[-1], "--rank", 2, "--steps", 4,
                "--batch", 2, "--context", 32, "--lr", 0.02, "--validation", 0, "--device", "cpu", "-q")
    return made


def scores(model_path, lora):
    with prism.LLM(model_path, device="cpu", kv_type="f32", lora=lora, progress=False) as llm:
        return np.array([each.logprob for each in llm.score(TEXT)[1:]])


def test_adapters_give_the_scores_of_the_program(model_path, adapters):
    cat, dog = adapters
    plain = scores(model_path, None)
    for lora, words in ((cat, [cat]), ((str(cat), 0.5), [f"{cat}:0.5"]), ([cat, (dog, 2)], [cat, f"{dog}:2"])):
        options = [each for word in words for each in ("--lora", word)]
        answer = json.loads(program("score", model_path, "-p", TEXT, "--json", "-q", "--kv-type", "f32", "--device", "cpu", *options))
        wanted = [each["logprob"] for each in answer["tokens"] if each["logprob"] is not None]
        mine = scores(model_path, lora)
        np.testing.assert_allclose(mine, wanted, atol=1e-4)
        assert np.abs(mine - plain).max() > 1e-3
    assert np.array_equal(scores(model_path, (cat, 0)), plain) and np.array_equal(scores(model_path, ()), plain)


def test_errors(model_path, adapters, tmp_path):
    for wrong, kind, message in ((3, TypeError, "lora has 3"), ([3], TypeError, "file"), ((adapters[0], None), TypeError, "file"),
                                 ((adapters[0], float("nan")), ValueError, "finite"),
                                 (tmp_path / "none.gguf", LookupError, "none.gguf"), (model_path, ValueError, "adapter")):
        with pytest.raises(kind, match=message):
            prism.LLM(model_path, device="cpu", lora=wrong, progress=False)
