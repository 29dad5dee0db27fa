"""What a published method for effects of covariates releases: models as plain numbers, and their guarantee."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from scipy.special import expit

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.columns import Range
from discreet.data.frames import table
from discreet.exceptions import InvalidInput
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io
from discreet.releases.notebooks.card import ReleaseCard

FORMAT = "discreet-paper-effects"
Link = Literal["identity", "logit"]
Contrast = Literal["effect", "treatment", "arms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """What one column adds to a model: steps, a slope, or both; of the column as `Bounds` encodes it.

    Parameters
    ----------
    cuts
        Where a step ends and the next begins, rising.
    scores
        The height of each step, one more than there are cuts.
    slope
        What is added for each unit.

    Examples
    --------
    >>> import numpy as np
    >>> Term(cuts=(0.0,), scores=(1.0, 2.0))(np.array([-0.5, 0.5]))
    array([1., 2.])
    """

    cuts: tuple[float, ...] = ()
    scores: tuple[float, ...] = (0.0,)
    slope: float = 0.0

    def __post_init__(self) -> None:
        cuts, scores = (tuple(float(value) for value in values) for values in (self.cuts, self.scores))
        object.__setattr__(self, "cuts", cuts)
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "slope", float(self.slope))
        if not all(map(math.isfinite, (*cuts, *scores, self.slope))) or len(scores) != len(cuts) + 1:
            raise InvalidInput("a term must have finite numbers and one score more than cuts: check the file.")
        if any(b <= a for a, b in pairwise(cuts)):
            raise InvalidInput("the cuts of a term must rise: check the file.")

    def __call__(self, x: Float) -> Float:
        steps = np.asarray(self.scores)[np.searchsorted(np.asarray(self.cuts), x, side="right")]
        return np.asarray(steps + self.slope * x)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"cuts": list(self.cuts), "scores": list(self.scores), "slope": self.slope}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedModel:
    """An additive model, g(prediction) = intercept + f_1(x_1) + ... + f_p(x_p), as it was released.

    Parameters
    ----------
    intercept
        Its constant.
    terms
        One for each column.
    link
        "identity", or "logit" for a probability.

    Examples
    --------
    >>> import numpy as np
    >>> model = ReleasedModel(intercept=1.0, terms=(Term(slope=2.0),))
    >>> model.predict(np.array([[0.0], [0.5]]))
    array([1., 2.])
    """

    intercept: float
    terms: tuple[Term, ...]
    link: Link = "identity"

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept", float(self.intercept))
        object.__setattr__(self, "terms", tuple(self.terms))
        if not math.isfinite(self.intercept) or self.link not in get_args(Link):
            raise InvalidInput("a model needs a finite intercept and the link 'identity' or 'logit': check the file.")

    def predict(self, x: Float) -> Float:
        """Predictions from covariates as `Bounds` encodes them, one row per record."""
        total = np.full(len(x), self.intercept)
        for term, column in zip(self.terms, x.T, strict=True):
            total += term(column)
        return np.asarray(expit(total)) if self.link == "logit" else total

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"intercept": self.intercept, "terms": [term.to_dict() for term in self.terms], "link": self.link}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> ReleasedModel:
        """Read a model back."""
        try:
            terms = tuple(Term(**term) for term in plain["terms"])
            return cls(intercept=plain["intercept"], terms=terms, link=plain["link"])
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput("a model of the release has a value of the wrong type: check the file.") from None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnModel:
    """A released model of a user's own base learner, which predicts but is no plain numbers."""

    name: str
    learner: Any

    def predict(self, x: Float) -> Float:
        """Predictions, one finite number for each row."""
        found = np.asarray(self.learner.predict(x), dtype=np.float64)
        if found.shape != (len(x),) or not np.isfinite(found).all():
            raise InvalidInput(
                f"base of {self.name} must predict one finite number for each row: it returns missing or infinite "
                "ones, or another shape."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Refused: only plain numbers are written."""
        raise InvalidInput(
            f"the model {self.name!r} of your own base learner cannot be written to a file: set model_ to a "
            "papers.ReleasedModel in its fit, or use the release where it is."
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LearnerRelease(ReleaseCard):
    """Effects as a function of covariates, with every model that was released on the way.

    Parameters
    ----------
    method
        Which published method, for people.
    contrast
        How the effect follows from the models: it is the model "effect"; the model "outcome", whose first column is
        the treatment, at 1 less the same at 0 ("treatment"); or the model "treated" less the model "control" ("arms").
    models
        The released models by name.
    guarantee
        What is promised, and to whom.
    bounds
        The public facts that were declared.
    settings
        Public settings by name, plain JSON.
    notes
        Assumptions and warnings, one sentence each.

    Privacy
    -------
    Everything in it was released under its guarantee: effects at any covariates cost nothing more.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> study = adum(n=4_000, seed=1, sigma=0.1)
    >>> learner = dc.papers.TLearner(epsilon=4.0, delta=1e-6, bounds=study.bounds, random_state=0)
    >>> with dc.testing.seeded_noise(0):
    ...     _ = learner.fit(study.Y, study.T, X=study.X)
    >>> read = LearnerRelease.from_dict(learner.release_.to_dict())
    >>> bool(read.effect([[0.9]])[0] == learner.effect([[0.9]])[0])
    True
    """

    format: ClassVar[str] = FORMAT

    method: str
    contrast: Contrast
    models: dict[str, ReleasedModel | OwnModel]
    guarantee: Guarantee
    bounds: Bounds
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", tuple(self.notes))
        needed = {"effect": ["effect"], "treatment": ["outcome"], "arms": ["treated", "control"]}
        if self.contrast not in needed or any(name not in self.models for name in needed[self.contrast]):
            raise InvalidInput("contrast must be 'effect', 'treatment' or 'arms', with its models: check the release.")
        extra = int(self.contrast == "treatment")
        additive = [self.models[name] for name in needed[self.contrast]]
        if any(isinstance(m, ReleasedModel) and len(m.terms) != self.bounds.p + extra for m in additive):
            raise InvalidInput("the models of a release must have one term for each covariate: check the file.")

    def effect(self, X: Any) -> Float:
        """Released effects at the covariates of any records, as often as you like; ranges hold to their ends."""
        names = [f"column {name!r} of X" for name in self.bounds.names]
        columns = zip(self.bounds.columns, table(X, self.bounds), names, strict=True)
        return self.encoded_effect(np.column_stack([spec.encode(column, name) for spec, column, name in columns]))

    def encoded_effect(self, x: Float) -> Float:
        """Effects at covariates that are already encoded."""
        if self.contrast == "effect":
            return self.models["effect"].predict(x)
        if self.contrast == "arms":
            return self.models["treated"].predict(x) - self.models["control"].predict(x)
        ones = np.ones(len(x))
        outcome = self.models["outcome"]
        return outcome.predict(np.column_stack([ones, x])) - outcome.predict(np.column_stack([0.0 * ones, x]))

    def shape(self, feature: str | int, points: int = 401) -> tuple[Any, Float]:
        """What one covariate adds to the effect: values of it (levels, or a grid in its own unit), and heights."""
        j = self._place(feature)
        spec = self.bounds.columns[j]
        if isinstance(spec, Range):
            codes = np.linspace(-1.0, 1.0, points)
            values: Any = spec.middle + spec.width / 2.0 * codes
        else:
            codes, values = np.arange(len(spec.levels), dtype=np.float64), list(spec.levels)
        if self.contrast == "effect":
            return values, self._terms("effect")[j](codes)
        if self.contrast == "arms":
            return values, self._terms("treated")[j](codes) - self._terms("control")[j](codes)
        # Treatment and covariates add up in one model, so that no covariate changes the effect.
        return values, np.zeros(len(codes))

    def plot(self, feature: str | int, ax: Any = None) -> Any:
        """Draw the shape of one covariate (needs matplotlib)."""
        from discreet.releases.plots import BLUE, FAINT, INK, MUTED, require

        require()
        values, heights = self.shape(feature)
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots(figsize=(6.4, 3.4))[1]
        ax.axhline(0.0, color=FAINT, linewidth=1.0, zorder=0)
        if isinstance(values, list):
            ax.plot([str(level) for level in values], heights, "o", color=BLUE)
        else:
            ax.plot(values, heights, color=BLUE)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        ax.tick_params(colors=MUTED, labelcolor=INK)
        ax.set(xlabel=self.bounds.names[self._place(feature)], ylabel="what it adds to the effect")
        return ax

    def summary(self) -> str:
        """A table in plain text."""
        rows = {"models": ", ".join(self.models)} | {name: str(value) for name, value in self.settings.items()}
        width = max(map(len, rows))
        lines = [self.method, *(f"  {name:<{width}}  {value}" for name, value in rows.items())]
        additive = all(isinstance(model, ReleasedModel) for model in self.models.values())
        lines += ["", "How far each covariate moves the effect (highest less lowest)"] if additive else []
        wide = max(map(len, self.bounds.names))
        for name in self.bounds.names if additive else ():
            heights = self.shape(name)[1]
            lines.append(f"  {name:<{wide}}  {heights.max() - heights.min():.4g}")
        lines += ["", "Privacy", *(f"  {line}" for line in str(self.guarantee).splitlines())]
        return "\n".join([*lines, "", "Notes", *(f"  - {note}" for note in self.notes)])

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        made: dict[str, Any] = {"guarantee": self.guarantee.to_dict(), "bounds": self.bounds.to_dict()}
        made |= {"models": {name: model.to_dict() for name, model in self.models.items()}, "notes": list(self.notes)}
        return io.head(FORMAT) | plain | made

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> LearnerRelease:
        """Read a release back; its guarantee is checked against its events again."""
        rest = io.fields_of(plain, FORMAT, {part.name for part in fields(cls)})
        with io.wrong_types_named():
            made: dict[str, Any] = {"guarantee": Guarantee.from_dict(rest["guarantee"])}
            made |= {"bounds": Bounds.from_dict(rest["bounds"]), "notes": tuple(rest["notes"])}
            made |= {"models": {name: ReleasedModel.from_dict(model) for name, model in rest["models"].items()}}
            return cls(**(rest | made))

    def save(self, path: str | Path) -> None:
        """Write a release file."""
        io.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> LearnerRelease:
        """Read a release file."""
        return cls.from_dict(io.read_json(path))

    def _terms(self, name: str) -> tuple[Term, ...]:
        model = self.models[name]
        if isinstance(model, OwnModel):
            raise InvalidInput(f"the model {name!r} is a base learner of your own, which has no shapes: ask effect.")
        return model.terms

    def _place(self, feature: str | int) -> int:
        names = self.bounds.names
        if feature in names:
            return names.index(str(feature))
        if isinstance(feature, int) and not isinstance(feature, bool) and 0 <= feature < len(names):
            return feature
        raise InvalidInput(f"feature must be a covariate's name or place; choose from {', '.join(names)}.")
