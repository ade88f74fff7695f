"""Models for other programs by HTTP: OpenAI's, Anthropic's and Ollama's APIs."""
from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import urllib.parse
import weakref
from collections.abc import Sequence
from typing import IO

from . import _core
from ._arguments import count_argument, path_argument
from ._program import command, environment


class Server:
    """A running server, in a process of its own. It stops at the end of its `with` block, or by stop()."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self._end = weakref.finalize(self, _end, process, 0.0)
        self.url = url

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return urllib.parse.urlsplit(self.url).port or 0

    def wait(self) -> None:
        """Waits until the server ends. Ctrl-C ends it."""
        try:
            self._process.wait()
        except KeyboardInterrupt:
            self.stop()

    def stop(self, grace_seconds: float = 30) -> None:
        """Accepts no further requests and lets the running ones end for this time."""
        _end(self._process, grace_seconds)
        self._end.detach()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop(0)

    def __repr__(self) -> str:
        return f"Server({self.url!r})"


def _end(process: subprocess.Popen[str], grace_seconds: float) -> None:
    """Asks the process to end, and ends it if it takes longer."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(max(grace_seconds, 0.5))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout:
        process.stdout.close()


def serve(
    model: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    api_keys: Sequence[str] = (),
    parallel: int = 4,
    device: str | _core.Device = "auto",
    context: int | None = None,
    options: Sequence[str] = (),
    block: bool = True,
) -> Server:
    """Serves one or several models. The default model is fetched once.

    port 0 takes a free one. options: further words for `prism serve`. The call returns when Ctrl-C ends the server; with
    block=False it returns the running server at once. Raises Error with the server's message if it does not start.
    """
    models = [model] if isinstance(model, (str, os.PathLike)) else [] if model is None else list(model) if isinstance(model, Sequence) else [model]
    words = [*command(), "serve", *(path_argument(each, "serve", "model") for each in models), "--host", host, "--port",
             str(count_argument(port, "serve", "port", 0)), "--parallel", str(count_argument(parallel, "serve", "parallel")),
             "--device", device.id if isinstance(device, _core.Device) else device]
    if context is not None:
        words += ["--context", str(count_argument(context, "serve", "context"))]
    # Keys are not given as words, which every user of the machine can read.
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys, tempfile.TemporaryFile("w+") as messages:
        if api_keys:
            keys.write("\n".join(api_keys) + "\n")
            keys.flush()
            words += ["--api-key-file", keys.name]
        process = subprocess.Popen([*words, *options], stdout=subprocess.PIPE, stderr=None if block else messages, text=True,
                                   env=environment())
        server = Server(process, _address(process, messages))
    if block:
        print(f"serving at {server.url}; Ctrl-C ends it", flush=True)
        server.wait()
    return server


def _address(process: subprocess.Popen[str], messages: IO[str]) -> str:
    """The address that the server prints once it listens and its model is loaded."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r" at (https?://\S+)", line):
            return found.group(1)
    status = process.wait()
    process.stdout.close()
    messages.seek(0)
    text = messages.read().strip().removeprefix("error: ")
    raise _core.Error(f"serve: {text or f'the server ended with status {status}'}")
