"""The program in a process of its own."""
from __future__ import annotations

import os
import pathlib
import sys


def command() -> list[str]:
    """The beginning of its command line."""
    return [sys.executable, "-m", "prismrt"]


def environment() -> dict[str, str]:
    """Its environment: it finds this package where this process did, and none in the current folder."""
    package = str(pathlib.Path(__file__).parent.parent)
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
