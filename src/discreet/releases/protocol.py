"""What every release of the library offers, so that nobody has to ask which of them it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.privacy.guarantee import Guarantee


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """A release on a terminal: a table, and paragraphs below it.

    Parameters
    ----------
    head
        Names of the table's columns; empty where its lines are names with values.
    lines
        The table; empty where the paragraphs say everything.
    below
        Paragraphs.
    """

    head: tuple[str, ...] = ()
    lines: tuple[tuple[str, ...], ...] = ()
    below: tuple[str, ...] = ()


class AnyRelease(Protocol):
    """A release of any estimator: everything that it offers is covered by its guarantee."""

    @property
    def title(self) -> str:
        """What was estimated, for people."""

    @property
    def records(self) -> str:
        """The number of records in words."""

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to the people in the records."""

    @property
    def bounds(self) -> Bounds:
        """The public facts that were declared."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Assumptions and warnings, one sentence each."""

    def display(self, alpha: float = 0.05) -> Display:
        """What a terminal shows."""

    def summary(self) -> str:
        """A table in plain text."""

    def methods(self) -> str:
        """A paragraph for a paper's methods section."""

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read a release back."""

    def save(self, path: str | Path) -> None:
        """Write a release file."""


@runtime_checkable
class AnswersEffects(Protocol):
    """A release that can be asked for effects."""

    @property
    def effect(self) -> Callable[..., Float]:
        """Effects, of rows of covariates unless the release holds the answers to queries."""


@runtime_checkable
class AnswersIntervals(AnyRelease, Protocol):
    """A release that can be asked for the effects of any rows, with intervals."""

    def effect(self, X: Any) -> Float:
        """Effect for each row."""

    def effect_interval(self, X: Any, alpha: float = 0.05) -> tuple[Float, Float]:
        """Interval for each row."""

    def effect_with_interval(self, X: Any, alpha: float = 0.05) -> tuple[Float, Float, Float]:
        """Effect and interval for each row."""


@runtime_checkable
class AnswersAverages(Protocol):
    """A release that can be asked for the average effect over any rows, with an interval."""

    def effect_on_interval(self, X: Any, alpha: float = 0.05) -> tuple[float, float]:
        """Interval of the average effect over the rows."""


@runtime_checkable
class AnswersCurves(Protocol):
    """A release that has the effect along each covariate."""

    @property
    def importance(self) -> dict[str, float]:
        """Share of the effect's variance that goes with each covariate."""

    @property
    def bounds(self) -> Bounds:
        """The public facts that were declared."""

    def curve(self, feature: str | int, alpha: float = 0.05, points: int = 101) -> Any:
        """Values of the covariate, the effect there, and a band."""
