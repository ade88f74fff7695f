"""OpenAI's client: models, chats, completions and embeddings."""
import json
import tempfile

import openai
from server_tools import COLOUR, KEY, MODEL, ONCE, Clients, main, prism, run_text, start_server
from tiny_models import with_fill_tokens

PAINT = {"type": "function", "function": {"name": "paint", "parameters": COLOUR}}
SAY = {"type": "function", "function": {"name": "say", "parameters": {"type": "object"}}}


class Completions(Clients):
    def create(self, **fields):
        return self.openai.completions.create(**{"model": self.model, "prompt": ONCE, "max_tokens": 40,
                                                 "temperature": 0, **fields})

    def test_text_equals_run(self):
        reply = self.create()
        self.assertEqual(reply.choices[0].text, run_text(ONCE, 40, "--raw"))
        self.assertEqual(reply.choices[0].finish_reason, "length")
        self.assertEqual(reply.usage.completion_tokens, 40)
        self.assertEqual(reply.usage.prompt_tokens, 5)
        again = self.create()
        self.assertGreater(again.usage.prompt_tokens_details.cached_tokens, 0)

    def test_stream_pieces_join_to_the_text(self):
        chunks = list(self.create(stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(chunk.choices[0].text for chunk in chunks if chunk.choices), self.create().choices[0].text)
        self.assertEqual(chunks[-1].usage.completion_tokens, 40)

    def test_prompts_as_arrays_and_token_ids(self):
        ids = self.post("/tokenize", {"content": ONCE, "add_special": True})["tokens"]
        texts = [choice.text for choice in self.create(prompt=[ONCE, "The cat"]).choices]
        self.assertEqual(texts, [run_text(ONCE, 40, "--raw"), run_text("The cat", 40, "--raw")])
        self.assertEqual(self.create(prompt=ids).choices[0].text, texts[0])
        self.assertEqual([choice.text for choice in self.create(prompt=[ids, ids], n=2).choices], [texts[0]] * 4)

    def test_echo_with_logprobs_equals_score(self):
        reply = self.create(echo=True, logprobs=3, max_tokens=20)
        choice = reply.choices[0]
        self.assertEqual(choice.text, ONCE + run_text(ONCE, 20, "--raw"))
        scored = prism("score", "-p", choice.text, "--top", "3", "-m", self.model_path())["tokens"]
        scores = choice.logprobs
        # The first token begins every text; `prism score` leaves it out.
        self.assertIsNone(scores.token_logprobs[0])
        self.assertEqual("".join(scores.tokens), choice.text)
        self.assertEqual(len(scores.tokens), len(scored) + 1)
        for mine, its, top, offset, token in zip(scores.token_logprobs[1:], scored, scores.top_logprobs[1:],
                                                 scores.text_offset[1:], scores.tokens[1:]):
            self.assertAlmostEqual(mine, its["logprob"], delta=1e-4)
            self.assertAlmostEqual(max(top.values()), its["top"][0]["logprob"], delta=1e-4)
            self.assertTrue(choice.text[offset:].startswith(token))
        only = self.create(echo=True, logprobs=1, max_tokens=0).choices[0]
        self.assertEqual(only.text, ONCE)
        self.assertEqual(len(only.logprobs.token_logprobs), 5)
        for one, other in zip(only.logprobs.token_logprobs[1:], scores.token_logprobs[1:]):
            self.assertAlmostEqual(one, other, delta=1e-4)
        streamed = list(self.create(echo=True, logprobs=3, max_tokens=20, stream=True))
        self.assertEqual("".join(chunk.choices[0].text for chunk in streamed), choice.text)
        values = [value for chunk in streamed if chunk.choices[0].logprobs
                  for value in chunk.choices[0].logprobs.token_logprobs]
        for one, other in zip(values[1:], scores.token_logprobs[1:], strict=True):
            self.assertAlmostEqual(one, other, delta=1e-4)

    def model_path(self):
        return self.get("/props")["model_path"]

    def test_suffix_needs_the_tokens(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.create(suffix="The end.")
        self.assertEqual(caught.exception.param, "suffix")

    def test_suffix_fills_in_the_middle(self):
        # The model has no such tokens, so three others stand for them.
        prefix, suffix, middle = 10, 11, 12
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/fill.gguf"
            with_fill_tokens(MODEL, path, prefix, suffix, middle)
            server, address = start_server(models=[path])
            self.addCleanup(server.stdout.close)
            self.addCleanup(server.wait, 20)
            self.addCleanup(server.terminate)

            def ids(text):
                return self.post("/tokenize", {"content": text})["tokens"]
            prompt = self.post("/tokenize", {"content": "", "add_special": True})["tokens"]
            prompt += [prefix, *ids(ONCE), suffix, *ids("The end."), middle]
            expected = self.create(prompt=prompt).choices[0].text
            with openai.OpenAI(base_url=address + "/v1", api_key="none", max_retries=0) as client:
                fields = {"model": "fill", "prompt": ONCE, "suffix": "The end.", "max_tokens": 40, "temperature": 0}
                self.assertEqual(client.completions.create(**fields).choices[0].text, expected)
                self.assertEqual("".join(chunk.choices[0].text for chunk in
                                         client.completions.create(**fields, stream=True)), expected)
                both = client.completions.create(**{**fields, "prompt": [ONCE, "The cat"]}).choices
                self.assertEqual(both[0].text, expected)
                self.assertNotEqual(both[1].text, expected)

    def test_choices_with_a_seed(self):
        def texts():
            return [choice.text for choice in self.create(temperature=1.2, n=3, seed=5, max_tokens=12).choices]
        self.assertEqual(texts(), texts())
        self.assertGreater(len(set(texts())), 1)

    def test_sampling_fields(self):
        text = self.create().choices[0].text
        stop = text[len(text) // 2:][:3]
        stopped = self.create(stop=[stop, "never"]).choices[0]
        self.assertEqual((stopped.text, stopped.finish_reason), (text[:text.index(stop)], "stop"))
        first = self.post("/completion", {"prompt": ONCE, "temperature": 0, "n_predict": 1,
                                          "return_tokens": True})["tokens"][0]
        self.assertNotEqual(self.create(logit_bias={str(first): -100}).choices[0].text[:3], text[:3])
        self.assertNotEqual(self.create(frequency_penalty=2, presence_penalty=2).choices[0].text, text)
        self.assertEqual(self.create(top_p=0.0001, temperature=1).choices[0].text, text)
        self.create(user="someone", extra_body={"metadata": {"a": "b"}, "store": True, "unheard_of": 1})

    def test_client_that_stops_reading(self):
        for _ in range(5):
            stream = self.create(max_tokens=400, stream=True, extra_body={"ignore_eos": True})
            next(iter(stream))
            stream.close()
        self.test_text_equals_run()


class Chats(Clients):
    messages = [{"role": "system", "content": "Tell a story."}, {"role": "user", "content": ONCE}]

    def create(self, **fields):
        return self.openai.chat.completions.create(**{"model": self.model, "messages": self.messages, "max_tokens": 30,
                                                      "temperature": 0, **fields})

    def test_text_equals_run(self):
        reply = self.create(messages=[{"role": "user", "content": ONCE}])
        self.assertEqual(reply.choices[0].message.content, self.chat_text(ONCE, 30))
        self.assertEqual(reply.choices[0].message.role, "assistant")
        parts = [{"role": "user", "content": [{"type": "text", "text": ONCE}]}]
        self.assertEqual(self.create(messages=parts).choices[0].message.content, self.chat_text(ONCE, 30))

    def test_stream_pieces_join_to_the_text(self):
        whole = self.create()
        chunks = list(self.create(max_tokens=None, max_completion_tokens=30, stream=True,
                                  stream_options={"include_usage": True}))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
        self.assertEqual(chunks[-2].choices[0].finish_reason, "length")

    def test_logprobs_equal_score(self):
        reply = self.create(messages=[{"role": "user", "content": ONCE}], max_tokens=5, logprobs=True, top_logprobs=3)
        content = reply.choices[0].logprobs.content
        prompt = self.post("/apply-template", {"messages": [{"role": "user", "content": ONCE}]})["prompt"]
        scored = prism("score", "-p", prompt + reply.choices[0].message.content, "--top", "3", "-m",
                       self.get("/props")["model_path"])["tokens"][-5:]
        self.assertEqual(len(content), 5)
        for mine, its in zip(content, scored):
            self.assertAlmostEqual(mine.logprob, its["logprob"], delta=1e-4)
            self.assertEqual(bytes(mine.bytes).decode(), mine.token)
            for alternative, expected in zip(mine.top_logprobs, its["top"]):
                self.assertAlmostEqual(alternative.logprob, expected["logprob"], delta=1e-4)
        streamed = [score for chunk in self.create(messages=[{"role": "user", "content": ONCE}], max_tokens=5,
                                                   logprobs=True, top_logprobs=3, stream=True)
                    if chunk.choices[0].logprobs for score in chunk.choices[0].logprobs.content]
        self.assertEqual([score.token for score in streamed], [score.token for score in content])
        for one, other in zip(streamed, content):
            self.assertAlmostEqual(one.logprob, other.logprob, delta=1e-4)

    def test_choices(self):
        reply = self.create(n=3, temperature=1.2, seed=5)
        self.assertEqual([choice.index for choice in reply.choices], [0, 1, 2])
        self.assertGreater(len({choice.message.content for choice in reply.choices}), 1)

    def test_continues_the_assistant(self):
        begun = self.messages + [{"role": "assistant", "content": "There was"}]
        prompt = self.post("/apply-template", {"messages": begun})["prompt"]
        self.assertTrue(prompt.endswith("There was"))
        self.assertEqual(self.create(messages=begun).choices[0].message.content, run_text(prompt, 30, "--raw"))

    def test_json_object(self):
        reply = self.create(max_tokens=300, temperature=0.8, seed=3, response_format={"type": "json_object"})
        if reply.choices[0].finish_reason == "stop":
            self.assertIsInstance(json.loads(reply.choices[0].message.content), dict)
        else:
            self.assertTrue(reply.choices[0].message.content.lstrip().startswith("{"))

    def test_tool_choices(self):
        named = {"type": "function", "function": {"name": "paint"}}
        allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}}
        for choice in ["required", named, allowed]:
            tools = [PAINT] if choice == "required" else [SAY, PAINT]
            reply = self.create(tools=tools, tool_choice=choice, max_tokens=200, parallel_tool_calls=False)
            self.assertEqual(reply.choices[0].finish_reason, "tool_calls")
            (call,) = reply.choices[0].message.tool_calls
            self.assertEqual((call.type, call.function.name), ("function", "paint"))
            self.assertIn(json.loads(call.function.arguments)["colour"], ["red", "blue"])
        for choice in ["none", "auto"]:
            self.assertIsNone(self.create(tools=[PAINT], tool_choice=choice).choices[0].message.tool_calls)

    def test_streamed_and_parallel_calls(self):
        fields = {"tools": [PAINT, SAY], "tool_choice": "required", "max_tokens": 300, "temperature": 1, "seed": 4}
        whole = self.create(**fields).choices[0].message.tool_calls
        calls = {}
        pieces = 0
        for chunk in self.create(**fields, stream=True):
            for call in chunk.choices[0].delta.tool_calls or []:
                if call.id:
                    calls[call.index] = [call.function.name, ""]
                else:
                    pieces += 1
                calls[call.index][1] += call.function.arguments or ""
        self.assertEqual([calls[i] for i in range(len(calls))],
                         [[call.function.name, call.function.arguments] for call in whole])
        self.assertGreater(pieces, len(calls))

    def test_results_of_tools(self):
        call = {"id": "call_1", "type": "function", "function": {"name": "paint", "arguments": '{"colour": "red"}'}}
        messages = self.messages + [{"role": "assistant", "content": None, "tool_calls": [call]},
                                    {"role": "tool", "tool_call_id": "call_1", "content": "done"}]
        self.assertTrue(self.create(messages=messages, tools=[PAINT]).choices[0].message.content)

    def test_images_are_refused(self):
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        with self.assertRaises(openai.BadRequestError) as caught:
            self.create(messages=[{"role": "user", "content": [image]}])
        self.assertEqual(caught.exception.param, "messages[0].content[0].type")
        self.assertIn("text only", caught.exception.message)

    def test_unknown_fields(self):
        self.create(store=False, metadata={"a": "b"}, user="someone", service_tier="auto",
                    extra_body={"chat_template_kwargs": {"enable_thinking": False}, "unheard_of": [1]})


class Others(Clients):
    def test_models(self):
        self.assertEqual(self.openai.models.retrieve(self.model).id, self.model)
        with self.assertRaises(openai.NotFoundError):
            self.openai.models.retrieve("none")
        self.assertEqual(self.get("/models"), self.get("/v1/models"))

    def test_embeddings(self):
        def create(**fields):
            return self.openai.embeddings.create(model=self.model, **fields).data
        both = create(input=["a cat", "a dog"])  # the client asks for base64
        plain = create(input="a cat", encoding_format="float")
        self.assertEqual(len(both), 2)
        for one, other in zip(both[0].embedding, plain[0].embedding):
            self.assertAlmostEqual(one, other, places=5)
        ids = self.post("/tokenize", {"content": "a cat"})["tokens"]
        for one, other in zip(create(input=[ids])[0].embedding, plain[0].embedding):
            self.assertAlmostEqual(one, other, places=5)
        shorter = create(input="a cat", dimensions=8)[0].embedding
        self.assertEqual(len(shorter), 8)
        self.assertAlmostEqual(sum(value * value for value in shorter), 1, places=4)

    def test_errors(self):
        def refusal(**fields):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.openai.chat.completions.create(**{"model": self.model, "messages":
                                                       [{"role": "user", "content": ONCE}], **fields})
            return caught.exception.param
        self.assertEqual(refusal(temperature=-3), "temperature")
        self.assertEqual(refusal(n=0), "n")
        self.assertEqual(refusal(messages=[]), "messages")
        self.assertEqual(refusal(messages=[{"role": "bot", "content": ONCE}]), "messages[0].role")
        self.assertEqual(refusal(messages=[{"role": "user", "content": "a " * 600}]), "messages")
        self.assertEqual(refusal(max_tokens=0), "max_tokens")
        self.assertEqual(refusal(tool_choice="required"), "tool_choice")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.openai.completions.create(model=self.model, prompt="a " * 600)
        self.assertEqual((caught.exception.code, caught.exception.param), ("context_length_exceeded", "prompt"))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.openai.embeddings.create(model=self.model, input=["a", "a " * 600])
        self.assertEqual((caught.exception.code, caught.exception.param), ("context_length_exceeded", "input[1]"))
        with openai.OpenAI(base_url=self.address + "/v1", api_key="wrong", max_retries=0) as stranger:
            with self.assertRaises(openai.AuthenticationError):
                stranger.models.list()
        # One right key is enough, in either header.
        for bearer, key in [(KEY, "wrong"), ("wrong", KEY)]:
            with openai.OpenAI(base_url=self.address + "/v1", api_key=bearer, max_retries=0,
                               default_headers={"x-api-key": key}) as client:
                client.models.list()


if __name__ == "__main__":
    main()
