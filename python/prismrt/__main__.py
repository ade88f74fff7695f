"""The program: `python -m prismrt run 'Why is the sky blue?'`."""
from __future__ import annotations

import os
import subprocess
import sys

from ._program import PROGRAM


def main() -> int:
    """Replaces this process by the program, with the words of the command line."""
    words = [str(PROGRAM), *sys.argv[1:]]
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(PROGRAM, words)
    return subprocess.call(words)


if __name__ == "__main__":
    sys.exit(main())
