"""What a method publishes that estimates one effect per cell: a noisy table, its partition and its guarantee."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.clusters import Clusters, partition_from
from discreet.data.frames import encoded
from discreet.data.partition import Partition
from discreet.exceptions import InvalidInput
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io
from discreet.releases.notebooks.card import ReleaseCard
from discreet.releases.plots import plot_segments

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMAT = "discreet-paper-segments"
_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SegmentRelease(ReleaseCard):
    """Noisy counts and sums by cell and arm, and the effects that follow from them.

    Parameters
    ----------
    method
        Which published method, for people.
    partition
        Which cell a record is in.
    counts, sums
        One row per cell: control, treated.
    count_scale, sum_scale
        Scales of their Laplace noise.
    means
        "ratio" divides sums by counts, as published; "clipped" counts at least one record and keeps means inside the
        outcome's range.
    guarantee
        What is promised, and to whom.
    bounds
        The public facts that were declared.
    settings
        Public settings by name, plain JSON.
    notes
        Assumptions and warnings, one sentence each.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> study = adum(n=1_000, seed=1)
    >>> cells = dc.papers.ADUM(epsilon=1.0, bounds=study.bounds, by={0: 2})
    >>> with dc.testing.seeded_noise(0):
    ...     _ = cells.fit(study.Y, study.T, X=study.X)
    >>> [row["cell"] for row in cells.release_.table()]
    ['x0 [-1, 0)', 'x0 [0, 1]']
    """

    format: ClassVar[str] = FORMAT

    method: str
    partition: Partition | Clusters
    counts: Float
    sums: Float
    count_scale: float
    sum_scale: float
    means: str
    guarantee: Guarantee
    bounds: Bounds
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for table in (self.counts, self.sums):
            if table.shape != (self.partition.count, 2) or not np.isfinite(table).all():
                raise InvalidInput("counts and sums need two finite numbers per cell: check the file.")

    @property
    def arm_means(self) -> Float:
        """Mean outcome of each cell in the control and in the treated arm: line 7 of Algorithm 1."""
        if self.means == "clipped":
            return np.clip(self.sums / np.maximum(self.counts, 1.0), *self.bounds.outcome)
        # A noisy count is an integer number of steps and may be zero: then nothing is known, and 0 is released.
        known = self.counts != 0.0
        return np.where(known, self.sums / np.where(known, self.counts, 1.0), 0.0)

    @property
    def effects(self) -> Float:
        """The effect in each cell: line 9 of Algorithm 1."""
        means = self.arm_means
        return np.asarray(means[:, 1] - means[:, 0])

    @property
    def noise_sd(self) -> Float:
        """What privacy noise alone adds to each effect, to first order; sampling error comes on top."""
        count = np.maximum(np.abs(self.counts), 1.0)
        sd = np.hypot(self.sum_scale, self.count_scale * self.arm_means) * math.sqrt(2) / count
        return np.asarray(np.sqrt((sd**2).sum(axis=1)))

    def effect(self, X: Any) -> Float:
        """Effects of any records by their covariates, as often as you like; ranges hold to their ends."""
        return self.effects[self.partition.cells(encoded(X, self.bounds))]

    def table(self) -> list[dict[str, Any]]:
        """One row per cell: what it is, its noisy counts and means, its effect and that effect's noise."""
        means, effects, noise = self.arm_means, self.effects, self.noise_sd
        return [
            {
                "cell": label,
                "control_count": float(self.counts[k, 0]),
                "treated_count": float(self.counts[k, 1]),
                "control_mean": float(means[k, 0]),
                "treated_mean": float(means[k, 1]),
                "effect": float(effects[k]),
                "noise_sd": float(noise[k]),
            }
            for k, label in enumerate(self.partition.labels())
        ]

    def summary(self) -> str:
        """A table in plain text."""
        rows = self.table()
        shown = rows[:_SHOWN]
        width = max(len(row["cell"]) for row in shown)
        lines = [self.method, f"  {'cell':<{width}}  {'effect':>10}  {'noise (sd)':>10}  {'about':>8}"]
        for row in shown:
            records = f"{max(row['control_count'] + row['treated_count'], 0):,.0f}"
            lines.append(f"  {row['cell']:<{width}}  {row['effect']:>10.4g}  {row['noise_sd']:>10.3g}  {records:>8}")
        if len(rows) > _SHOWN:
            lines.append(f"  ... and {len(rows) - _SHOWN:,} cells more: see table()")
        lines += ["", *(f"  {name}: {value}" for name, value in self.settings.items())]
        lines += ["", "Privacy", *(f"  {line}" for line in str(self.guarantee).splitlines())]
        return "\n".join([*lines, "", "Notes", *(f"  - {note}" for note in self.notes)])

    def __str__(self) -> str:
        return self.summary()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the effect of every cell, with one standard deviation of its privacy noise (needs matplotlib)."""
        effects, noise = self.effects, self.noise_sd
        ends = effects - noise, effects + noise
        return plot_segments(self.partition.labels(), effects, ends, "effect (bars: noise alone)", ax)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        return (
            io.head(FORMAT)
            | plain
            | {
                "partition": self.partition.to_dict(),
                "counts": self.counts.tolist(),
                "sums": self.sums.tolist(),
                "guarantee": self.guarantee.to_dict(),
                "bounds": self.bounds.to_dict(),
                "notes": list(self.notes),
            }
        )

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> SegmentRelease:
        """Read a release back; its guarantee is checked against its events again."""
        rest = io.fields_of(plain, FORMAT, {part.name for part in fields(cls)})
        with io.wrong_types_named():
            bounds = Bounds.from_dict(rest["bounds"])
            made = {
                "partition": partition_from(rest["partition"], bounds),
                "counts": np.array(rest["counts"], dtype=np.float64),
                "sums": np.array(rest["sums"], dtype=np.float64),
                "guarantee": Guarantee.from_dict(rest["guarantee"]),
                "bounds": bounds,
                "notes": tuple(rest["notes"]),
            }
            return cls(**(rest | made))

    def save(self, path: str | Path) -> None:
        """Write a release file."""
        io.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> SegmentRelease:
        """Read a release file."""
        return cls.from_dict(io.read_json(path))
