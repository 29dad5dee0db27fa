"""A private partition: Lloyd's iterations with noisy counts and sums.

Su, Cao, Li, Bertino and Jin, "Differentially Private k-Means Clustering" (DPLloyd), which the epsilon-ADUM paper takes
its partition from. Features lie in [-1, 1]; each of a fixed number of rounds releases counts and sums by cluster.

Deviations. Levels of a covariate become indicators, whose sums move by one in all instead of one each. A centre whose
noisy count is below one stays where it is, and centres are kept inside the features' range: the paper says nothing of
either. Under replace-one the noise is doubled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.clusters import Clusters, lowest_features, nearest
from discreet.data.partition import column_places
from discreet.data.records import Chunk
from discreet.estimators._effect_allocation import lloyd_shares
from discreet.exceptions import InvalidInput
from discreet.privacy.gate import Gate
from discreet.privacy.public_draws import public_draws
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Cells
from discreet.privacy.sensitivity.table import CellSums

# Numerical: places that are tried for a centre before all are moved closer together, and by how much: how dense a
# packing of points is found, before any record is seen.
_ATTEMPTS = 100
_SHRINK = 0.9
# Memory: more clusters, or rounds, than anybody asks for.
_MOST_CLUSTERS, _MOST_ROUNDS = 4_096, 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateKMeans:
    """Ask `Uplift` or `ADUM` for a partition by private k-means, which costs half of the budget.

    Parameters
    ----------
    clusters : int
        Number of cells.
    columns : sequence, optional
        Covariates to cluster by, by name or position; all by default.
    rounds : int, default 5
        Number of Lloyd's iterations, fixed in advance.
    random_state : int, default 0
        Seeds the first centres, which depend on nothing else; never the noise.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci
    >>> trial = private_ci(1, n=2_000, seed=1)
    >>> uplift = dc.Uplift(epsilon=2.0, delta=1e-6, bounds=trial.bounds, by=dc.PrivateKMeans(clusters=3))
    >>> with dc.testing.seeded_noise(0):
    ...     _ = uplift.fit(trial.Y, trial.T, X=trial.X)
    >>> len(uplift.table())
    3
    """

    method_id: ClassVar[str] = "discreet/private-k-means"

    clusters: int
    columns: tuple[str | int, ...] | None = None
    # Choice: iterations. Chosen in the paper on DPLloyd, and never searched here.
    rounds: int = 5
    # Unit: a seed.
    random_state: int = 0

    def __post_init__(self) -> None:
        for name, most in (("clusters", _MOST_CLUSTERS), ("rounds", _MOST_ROUNDS)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise InvalidInput(f"{name} must be a whole number from 1 to {most:,}: choose one.")
        columns: object = self.columns
        if columns is not None:
            if not isinstance(columns, tuple | list) or not columns:
                raise InvalidInput("columns must list at least one covariate: put its name in a list.")
            object.__setattr__(self, "columns", tuple(columns))


def lloyd(gate: Gate, wanted: PrivateKMeans, share: float) -> Clusters:
    """Find clusters through the gate. Proof: docs/proofs/adum.md, lemma 3."""
    bounds = gate.bounds
    found = first_clusters(wanted, bounds)
    k, d, p = found.count, found.centres.shape[1], len(found.columns)
    low = np.concatenate([lowest_features(bounds.columns[column]) for column in found.columns])
    # Every number of a round has the same noise, as in DPLloyd.
    each = lloyd_shares(share / wanted.rounds, p)
    for _ in range(wanted.rounds):
        current = found

        def cluster(chunk: Chunk, clusters: Clusters = current) -> Float:
            return clusters.cells(chunk.x).astype(np.float64)

        def moments(chunk: Chunk, clusters: Clusters = current) -> Float:
            v = clusters.features(chunk.x)
            return np.column_stack([nearest(v, clusters.centres), v])

        counts, sums = gate.ask(
            Query("clusters: counts", each["clusters: counts"], Cells((k,)), cluster),
            Query("clusters: sums", each["clusters: sums"], CellSums(float(p), k, d), moments),
        )
        full = counts.value >= 1.0
        means = sums.value / np.where(full, counts.value, 1.0)[:, None]
        centres = np.where(full[:, None], np.clip(means, low, 1.0), found.centres)
        found = Clusters(centres, found.columns, bounds)
    return found


def first_clusters(wanted: PrivateKMeans, bounds: Bounds) -> Clusters:
    """Centres before any record is seen, far from each other and from the walls."""
    columns = tuple(range(bounds.p)) if wanted.columns is None else column_places(wanted.columns, bounds)
    if not columns:
        raise InvalidInput("PrivateKMeans needs Bounds(covariates=...): clusters are made of covariates.")
    if len(set(columns)) < len(columns):
        raise InvalidInput("columns names a covariate twice: list each once.")
    low = np.concatenate([lowest_features(bounds.columns[column]) for column in columns])
    return Clusters(_packed(wanted.clusters, tuple(low.tolist()), wanted.random_state).copy(), columns, bounds)


@lru_cache(maxsize=64)
def _packed(clusters: int, lows: tuple[float, ...], random_state: int) -> Float:
    """Sphere packing: as many points at random as wanted, with as large a distance as a few trials allow."""
    rng, radius, low = public_draws(random_state), 1.0, np.array(lows)
    while True:
        centres, failures = np.empty((0, len(low))), 0
        # Indicators span half of what ranges do, so that their walls come closer.
        margin = radius * (1.0 - low) / 2
        while failures < _ATTEMPTS and len(centres) < clusters:
            centre = rng.uniform(low + margin, 1.0 - margin)
            if np.all(((centres - centre) ** 2).sum(axis=1) >= (2 * radius) ** 2):
                centres, failures = np.vstack([centres, centre]), 0
            else:
                failures += 1
        if len(centres) == clusters:
            return centres
        radius *= _SHRINK
