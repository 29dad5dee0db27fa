"""What methods for effects at covariates publish: answers to queries, or a function that anyone can ask."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidInput
from discreet.papers.common import release_io as written
from discreet.papers.common.nuisances import design
from discreet.papers.common.queries import encode_queries
from discreet.papers.dp_cate.kernel_regression import Function
from discreet.papers.plots import plot_along, plot_answers
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io
from discreet.releases.notebooks.card import ReleaseCard

FORMAT = "discreet-paper-answers"
FUNCTION_FORMAT = "discreet-paper-function"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AnswersRelease(ReleaseCard):
    """Effects at queries. The queries themselves are not part of it, because they may be people too.

    Parameters
    ----------
    method
        Which published method, for people.
    effects
        The answers, in the order of the queries.
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
    >>> import warnings
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> import discreet as dc
    >>> from discreet.datasets import dp_cate
    >>> study = dp_cate(1, n=200, seed=1)
    >>> models = {"stage2": "linear", "model_regression": LinearRegression(), "model_propensity": LogisticRegression()}
    >>> model = dc.papers.DPCATE(epsilon=1.0, delta=1e-5, bounds=study.bounds, random_state=0, **models)
    >>> with warnings.catch_warnings(action="ignore"):  # the guarantee is claimed
    ...     _ = model.fit(study.Y, study.T, X=study.X, queries=[[0.2, 0.5], [0.8, 0.5]])
    >>> model.release_.effect().shape
    (2,)
    >>> AnswersRelease.from_dict(model.release_.to_dict()) == model.release_
    True
    """

    format: ClassVar[str] = FORMAT

    method: str
    effects: tuple[float, ...]
    guarantee: Guarantee
    bounds: Bounds
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "effects", tuple(float(effect) for effect in self.effects))
        if not all(map(math.isfinite, self.effects)):
            raise InvalidInput("a released effect is not finite: check the models of both stages.")

    def effect(self) -> Float:
        """The answers as an array."""
        return np.array(self.effects)

    def plot(self, ax: Any = None) -> Any:
        """Draw the answers in the order of the queries (needs matplotlib)."""
        return plot_answers(self.effect(), ax)

    def summary(self) -> str:
        """A table in plain text."""
        rows = {"queries answered": str(len(self.effects))}
        rows |= {name: str(value) for name, value in self.settings.items()}
        return written.text(self.method, rows, self.guarantee, self.notes)

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return written.to_plain(self, FORMAT)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> AnswersRelease:
        """Read a release back; its guarantee is checked against its events again."""
        return written.from_plain(cls, plain, FORMAT)

    def save(self, path: str | Path) -> None:
        """Write a release file."""
        io.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> AnswersRelease:
        """Read a release file."""
        return cls.from_dict(io.read_json(path))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FunctionRelease(ReleaseCard):
    """A whole effect function: a sum of kernels that can be asked anywhere in the domain, as often as anyone likes.

    Parameters
    ----------
    method
        Which published method, for people.
    function
        The noisy function, plain JSON: bandwidth, height, centres (public), weights and the constant they add to.
    noise_sd
        Standard deviation of the noise in each coefficient; nowhere has the function more noise than that.
    guarantee, bounds, settings, notes
        As in `AnswersRelease`.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import dp_cate
    >>> study = dp_cate(1, n=400, seed=1)
    >>> function = dc.papers.DPCATEFunction(epsilon=1.0, delta=1e-5, bounds=study.bounds, calibration="proved")
    >>> with dc.testing.seeded_noise(0):
    ...     _ = function.fit(study.Y, study.T, X=study.X)
    >>> function.release_.effect([[0.5, 0.5]]).shape
    (1,)
    >>> FunctionRelease.from_dict(function.release_.to_dict()).noise_sd == function.release_.noise_sd
    True
    """

    format: ClassVar[str] = FUNCTION_FORMAT

    method: str
    function: dict[str, Any]
    noise_sd: float
    guarantee: Guarantee
    bounds: Bounds
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def effect(self, X: Any) -> Float:
        """Effects at rows of covariates inside the bounds. Costs nothing."""
        asked = encode_queries(X, self.bounds, "X")
        return Function.from_dict(self.function)(design(asked, self.bounds))

    def plot(self, feature: str | int = 0, ax: Any = None) -> Any:
        """Draw effects along one covariate, the others in the middle of their ranges (needs matplotlib)."""
        return plot_along(self.effect, self.bounds, feature, ax)

    def summary(self) -> str:
        """A table in plain text."""
        rows = {"noise (sd), at most": f"{self.noise_sd:.3g}"}
        rows |= {name: str(value) for name, value in self.settings.items()}
        return written.text(self.method, rows, self.guarantee, self.notes)

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return written.to_plain(self, FUNCTION_FORMAT)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> FunctionRelease:
        """Read a release back; its guarantee is checked against its events again."""
        return written.from_plain(cls, plain, FUNCTION_FORMAT)

    def save(self, path: str | Path) -> None:
        """Write a release file."""
        io.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> FunctionRelease:
        """Read a release file."""
        return cls.from_dict(io.read_json(path))
