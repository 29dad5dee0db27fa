"""Where the next look goes: features weighted by what is at stake in each, most of them not at all.

Post-processing: a focus is chosen from released numbers alone. Why it helps: docs/proofs/ate.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.postprocessing.basis import NORM_CAP

# Shares of the norm below this part of the largest are not worth a column.
_LEAST = 3e-3
# Rooms that are tried.
_NORM_CAPS = (0.5, NORM_CAP, 1.0, 1.5, 2.5, 4.0, 7.0, 12.0)
# What is smaller than this beside the largest of its kind is as good as zero.
_TINY = 1e-12


def allot(stake: Float, doubt: Float, noise: float) -> Float:
    """Shares of a look, adding up to one, that leave the least doubt, counted by what is at stake.

    A look with share v at a coefficient of variance ``doubt`` leaves 1 / (1 / doubt + v / noise); the shares that
    minimise the sum of ``stake`` times that are found by filling water up to a common level.
    """
    root, known = np.sqrt(_above_zero(stake)), noise / _above_zero(doubt)
    # A coefficient is under water from the level known / root on, and then gets root * level - known.
    shore = known / root
    order = np.argsort(shore, kind="stable")
    levels = (1.0 + np.cumsum(known[order])) / np.cumsum(root[order])
    level = levels[np.flatnonzero(levels >= shore[order])[-1]]
    share = np.maximum(root * level - known, 0.0)
    if not share.sum() > 0.0:  # everything is known as well as numbers can tell
        share[order[0]] = 1.0
    return np.asarray(share / share.sum())


def _above_zero(values: Float) -> Float:
    return np.maximum(values, max(_TINY * float(np.max(values)), 1e-100))


@dataclass(frozen=True, slots=True, eq=False)
class FeatureSelection:
    """A few features of a basis, rescaled, and the norm to which a record's are held.

    ``norm_cap`` is the square of that norm, beside a mean square of one.
    """

    kept: IntArray
    scale: Float
    norm_cap: float = NORM_CAP

    @classmethod
    def of(cls, share: Float, size: Float) -> FeatureSelection:
        """Features that get a share of the norm, given the mean square (``size``) of each."""
        kept = np.flatnonzero((share > _LEAST * share.max()) & (size > _TINY * size.max()))
        return cls(kept, np.sqrt(share[kept] / share[kept].sum() / size[kept]))

    @property
    def m(self) -> int:
        """Number of features kept."""
        return len(self.kept)

    @property
    def radius(self) -> float:
        """Norm to which a record's rescaled features are held; they are scaled to have a mean square of one."""
        return float(np.sqrt(self.norm_cap))

    def __call__(self, features: Float, out: Float | None = None) -> tuple[Float, Float]:
        """Rescaled features, in ``out`` if it is given, and each record's weight.

        Elementwise and in a fixed order, as a map has to be.
        """
        narrow = np.empty((len(features), self.m), order="F") if out is None else out
        square, term = np.zeros(len(features)), np.empty(len(features))
        for k, (column, scale) in enumerate(zip(self.kept, self.scale, strict=True)):
            scaled = np.multiply(features[:, column], scale, out=narrow[:, k])
            square += np.multiply(scaled, scaled, out=term)
        return narrow, np.minimum(1.0, self.norm_cap / np.maximum(square, 1e-300))

    def with_best_norm_cap(self, features: Float, noise: float, sampling: float) -> FeatureSelection:
        """With the cap that leaves the least error of the coefficients, judged on public stand-ins for the records.

        A small norm means little noise (``noise`` is its variance at a cap of one), but records beyond it count less:
        the sampling error (``sampling`` is its variance for a feature of mean square one) grows.
        """
        narrow, _ = self(features)
        square, narrow = np.sum(narrow**2, axis=1), narrow**2
        size = narrow.mean(axis=0)
        losses = []
        for norm_cap in _NORM_CAPS:
            weight = np.minimum(1.0, norm_cap / np.maximum(square, 1e-300))
            slope, spread = weight @ narrow / len(square), weight**2 @ narrow / len(square)
            losses.append(float(np.mean((noise * norm_cap + sampling * spread) * size / slope**2)))
        return replace(self, norm_cap=_NORM_CAPS[int(np.argmin(losses))])

    def efficiency(self, features: Float) -> Float:
        """Part of the sampling precision that weighing records down leaves to each feature kept."""
        narrow, weight = self(features)
        square = narrow**2
        slope, spread = weight @ square / len(weight), weight**2 @ square / len(weight)
        return np.asarray(slope**2 / (spread * square.mean(axis=0)))
