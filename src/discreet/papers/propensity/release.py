"""What a method without an interval publishes: a number, what was released on the way to it, and its guarantee."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidInput
from discreet.papers.common import release_io as written
from discreet.papers.plots import plot_point
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io
from discreet.releases.notebooks.card import ReleaseCard

FORMAT = "discreet-paper-release"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PointRelease(ReleaseCard):
    """An average effect without an interval, because its authors give none.

    Parameters
    ----------
    method
        Which published method, for people.
    estimate
        The effect, in the outcome's unit.
    noise_sd
        Standard deviation of the noise that was added to the estimate itself; 0 if there was none.
    weights
        The released weights of the propensity score.
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
    >>> from discreet.datasets import propensity_scores
    >>> study = propensity_scores(tau=2.0, seed=1, n=2_000, d=2)
    >>> model = dc.papers.PropensityIPTW(epsilon=4.0, delta=1e-5, bounds=study.bounds, xi=0.1, random_state=0)
    >>> with dc.testing.seeded_noise(0):
    ...     _ = model.fit(study.Y, study.T, X=study.X)
    >>> PointRelease.from_dict(model.release_.to_dict()) == model.release_
    True
    """

    format: ClassVar[str] = FORMAT

    method: str
    estimate: float
    noise_sd: float
    weights: tuple[float, ...]
    guarantee: Guarantee
    bounds: Bounds
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", tuple(float(weight) for weight in self.weights))
        for value in (self.estimate, self.noise_sd, *self.weights):
            if not math.isfinite(value):
                raise InvalidInput("a released number is not finite: the noise made the weights explode, so set xi.")

    def plot(self, ax: Any = None) -> Any:
        """Draw the estimate and the noise that was added to it (needs matplotlib)."""
        return plot_point(self.estimate, self.noise_sd, ax)

    def summary(self) -> str:
        """A table in plain text."""
        rows = {"estimate": f"{self.estimate:.6g}", "noise (sd)": f"{self.noise_sd:.3g}"}
        rows |= {name: str(value) for name, value in self.settings.items()}
        return written.text(self.method, rows, self.guarantee, self.notes)

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return written.to_plain(self, FORMAT)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> PointRelease:
        """Read a release back; its guarantee is checked against its events again."""
        return written.from_plain(cls, plain, FORMAT)

    def save(self, path: str | Path) -> None:
        """Write a release file."""
        io.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> PointRelease:
        """Read a release file."""
        return cls.from_dict(io.read_json(path))
