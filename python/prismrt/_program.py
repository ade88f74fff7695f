"""The program in a process of its own."""
from __future__ import annotations

import os
import pathlib
import site
import sys


def command() -> list[str]:
    """The beginning of its command line."""
    return [sys.executable, "-m", "prismrt"]


def environment() -> dict[str, str]:
    """Its environment: it finds this package where this process did, and none in the current folder."""
    variables = {**os.environ, "PYTHONSAFEPATH": "1"}
    folder = str(pathlib.Path(__file__).parent.parent)
    if folder not in (*site.getsitepackages(), site.getusersitepackages()):
        variables["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
    return variables
