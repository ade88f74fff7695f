"""Adapters: LLM(lora=...) with the scores of the program, and train_lora() with its bits."""
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


PAIRS = [{"prompt": f"Question {i}?", "completion": f"Answer {i}."} for i in range(8)]


def train(model_path, out, data=PAIRS, **options):
    return prism.train_lora(model_path, data, out, device="cpu", **{"rank": 2, "batch": 2, "context": 32, "lr": 0.02, **options})


def test_training_gives_the_adapter_of_the_program(model_path, tmp_path):
    data = tmp_path / "pairs.jsonl"
    data.write_text("".join(json.dumps(each) + "\n" for each in PAIRS))
    program("train", "--lora", model_path, "--data", data, "-o", tmp_path / "program.gguf", "--rank", 2, "--steps", 6, "--batch", 2,
            "--context", 32, "--lr", 0.02, "--validation", 0.2, "--device", "cpu", "-q", "--seed", 5, "--matrices", "attn_q,ffn_up")
    seen = []
    made = train(model_path, tmp_path / "mine.gguf", steps=6, validation=0.2, seed=5, matrices=["attn_q", "ffn_up"],
                 progress=seen.append)
    assert (tmp_path / "mine.gguf").read_bytes() == (tmp_path / "program.gguf").read_bytes()
    assert made.path == str(tmp_path / "mine.gguf") and made.steps == 6 and not made.stopped_early and made.parameters > 0
    validations = [each.validation_loss for each in seen if each.validation_loss is not None]
    assert len(validations) == 6 and made.validation_loss == pytest.approx(min(validations)) and made.loss == seen[-1].loss
    assert seen[-1].step == seen[-1].steps == 6 and "validation loss" in seen[-1].line
    assert train(model_path, tmp_path / "text.gguf", ["A cat sat on a mat."] * 4, steps=1, validation=0).validation_loss is None


def test_training_keeps_the_random_numbers_of_others(model_path, tmp_path):
    prism.seed(3)
    wanted = prism.rand(4).tolist()
    prism.seed(3)
    train(model_path, tmp_path / "a.gguf", steps=1, seed=9)
    assert prism.rand(4).tolist() == wanted


def test_an_interrupted_training_resumes(model_path, tmp_path):
    whole = train(model_path, tmp_path / "whole.gguf", steps=6, validate_every=1, validation=0.2)
    state = tmp_path / "state.safetensors"

    def stop(at):
        if at.step == 3 and at.validation_loss is not None:
            raise KeyError("enough")

    options = {"steps": 6, "validate_every": 1, "validation": 0.2, "checkpoint": state}
    with pytest.raises(KeyError, match="enough"):
        train(model_path, tmp_path / "parts.gguf", **options, progress=stop)
    assert state.exists() and not (tmp_path / "parts.gguf").exists()
    steps = []
    resumed = train(model_path, tmp_path / "parts.gguf", **options, resume=True, progress=lambda at: steps.append(at.step))
    assert steps[0] == 4 and resumed.validation_loss == whole.validation_loss
    assert (tmp_path / "parts.gguf").read_bytes() == (tmp_path / "whole.gguf").read_bytes()
    with pytest.raises(prism.InvalidArgument, match="--rank"):
        train(model_path, tmp_path / "other.gguf", **options, rank=3, resume=True)


def test_training_releases_the_lock_and_ends_by_ctrl_c(model_path, tmp_path):
    code = f"""
import _thread, threading, time, prismrt as prism
counted, steps = 0, 0
def count():
    global counted
    while True:
        counted += 1
        time.sleep(0.001)
threading.Thread(target=count, daemon=True).start()
def see(at):
    global steps
    steps = at.step
    if at.step >= 20:
        _thread.interrupt_main()
try:
    prism.train_lora({str(model_path)!r}, ["A cat sat on the mat."] * 8, {str(tmp_path / "out.gguf")!r}, rank=2, steps=100000,
                     context=32, device="cpu", validation=0, progress=see)
except KeyboardInterrupt:
    print("interrupted", counted > 5, 20 <= steps < 1000)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.stdout == "interrupted True True\n", result.stdout + result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options, kind, message", [
    ({"rank": 0}, ValueError, "rank is 0"), ({"rank": 1.5}, TypeError, "rank is 1.5"), ({"rank": "2"}, TypeError, "rank is '2'"),
    ({"lr": -1.0}, ValueError, "lr"), ({"lr": float("nan")}, ValueError, "lr"), ({"dropout": 1.0}, ValueError, "dropout"),
    ({"matrices": "attn"}, TypeError, "list of names"), ({"matrices": ["nothing"]}, ValueError, "nothing"),
    ({"resume": True}, ValueError, "checkpoint"), ({"data": []}, ValueError, "empty|nothing|no "),
    ({"data": [3]}, TypeError, "data has 3"), ({"data": [{"a": 1}]}, ValueError, "messages"),
    ({"data": "absent.jsonl"}, LookupError, "absent.jsonl"), ({"out": "/nowhere/out.gguf"}, OSError, "/nowhere"),
    ({"data": 3}, TypeError, "data is 3"), ({"out": 3}, TypeError, "out is 3"), ({"model": None}, TypeError, "model is None"),
    ({"model": "absent.gguf"}, LookupError, "absent.gguf"), ({"device": "cuda:77"}, RuntimeError, "cuda")])
def test_wrong_training(model_path, tmp_path, options, kind, message):
    given = {"model": model_path, "data": PAIRS, "out": tmp_path / "a.gguf", "device": "cpu", **options}
    with pytest.raises(kind, match=message):
        prism.train_lora(given.pop("model"), given.pop("data"), given.pop("out"), **given)
    assert list(tmp_path.iterdir()) == []
