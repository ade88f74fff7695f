"""A running `prism serve` for the tests of the official clients, and what `prism run` and `prism score` say.

Each test of this folder is a program: TEST.py PRISM MODEL. scripts/test_server.sh runs them in a virtual environment."""
import atexit
import json
import subprocess
import sys
import unittest
import urllib.request

import openai

PRISM, MODEL = sys.argv[1:3]
ONCE = "Once upon a time"
KEY = "secret"
# The CPU and f32, so that texts are the same everywhere.
PLACE = ["--device", "cpu", "--context", "512", "--kv-type", "f32", "--quiet"]
COLOUR = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"],
          "additionalProperties": False}
CHATML = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
          "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def start_server(*arguments, models=(MODEL,)):
    """Starts the server on a free port; returns the process and its address."""
    server = subprocess.Popen([PRISM, "serve", *models, "--port", "0", *PLACE, *arguments], stdout=subprocess.PIPE,
                              text=True)
    atexit.register(server.kill)
    return server, server.stdout.readline().rsplit(" ", 1)[1].strip()


def get(url):
    request = urllib.request.Request(url, headers={"Authorization": "Bearer " + KEY})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def prism(*arguments):
    return json.loads(subprocess.run([PRISM, *arguments, *PLACE, "--json"], check=True, capture_output=True,
                                     text=True).stdout)


def run_text(prompt, tokens, *arguments):
    """The greedy text of `prism run`."""
    return prism("run", MODEL, "-p", prompt, "-n", str(tokens), "--temperature", "0", *arguments)["text"]


class Clients(unittest.TestCase):
    """Tests that share a server."""
    arguments = ("--api-key", KEY, "--parallel", "2")

    @classmethod
    def setUpClass(cls):
        cls.server, cls.address = start_server(*cls.arguments)
        cls.openai = openai.OpenAI(base_url=cls.address + "/v1", api_key=KEY, max_retries=0)
        cls.model = cls.openai.models.list().data[0].id

    @classmethod
    def tearDownClass(cls):
        cls.openai.close()
        cls.server.terminate()
        assert cls.server.wait(20) == 0, "the server did not end by itself"
        cls.server.stdout.close()

    def get(self, path):
        return get(self.address + path)

    def post(self, path, body):
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(),
                                         {"Authorization": "Bearer " + KEY})
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    @staticmethod
    def chat_text(content, tokens):
        """The greedy answer of `prism run` with the server's chat template."""
        return run_text(content, tokens, "--chat-template", CHATML)


def main():
    unittest.main(argv=sys.argv[:1], warnings="ignore")
