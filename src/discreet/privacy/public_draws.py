"""Draws that protect nobody: made-up data of audits, centres that no record chose, who goes into which part.

They are seeded by a number that anybody may know, and are never noise: noise is drawn in `discreet.privacy.noise`.
"""

from __future__ import annotations

import numpy as np


def public_draws(seed: int | np.random.RandomState | None) -> np.random.RandomState:
    """A generator as scikit-learn's ``check_random_state`` makes it of a seed, without scikit-learn."""
    return seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
