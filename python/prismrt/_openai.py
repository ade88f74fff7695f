"""Chats in OpenAI's dictionaries: requests, completions and chunks."""
from __future__ import annotations

import dataclasses
import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    from .llm import LLM, Generation

_SAME = ("temperature", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty", "logit_bias", "top_k",
         "min_p", "typical_p", "repeat_penalty", "grammar")
_FINISH = {"max_tokens": "length", "context": "length"}
_CONTENT, _REASONING, _CALL, _ARGUMENTS = range(4)


def core_messages(messages: str | Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages with structured content and tool calls as JSON."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    return [_core_message(each) for each in messages]


def _core_message(message: Mapping[str, Any]) -> dict[str, Any]:
    if "role" not in message:
        raise ValueError(f"chat: a message without a role: {dict(message)!r}")
    result = {name: value for name, value in message.items() if value is not None}
    content = result.get("content")
    if isinstance(content, list):
        result["parts"] = json.dumps(content)
        result["content"] = "".join(part.get("text", "") for part in content)
    if "tool_calls" in result:
        result["tool_calls"] = json.dumps(result["tool_calls"])
    return result


def tools_text(tools: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(list(tools)) if tools else ""


@dataclasses.dataclass
class Message:
    """An answer, split into its parts while it arrives."""

    parser: Any
    content: str = ""
    reasoning: str = ""
    calls: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def add(self, parts: Sequence[tuple[int, str]]) -> Iterator[dict[str, Any]]:
        """Takes the parts in; gives what a chunk's delta says of each."""
        for kind, text in parts:
            if kind == _CONTENT:
                self.content += text
                yield {"content": text}
            elif kind == _REASONING:
                self.reasoning += text
                yield {"reasoning_content": text}
            elif kind == _CALL:
                call = {"id": "call_" + uuid.uuid4().hex[:24], "type": "function",
                        "function": {"name": text, "arguments": ""}}
                self.calls.append(call)
                yield {"tool_calls": [{"index": len(self.calls) - 1, **call}]}
            else:
                self.calls[-1]["function"]["arguments"] += text
                yield {"tool_calls": [{"index": len(self.calls) - 1, "function": {"arguments": text}}]}

    def dictionary(self) -> dict[str, Any]:
        result: dict[str, Any] = {"role": "assistant", "content": self.content if self.content or not self.calls else None}
        if self.reasoning:
            result["reasoning_content"] = self.reasoning
        if self.calls:
            result["tool_calls"] = self.calls
        return result


@dataclasses.dataclass
class ChatRequest:
    """A request: the messages, the tools and the options of generate()."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    options: dict[str, Any]
    choices: int = 1
    model: str | None = None

    @staticmethod
    def read(messages: Sequence[Mapping[str, Any]], given: Mapping[str, Any]) -> ChatRequest:
        rest = dict(given)
        options = {name: rest.pop(name) for name in _SAME if name in rest}
        options["max_tokens"] = rest.pop("max_completion_tokens", None) or rest.pop("max_tokens", None)
        rest.pop("max_tokens", None)
        form = rest.pop("response_format", None)
        if form is not None:
            options["json_schema"] = _schema_of(form)
        top = rest.pop("top_logprobs", 0)
        if rest.pop("logprobs", False):
            options["logprobs"] = top or 0
        tools = rest.pop("tools", None) or ()
        choice = rest.pop("tool_choice", "auto")
        if choice not in ("auto", "none", None):
            raise _core.NotSupported("create_chat_completion: tool_choice is 'auto' or 'none' here; `prismrt.serve` can "
                                     "force a call")
        request = ChatRequest(messages, () if choice == "none" else tools, options, rest.pop("n", 1) or 1,
                              rest.pop("model", None))
        if rest:
            raise TypeError(f"create_chat_completion: no option {sorted(rest)[0]!r}")
        return request

    def answer(self, llm: LLM) -> dict[str, Any]:
        texts = [llm._text(self._prompt(llm), self._options(llm, index)) for index in range(self.choices)]
        choices, used, prompt = [], 0, 0
        for index, text in enumerate(texts):
            result = text.finish()
            message = self._message(llm)
            for _ in message.add(message.parser.feed(result.text)):
                pass
            for _ in message.add(message.parser.finish()):
                pass
            used += int(result.statistics["generated_tokens"])
            prompt = int(result.statistics["prompt_tokens"])
            choices.append({"index": index, "message": message.dictionary(), "logprobs": self._logprobs(llm, result),
                            "finish_reason": _finish_reason(result.reason, message)})
        usage = {"prompt_tokens": prompt, "completion_tokens": used, "total_tokens": prompt + used}
        return {**self._head(llm, "chat.completion"), "choices": choices, "usage": usage}

    def stream(self, llm: LLM) -> Iterator[dict[str, Any]]:
        if self.choices != 1:
            raise _core.NotSupported("create_chat_completion: stream=True gives one choice")
        head = self._head(llm, "chat.completion.chunk")
        message = self._message(llm)

        def chunk(delta: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
            return {**head, "choices": [{"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": reason}]}

        yield chunk({"role": "assistant", "content": ""})
        text = llm._text(self._prompt(llm), self._options(llm, 0))
        while (piece := text.next()) is not None:
            for delta in message.add(message.parser.feed(piece)):
                yield chunk(delta)
        for delta in message.add(message.parser.finish()):
            yield chunk(delta)
        yield chunk({}, _finish_reason(text.result.reason, message))

    def _prompt(self, llm: LLM) -> str:
        return llm.chat_prompt(self.messages, tools=self.tools)

    def _options(self, llm: LLM, index: int) -> dict[str, Any]:
        from .llm import _core_options
        options = dict(self.options)
        if index and options.get("seed") is not None:
            options["seed"] += index
        elif index:
            options["seed"] = index
        if self.tools and llm._core.has_control_tokens:
            options["show_special"] = True
        return _core_options(options)

    def _message(self, llm: LLM) -> Message:
        tools = [(each["function"]["name"], json.dumps(each["function"].get("parameters", {}))) for each in self.tools]
        return Message(_core._MessageParser(llm._core.chat_template, tools))

    def _head(self, llm: LLM, kind: str) -> dict[str, Any]:
        name = self.model or os.path.splitext(os.path.basename(llm.path))[0]
        return {"id": "chatcmpl-" + uuid.uuid4().hex[:24], "object": kind, "created": int(time.time()), "model": name}

    def _logprobs(self, llm: LLM, result: Any) -> dict[str, Any] | None:
        if "logprobs" not in self.options:
            return None

        def entry(token: int, logprob: float | None) -> dict[str, Any]:
            text = llm.detokenize([token], special=True)
            return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

        return {"content": [{**entry(token, logprob), "top_logprobs": [entry(*each) for each in top]}
                            for token, logprob, top in result.scores]}


def _schema_of(form: Mapping[str, Any]) -> Any:
    kind = form.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return form.get("schema") or {"type": "object"}
    if kind == "json_schema":
        return form["json_schema"]["schema"]
    raise ValueError(f"create_chat_completion: response_format of type {kind!r}; use text, json_object or json_schema")


def _finish_reason(reason: str, message: Message) -> str:
    return "tool_calls" if message.calls else _FINISH.get(reason, "stop")
