"""What estimators share: how records come in, public rules of their budgets, and what a fitted one answers.

Functions, not a parent class: an estimator lists the ones it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import sqrt
from numbers import Real
from typing import Any, Literal

from discreet.data.backends import TableSpec, open_table
from discreet.data.backends.base import Options
from discreet.data.bounds import Bounds
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import Records, Unit
from discreet.estimators.measurements.location import Location
from discreet.estimators.measurements.score import (
    Score,
)
from discreet.exceptions import InvalidInput, MissingBounds, NotFitted
from discreet.ledger.charging import on_ledger
from discreet.privacy.budget import Budget, Shares
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.sensitivity.sets import Interval
from discreet.releases.average import Release, Uncertainty
from discreet.releases.function import EffectRelease
from discreet.releases.segments import UpliftRelease

# Told (pass, rows done, rows in all).
Progress = Callable[[str, int, int], None]
# Private numbers of records (under add-remove, and of a sample) are released too; everything else gets a little less.
COUNT, SAMPLE_COUNT = 0.02, 0.01
# A sample for the models has this many times sqrt(terms n) records, so that the product of both models' sampling errors
# is a tenth of the sampling error of the effect, and n mu (for six covariates) is at least this. Larger parts than the
# last are not worth a sample.
_SAMPLE, _SAMPLE_STRENGTH, _LARGEST_PART = 10.0, 30_000.0, 0.5
# A sample that is off its size by more than this part, and so many standard deviations, was not chosen evenly.
_UNEVEN, _CHANCE = 0.02, 6.0


@on_ledger(Release, EffectRelease, UpliftRelease, one_gate=True)
def fit(self: Any, Y: Any, T: Any, *, X: Any = None, progress: Progress | None = None) -> Any:
    """Estimate from arrays or frames.

    Parameters
    ----------
    Y, T : array-like of shape (n,)
        Outcome and treatment (0 or 1, booleans, or the two labels that the bounds declare).
    X : array-like or frame of shape (n, p), optional
        Covariates, matched to the bounds by name where both have names.
    progress : callable, optional
        Told (pass, rows done, rows in all) while it works.
    """
    check(self)
    return self._fit(ArrayRecords.of(Y, T, X, bounds=self.bounds, propensity=self.propensity), progress)


@on_ledger(Release, EffectRelease, UpliftRelease, one_gate=True)
def fit_table(
    self: Any,
    table: Any,
    *,
    outcome: str,
    treatment: str,
    covariates: list[str] | None = None,
    where: Mapping[str, Any] | None = None,
    unit: str | None = None,
    max_rows: int | None = None,
    sample_by: str | None = None,
    relation: str | None = None,
    query: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Any:
    """Estimate from a table, wherever it is; every engine adds up the same integers, so that results are the same.

    Parameters
    ----------
    table
        The path or pattern of CSV or Parquet files, which may exceed memory; a DuckDB relation, or a connection with
        ``query``; a frame of pandas or polars, lazy ones included; an Arrow table or dataset; a Spark frame; the
        postgresql:// URL of a database with ``relation`` (a table's name) or ``query``.
    outcome, treatment : str
        Their columns.
    covariates : list of str, optional
        Covariate columns; by default those that the bounds name.
    where : dict, optional
        Which rows are meant: from columns to a value, a list of values, or a pair (low, high) of numbers, both ends
        included. It is public; SQL is not taken.
    unit, max_rows : str and int, optional
        The column that says whose row it is, and the most rows that one unit has. The promise is then about units; a
        unit with more rows is refused. Without them, it is about rows.
    sample_by : str, optional
        A column of whole numbers that tells rows apart, such as an id (`ATE` and `CATE`). The models that adjust for
        covariates are then fitted to a sample of a long table, chosen by a hash of it; the effect itself is still
        estimated from all rows. It takes a fraction of the time; what the sample leaves in doubt widens the interval.
    relation, query : str, optional
        What to read from a database: the name of a table or view, or a query.
    workers : int, optional
        Processes that read long Parquet tables; by default one to a core from 5 million rows on.
    progress : callable, optional
        Told (pass, rows done, rows in all) while it works.
    """
    check(self)
    if sample_by is not None and not getattr(self, "samples", False):
        raise InvalidInput(
            f"sample_by belongs to ATE and CATE: {type(self).__name__} fits no models that a sample would do for, so "
            "leave it out."
        )
    options = Options(relation=relation, query=query, workers=workers)
    with open_table(
        table,
        TableSpec(
            outcome=outcome,
            treatment=treatment,
            covariates=covariates,
            bounds=self.bounds,
            propensity=self.propensity,
            where=where,
            unit=unit,
            max_rows=max_rows,
            sample_by=sample_by,
        ),
        options,
    ) as records:
        made = self._fit(records, progress)
        if records.unit is not None and records.unit.max_rows > 1:
            made.release_ = replace(made.release_, notes=(*made.release_.notes, _of_rows(records.unit)))
        return made


def _of_rows(unit: Unit) -> str:
    return (
        f"Rows are taken as independent where sampling error is estimated: if rows of one {unit.column} are alike, the "
        "interval is too narrow."
    )


def check(self: Any) -> None:
    """Refuse what can be refused without looking at a record."""
    if not isinstance(self.bounds, Bounds):
        raise MissingBounds(
            f"{type(self).__name__} needs bounds=Bounds(outcome=(low, high), ...). "
            "Declare them; do not compute them from the data."
        )
    self._check_budget(Budget(epsilon=self.epsilon, delta=self.delta))
    if self.neighbours == "add-remove" and not isinstance(self.propensity, str | Real | None):
        raise InvalidInput(
            "propensity must be a number or a column's name under neighbours='add-remove': the estimator keeps it, and "
            "the length of an array would tell the number of records."
        )
    # An earlier release does not belong to the parameters of this fit.
    self.__dict__.pop("release_", None)


def open_gate(self: Any, records: Records, progress: Progress | None) -> Gate:
    """A gate on the records with the estimator's budget and relation."""
    done, told = 0, 0

    def count_rows(rows: int) -> None:
        nonlocal done, told
        done += rows
        passes, within = divmod(done - 1, records.n)
        # Under add-remove the number of records is private, for those who watch the bar and count its moves as well.
        private = self.neighbours == "add-remove" or records.unit is not None
        if progress is not None and not (private and told > passes):
            progress(f"pass {passes + 1}", *((0, 1) if private else (within + 1, records.n)))
        told = passes + 1

    budget = Budget(epsilon=self.epsilon, delta=self.delta)
    return Gate(records, budget=budget, neighbours=self.neighbours, progress=count_rows)


def count_first(gate: Gate) -> None:
    """Where the number of records is private, it is released first."""
    if gate.counts_rows:
        gate.count(COUNT)


def open_model_gate(gate: Gate, terms: int) -> Gate:
    """The gate that models are fitted through: on a sample of a long table, if a column chooses one, else the same.

    A public rule in the number of records, the budget and the number of terms.
    """
    strong = _SAMPLE_STRENGTH * sqrt(max(gate.bounds.p, 2) / 6.0) / gate.mu
    part = max(_SAMPLE * sqrt(terms * gate.n), strong) / gate.n
    look = None if part > _LARGEST_PART else gate.sampled(part, SAMPLE_COUNT)
    if look is None:
        return gate
    # Numbers that many records share choose far too many of them, or too few, and those are not like the others.
    rows = part * gate.n
    chance = look.noise_sd(Interval(0.0, 1.0), SAMPLE_COUNT) + sqrt(rows * look.most_rows)
    return gate if abs(look.n - rows) > _UNEVEN * rows + _CHANCE * chance else look


def after_count(gate: Gate, shares: Shares) -> dict[str, float]:
    """The shares by name, with those taken off that went to numbers of records which are private."""
    counts = {"count": COUNT} if gate.counts_rows else {}
    counts |= {"sample": SAMPLE_COUNT} if gate.spent > sum(counts.values()) + SAMPLE_COUNT / 2.0 else {}
    left = 1.0 - sum(counts.values())
    return counts | {name: left * share for name, share in shares.to_dict().items()}


def sample_note(gate: Gate, look: Gate) -> tuple[str, ...]:
    """What a release says of the records that its models are from."""
    if look is gate:
        return ()
    return (
        f"Models of treatment and outcome were fitted to a sample of about {look.n:,.0f} records, chosen by a column "
        "named for it; the effect is estimated from all records.",
    )


def trimmed(bounds: Bounds, treated: float, strength: float) -> tuple[float, float]:
    """Where fitted propensities stop: the declared overlap, or further in while n mu is small (a public rule).

    Noise makes extreme fitted propensities unreliable; trimming them costs only a second-order error.
    """
    rule = min(0.1, 30.0 / strength)
    low, high = bounds.propensity
    return max(low, min(rule, 0.3 * treated)), min(high, 1.0 - min(rule, 0.3 * (1.0 - treated)))


def released(self: Any) -> Any:
    """The release of a fitted estimator."""
    try:
        release = self.release_
    except AttributeError:
        raise NotFitted(f"this {type(self).__name__} has no release yet; call fit first.") from None
    return release


def ate_(self: Any) -> float:
    """The released estimate of the average effect."""
    release: Release = released(self)
    return release.estimate


def guarantee_(self: Any) -> Guarantee:
    """What the release promises."""
    guarantee: Guarantee = released(self).guarantee
    return guarantee


def ate_interval(self: Any, alpha: float = 0.05) -> tuple[float, float]:
    """Confidence interval at level ``1 - alpha``: sampling error and privacy noise together. Costs nothing."""
    release: Release = released(self)
    return release.interval(alpha)


def summary(self: Any) -> str:
    """The release as a readable table."""
    text: str = released(self).summary()
    return text


def plot(self: Any, ax: Any = None) -> Any:
    """Draw the estimate, its interval and where the uncertainty comes from (needs matplotlib)."""
    from discreet.releases.plots import plot_release

    return plot_release(released(self), ax=ax)


def uncertainty_of(gate: Gate, score: Score, remainder: float) -> Uncertainty:
    unit = gate.bounds.outcome_width / 2.0
    return Uncertainty(
        sampling=unit * sqrt(score.variance / gate.n),
        privacy=unit * score.noise,
        nuisance=unit * remainder,
        clipping=unit * score.hidden,
    )


def average_release(
    kind: Literal["ate", "difference-in-means"],
    gate: Gate,
    score: Score,
    uncertainty: Uncertainty,
    where: Location,
    pilot: float,
    known: bool,
    share: dict[str, float],
    adjustment: dict[str, Any],
    notes: tuple[str, ...],
) -> Release:
    unit = gate.bounds.outcome_width / 2.0
    public = ["the declared bounds"]
    public += [] if gate.counts_rows else ["the number of records"]
    public += ["the probability of treatment"] if known else []
    return Release(
        kind=kind,
        # No effect can exceed the outcome's range.
        estimate=unit * min(max(score.mean, -2.0), 2.0),
        uncertainty=uncertainty,
        n=gate.n,
        guarantee=gate.guarantee(proof="ate.md", public=tuple(public)),
        bounds=gate.bounds,
        design="known propensity" if known else "observational",
        adjustment=adjustment | {"shares": share},
        notes=notes,
        reference={"unadjusted": unit * pilot, "treated_share": where.treated},
    )


def clip_note(uncertainty: Uncertainty) -> tuple[str, ...]:
    if uncertainty.share()["clipping"] < 0.1:
        return ()
    return ("Rare extreme scores (poor overlap or heavy tails) were clipped; the interval is wider to allow for it.",)
