"""Anthropic's client: messages, streams, tools and token counts."""
import json
from typing import Literal

import anthropic
import pydantic
from server_tools import COLOUR, KEY, ONCE, Clients, main

TOOLS = [{"name": "paint", "description": "Paints.", "input_schema": COLOUR}]


class Answer(pydantic.BaseModel):
    colour: Literal["red", "blue"]


class Messages(Clients):
    def setUp(self):
        self.client = anthropic.Anthropic(base_url=self.address, api_key=KEY, max_retries=0)
        self.addCleanup(self.client.close)
        self.request = {"model": self.model, "max_tokens": 30, "extra_body": {"temperature": 0},
                        "messages": [{"role": "user", "content": ONCE}]}

    def test_text_equals_run(self):
        reply = self.client.messages.create(**self.request)
        self.assertEqual(reply.content[0].text, self.chat_text(ONCE, 30))
        self.assertEqual((reply.stop_reason, reply.stop_sequence), ("max_tokens", None))
        self.assertEqual(reply.usage.output_tokens, 30)
        again = self.client.messages.create(**self.request).usage
        self.assertGreater(again.cache_read_input_tokens, 0)
        counted = self.client.messages.count_tokens(model=self.model, messages=self.request["messages"])
        self.assertEqual(counted.input_tokens, again.input_tokens + again.cache_read_input_tokens)

    def test_system_equals_openai(self):
        reply = self.client.messages.create(**self.request, system=[{"type": "text", "text": "Tell a story."}])
        chat = self.openai.chat.completions.create(
            model=self.model, max_tokens=30, temperature=0,
            messages=[{"role": "system", "content": "Tell a story."}, {"role": "user", "content": ONCE}])
        self.assertEqual(reply.content[0].text, chat.choices[0].message.content)

    def test_stream_pieces_join_to_the_text(self):
        whole = self.client.messages.create(**self.request)
        with self.client.messages.stream(**self.request) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, whole.content[0].text)
        self.assertEqual(final.content[0].text, text)
        self.assertEqual(final.stop_reason, "max_tokens")
        self.assertEqual(final.usage.output_tokens, 30)

    def test_event_lines(self):
        with self.client.messages.with_streaming_response.create(**self.request, stream=True) as reply:
            lines = list(reply.iter_lines())
        events = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
        self.assertEqual(events[:2] + events[-3:], ["message_start", "content_block_start", "content_block_stop",
                                                    "message_delta", "message_stop"])
        self.assertEqual(len(events), len([line for line in lines if line.startswith("data: ")]))

    def test_stop_sequence(self):
        text = self.client.messages.create(**self.request).content[0].text
        stop = text[len(text) // 2:][:3]
        reply = self.client.messages.create(**self.request, stop_sequences=[stop])
        self.assertEqual((reply.stop_reason, reply.stop_sequence), ("stop_sequence", stop))
        self.assertEqual(reply.content[0].text, text[:text.index(stop)])

    def test_prefill_is_continued(self):
        begun = self.request["messages"] + [{"role": "assistant", "content": "There was"}]
        reply = self.client.messages.create(**{**self.request, "messages": begun})
        chat = self.openai.chat.completions.create(model=self.model, max_tokens=30, temperature=0, messages=begun)
        self.assertEqual(reply.content[0].text, chat.choices[0].message.content)

    def test_tool_use(self):
        for choice in [{"type": "any"}, {"type": "tool", "name": "paint"}]:
            request = {**self.request, "max_tokens": 200, "tools": TOOLS, "tool_choice": choice}
            reply = self.client.messages.create(**request)
            self.assertEqual(reply.stop_reason, "tool_use")
            self.assertIn(reply.content[-1].input["colour"], ["red", "blue"])
            with self.client.messages.stream(**request) as stream:
                self.assertEqual(stream.get_final_message().content[-1].input, reply.content[-1].input)
        answer = [{"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]},
                  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": reply.content[-1].id,
                                                "content": [{"type": "text", "text": "done"}]}]}]
        reply = self.client.messages.create(**{**self.request, "tools": TOOLS, "tool_choice": {"type": "none"},
                                               "messages": self.request["messages"] + answer})
        self.assertEqual(reply.content[0].type, "text")

    def test_output_format(self):
        request = {**self.request, "max_tokens": 200}
        reply = self.client.messages.create(
            **request, output_config={"format": {"type": "json_schema", "schema": COLOUR}})
        self.assertIn(json.loads(reply.content[0].text)["colour"], ["red", "blue"])
        self.assertIn(self.client.messages.parse(**request, output_format=Answer).parsed_output.colour, ["red", "blue"])

    def test_models(self):
        listed = list(self.client.models.list(limit=1))  # follows pages
        self.assertEqual([each.id for each in listed], [self.model])
        self.assertEqual((listed[0].type, listed[0].display_name), ("model", self.model))
        self.assertGreater(listed[0].created_at.year, 2025)
        self.assertEqual(self.client.models.retrieve(self.model), listed[0])
        with self.assertRaises(anthropic.NotFoundError) as caught:
            self.client.models.retrieve("none")
        self.assertEqual(caught.exception.body["error"]["type"], "not_found_error")

    def test_unknown_fields(self):
        self.client.messages.create(**self.request, metadata={"user_id": "someone"}, service_tier="auto",
                                    thinking={"type": "disabled"})

    def test_errors(self):
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
        for fields, field in [({"extra_body": {"temperature": -3}}, "temperature"),
                              ({"messages": [{"role": "user", "content": [image]}]}, "messages[0].content[0].type"),
                              ({"messages": [{"role": "user", "content": []}]}, "messages[0].content"),
                              ({"messages": [{"role": "bot", "content": ONCE}]}, "messages[0].role"),
                              ({"max_tokens": 0}, "max_tokens"),
                              ({"messages": []}, "messages")]:
            with self.assertRaises(anthropic.BadRequestError) as caught:
                self.client.messages.create(**{**self.request, **fields})
            self.assertEqual(caught.exception.body["error"]["type"], "invalid_request_error")
            self.assertIn(field, caught.exception.body["error"]["message"])
        with anthropic.Anthropic(base_url=self.address, api_key="wrong", max_retries=0) as stranger:
            with self.assertRaises(anthropic.AuthenticationError):
                stranger.messages.create(**self.request)


if __name__ == "__main__":
    main()
