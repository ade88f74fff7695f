"""The program: `python -m prismrt run 'Why is the sky blue?'`."""
from __future__ import annotations

import os
import sys

from . import _core


def main() -> int:
    """Runs the program `prism` in this process with the words of the command line, and returns its exit status."""
    if sys.stdout is not None:
        sys.stdout.flush()
    return _core._run_program([b"prism", *(os.fsencode(each) for each in sys.argv[1:])])


if __name__ == "__main__":
    sys.exit(main())
