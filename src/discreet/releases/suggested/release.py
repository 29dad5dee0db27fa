"""What `suggest_bounds` publishes: ranges and levels, as bounds, as a file to check, and as words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from discreet.data.bounds import Bounds, Level
from discreet.exceptions import InvalidInput
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io
from discreet.releases.notebooks.card import ReleaseCard
from discreet.releases.protocol import Display
from discreet.releases.suggested.columns import SuggestedLevels, SuggestedRange, column_from_dict
from discreet.releases.suggested.toml import bounds_file
from discreet.releases.wording import columns as in_columns
from discreet.releases.wording import guarantee_words, listed, mechanism_words

FORMAT = "discreet-suggested-bounds"
_FIELDS = {"outcome", "columns", "treatment", "n", "guarantee", "notes"}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SuggestedBounds(ReleaseCard):
    """Bounds that were suggested under differential privacy; they are released numbers, and may be published.

    Parameters
    ----------
    outcome
        Name of the outcome's column; None if no range was asked for.
    columns
        What was found of each column, the outcome first.
    treatment
        The declared labels of the treatment, control first.
    n
        Number of records: exact where it is public, else as it was released.
    guarantee
        What is promised to the people in the records.
    notes
        Warnings, one sentence each.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> import discreet as dc
    >>> days = np.random.default_rng(1).gamma(2.0, 3.0, 10_000)
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     suggested = dc.suggest_bounds(pa.table({"days": days}), outcome="days", epsilon=1.0)
    >>> suggested.bounds.outcome[0], suggested.guarantee.epsilon
    (0.0, 1.0)
    >>> "outcome = {low = 0.0" in suggested.to_toml()
    True
    """

    format: ClassVar[str] = FORMAT
    title: ClassVar[str] = "Suggested bounds"

    outcome: str | None
    columns: tuple[SuggestedRange | SuggestedLevels, ...]
    treatment: tuple[Level, Level] | None
    n: float
    guarantee: Guarantee
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "notes", tuple(self.notes))
        object.__setattr__(self, "treatment", None if self.treatment is None else tuple(self.treatment))
        names = [column.name for column in self.columns]
        if not names or len(set(names)) < len(names) or (self.outcome is not None and names[0] != self.outcome):
            raise InvalidInput("columns of a suggestion need names of their own, the outcome's first: check the file.")

    @property
    def bounds(self) -> Bounds:
        """The suggestion as `Bounds`, to be given to an estimator.

        Refused where a column's values are hidden by noise: then the file of `to_toml` is to be completed by hand.
        """
        hidden = [column.name for column in self.columns if not column.found]
        if hidden:
            raise InvalidInput(
                f"Noise hides where the values of {listed(hidden)} are: complete the file that to_toml() writes, or "
                "leave them out."
            )
        if self.outcome is None:
            raise InvalidInput("No range was asked for the outcome: complete the file that to_toml() writes.")
        first = self.columns[0]
        assert isinstance(first, SuggestedRange)
        assert first.low is not None
        assert first.high is not None
        rest: Any = {column.name: column.spec for column in self.columns[1:]}
        return Bounds(outcome=(first.low, first.high), covariates=rest, treatment=self.treatment)

    @property
    def records(self) -> str:
        """The number of records in words."""
        return f"{self.n:,.0f}" if self.guarantee.counts_public else f"about {self.n:,.0f}"

    def to_toml(self) -> str:
        """The text of a bounds file with comments that say what was seen; what is hidden is left to fill in."""
        return bounds_file(self.outcome, self.columns, self.treatment, self.guarantee)

    def display(self, alpha: float = 0.05) -> Display:
        """What a terminal shows; there are no intervals, so that ``alpha`` changes nothing."""
        return Display(
            head=("column", "suggestion", "remarks"),
            lines=tuple((column.name, column.words, " ".join(column.remarks)) for column in self.columns),
            below=(*self.notes, f"Differential privacy with {guarantee_words(self.guarantee)}"),
        )

    def summary(self) -> str:
        """A table in plain text."""
        rows = [(column.name, " ".join([column.words, *column.remarks])) for column in self.columns]
        rows += [("records", self.records), ("privacy", guarantee_words(self.guarantee))]
        rows += [("note", note) for note in self.notes]
        return "\n".join([self.title, *in_columns(rows)])

    def methods(self) -> str:
        """A paragraph for a paper's methods section."""
        names = listed(column.name for column in self.columns)
        return (
            f"Ranges and levels of {names} were not declared but chosen under differential privacy, with "
            f"{guarantee_words(self.guarantee)} {mechanism_words(self.guarantee.events, _CELLS)} Distributions were "
            "fitted to the noisy histograms, and ranges chosen that leave out about one in two hundred values."
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return io.head(FORMAT) | {
            "outcome": self.outcome,
            "columns": [column.to_dict() for column in self.columns],
            "treatment": None if self.treatment is None else list(self.treatment),
            "n": self.n,
            "guarantee": self.guarantee.to_dict(),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> SuggestedBounds:
        """Read a release back; its guarantee is checked against its events again."""
        rest = io.fields_of(plain, FORMAT, _FIELDS)
        with io.wrong_types_named():
            read: tuple[SuggestedRange | SuggestedLevels, ...] = tuple(map(column_from_dict, rest["columns"]))
            return cls(**{**rest, "columns": read, "guarantee": Guarantee.from_dict(rest["guarantee"])})

    def save(self, path: str | Path) -> None:
        """Write a release file."""
        io.write(path, self.to_dict())

    def __str__(self) -> str:
        return self.summary()


_CELLS = "All that was computed from the records are counts: each record was in one cell of each histogram"
