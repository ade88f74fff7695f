"""Ollama's client: generate, chat, embed, and what it says about models."""
import datetime
import json
import re
import subprocess

import ollama
from server_tools import COLOUR, KEY, ONCE, PRISM, Clients, main, run_text

SECOND = 1_000_000_000
PAINT = {"type": "function", "function": {"name": "paint", "description": "Paints.", "parameters": COLOUR}}


class Ollama(Clients):
    def setUp(self):
        self.client = ollama.Client(host=self.address, headers={"Authorization": "Bearer " + KEY})
        self.options = {"temperature": 0, "num_predict": 30}
        self.messages = [{"role": "user", "content": ONCE}]

    def test_generate_equals_run(self):
        reply = self.client.generate(self.model, ONCE, raw=True, options=self.options)
        self.assertEqual(reply.response, run_text(ONCE, 30, "--raw"))
        self.assertEqual((reply.done, reply.done_reason, reply.eval_count), (True, "length", 30))
        self.assertEqual(self.client.generate(self.model, ONCE, options=self.options).response, self.chat_text(ONCE, 30))

    def test_durations_are_nanoseconds(self):
        reply = self.client.generate(self.model, ONCE, raw=True, options={"temperature": 0, "num_predict": 300})
        self.assertGreater(reply.eval_duration, 0.0001 * SECOND)
        self.assertLess(reply.total_duration, 600 * SECOND)
        self.assertGreaterEqual(reply.total_duration, reply.eval_duration)

    def test_stream_pieces_join_to_the_text(self):
        whole = self.client.chat(self.model, self.messages, options=self.options)
        self.assertEqual(whole.message.content, self.chat_text(ONCE, 30))
        pieces = list(self.client.chat(self.model, self.messages, options=self.options, stream=True))
        self.assertEqual("".join(piece.message.content for piece in pieces), whole.message.content)
        self.assertEqual([piece.done for piece in pieces], [False] * (len(pieces) - 1) + [True])
        lines = list(self.client.generate(self.model, ONCE, raw=True, options=self.options, stream=True))
        self.assertEqual("".join(line.response for line in lines), run_text(ONCE, 30, "--raw"))

    def test_tools(self):
        # The API has no way to require a call, so the model's text stands; a call in the history is an object.
        reply = self.client.chat(self.model, self.messages, tools=[PAINT], options=self.options)
        self.assertTrue(reply.message.content)
        history = self.messages + [
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "paint", "arguments":
                                                                              {"colour": "red"}}}]},
            {"role": "tool", "tool_name": "paint", "content": "done"}]
        self.assertTrue(self.client.chat(self.model, history, tools=[PAINT], options=self.options).message.content)

    def test_format(self):
        reply = self.client.chat(self.model, self.messages, format=COLOUR, options={"num_predict": 200})
        self.assertIn(json.loads(reply.message.content)["colour"], ["red", "blue"])

    def test_logprobs(self):
        reply = self.client.generate(self.model, ONCE, raw=True, options=self.options, logprobs=True, top_logprobs=2)
        self.assertEqual(len(reply.logprobs), 30)
        self.assertEqual(reply.logprobs[0].logprob, reply.logprobs[0].top_logprobs[0].logprob)

    def test_models(self):
        (listed,) = self.client.list().models
        self.assertEqual(listed.model, self.model)
        self.assertRegex(listed.digest, "^[0-9a-f]{64}$")
        self.assertGreater(listed.size, 1_000_000)
        self.assertGreater(listed.modified_at.year, 2000)
        self.assertEqual(listed.details.parameter_size, "293K")
        self.assertEqual(listed.details.family, "llama")
        shown = self.client.show(self.model)
        self.assertIn("completion", shown.capabilities)
        self.assertEqual(shown.modelinfo["general.architecture"], "llama")
        version = self.get("/api/version")["version"]
        self.assertIn(version, subprocess.run([PRISM, "--version"], capture_output=True, text=True).stdout)
        self.assertTrue(re.fullmatch(r"\d+\.\d+\.\d+", version))

    def test_keep_alive(self):
        def expires():
            (loaded,) = self.loaded()
            return loaded.expires_at
        now = datetime.datetime.now(datetime.timezone.utc)
        self.client.generate(self.model, ONCE, options=self.options, keep_alive=-1)
        self.assertGreater(expires().year, now.year + 50)
        self.client.generate(self.model, ONCE, options=self.options, keep_alive="10m")
        self.assertLess(abs((expires() - now).total_seconds() - 600), 60)
        reply = self.client.generate(self.model, keep_alive=0)
        self.assertEqual(reply.done_reason, "unload")
        self.wait_until_unloaded()
        # 0 with a prompt: the text comes first.
        reply = self.client.generate(self.model, ONCE, raw=True, options=self.options, keep_alive=0)
        self.assertEqual(reply.response, run_text(ONCE, 30, "--raw"))
        self.assertGreater(reply.load_duration, 0)
        self.wait_until_unloaded()
        self.assertEqual(self.client.generate(self.model).done_reason, "load")
        self.assertEqual(len(self.loaded()), 1)

    def loaded(self):
        """The entries of the model; beside it there may be the embedder."""
        return [each for each in self.client.ps().models if each.model == self.model]

    def wait_until_unloaded(self):
        for _ in range(1000):
            if not self.loaded():
                return
        self.fail("the model is still loaded")

    def test_embed(self):
        reply = self.client.embed(self.model, ["a cat", "a dog"])
        self.assertEqual(len(reply.embeddings), 2)
        self.assertGreater(reply.prompt_eval_count, 2)
        self.assertEqual(len(self.client.embed(self.model, "a cat", dimensions=8).embeddings[0]), 8)
        self.assertEqual(self.client.embed(self.model, []).embeddings, [])
        self.assertEqual(self.client.embed(self.model, "a " * 600).prompt_eval_count, 512)  # cut at the context
        with self.assertRaises(ollama.ResponseError) as caught:
            self.client.embed(self.model, ["a", "a " * 600], truncate=False)
        self.assertEqual(caught.exception.status_code, 400)
        self.assertIn("input[1]", caught.exception.error)
        # A batch of another size may round otherwise.
        for one, both in zip(self.client.embeddings(self.model, "a cat").embedding, reply.embeddings[0], strict=True):
            self.assertAlmostEqual(one, both, places=5)

    def test_errors(self):
        for call in [lambda: self.client.generate(self.model, ONCE, options={"temperature": -3}),
                     lambda: self.client.chat(self.model, self.messages, format={"type": "xml"}),
                     lambda: self.client.generate(self.model, ONCE, suffix="The end."),
                     lambda: self.client.generate(self.model, ONCE, keep_alive="soon"),
                     lambda: self.client.chat(self.model, [{"role": "bot", "content": ONCE}]),
                     lambda: self.client.generate(self.model, ONCE, images=[b"\x89PNG"])]:
            with self.assertRaises(ollama.ResponseError) as caught:
                call()
            self.assertEqual(caught.exception.status_code, 400, caught.exception.error)


if __name__ == "__main__":
    main()
