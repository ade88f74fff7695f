"""OpenAI's client: /v1/responses."""
import json

import openai
from server_tools import COLOUR, ONCE, Clients, main

PAINT = {"type": "function", "name": "paint", "parameters": COLOUR, "strict": True}


class Responses(Clients):
    def create(self, **fields):
        return self.openai.responses.create(**{"model": self.model, "input": ONCE, "max_output_tokens": 30,
                                               "temperature": 0, **fields})

    def test_text_equals_run(self):
        reply = self.create()
        self.assertEqual(reply.output_text, self.chat_text(ONCE, 30))
        self.assertEqual((reply.status, reply.incomplete_details.reason), ("incomplete", "max_output_tokens"))
        self.assertEqual(reply.usage.output_tokens, 30)
        self.assertEqual(reply.output[0].role, "assistant")
        self.assertGreater(self.create().usage.input_tokens_details.cached_tokens, 0)

    def test_items_and_instructions(self):
        chat = self.openai.chat.completions.create(
            model=self.model, temperature=0, max_tokens=30,
            messages=[{"role": "system", "content": "Tell a story."}, {"role": "user", "content": ONCE}])
        text = chat.choices[0].message.content
        message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ONCE}]}
        self.assertEqual(self.create(instructions="Tell a story.", input=[message]).output_text, text)
        self.assertEqual(self.create(input=[{"role": "developer", "content": "Tell a story."},
                                            {"role": "user", "content": ONCE}]).output_text, text)

    def test_events(self):
        whole = self.create()
        text = ""
        types = []
        with self.openai.responses.create(model=self.model, input=ONCE, max_output_tokens=30, temperature=0,
                                          stream=True) as events:
            for number, event in enumerate(events):
                self.assertEqual(event.sequence_number, number)
                types.append(event.type)
                if event.type == "response.output_text.delta":
                    text += event.delta
                if event.type == "response.output_text.done":
                    self.assertEqual(event.text, text)
                if event.type == "response.output_item.done":
                    self.assertEqual(event.item.content[0].text, text)
                if event.type == "response.incomplete":
                    self.assertEqual(event.response.output_text, text)
                    self.assertEqual(event.response.usage.output_tokens, 30)
        self.assertEqual(text, whole.output_text)
        deltas = types.count("response.output_text.delta")
        self.assertEqual(types, ["response.created", "response.in_progress", "response.output_item.added",
                                 "response.content_part.added"] + ["response.output_text.delta"] * deltas +
                         ["response.output_text.done", "response.content_part.done", "response.output_item.done",
                          "response.incomplete"])

    def test_schema(self):
        form = {"format": {"type": "json_schema", "name": "answer", "schema": COLOUR, "strict": True}}
        reply = self.create(text=form, max_output_tokens=200)
        self.assertEqual(reply.status, "completed")
        self.assertIn(json.loads(reply.output_text)["colour"], ["red", "blue"])
        with self.openai.responses.stream(model=self.model, input=ONCE, temperature=0, text=form,
                                          max_output_tokens=200) as stream:
            self.assertEqual(stream.get_final_response().output_text, reply.output_text)

    def test_function_calls(self):
        fields = {"tools": [PAINT], "tool_choice": {"type": "function", "name": "paint"}, "max_output_tokens": 200,
                  "parallel_tool_calls": False}
        reply = self.create(**fields)
        (call,) = reply.output
        self.assertEqual((call.type, call.name, reply.status), ("function_call", "paint", "completed"))
        self.assertIn(json.loads(call.arguments)["colour"], ["red", "blue"])
        events = list(self.create(**fields, stream=True))
        pieces = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
        self.assertEqual("".join(pieces), call.arguments)
        done = [event for event in events if event.type == "response.function_call_arguments.done"]
        self.assertEqual(done[0].arguments, call.arguments)
        answer = [{"role": "user", "content": ONCE}, call.model_dump(),
                  {"type": "function_call_output", "call_id": call.call_id, "output": "done"}]
        chat = self.openai.chat.completions.create(
            model=self.model, temperature=0, max_tokens=30, tools=[{"type": "function", "function": {
                "name": "paint", "parameters": COLOUR}}],
            messages=[{"role": "user", "content": ONCE},
                      {"role": "assistant", "content": "", "tool_calls": [{"id": call.call_id, "type": "function",
                       "function": {"name": "paint", "arguments": call.arguments}}]},
                      {"role": "tool", "tool_call_id": call.call_id, "content": "done"}])
        self.assertEqual(self.create(input=answer, tools=[PAINT]).output_text, chat.choices[0].message.content)

    def test_reasoning_items_are_read(self):
        items = [{"role": "user", "content": ONCE},
                 {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
                 {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
                 {"role": "user", "content": "Go on."}]
        self.assertTrue(self.create(input=items, reasoning={"effort": "low"}).output_text)

    def test_logprobs(self):
        reply = self.create(include=["message.output_text.logprobs"], top_logprobs=2, max_output_tokens=5)
        scores = reply.output[0].content[0].logprobs
        self.assertEqual(len(scores), 5)
        self.assertEqual(scores[0].logprob, scores[0].top_logprobs[0].logprob)

    def test_state_is_refused(self):
        for field, value in [("previous_response_id", "resp_1"), ("conversation", "conv_1"), ("background", True)]:
            with self.assertRaises(openai.BadRequestError) as caught:
                self.create(**{field: value})
            self.assertEqual(caught.exception.param, field)

    def test_errors_name_their_field(self):
        image = [{"role": "user", "content": [{"type": "input_image", "image_url": "data:,"}]}]
        call = {"type": "function_call", "call_id": "c", "name": "paint", "arguments": "{"}
        wrong = {"type": "json_schema", "name": "x", "schema": 5}
        for fields, param in [({"temperature": -1}, "temperature"), ({"input": image}, "input[0].content[0].type"),
                              ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
                              ({"input": [call]}, "input[0].arguments"),
                              ({"text": {"format": wrong}}, "text.format.schema"),
                              ({"input": [{"role": "bot", "content": ONCE}]}, "input[0].role"),
                              ({"input": "a " * 600}, "input"),
                              ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type")]:
            with self.assertRaises(openai.BadRequestError) as caught:
                self.create(**fields)
            self.assertEqual(caught.exception.param, param)

    def test_input_tokens(self):
        counted = self.openai.responses.input_tokens.count(model=self.model, input=ONCE)
        self.assertEqual(counted.input_tokens, self.create().usage.input_tokens)


if __name__ == "__main__":
    main()
