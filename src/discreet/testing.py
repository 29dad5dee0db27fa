"""Tools for simulations and tests, never for releases."""

from contextlib import AbstractContextManager

from discreet.noise import _seeded


def seeded_noise(seed: int) -> AbstractContextManager[None]:
    """Draw fast, reproducible noise of the same scale inside a ``with`` block.

    Privacy
    -------
    None: whoever knows the seed can subtract the noise. Everything fitted inside says ``status="test"``.

    Parameters
    ----------
    seed
        Seed of the block; the same seed and the same calls give the same noise.
    """
    return _seeded(seed)
