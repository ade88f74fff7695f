"""The result of cosine_top_k and its siblings."""
from __future__ import annotations

from typing import NamedTuple

from ._core import Tensor


class Nearest(NamedTuple):
    """The best rows first. Slots without a row have index -1 and the worst possible score."""

    scores: Tensor
    indices: Tensor
