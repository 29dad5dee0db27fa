"""What estimators do to read records some of whose outcomes are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from discreet.data._arrays import IntArray
from discreet.data.bounds import Bounds
from discreet.data.records import Chunk, Records
from discreet.data.views.presence import PRESENT, WHETHER_PRESENT
from discreet.data.views.viewed import ViewedRecords
from discreet.estimators._base import Progress, TableFits
from discreet.estimators._parameters import Role
from discreet.estimators.missing.survey import SAMPLE_WEIGHT, check_weighed, check_weights
from discreet.estimators.missing.views import Incomplete
from discreet.exceptions import InvalidInput
from discreet.privacy.gate import Gate
from discreet.releases.average import Release

MissingOutcome: TypeAlias = Literal["refuse", "adjust"]
# The outcome's column once more: whether it holds something.
_PRESENT = Role(
    name=PRESENT, argument="Y", help="whether an outcome is there", declared=lambda _: WHETHER_PRESENT, needed=False
)


class AdjustsMissing(TableFits[Release]):
    """An estimator that takes missing outcomes where ``missing_outcome="adjust"`` says so."""

    roles: ClassVar[tuple[Role, ...]] = (SAMPLE_WEIGHT,)
    missing_outcome: MissingOutcome = "refuse"

    @property
    def _weighs(self) -> bool:
        return self.bounds.weight is not None

    @property
    def _adjusts(self) -> bool:
        return self.missing_outcome == "adjust"

    def _check_missing(self) -> None:
        """Refuse what does not go with missing outcomes."""
        given: object = self.missing_outcome
        if given not in get_args(MissingOutcome):
            raise InvalidInput(
                "missing_outcome must be 'refuse' or 'adjust': say whether missing outcomes are an error, or missing "
                "at random."
            )
        if self._adjusts and self.bounds.outcome_fill is not None:
            raise InvalidInput(
                "missing_outcome='adjust' leaves nothing for outcome_fill of the bounds to fill: take outcome_fill "
                "away, or leave missing_outcome at 'refuse'."
            )

    def _read(self, further: Mapping[Role, Any], outcome: Any) -> tuple[Bounds, Mapping[Role, Any]]:
        """Missing outcomes count as the lower end of their range wherever nothing asks whether they are there."""
        check_weights(self.bounds, further, adjusts=self._adjusts)
        if not self._adjusts:
            return self.bounds, further
        levels = self.bounds.outcome_levels
        fill = self.bounds.outcome[0] if levels is None else levels.levels[0]
        return replace(self.bounds, outcome_fill=fill), {**further, _PRESENT: outcome}

    def _open_gate(self, records: Records, progress: Progress | None) -> Gate:
        """A gate on the records with the estimator's budget and relation."""
        if self._adjusts:
            check_observed(records)
            records = ViewedRecords(records, Incomplete())
        if self._weighs:
            check_weighed(records)
        return super()._open_gate(records, progress)


def check_observed(records: Records) -> None:
    """Refuse records without a single outcome in an arm, as an empty arm is refused."""

    def count(chunk: Chunk) -> IntArray:
        there = chunk.more[PRESENT]
        return np.array([there.sum(), (there * chunk.t).sum()]).astype(np.int64)

    observed, treated = (int(number) for number in records.sum(count))
    if treated in (0, observed):
        raise InvalidInput(
            "All outcomes of one arm are missing: an effect needs observed outcomes in both arms, so follow up some of "
            "them, or choose another outcome."
        )
