"""An effect function as it may be published: a small file that answers any number of queries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, get_args

import numpy as np
from scipy.special import ndtri

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds, Levels
from discreet.data.frames import table
from discreet.exceptions import InvalidInput, UnsupportedRelease
from discreet.postprocessing.coded_terms import CodedTerms
from discreet.postprocessing.polynomials import PolynomialTerms
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io
from discreet.releases.average import StudyDesign
from discreet.releases.diagnostics.diagnosed import Diagnosed
from discreet.releases.diagnostics.released import checked
from discreet.releases.diagnostics.sensitivity import Average
from discreet.releases.function_parts import MeasuredAverage, checked_level, checked_limits, some_rows
from discreet.releases.notebooks.card import ReleaseCard
from discreet.releases.parts.labels import titled
from discreet.releases.plots import plot_effect
from discreet.releases.protocol import Display
from discreet.releases.wording import clipping_words, columns, guarantee_words, mechanism_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMAT = "discreet-effect-release"
# Queries are answered so many rows at a time, which bounds the memory that they take.
_ROWS = 16_384
# What functions are made of: codes, or in older files polynomials.
Terms = CodedTerms | PolynomialTerms
_KINDS: dict[str, type[Terms]] = {"codes": CodedTerms, "polynomials": PolynomialTerms}
# Fields that not every file has.
_OPTIONAL = frozenset({"centre", "measured", "limits", "diagnostics"})


class Curve(NamedTuple):
    """The effect along one covariate, others averaged: its values or levels, the effect there, and a band.

    Examples
    --------
    >>> import numpy as np
    >>> Curve(("f", "m"), effect=np.array([1.0, 2.0]), low=np.array([0.5, 1.0]), high=np.array([1.5, 3.0])).values
    ('f', 'm')
    """

    values: tuple[Any, ...]
    effect: Float
    low: Float
    high: Float


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EffectRelease(Diagnosed, ReleaseCard):
    """The effect as a function of the declared covariates.

    Parameters
    ----------
    n
        Number of records: exact where it is public, noisy where it is not.
    guarantee
        What is promised to the people in the records.
    bounds
        The public facts that were declared.
    design
        "observational", or "known propensity" where the chance of treatment was known.
    terms
        What the function is made of.
    coefficients
        Of the estimated function, in the outcome's unit.
    factor
        For intervals: F (lower triangular), F F' being the covariance of the coefficients' error.
    average
        Mean of each feature over the released distribution of the covariates.
    importance
        Share of the effect's variance that goes with each covariate.
    adjustment
        Public description of the rounds, plain JSON.
    notes
        Assumptions and warnings, one sentence each.
    reference
        Further released numbers by name.
    centre
        Middles of intervals as coefficients, where the file is of version 1; None where they are about the estimate.
    measured
        The average effect as rounds of its own measured it; None where the function's own average stands for it.
    limits
        Lowest and highest effect of the function: a few of its standard deviations about its average.
    diagnostics
        What is behind ``balance`` and ``overlap``, plain JSON; None in older files.

    Privacy
    -------
    Everything here is covered by ``guarantee``: queries, intervals at any level, figures and files cost nothing more.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import dp_cate
    >>> study = dp_cate(1, n=1_000, seed=1)
    >>> with dc.testing.seeded_noise(0):
    ...     cate = dc.CATE(epsilon=1.0, delta=1e-6, bounds=study.bounds).fit(study.Y, study.T, X=study.X)
    >>> read = dc.EffectRelease.from_dict(cate.release_.to_dict())
    >>> bool((read.effect(study.X[:3]) == cate.effect(study.X[:3])).all())
    True
    """

    format: ClassVar[str] = FORMAT

    n: float
    guarantee: Guarantee
    bounds: Bounds
    design: StudyDesign
    terms: Terms
    coefficients: Float
    factor: Float
    average: Float
    importance: dict[str, float]
    adjustment: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    reference: dict[str, float] = field(default_factory=dict)
    centre: Float | None = None
    measured: MeasuredAverage | None = None
    limits: tuple[float, float] | None = None
    diagnostics: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.design not in get_args(StudyDesign):
            raise InvalidInput(
                f"design must be one of {', '.join(get_args(StudyDesign))}; say how treatment came about."
            )
        m = self.terms.m
        shapes = {"coefficients": (m,), "average": (m,), "factor": (m, m)}
        shapes |= {} if self.centre is None else {"centre": (m,)}
        if any(getattr(self, name).shape != shape for name, shape in shapes.items()):
            raise InvalidInput(f"a release with these terms has {m} coefficients; check the file.")
        numbers = [self.n, *self.importance.values(), *self.reference.values()]
        arrays = [getattr(self, name) for name in shapes]
        if not all(map(math.isfinite, numbers)) or not all(np.all(np.isfinite(array)) for array in arrays):
            raise InvalidInput("every released number must be finite; check how it was computed.")
        if self.n <= 0:
            raise InvalidInput("n must be positive; check how it was computed.")
        if list(self.importance) != list(self.bounds.names):
            raise InvalidInput("importance must name each covariate once; check the file.")
        for array in arrays:
            array.flags.writeable = False
        object.__setattr__(self, "adjustment", io.plain_copy(self.adjustment))
        if self.diagnostics is not None:
            object.__setattr__(self, "diagnostics", checked(io.plain_copy(self.diagnostics)))

    def effect(self, X: Any = None) -> Float:
        """Effect for each row of X: an array or a frame with exactly the declared covariates."""
        return self._limited(np.concatenate([rows @ self.coefficients for rows in self._features(X)]))

    def effect_interval(self, X: Any = None, alpha: float = 0.05) -> tuple[Float, Float]:
        """Interval for each row of X, pointwise.

        Covers sampling error, privacy noise and shrinkage, and allows for what the function cannot follow (a sharp
        bend, a joint effect of many covariates) as much as random studies needed it; not unmeasured confounding. It is
        for one row at a time: of many rows, a part ``alpha`` is missed.
        """
        parts = [self._band(features, alpha) for features in self._features(X)]
        low, high = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        return low, high

    def effect_with_interval(self, X: Any = None, alpha: float = 0.05) -> tuple[Float, Float, Float]:
        """Effect and interval for each row of X at once, in half the time: for services that answer one row a time."""
        parts = [(self._limited(rows @ self.coefficients), *self._band(rows, alpha)) for rows in self._features(X)]
        effect, low, high = (np.concatenate([part[k] for part in parts]) for k in (0, 1, 2))
        return effect, low, high

    def ate(self) -> float:
        """Average effect: as it was measured, or over the released distribution of the covariates in older files."""
        if self.measured is not None:
            return self.measured.estimate
        return float(self._within(self.average[None] @ self.coefficients)[0])

    def ate_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval of the average effect, privacy noise included: that of `ATE` where it was measured."""
        if self.measured is not None:
            return self.measured.interval(checked_level(alpha), self.bounds.outcome_width)
        low, high = self._band(self.average[None], alpha)
        return float(low[0]), float(high[0])

    def _average(self) -> Average:
        if self.measured is None:
            raise UnsupportedRelease(
                "This file is of an earlier version of discreet, which did not measure the average effect by itself: "
                "read its interval as it is."
            )
        return Average(self.ate(), self.ate_interval, self.measured.uncertainty.sampling * math.sqrt(self.n))

    def effect_on(self, X: Any) -> float:
        """Average effect over the rows of X."""
        return float(np.mean(self.effect(some_rows(X))))

    def effect_on_interval(self, X: Any, alpha: float = 0.05) -> tuple[float, float]:
        """Interval of the average effect over the rows of X, which may come in parts: then X is an iterator."""
        total, count = np.zeros(self.terms.m), 0
        for part in X if isinstance(X, Iterator) else [some_rows(X)]:
            for features in self._features(part):
                total += features.sum(axis=0)
                count += len(features)
        low, high = self._band(total[None] / max(count, 1), alpha)
        return float(low[0]), float(high[0])

    def curve(self, feature: str | int, alpha: float = 0.05, points: int = 101) -> Curve:
        """The effect along one covariate, the others averaged over their released distribution; with a band."""
        names = self.bounds.names
        j = names.index(feature) if feature in names else feature
        if isinstance(j, bool) or not isinstance(j, int) or not 0 <= j < len(names):
            raise InvalidInput(f"feature must be one of {', '.join(names) or 'no covariates'}, or its position.")
        column = self.bounds.columns[j]
        if isinstance(column, Levels):
            values: tuple[Any, ...] = column.levels
            along = np.arange(len(values), dtype=np.float64)
        else:
            along = np.linspace(-1.0, 1.0, points)
            values = tuple((column.middle + along * column.width / 2.0).tolist())
        rows = self.terms.along(j, along, self.average)
        return Curve(values, self._limited(rows @ self.coefficients), *self._band(rows, alpha))

    def plot(self, feature: str | int, ax: Axes | None = None) -> Axes:
        """Draw the effect along one covariate, the others averaged, with pointwise bands (needs matplotlib)."""
        return plot_effect(self, feature, ax=ax)

    @property
    def title(self) -> str:
        """What was estimated, for people."""
        return titled(
            self.bounds, "Treatment effect as a function of covariates", "The {effect} as a function of covariates"
        )

    @property
    def varies(self) -> bool:
        """Whether the estimated effect differs between people at all."""
        return bool(np.any(self.coefficients[1:]))

    @property
    def records(self) -> str:
        """The number of records in words: exact, or about so many where it is private."""
        return f"{self.n:,.0f}" if self.guarantee.counts_public else f"about {self.n:,.0f}"

    def display(self, alpha: float = 0.05) -> Display:
        """What a terminal shows: the summary, whatever the level."""
        return Display(below=(self.summary(),))

    def summary(self) -> str:
        """A table in plain text."""
        low, high = self.ate_interval()
        rows = [("average effect", f"{self.ate():.4g}"), ("95 % interval", f"{low:.4g} to {high:.4g}")]
        rows += [("records", self.records), ("design", self.design), ("function", self._words())]
        rows += [(name.replace("_", " "), f"{value:.4g}") for name, value in self.reference.items()]
        rows += self.arms_in_words()
        lines = [self.title, *columns(rows)]
        if self.varies:
            lines += ["", "How much of the effect's variance goes with each covariate"]
            ranked = sorted(self.importance.items(), key=lambda item: -item[1])
            lines += columns([(name, f"{share:.0%}".replace("%", " %")) for name, share in ranked])
        lines += ["", "Privacy", *(f"  {line}" for line in str(self.guarantee).splitlines())]
        if self.notes:
            lines += ["", "Notes", *(f"  - {note}" for note in self.notes)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def methods(self) -> str:
        """A paragraph for a paper's methods section, numbers filled in."""
        low, high = self.ate_interval()
        sentences = [
            "The effect as a function of covariates was estimated by orthogonal moments of residuals from "
            f"{self.records} records under differential privacy with {guarantee_words(self.guarantee)}",
            f"{clipping_words(self.bounds, self.bounds.names)}.",
            f"The function is made of {self._words()}; coefficients were shrunk towards a constant.",
            mechanism_words(self.guarantee.events),
            f"{self._averaged()}, the effect is {self.ate():.4g} (95 % interval {low:.4g} to {high:.4g}).",
            "Intervals are pointwise; they allow for sampling error, privacy noise and shrinkage, but not in full for "
            "what no such function can follow.",
        ]
        return " ".join(sentences)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        plain |= {"guarantee": self.guarantee.to_dict(), "bounds": self.bounds.to_dict(), "notes": list(self.notes)}
        plain["terms"] = self.terms.to_dict()
        plain |= {name: plain[name].tolist() for name in ("coefficients", "average")}
        plain["factor"] = io.triangular_to_steps(self.factor)
        last = {
            "centre": None if self.centre is None else self.centre.tolist(),
            "measured": None if self.measured is None else self.measured.to_dict(),
            "limits": None if self.limits is None else list(self.limits),
            "diagnostics": self.diagnostics,
        }
        plain = {name: value for name, value in plain.items() if name not in _OPTIONAL}
        return io.head(FORMAT) | plain | {name: value for name, value in last.items() if value is not None}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> EffectRelease:
        """Read a release back; its guarantee is checked against its events again."""
        rest = io.fields_of(plain, FORMAT, {part.name for part in fields(cls)}, optional=_OPTIONAL)
        with io.wrong_types_named():
            rest["guarantee"] = Guarantee.from_dict(rest["guarantee"])
            rest["bounds"], rest["notes"] = Bounds.from_dict(rest["bounds"]), tuple(map(str, rest["notes"]))
            rest["terms"] = _KINDS[rest["terms"]["kind"]].from_dict(rest["terms"], rest["bounds"].columns)
            arrays = {"coefficients", "average", "centre"} & rest.keys()
            rest |= {name: np.array(rest[name], dtype=np.float64) for name in arrays}
            rest |= {"factor": io.triangular_from_steps(**rest["factor"]), "n": float(rest["n"])}
            if "measured" in rest:
                rest["measured"] = MeasuredAverage.from_dict(rest["measured"])
            if "limits" in rest:
                rest["limits"] = checked_limits(rest["limits"])
            for name in ("importance", "reference"):
                rest[name] = {str(key): float(value) for key, value in rest[name].items()}
            return cls(**rest)

    def save(self, path: str | Path) -> None:
        """Write a release file, a line for each field."""
        io.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> EffectRelease:
        """Read a release file."""
        return cls.from_dict(io.read_json(path))

    def _features(self, X: Any) -> Iterator[Float]:
        """Features of the rows of X, a part at a time."""
        return (self.terms.features(x) for x in self._encoded(X))

    def _encoded(self, X: Any) -> Iterator[Float]:
        """Encoded rows of X, a part at a time, after everything about X has been checked."""
        columns_ = table(X, self.bounds)
        if not columns_:
            yield np.zeros((1, 0))
            return
        names = self.bounds.names
        encoded = [
            spec.encode(column, f"column {name!r} of X")
            for spec, column, name in zip(self.bounds.columns, columns_, names, strict=True)
        ]
        if len({len(column) for column in encoded}) > 1:
            raise InvalidInput("X must have one entry per row in every column: align their lengths.")
        for start in range(0, max(len(encoded[0]), 1), _ROWS):
            yield np.array([column[start : start + _ROWS] for column in encoded]).T

    def _band(self, features: Float, alpha: float) -> tuple[Float, Float]:
        point = self._limited(features @ self.coefficients)
        half = float(ndtri(1.0 - checked_level(alpha) / 2.0)) * np.sqrt(np.sum((features @ self.factor) ** 2, axis=1))
        if self.centre is None:
            return self._within(point - half), self._within(point + half)
        middle = features @ self.centre
        # The estimate is shrunk more than the interval's centre, and belongs to what is believed in any case.
        return np.minimum(self._within(middle - half), point), np.maximum(self._within(middle + half), point)

    def _limited(self, effect: Float) -> Float:
        """Effects where the function ends."""
        return self._within(effect if self.limits is None else np.clip(effect, *self.limits))

    def _within(self, effect: Float) -> Float:
        """No effect can exceed the outcome's range."""
        return np.clip(effect, -self.bounds.outcome_width, self.bounds.outcome_width)

    def _averaged(self) -> str:
        if self.measured is None:
            return "Averaged over the released distribution of the covariates"
        return "Averaged over the records, by the doubly robust score in rounds of its own"

    def _words(self) -> str:
        return str(self.terms) if self.varies else "a constant"
