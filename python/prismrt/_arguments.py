"""Checks of arguments whose errors name the function and the argument."""
from __future__ import annotations

import os
from typing import Any


def path_argument(given: Any, function: str, name: str) -> str:
    """The text of a path or a name."""
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"{function}: {name} is {given!r}; give a text or a path")
    return os.fspath(given)


def count_argument(given: Any, function: str, name: str, least: int = 1) -> int:
    """A whole number that is not too small."""
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"{function}: {name} is {given!r}; give a whole number")
    if given < least:
        raise ValueError(f"{function}: {name} is {given}; give {least} or more")
    return given
