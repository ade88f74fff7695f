"""The program that the package contains."""
from __future__ import annotations

import os
import pathlib

PROGRAM = pathlib.Path(__file__).parent / "bin" / ("prism.exe" if os.name == "nt" else "prism")
