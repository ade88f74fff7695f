"""SIGTERM: what happens to streams that run when the server ends."""
import contextlib
import signal
import unittest

import openai
from server_tools import ONCE, main, start_server


class Ending(unittest.TestCase):
    """SIGTERM: running answers have --grace seconds, and nothing new is accepted."""

    def end_in_the_middle(self, grace, texts):
        """Sends SIGTERM while texts are streamed; returns the number that came whole."""
        server, address = start_server("--grace", grace)
        client = openai.OpenAI(base_url=address + "/v1", api_key="none", max_retries=0)
        stream = client.completions.create(model="any", prompt=ONCE, max_tokens=400, temperature=0, stream=True, n=texts,
                                           extra_body={"ignore_eos": True})
        next(iter(stream))
        server.send_signal(signal.SIGTERM)
        whole = 0
        with contextlib.suppress(openai.APIError):
            for chunk in stream:
                whole += chunk.choices[0].finish_reason == "length"
        with self.assertRaises(openai.APIConnectionError):
            client.models.list()
        self.assertEqual(server.wait(60), 0)
        return whole

    def test_a_running_stream_ends_whole(self):
        self.assertEqual(self.end_in_the_middle("120", 4), 4)

    def test_the_grace_ends(self):
        self.assertLess(self.end_in_the_middle("0", 16), 16)  # 4 may be whole before the signal


if __name__ == "__main__":
    main()
