"""Cells around released centres."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.bounds import Bounds, Levels, Range
from discreet.data.frames import feature_rows
from discreet.data.partition import Partition, column_places
from discreet.exceptions import InvalidInput


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """Cells around released centres: a record belongs to the nearest one.

    Parameters
    ----------
    centres : array of shape (k, d)
        In the space of features.
    columns : tuple of int
        Covariates that were clustered by.
    bounds : Bounds
        What is declared about all covariates.
    """

    centres: Float
    columns: tuple[int, ...]
    bounds: Bounds

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.centres)

    def cells(self, x: Float) -> IntArray:
        """The cell of each row of encoded covariates."""
        return nearest(self.features(x), self.centres)

    def places(self, x: Float) -> list[Float]:
        """The cell of each row, as the only way in which records are divided."""
        return [self.cells(x).astype(np.float64)]

    def ends(self) -> list[Float | None]:
        """Clusters have no order."""
        return [None]

    def features(self, x: Float) -> Float:
        """What is clustered, of rows of encoded covariates."""
        return feature_rows(x[:, list(self.columns)], _chosen(self.bounds, self.columns))

    def labels(self) -> list[str]:
        """What the cells are called, in order."""
        return [f"cluster {k}" for k in range(self.count)]

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"kind": "clusters", "centres": self.centres.tolist(), "columns": list(self.columns)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], bounds: Bounds) -> Clusters:
        """Read back what ``to_dict`` wrote."""
        try:
            columns = column_places(plain["columns"], bounds)
            centres = np.array(plain["centres"], dtype=np.float64)
            features = sum(len(lowest_features(bounds.columns[column])) for column in columns)
        except (InvalidInput, KeyError, TypeError, ValueError):
            raise InvalidInput("clusters do not fit the bounds; check the file.") from None
        # Features lie between -1 and 1, and so do their centres.
        if centres.ndim != 2 or centres.shape[1] != features or not columns or not np.all(np.abs(centres) <= 1.0):
            raise InvalidInput("clusters do not fit the bounds; check the file.")
        return cls(centres, columns, bounds)


def partition_from(plain: Mapping[str, Any], bounds: Bounds) -> Partition | Clusters:
    """A partition of either kind from its plain JSON."""
    kind = Clusters if plain["kind"] == "clusters" else Partition
    return kind.from_dict(plain, bounds)


def nearest(v: Float, centres: Float) -> IntArray:
    """The nearest centre of each row; of two that are equally near, the first."""
    # One feature after the other, elementwise: a matrix product may round a row differently in another place.
    distance = np.zeros((len(v), len(centres)))
    for j in range(v.shape[1]):
        distance += (v[:, j, None] - centres[:, j]) ** 2
    return np.asarray(np.argmin(distance, axis=1), dtype=np.int64)


def _chosen(bounds: Bounds, columns: tuple[int, ...]) -> Bounds:
    # Indicators of missing values are columns of their own, if they are chosen.
    chosen = [bounds.columns[column] for column in columns]
    specs = [spec if spec.missing is None else replace(spec, missing=None) for spec in chosen]
    return Bounds(outcome=bounds.outcome, covariates=specs)


def lowest_features(spec: Range | Levels) -> Float:
    return np.full(1, -1.0) if isinstance(spec, Range) else np.zeros(len(spec.levels) - 1)
