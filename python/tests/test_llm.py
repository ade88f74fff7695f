"""Language models: texts, streams, chats, embeddings, scores; compared with the program."""
import asyncio
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
from typing import Literal

import numpy as np
import pytest

import prismrt as prism

PROGRAM = [sys.executable, "-m", "prismrt"]
PROMPT = "Once upon a time"


def test_the_program_writes_the_same(llm, model_path):
    words = [*PROGRAM, "run", model_path, "-p", PROMPT, "-n", "40", "--temperature", "0", "--device", "cpu", "--quiet"]
    program = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    text = llm.generate(PROMPT, max_tokens=40, temperature=0)
    assert text.text.strip() and text.text.strip() in program
    assert text.reason == "max_tokens" and len(text.tokens) == 40
    assert text.statistics["generated_tokens"] == 40 and text.statistics["generation_rate"] > 0


def test_streams_give_the_same_text(llm):
    whole = llm.generate(PROMPT, max_tokens=20, temperature=0)
    stream = llm.stream(PROMPT, max_tokens=20, temperature=0)
    assert stream.result is None
    pieces = list(stream)
    assert "".join(pieces) == whole.text and len(pieces) > 5 and stream.result.text == whole.text
    assert next(stream, "over") == "over"


def test_async(llm):
    async def collect():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(tick())
        pieces = [piece async for piece in llm.stream_async(PROMPT, max_tokens=20, temperature=0)]
        other.cancel()
        return "".join(pieces), ticks, await llm.generate_async(PROMPT, max_tokens=20, temperature=0)

    text, ticks, whole = asyncio.run(collect())
    assert text == whole.text and ticks > 10


def test_several_prompts(llm):
    prompts = [PROMPT, "The cat", "A big dog", "Lily"]
    together = llm.generate(prompts, max_tokens=10, temperature=0)
    assert [each.text for each in together] == [llm.generate(p, max_tokens=10, temperature=0).text for p in prompts]


def test_streams_take_turns(llm):
    first, second = (llm.stream(p, max_tokens=15, temperature=0) for p in (PROMPT, "The cat"))
    texts = ["", ""]
    for a, b in zip(first, second):
        texts[0] += a
        texts[1] += b
    rest = "".join(first), "".join(second)
    assert texts[0] + rest[0] == llm.generate(PROMPT, max_tokens=15, temperature=0).text or rest


def test_abandoned_streams_leave_the_model_usable(llm):
    for _ in range(5):
        next(llm.stream(PROMPT, max_tokens=200))
    stream = llm.stream(PROMPT, max_tokens=200)
    next(stream)
    stream.cancel()
    assert stream.result.reason == "cancelled"
    assert llm.generate(PROMPT, max_tokens=3, temperature=0).text


def test_options(llm):
    assert llm.generate(PROMPT, max_tokens=30, seed=5).text == llm.generate(PROMPT, max_tokens=30, seed=5).text
    stopped = llm.generate(PROMPT, max_tokens=100, temperature=0, stop=".")
    assert stopped.reason == "stop_text" and stopped.stop == "." and "." not in stopped.text
    scored = llm.generate(PROMPT, max_tokens=3, temperature=0, logprobs=2)
    assert len(scored.scores) == 3 and len(scored.scores[0].top) == 2 and scored.scores[0].logprob <= 0
    with pytest.raises(TypeError, match="temprature"):
        llm.generate(PROMPT, temprature=1)
    with pytest.raises(ValueError, match="temperature"):
        llm.generate(PROMPT, temperature=-1)
    with pytest.raises(TypeError, match="max_tokens"):
        llm.generate(PROMPT, max_tokens="many")
    with pytest.raises(ValueError):
        llm.generate([])


def test_grammar(llm):
    text = llm.generate(PROMPT, grammar='root ::= " yes" | " no"', max_tokens=10)
    assert text.text in (" yes", " no")
    with pytest.raises(ValueError, match="line|column|1:"):
        llm.generate(PROMPT, grammar="root ::= (")


@dataclasses.dataclass
class Animal:
    kind: Literal["cat", "dog"]
    legs: Literal[3, 4]
    wild: bool


def test_json_of_a_dataclass(llm):
    animal = llm.generate(PROMPT, json_schema=Animal, max_tokens=200, seed=3).parsed
    assert isinstance(animal, Animal) and animal.kind in ("cat", "dog") and animal.legs in (3, 4)


def test_json_of_pydantic(llm):
    pydantic = pytest.importorskip("pydantic")

    class Pet(pydantic.BaseModel):
        kind: Literal["cat", "dog"]
        tame: bool

    assert isinstance(llm.generate(PROMPT, json_schema=Pet, max_tokens=200, seed=3).parsed, Pet)
    assert llm.generate(PROMPT, json_schema={"enum": ["a", "b"]}, max_tokens=9).parsed in ("a", "b")
    with pytest.raises(TypeError, match="JSON schema"):
        llm.generate(PROMPT, json_schema=set)


def test_tokens(llm):
    tokens = llm.tokenize(PROMPT)
    assert llm.detokenize(tokens) == PROMPT and all(isinstance(token, int) for token in tokens)
    assert llm.generate(tokens, max_tokens=5, temperature=0).text == llm.generate(PROMPT, max_tokens=5, temperature=0).text
    words = [*PROGRAM, "tokenize", llm.path, "-p", PROMPT, "--json"]
    assert json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)["ids"] == tokens


def test_scores(llm):
    scores = llm.score(PROMPT, top=3)
    assert scores[0].logprob is None and all(score.logprob < 0 for score in scores[1:])
    assert [score.id for score in scores] == llm.tokenize(PROMPT) and len(scores[1].top) == 3


def test_embeddings(llm):
    rows = llm.embed(["A cat", "A dog"])
    assert rows.shape[0] == 2 and np.allclose(np.linalg.norm(rows.numpy(), axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(llm.embed("A cat").numpy(), rows[0].numpy(), atol=1e-5)


def test_default_embedder():
    try:
        rows = prism.embed(["The cat sits outside.", "A feline is outdoors.", "cat " * 400])
    except prism.Error as error:  # without pip or PyPI
        pytest.skip(str(error))
    assert rows.shape == (3, 384)
    np.testing.assert_allclose(np.linalg.norm(rows.numpy(), axis=1), 1, atol=1e-5)
    cosines = rows.numpy() @ rows.numpy()[0]
    assert cosines[1] > cosines[2]
    # Alone, its few rows are rounded in other blocks than in a batch.
    assert prism.embed("The cat sits outside.").numpy() @ rows[0].numpy() > 0.999


CHAT = [{"role": "user", "content": "Hello"}]


TEMPLATE = ("{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
            "{% if add_generation_prompt %}assistant: {% endif %}")


@pytest.fixture(scope="session")
def chat_model(model_path):
    return prism.LLM(model_path, device="cpu", chat_template=TEMPLATE, progress=False)


def test_chat(llm, chat_model):
    assert chat_model.has_chat_template and not llm.has_chat_template
    prompt = chat_model.chat_prompt(CHAT)
    assert prompt == "user: Hello\nassistant: " == chat_model.chat_prompt("Hello")
    text = chat_model.chat(CHAT, max_tokens=8, temperature=0).text
    assert text == "".join(chat_model.chat_stream("Hello", max_tokens=8, temperature=0))
    with pytest.raises(prism.NotFound, match="template"):
        llm.chat(CHAT)
    with pytest.raises(ValueError, match="role"):
        chat_model.chat([{"content": "Hello"}])
    with pytest.raises(ValueError, match="line 1"):
        prism.LLM(llm.path, device="cpu", chat_template="{% if %}")


def test_chat_completion(chat_model):
    answer = chat_model.create_chat_completion(CHAT, max_tokens=6, temperature=0, logprobs=True, top_logprobs=2, n=2)
    choice = answer["choices"][0]
    assert answer["object"] == "chat.completion" and len(answer["choices"]) == 2
    assert choice["message"]["role"] == "assistant" and choice["finish_reason"] == "length"
    assert len(choice["logprobs"]["content"][0]["top_logprobs"]) == 2
    assert answer["usage"]["completion_tokens"] == 12
    chunks = list(chat_model.create_chat_completion(CHAT, max_tokens=6, temperature=0, stream=True))
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    assert text == choice["message"]["content"] and chunks[-1]["choices"][0]["finish_reason"] == "length"
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["a", "b"]}}}
    answer = chat_model.create_chat_completion(CHAT, response_format=form, max_completion_tokens=9)
    assert json.loads(answer["choices"][0]["message"]["content"]) in ("a", "b")
    with pytest.raises(TypeError, match="tempo"):
        chat_model.create_chat_completion(CHAT, tempo=3)


def test_missing_and_corrupt_files(tmp_path):
    with pytest.raises(prism.NotFound, match="absent"):
        prism.LLM(tmp_path / "absent.gguf")
    (tmp_path / "bad.gguf").write_bytes(b"GGUF\x03\x00\x00\x00" + b"\xff" * 40)
    with pytest.raises(prism.CorruptFile, match="bad.gguf"):
        prism.LLM(tmp_path / "bad.gguf")
    with pytest.raises(ValueError, match="device and backend"):
        prism.LLM(device="cpu", backend="cuda")


def test_progress(model_path, capsys):
    seen = []
    prism.LLM(model_path, device="cpu", progress=lambda what, done, total: seen.append((what, done, total)))
    assert seen and seen[-1][0] == "loading" and seen[-1][1] == seen[-1][2]
    prism.LLM(model_path, device="cpu", progress=True)
    assert "loading [" in capsys.readouterr().err

    def fail(*_):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        prism.LLM(model_path, device="cpu", progress=fail)


def test_threads_share_a_model(llm):
    expected = llm.generate(PROMPT, max_tokens=10, temperature=0).text
    texts = []
    threads = [threading.Thread(target=lambda: texts.append(llm.generate(PROMPT, max_tokens=10, temperature=0).text))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == [expected] * 4


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_interrupt_ends_a_text(model_path):
    code = f"""
import os, signal, threading, prismrt
llm = prismrt.LLM({str(model_path)!r}, device="cpu")
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        llm.generate("Once", max_tokens=100000, ignore_end=True)
except KeyboardInterrupt:
    print("interrupted", llm.generate("Once upon", max_tokens=3, temperature=0).text)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert result.stdout.startswith("interrupted"), result.stderr


def test_closing(model_path):
    with prism.LLM(model_path, device="cpu", progress=False) as llm:
        stream = llm.stream("Once", max_tokens=8, temperature=0)
        first = next(stream)
    assert repr(llm) == "LLM(closed)" and (first + "".join(stream)).startswith(" upon a time")
    for use in (lambda: llm.generate("Once"), lambda: llm.context, lambda: llm.tokenize("a")):
        with pytest.raises(ValueError, match="closed"):
            use()
    llm.close()


def test_wrong_arguments_of_models(llm, model_path):
    with pytest.raises(TypeError, match="prompt is of type int"):
        llm.generate(5)
    for wrong in ("context", "slots", "batch"):
        with pytest.raises(ValueError, match=f"LLM: {wrong} is -4"):
            prism.LLM(model_path, **{wrong: -4})
        with pytest.raises(TypeError, match=f"LLM: {wrong} is '4'"):
            prism.LLM(model_path, **{wrong: "4"})
    with pytest.raises(TypeError, match="LLM: model is 3"):
        prism.LLM(3)
