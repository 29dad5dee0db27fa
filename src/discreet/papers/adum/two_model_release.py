"""What two private regressions publish: their weights and their guarantee."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.frames import encoded, feature_rows
from discreet.exceptions import InvalidInput
from discreet.papers.adum.functional_mechanism import monomials
from discreet.papers.common.arrays import into_unit_ball
from discreet.papers.plots import plot_along
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io
from discreet.releases.notebooks.card import ReleaseCard

FORMAT = "discreet-paper-two-model"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TwoModelRelease(ReleaseCard):
    """Weights of a regression for the control arm and one for the treated arm.

    Parameters
    ----------
    method
        Which published method, for people.
    model, degree
        "polynomial" and its degree, or "logistic".
    weights
        One row per arm, control first.
    noise_scale
        Scale of the noise: on the sums of coefficients, on the weights, or in the objective.
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
    >>> study = adum(n=4_000, seed=1, sigma=0.1)
    >>> model = dc.papers.TwoModel(epsilon=4.0, bounds=study.bounds)
    >>> with dc.testing.seeded_noise(0):
    ...     _ = model.fit(study.Y, study.T, X=study.X)
    >>> read = TwoModelRelease.from_dict(model.release_.to_dict())
    >>> read.weights.shape, bool((read.weights == model.release_.weights).all())
    ((2, 2), True)
    """

    format: ClassVar[str] = FORMAT

    method: str
    model: str
    degree: int
    weights: Float
    noise_scale: float
    guarantee: Guarantee
    bounds: Bounds
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.weights.ndim != 2 or len(self.weights) != 2 or not np.isfinite(self.weights).all():
            raise InvalidInput("weights need a row of finite numbers per arm: check the file.")

    def effect(self, X: Any) -> Float:
        """The treated model's prediction minus the control model's, for any records, as often as you like."""
        x = encoded(X, self.bounds)
        if self.model == "polynomial":
            control, treated = (monomials(x, self.bounds, self.degree) @ w for w in self.weights)
            return np.asarray(self.bounds.outcome_width / 2 * (treated - control))
        return np.asarray(np.subtract(*(expit(unit_features(x, self.bounds) @ w) for w in self.weights[::-1])))

    def plot(self, feature: str | int = 0, ax: Any = None) -> Any:
        """Draw effects along one covariate, the others in the middle of their ranges (needs matplotlib)."""
        return plot_along(self.effect, self.bounds, feature, ax)

    def summary(self) -> str:
        """A table in plain text."""
        lines = [self.method, f"  noise (scale)  {self.noise_scale:.3g}"]
        lines += [f"  {name}  {value}" for name, value in self.settings.items()]
        for arm, w in zip(("control", "treated"), self.weights, strict=True):
            lines.append(f"  weights, {arm}  {' '.join(f'{value:.3g}' for value in w)}")
        lines += ["", "Privacy", *(f"  {line}" for line in str(self.guarantee).splitlines())]
        return "\n".join([*lines, "", "Notes", *(f"  - {note}" for note in self.notes)])

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        made = {"guarantee": self.guarantee.to_dict(), "bounds": self.bounds.to_dict()}
        listed = {"weights": self.weights.tolist(), "notes": list(self.notes)}
        return io.head(FORMAT) | plain | made | listed

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> TwoModelRelease:
        """Read a release back; its guarantee is checked against its events again."""
        rest = io.fields_of(plain, FORMAT, {part.name for part in fields(cls)})
        with io.wrong_types_named():
            made = {"guarantee": Guarantee.from_dict(rest["guarantee"]), "bounds": Bounds.from_dict(rest["bounds"])}
            listed = {"weights": np.array(rest["weights"], dtype=np.float64), "notes": tuple(rest["notes"])}
            return cls(**(rest | made | listed))

    def save(self, path: str | Path) -> None:
        """Write a release file."""
        io.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> TwoModelRelease:
        """Read a release file."""
        return cls.from_dict(io.read_json(path))


def unit_features(x: Float, bounds: Bounds) -> Float:
    """A constant and the features of encoded covariates, pulled into the unit ball."""
    v = feature_rows(x, bounds)
    return into_unit_ball(np.column_stack([np.ones(len(v)), v]), math.sqrt(1 + v.shape[1]))
