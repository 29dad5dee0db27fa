"""What estimators share: how records come in, what they are fitted through, and what a fitted one answers.

An estimator inherits from the mixins that fit it and from `Parameters`, in this order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import sqrt
from numbers import Real
from typing import Any, ClassVar, Self, Unpack

from discreet.data.backends import TableSpec, open_table
from discreet.data.backends.base import Options
from discreet.data.backends.scan import MANY_ROWS
from discreet.data.bounds import Bounds
from discreet.data.frames import check_indexes
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import Records, RowProgress
from discreet.data.views.weight import WEIGHT
from discreet.estimators import _allocation
from discreet.estimators._parameters import (
    NO_COLUMNS,
    TABLE_OPTIONS,
    FitOptions,
    Role,
    TableOptions,
    further_columns,
    payment_of,
    refuse_unknown,
)
from discreet.estimators._results import Fitted, ReleaseT
from discreet.estimators.arms.design import known_shares
from discreet.estimators.measurements.coded_features import CodesOf
from discreet.exceptions import InvalidInput, MissingBounds
from discreet.ledger.charging import Payment, charged_fit
from discreet.postprocessing.coding import Coding
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.sensitivity.sets import Interval

ROWS_APART = (
    "Rows are taken as independent where sampling error is estimated: if rows of one {unit} are alike, the interval is "
    "too narrow."
)
ROWS_ALIKE = "Sampling error is counted as if all {rows} rows of one {unit} were alike, the most that it can be."
ROWS_JOINED = "Sampling error rests on sums over all rows of one {unit}, which may be alike."
# Called with (pass, rows done, rows in all).
Progress = Callable[[str, int, int], None]


class Checked(ABC):
    """An estimator whose parameters can be checked before any record is read."""

    epsilon: float
    delta: float | None
    bounds: Bounds
    propensity: Any
    neighbours: Neighbours
    # Whether more than two arms can be compared.
    several_arms: ClassVar[bool] = False

    def check(self) -> None:
        """Refuse what can be refused without reading a record, and forget an earlier release."""
        if not isinstance(self.bounds, Bounds):
            raise MissingBounds(
                f"{type(self).__name__} needs bounds=Bounds(outcome=(low, high), ...). "
                "Declare them; do not compute them from the data."
            )
        if self.bounds.weight is not None and not any(role.name == WEIGHT for role in self.roles):
            raise InvalidInput(
                f"{type(self).__name__} takes no survey weights, and Bounds(weight=...) declares some: declare bounds "
                "without them, or use ATE or DifferenceInMeans."
            )
        self._check_budget(Budget(epsilon=self.epsilon, delta=self.delta))
        self._check_arms()
        if self.neighbours == "add-remove" and not isinstance(self._propensity_of_rows, str | Real | None):
            raise InvalidInput(
                "propensity must be a number or a column's name under neighbours='add-remove': the estimator keeps it, "
                "and the length of an array would reveal the number of records."
            )
        # An earlier release does not belong to the parameters of this fit.
        self.__dict__.pop("release_", None)

    def _check_arms(self) -> None:
        """Refuse more arms than the estimator can compare, and probabilities that do not belong to the arms."""
        if self.bounds.several_arms and not self.several_arms:
            raise InvalidInput(
                f"{type(self).__name__} compares two arms, and Bounds(treatment=[...]) declares more: declare two and "
                "leave the others out with where=, or use ATE, DifferenceInMeans or Uplift."
            )
        if self.bounds.several_arms:
            known_shares(self.propensity, self.bounds)

    @property
    def _propensity_of_rows(self) -> Any:
        """Probabilities that come with the records: those of several arms are the same for all of them."""
        return None if self.bounds.several_arms else self.propensity

    @abstractmethod
    def _check_budget(self, budget: Budget) -> None:
        """Refuse a budget, or other parameters, that the estimator cannot work with."""

    # Columns that it takes besides outcome, treatment and covariates.
    roles: ClassVar[tuple[Role, ...]] = ()


class Chargeable:
    """An estimator whose fit a ledger may be charged for."""

    method_id: ClassVar[str]
    # Releases that a ledger keeps and that answer an identical request; and whether one gate spends the whole budget.
    release_types: ClassVar[tuple[type[Any], ...]]
    one_gate: ClassVar[bool] = False

    def _charged(self, call: Mapping[str, Any], run: Callable[[], Self], payment: Payment) -> Self:
        """Fit on a ledger, if there is one."""
        if payment.get("ledger") is not None:
            return charged_fit(self, call, run, payment=payment, kinds=self.release_types, one_gate=self.one_gate)
        if any(value is not None for value in payment.values()):
            raise InvalidInput("dataset, analyst, stratum and reservation belong to a ledger: give ledger= as well.")
        return run()


class ArrayFits(Checked, Chargeable, Fitted[ReleaseT]):
    """Fitting to arrays."""

    def fit(
        self, Y: Any, T: Any, *, X: Any = None, progress: Progress | None = None, **options: Unpack[FitOptions]
    ) -> Self:
        """Estimate from arrays or frames.

        Parameters
        ----------
        Y, T : array-like of shape (n,)
            Outcome and treatment (0 or 1, booleans, or the two labels that the bounds declare).
        X : array-like or frame of shape (n, p), optional
            Covariates, matched to the bounds by name where both have names.
        progress : callable, optional
            Called with (pass, rows done, rows in all) while it works.
        ledger, dataset : Ledger and str, optional
            Where the budget is charged, before noise is drawn, and the name of the data set there.
        analyst, stratum : str, optional
            Who asks, and which part of the data set is meant.
        reservation : int, optional
            The number of a request that the ledger has reserved already.
        Z, before, event, sample_weight : array-like of shape (n,), optional
            Further columns, of those estimators that say so.
        """
        known = {role.argument for role in self.roles}
        refuse_unknown("fit", options, Payment.__optional_keys__ | known)
        further = further_columns(self, self.roles, "fit", options)
        run = partial(self._fit_arrays, Y, T, X, progress, further)
        payment = payment_of(options)
        if not payment:
            return run()
        call = {"Y": Y, "T": T, "X": X, "further": {role.argument: values for role, values in further.items()}}
        return self._charged(call, run, payment)

    def _fit_arrays(
        self, Y: Any, T: Any, X: Any, progress: Progress | None, further: Mapping[Role, Any] = NO_COLUMNS
    ) -> Self:
        self.check()
        self._warn()
        check_indexes({"Y": Y} | {role.argument: values for role, values in further.items()})
        bounds, further = self._read(further, Y)
        records = ArrayRecords.of(Y, T, X, bounds=bounds, propensity=self._propensity_of_rows)
        if further:
            columns = {role.column(bounds): values for role, values in further.items()}
            records = records.beside(columns, {role.name: role.argument for role in further})
        self._fit(records, progress)
        return self

    def _read(self, further: Mapping[Role, Any], outcome: Any) -> tuple[Bounds, Mapping[Role, Any]]:
        """Bounds by which records are read, and further columns; ``outcome`` is the outcome's."""
        return self.bounds, further

    def _warn(self) -> None:
        """Warn of what is claimed and not proved; once parameters are checked and before records are read."""

    @abstractmethod
    def _fit(self, records: Records, progress: Progress | None) -> None:
        """Ask the gate, and leave the release behind."""

    def _open_gate(self, records: Records, progress: Progress | None) -> Gate:
        """A gate on the records with the estimator's budget and relation."""
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        return Gate(
            records,
            budget=budget,
            neighbours=self.neighbours,
            progress=row_progress(progress, records, self.neighbours),
        )


class TableFits(ArrayFits[ReleaseT]):
    """Fitting to tables, wherever they are."""

    # Whether models of a long table can be fitted to a sample of it; and what is said where a unit has several rows,
    # which stay where they are or can be brought together.
    samples: ClassVar[bool] = False
    unit_notes: ClassVar[tuple[str, str]] = (ROWS_APART, ROWS_APART)

    def fit_table(
        self,
        table: Any,
        *,
        outcome: str,
        treatment: str,
        covariates: list[str] | None = None,
        progress: Progress | None = None,
        **options: Unpack[TableOptions],
    ) -> Self:
        """Estimate from a table, wherever it is.

        Every engine adds up the same integers, so that results are the same; but for the sampling error of units with
        several rows, which is estimated from sums over units where they can be made.

        Parameters
        ----------
        table
            The path or pattern of CSV or Parquet files, which may exceed memory; a DuckDB relation, or a connection
            with ``query``; a frame of pandas or polars, lazy ones included; an Arrow table or dataset; a Spark frame;
            the postgresql:// URL of a database with ``relation`` (a table's name) or ``query``.
        outcome, treatment : str
            Their columns.
        covariates : list of str, optional
            Covariate columns; by default those that the bounds name.
        progress : callable, optional
            Called with (pass, rows done, rows in all) while it works.
        where : dict, optional
            Rows that are meant: from columns to a value, a list, or a pair (low, high) of numbers or dates; public.
        unit, max_rows : str and int, optional
            The column that says whose row it is, and the most rows that one unit has. The promise is then about units;
            a unit with more rows is refused. Without them, it is about rows. A note of the release says how its
            interval allows for rows of one unit that are alike, which depends on where they are.
        sample_by : str, optional
            A column of whole numbers that differ between rows, such as an id (`ATE` and `CATE`). The models that
            adjust for covariates are then fitted to a sample of a long table, chosen by a hash of it; the effect
            itself is still estimated from all rows. It takes a fraction of the time; the interval is wider by what
            the sample leaves unknown.
        relation, query : str, optional
            What to read from a database: the name of a table or view, or a query.
        na, delimiter, decimal, encoding : list of str, and str, optional
            How text files and Excel write values: further codes of missing ones, what separates fields (by default as
            the header says), "," for decimal commas, and how characters are stored (UTF-8).
        workers : int, optional
            Processes that read Parquet files; by default one to a core from 5 million rows on.
        ledger, dataset, analyst, stratum, reservation : optional
            As in ``fit``.
        before, event, instrument, weight : str, optional
            Further columns, of those estimators that say so.
        """
        known = {role.name for role in self.roles}
        refuse_unknown("fit_table", options, TABLE_OPTIONS | known)
        further = further_columns(self, self.roles, "fit_table", options)
        run = partial(self._fit_table, table, outcome, treatment, covariates, progress, options)
        payment = payment_of(options)
        if not payment:
            return run()
        call = {"table": table, "outcome": outcome, "treatment": treatment, "covariates": covariates, **options}
        call["further"] = {role.name: column for role, column in further.items()}
        return self._charged(call, run, payment)

    def _fit_table(
        self,
        table: Any,
        outcome: str,
        treatment: str,
        covariates: list[str] | None,
        progress: Progress | None,
        options: TableOptions,
    ) -> Self:
        self.check()
        self._warn()
        if options.get("sample_by") is not None and not self.samples:
            raise InvalidInput(
                f"sample_by belongs to ATE and CATE: {type(self).__name__} fits no models that a sample would do for, "
                "so leave it out."
            )
        bounds, further = self._read(further_columns(self, self.roles, "fit_table", options), outcome)
        source = Options.of(options)
        spec = TableSpec(
            outcome=outcome,
            treatment=treatment,
            covariates=covariates,
            bounds=bounds,
            propensity=self._propensity_of_rows,
            where=options.get("where"),
            unit=options.get("unit"),
            max_rows=options.get("max_rows"),
            sample_by=options.get("sample_by"),
            further=tuple((role.column(bounds), name) for role, name in further.items()),
        )
        with open_table(table, spec, source) as records:
            self._fit(records, progress)
            if records.unit is not None and records.unit.max_rows > 1:
                # Scores of several arms are not added up by unit.
                note = self.unit_notes[records.by_unit() is not None and not self.bounds.several_arms]
                note = note.format(unit=records.unit.column, rows=records.unit.max_rows)
                self.release_ = replace(self.release_, notes=(*self.release_.notes, note))
        return self


def row_progress(progress: Progress | None, records: Records, neighbours: Neighbours) -> RowProgress:
    """What a gate reports rows to: the pass and the rows done, as far as they are public."""
    done, reported = 0, 0

    def count_rows(rows: int) -> None:
        nonlocal done, reported
        done += rows
        passes, within = divmod(done - 1, records.n)
        # Under add-remove the number of records is private, for those who watch the bar and count its moves too.
        private = neighbours == "add-remove" or records.unit is not None
        if progress is not None and not (private and reported > passes):
            progress(f"pass {passes + 1}", *((0, 1) if private else (within + 1, records.n)))
        reported = passes + 1

    return count_rows


def count_first(gate: Gate) -> None:
    """Where the number of records is private, it is released first."""
    if gate.counts_rows:
        gate.count(_allocation.COUNT)


def open_model_gate(gate: Gate, terms: int) -> Gate:
    """The gate that models are fitted through: on a sample of a long table if a column or places choose one.

    Else it is the same gate. A public rule in the number of records, the budget and the number of terms.
    """
    rule = _allocation.SAMPLE
    part = rule.part(gate, terms)
    by_place = gate.n >= rule.by_place
    model_gate = None if part > rule.largest_part else gate.sampled(part, rule.count, by_place=by_place)
    if model_gate is None:
        return gate
    # Numbers that many records share choose far too many of them, or too few, and those are not like the others.
    rows = part * gate.n
    chance = model_gate.noise_sd(Interval(0.0, 1.0), rule.count) + sqrt(rows * model_gate.most_rows)
    return gate if abs(model_gate.n - rows) > rule.uneven * rows + rule.deviations * chance else model_gate


def coded_gates(gate: Gate, model_gate: Gate, codings: tuple[Coding, ...]) -> tuple[Gate, Gate]:
    """Both gates on records whose covariates may be kept as codes.

    Beside a sample few passes read all records: those of very long tables go on reading, by several processes.
    """
    if not codings:
        return gate, model_gate
    codes, apart = CodesOf(codings), model_gate is not gate
    coded = gate if apart and gate.n > MANY_ROWS else gate.coded(codes)
    return coded, model_gate.coded(codes) if apart else coded
