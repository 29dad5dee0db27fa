"""Fitting a method that holds all records in memory to a table, wherever that is."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, Self, Unpack

from discreet.data.backends import TableSpec, open_table
from discreet.data.backends.base import Options
from discreet.data.bounds import Bounds
from discreet.data.records import Chunk, Records
from discreet.estimators._base import Chargeable, Progress
from discreet.estimators._parameters import TableOptions, payment_of, refuse_unknown
from discreet.exceptions import InvalidInput
from discreet.ledger.charging import Payment
from discreet.papers.common.arrays import gather

_PLACES = {"where", "relation", "query", "workers"}


class FromTables(Chargeable):
    """``fit_table`` for methods that bring all records into memory."""

    bounds: Bounds

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
        """Estimate from a table, all of which is brought into memory.

        Parameters
        ----------
        table, outcome, treatment, covariates, progress
            As `discreet.ATE.fit_table` takes them; the table's rows must have an order, as those of files and frames.
        where, relation, query, workers, ledger, dataset, analyst, stratum, reservation : optional
            As there; the other options are for methods that add up sums.
        """
        refuse_unknown("fit_table", options, _PLACES | set(Payment.__optional_keys__))
        run = partial(self._fit_rows_of, table, outcome, treatment, covariates, progress, options)
        payment = payment_of(options)
        if not payment:
            return run()
        call = {"table": table, "outcome": outcome, "treatment": treatment, "covariates": covariates, **options}
        return self._charged(call, run, payment)

    @abstractmethod
    def _before(self) -> None:
        """Refuse and warn, before a record is read."""

    @abstractmethod
    def _fit_chunk(self, rows: Chunk, progress: Progress | None) -> Self:
        """Estimate from all records."""

    def _fit_rows_of(
        self,
        table: Any,
        outcome: str,
        treatment: str,
        covariates: list[str] | None,
        progress: Progress | None,
        options: TableOptions,
    ) -> Self:
        self._before()
        source = Options(relation=options.get("relation"), query=options.get("query"), workers=options.get("workers"))
        spec = TableSpec(
            outcome=outcome,
            treatment=treatment,
            covariates=covariates,
            bounds=self.bounds,
            where=options.get("where"),
        )
        with open_table(table, spec, source) as records:
            rows = ordered_rows(records, progress)
        return self._fit_chunk(rows, progress)


def ordered_rows(records: Records, progress: Progress | None = None) -> Chunk:
    """All records in memory, in an order that does not depend on what they hold."""
    if not records.ordered:
        raise InvalidInput(
            "table: its rows have no order of their own, but this method divides records by their places: give a file "
            "or a frame."
        )
    return gather(records, progress)
