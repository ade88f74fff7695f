"""Runs the examples of docs/server.md: commands of curl and Python programs, against a server on a free port."""
import os
import re
import subprocess
import sys
from pathlib import Path

from server_tools import Clients, main

PAGE = Path(__file__).parents[3] / "docs" / "server.md"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Docs(Clients):
    arguments = ("--alias", "smollm2")

    def test_examples(self):
        ran = {"sh": 0, "python": 0}
        for language, code in BLOCK.findall(PAGE.read_text()):
            if language == "sh" and not code.startswith("curl"):
                continue  # they start servers
            code = code.replace("http://127.0.0.1:8080", self.address)
            with self.subTest(code=code):
                command = ["bash", "-euo", "pipefail", "-c", code.replace("curl ", "curl -sS --fail-with-body ")]
                if language == "python":
                    command = [sys.executable, "-c", code]
                result = subprocess.run(command, capture_output=True, text=True, timeout=120,
                                        env={**os.environ, "NO_PROXY": "*"})
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                self.assertTrue(result.stdout.strip())
                ran[language] += 1
        self.assertGreaterEqual(ran["sh"], 3)
        self.assertGreaterEqual(ran["python"], 3)


if __name__ == "__main__":
    main()
