"""Runs the examples of docs/server.md: commands of prism and curl, Python programs, and the command of the unit for
systemd. Only `prism serve` without a model is left out where the default model was not fetched. The settings of nginx and
Caddy are not run: neither is installed for the tests."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from server_tools import MODEL, PLACE, PRISM, Clients, get, main
from tiny_models import write_reranker

PAGE = Path(__file__).parents[3] / "docs" / "server.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
NOT_RUN = {"": 1, "nginx": 1, "text": 1}  # Caddy, nginx, and what the server prints


class Docs(Clients):
    arguments = ("--alias", "smollm2")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "models").mkdir()
        for name in ["model.gguf", "models/model.gguf"]:
            shutil.copy(MODEL, self.folder / name)
        (self.folder / "keys").write_text("secret\n")
        write_reranker(self.folder / "bge-reranker-v2-m3.gguf")

    def serve(self, line):
        """Starts a server by a line of the page, on a free port; returns its address."""
        arguments = shlex.split(re.sub(r"--port \d+|&$", "", line), comments=True)[1:]
        server = subprocess.Popen([PRISM, *arguments, "--port", "0", *PLACE], stdout=subprocess.PIPE, text=True,
                                  cwd=self.folder)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait, 20)
        self.addCleanup(server.terminate)
        address = server.stdout.readline().rsplit(" ", 1)[-1].strip()
        self.assertEqual(get(address + "/health")["status"], "ok", line)
        return address

    def run_code(self, language, code, address):
        code = re.sub(r"http://127\.0\.0\.1:\d+", address, code)
        command = [sys.executable, "-c", code]
        if language == "sh":
            command = ["bash", "-euo", "pipefail", "-c", code.replace("curl ", "curl -sS --fail-with-body ")]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=self.folder,
                                env={**os.environ, "NO_PROXY": "*"})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertTrue(result.stdout.strip())

    def test_examples(self):
        not_run = {}
        for language, code in BLOCK.findall(PAGE.read_text()):
            with self.subTest(code=code):
                if language == "sh":
                    self.run_shell(code)
                elif language == "python":
                    self.run_code(language, code, self.address)
                elif language == "ini":
                    (line,) = re.findall(r"^ExecStart=/usr/local/bin/(.*)", code, re.MULTILINE)
                    self.serve(line.replace("/srv/models", "models").replace("${CREDENTIALS_DIRECTORY}/", ""))
                else:
                    not_run[language] = not_run.get(language, 0) + 1
        self.assertEqual(not_run, NOT_RUN)

    def run_shell(self, code):
        address = self.address
        lines = code.splitlines()
        for line in [line for line in lines if line.startswith("prism serve")]:
            lines.remove(line)
            if shlex.split(line, comments=True) == ["prism", "serve"] and not self.has_default_model():
                print(f"docs: not run, the default model is not here: {line}")
                continue
            address = self.serve(line)
        if lines:
            self.run_code("sh", "\n".join(lines), address)

    @staticmethod
    def has_default_model():
        models = subprocess.run([PRISM, "model", "list", "--json"], check=True, capture_output=True).stdout
        return any(each["name"] == "smollm2" for each in json.loads(models))


if __name__ == "__main__":
    main()
