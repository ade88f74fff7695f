"""The seeds of random inputs: new in each run, and the same again with PRISM_TEST_SEED."""
from __future__ import annotations

import os
import secrets

import numpy as np

_seed = int(os.environ.get("PRISM_TEST_SEED") or secrets.randbits(32))
print(f"PRISM_TEST_SEED={_seed}")


def fresh_random() -> np.random.Generator:
    """Depends on the run and the test alone, not on the tests before it."""
    name = os.environ.get("PYTEST_CURRENT_TEST", "").encode()
    return np.random.default_rng([_seed, *name])
