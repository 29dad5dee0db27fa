"""Bounds for records of which nothing was declared, suggested under differential privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self, Unpack, cast, get_args

from discreet.data.backends.base import Options
from discreet.data.backends.survey.columns import SurveyColumns, survey
from discreet.data.backends.survey.source import open_survey
from discreet.data.bounds import Bounds, Level, Levels
from discreet.data.filters import conditions
from discreet.data.records import Records, Unit
from discreet.estimators import _allocation
from discreet.estimators._base import Chargeable, Progress, count_first, row_progress
from discreet.estimators._parameters import Parameters, TableOptions, refuse_unknown
from discreet.estimators._results import Fitted
from discreet.estimators.suggestions.rounds import AROUND, Rounds
from discreet.exceptions import InvalidInput
from discreet.ledger.charging import Payment
from discreet.privacy.accountant import calibrate_mu
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.sensitivity.sets import Cells
from discreet.releases.suggested.columns import SuggestedLevels, SuggestedRange
from discreet.releases.suggested.release import SuggestedBounds

# A budget that is divided among more columns finds nothing.
_MOST_COLUMNS = 1_000


class SuggestOptions(TableOptions, total=False):
    """Keyword arguments of `suggest_bounds` besides the names of columns and the budget; it says what they mean."""

    progress: Progress | None


def suggest_bounds(
    table: Any,
    *,
    outcome: str | None = None,
    covariates: Sequence[str] | None = None,
    categories: Mapping[str, Sequence[Level]] | None = None,
    epsilon: float,
    delta: float | None = None,
    treatment: tuple[Level, Level] | None = None,
    neighbours: Neighbours = "replace-one",
    **options: Unpack[SuggestOptions],
) -> SuggestedBounds:
    """Suggest bounds from noisy histograms: a release of its own, with a guarantee and a cost.

    Declare what is known: that costs nothing. This is for the rest. Ranges leave out about one in two hundred values.

    Parameters
    ----------
    table
        As `ATE.fit_table` takes it; arrays are put into a frame first.
    outcome, covariates : str and list of str, optional
        Columns of numbers. An outcome of two labels needs no suggestion: ``Bounds(outcome=[0, 1])``.
    categories : dict, optional
        Columns of categories, each with candidates for its levels, which are public. Frequent ones are suggested.
    epsilon, delta : float
        The budget for all columns together. A delta is used where Gaussian noise is less, and stated only then.
    treatment, neighbours : optional
        Labels of the treatment, as `Bounds` takes them, and which data sets must look alike, as in `ATE`.
    **options
        ``where``, ``unit``, ``ledger`` and the others of `ATE.fit_table`.

    Privacy
    -------
    Protects every record's values. Public: names and candidates, and the number of records under replace-one. Proof:
    docs/proofs/bounds.md.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> import discreet as dc
    >>> rng = np.random.default_rng(1)
    >>> stays = pa.table({"days": rng.gamma(2.0, 3.0, 10_000), "age": rng.normal(60.0, 12.0, 10_000).round()})
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     suggested = dc.suggest_bounds(stays, outcome="days", covariates=["age"], epsilon=1.0)
    >>> low, high = suggested.bounds.outcome
    >>> low, 20 < high < 40
    (0.0, True)
    """
    refuse_unknown("suggest_bounds", options, SuggestOptions.__optional_keys__)
    asked = _asked(outcome, covariates, categories)
    budget = budget_for(Budget(epsilon=epsilon, delta=delta), len(asked), neighbours)
    finder = BoundsFinder(
        epsilon=budget.epsilon,
        delta=budget.delta,
        neighbours=neighbours,
        categories=dict(categories or {}),
        treatment=treatment,
    )
    return finder.fit_table(table, outcome=outcome, covariates=asked[outcome is not None :], **options).release_


class BoundsFinder(Chargeable, Fitted[SuggestedBounds], Parameters):
    """What `suggest_bounds` fits: it is charged for as an estimator is, and its parameters are its identity.

    Parameters
    ----------
    epsilon, delta
        The budget as it is spent: without a delta all noise is Laplace noise.
    neighbours, categories, treatment
        As `suggest_bounds` takes them.
    """

    method_id: ClassVar[str] = "discreet/suggest-bounds"
    release_types: ClassVar = (SuggestedBounds,)
    one_gate: ClassVar[bool] = True

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float | None = None,
        neighbours: Neighbours = "replace-one",
        categories: Mapping[str, Sequence[Level]] | None = None,
        treatment: tuple[Level, Level] | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.categories = categories
        self.treatment = treatment

    def fit_table(
        self, table: Any, *, outcome: str | None, covariates: Sequence[str], **options: Unpack[SuggestOptions]
    ) -> Self:
        """Look at a table; ``covariates`` are all columns but the outcome, those of categories among them."""
        payment = cast(Payment, {name: value for name, value in options.items() if name in Payment.__optional_keys__})

        run = partial(self._fit_table, table, outcome, tuple(covariates), options)

        if not payment:
            return run()
        rows = {name: value for name, value in options.items() if name != "progress"}
        # No treatment is read, and a call without covariates is about none of the others.
        call = {"table": table, "outcome": outcome, "treatment": None, "covariates": [outcome, *covariates]} | rows
        return self._charged(call, run, payment)

    def _fit_table(self, table: Any, outcome: str | None, covariates: tuple[str, ...], options: SuggestOptions) -> Self:
        self.__dict__.pop("release_", None)
        if options.get("sample_by") is not None:
            raise InvalidInput("sample_by belongs to ATE and CATE: histograms take one pass each, so leave it out.")
        columns = self._columns(outcome, covariates, options)
        source = Options.of(options)
        with open_survey(table, columns, source) as records:
            self._fit(records, columns, outcome, options.get("progress"))
        return self

    def _columns(self, outcome: str | None, covariates: tuple[str, ...], options: SuggestOptions) -> SurveyColumns:
        """What is read, once everything fits together."""
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        if self.neighbours not in get_args(Neighbours):
            raise InvalidInput("neighbours must be 'replace-one' or 'add-remove'; say which data sets are compared.")
        if budget.delta is not None:
            calibrate_mu(budget.epsilon, budget.delta)
        # Refuses labels that are none.
        Bounds(outcome=(0, 1), treatment=self.treatment)
        levels = {name: _candidates(name, given) for name, given in (self.categories or {}).items()}
        unit, most, where = options.get("unit"), options.get("max_rows"), options.get("where")
        if (unit is None) != (most is None):
            raise InvalidInput(
                "unit and max_rows belong together: name the column, and the most rows that one unit has."
            )
        ranges = [name for name in ((outcome, *covariates) if outcome else covariates) if name not in levels]
        return survey(
            ranges,
            levels,
            where=() if where is None else conditions(where),
            unit=None if unit is None or most is None else Unit(unit, most),
        )

    def _fit(self, records: Records, columns: SurveyColumns, outcome: str | None, progress: Progress | None) -> None:
        gate = Gate(
            records,
            budget=Budget(epsilon=self.epsilon, delta=self.delta),
            neighbours=self.neighbours,
            progress=row_progress(progress, records, self.neighbours),
        )
        count_first(gate)
        names = columns.covariates
        share = (1.0 - gate.spent) / len(names)
        categories = {
            name: spec for name, spec in zip(names, columns.bounds.columns, strict=True) if isinstance(spec, Levels)
        }
        ranges, levels = Rounds(gate, names, categories, share).ranges_and_levels()
        found: list[SuggestedRange | SuggestedLevels] = [
            levels[name] if name in levels else SuggestedRange.of(name, ranges[name]) for name in names
        ]
        public = ("the names of columns", "the candidates for levels") if levels else ("the names of columns",)
        self.release_ = SuggestedBounds(
            outcome=outcome,
            columns=tuple(found),
            treatment=self.treatment,
            n=gate.n,
            guarantee=gate.guarantee(
                proof="bounds.md", public=(*public, *(() if gate.counts_rows else ("the number of records",)))
            ),
        )


def budget_for(budget: Budget, columns: int, neighbours: Neighbours) -> Budget:
    """The budget, without its delta where Laplace noise is less than Gaussian noise: a public rule."""
    if budget.delta is None:
        return budget
    share, cells = _allocation.SUGGESTION[AROUND] / columns, Cells((2,))
    laplace = 2.0**0.5 * cells.l1(neighbours) / (budget.epsilon * share)
    gaussian = cells.l2(neighbours) / (calibrate_mu(budget.epsilon, budget.delta) * share**0.5)
    return Budget(epsilon=budget.epsilon) if laplace <= gaussian else budget


def _asked(
    outcome: str | None, covariates: Sequence[str] | None, categories: Mapping[str, Sequence[Level]] | None
) -> list[str]:
    """All columns by name, the outcome first."""
    if isinstance(covariates, str):
        raise InvalidInput("covariates takes a list of column names: put the name in a list.")
    if categories is not None and not isinstance(categories, Mapping):
        raise InvalidInput(
            "categories takes a dictionary from columns to candidates for their levels, such as "
            "{'sex': ['f', 'm']}: write them down, do not compute them."
        )
    names: list[Any] = [*([] if outcome is None else [outcome]), *(covariates or ()), *(categories or ())]
    if not names:
        raise InvalidInput("Nothing is asked for: name an outcome, covariates or categories.")
    if any(not isinstance(name, str) or not name for name in names):
        raise InvalidInput("outcome, covariates and categories must be names of columns: write them as text.")
    if len(set(names)) < len(names):
        raise InvalidInput("outcome, covariates and categories must be different columns: name each once.")
    if len(names) > _MOST_COLUMNS:
        raise InvalidInput(f"The budget is divided among the columns, so ask for at most {_MOST_COLUMNS:,}.")
    return names


def _candidates(name: str, given: object) -> Levels:
    if not isinstance(given, list | tuple):
        raise InvalidInput(f"categories[{name!r}] must be a list of candidates for its levels: write them down.")
    try:
        return Levels(tuple(given))
    except InvalidInput as error:
        raise InvalidInput(f"categories[{name!r}]: {error}") from None
