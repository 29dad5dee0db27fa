"""PrivATE: private confidence intervals (Schröder, Hartenstein and Feuerriegel, 2025), and a proved sibling.

Deviations from the text, which leaves these open or contradicts itself:

* Outcomes are regressed once for each arm; the text writes mu(x, a) and mu_a(x). Covariates with a range are scaled to
  [0, 1], which changes nothing on the paper's own data, and levels become indicators.
* Fitted propensities are clipped to the declared overlap. The text clips those of its data.
* The domain of the supremum (5) is what the bounds declare. L-BFGS-B starts ten times for each arm, with
  gradients by differences, all coordinates in one batch. One search serves (7) and (11), because the supremum of (9)
  follows from that of (6).
* The remark of section 4.2 spends half of epsilon_1 on the nuisances and does not say what is left for the estimate:
  the other half. The first half of the records, by their places, trains.
* "tau-hat = sum of Gamma" below the definition of Gamma is taken as the mean, as in (3).
* ``calibration="proved"`` is not in the paper: docs/proofs/private_ci.md.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any, ClassVar

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.records import MIN_ROWS, Chunk, Records
from discreet.estimators._base import Progress, TableFits
from discreet.estimators._parameters import TABLE_OPTIONS, Parameters, refuse_unknown
from discreet.estimators._results import AverageResult
from discreet.exceptions import InvalidInput
from discreet.ledger.charging import on_ledger
from discreet.papers.common.arrays import Part, gather, in_own_unit
from discreet.papers.common.averages import average
from discreet.papers.common.claims import claimed_guarantee, warn_of_claim
from discreet.papers.common.nuisances import Surfaces, check_finite, check_models, check_row_wise, private_models, train
from discreet.papers.common.sample_splitting import SampleSplit
from discreet.papers.private_ate.equations import (
    Exact,
    Parts,
    closed_sensitivity,
    influence,
    publish,
    score_bound,
    searched_sensitivity,
)
from discreet.papers.private_ate.parameters import (
    Calibration,
    Split,
    Supremum,
    budget_parts,
    check_parameters,
)
from discreet.papers.private_ate.presets import preset
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Guarantee, Neighbours, parallel
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import MeanSquare
from discreet.releases.average import Release, Uncertainty
from discreet.releases.parts.arm_means import check_alpha

# Numbers are those of docs/evidence/private-ci/attack.md.
MEASURED = (
    "Its width contains a sensitivity that depends on the records and gets no noise. Measured by 'discreet reproduce "
    "private-ci attack': in the paper's own setting the width alone proves a delta of at least 0.47 at a nominal 1e-5, "
    "and with 3 treated among 30,000 records a claimed epsilon of 0.5 is at least 23. Use discreet.ATE, or "
    "calibration='proved'."
)

_NO_UNIT = "unit is not for PrivATE, whose noise is made for single records: use discreet.ATE."
# For the methods paragraph of a release.
_PUBLIC_HALF = {
    "before": "Models were trained on the first half of the records, which was declared public, without noise",
    "sums_over": "the records of the second half",
}


class PrivATE(TableFits[Release], AverageResult, Parameters):
    """Average effect by AIPW, with noise scaled to the gross-error sensitivity, and its interval.

    Parameters
    ----------
    epsilon, delta : float
        The budget; a delta is needed.
    bounds : Bounds
        Public facts: outcome range, covariates, overlap. They are the domain of the supremum.
    nuisance : {"kernel", "nn"}
        The paper's configurations: logistic and kernel ridge regression, or neural networks.
    model_regression, model_propensity : scikit-learn regressor and classifier, optional
        Other models, in place of those that ``nuisance`` names.
    propensity : float, optional
        Probability of treatment where it is known by design (a randomised trial).
    calibration : {"published", "proved"}
        Theorems 4.3, 4.5 and 4.6, which are claimed; or a clipped score through the gate, which is proved.
    split : {"public", "private"}, optional
        Train the nuisances on the first half of the records and average over the second. "public" declares the first
        half public; "private" replaces the models by linear ones that went through the gate (the remark of section
        4.2). Without it all records serve both ends, which cannot be proved.
    supremum : {"l-bfgs-b", "closed-form"}
        How the gross-error sensitivity is found: by the paper's search, or as R_y / kappa + abs(estimate).
    starts : int
        Random starting points of the search, for each arm.
    clip : float, optional
        With ``calibration="proved"``: where scores are clipped, chosen without seeing the records. By default the
        largest score that there can be.
    epsilon1, epsilon2, delta1, delta2 : float, optional
        What the estimate and its variance spend in the published calibration; by default half each.
    random_state : int, optional
        Seeds models and starting points, never noise.

    Attributes
    ----------
    release_ : Release
        The only thing that fitting leaves behind.

    Privacy
    -------
    Published calibration: claimed by the authors for replaced records, and known to fail; fitting warns. Proved
    calibration: protects every record of the second half, and with ``split="private"`` of the first half too; proof:
    docs/proofs/private_ci.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci
    >>> study = private_ci(1, n=2_000, seed=1)
    >>> model = dc.papers.PrivATE(epsilon=2.0, delta=1e-5, bounds=study.bounds, calibration="proved", split="private")
    >>> with dc.testing.seeded_noise(0):
    ...     _ = model.fit(study.Y, study.T, X=study.X)
    >>> low, high = model.ate_interval()
    >>> low < study.ate < high
    True
    """

    method_id: ClassVar[str] = "discreet/papers/private-ate"
    release_types: ClassVar = (Release,)

    neighbours: Neighbours = "replace-one"

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        nuisance: str = "kernel",
        model_regression: Any = None,
        model_propensity: Any = None,
        propensity: float | None = None,
        calibration: Calibration = "published",
        split: Split | None = None,
        supremum: Supremum = "l-bfgs-b",
        starts: int = 10,
        clip: float | None = None,
        epsilon1: float | None = None,
        epsilon2: float | None = None,
        delta1: float | None = None,
        delta2: float | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.nuisance = nuisance
        self.model_regression = model_regression
        self.model_propensity = model_propensity
        self.propensity = propensity
        self.calibration = calibration
        self.split = split
        self.supremum = supremum
        self.starts = starts
        self.clip = clip
        self.epsilon1 = epsilon1
        self.epsilon2 = epsilon2
        self.delta1 = delta1
        self.delta2 = delta2
        self.random_state = random_state

    @on_ledger(Release)
    def fit_table(
        self,
        table: Any,
        *,
        outcome: str,
        treatment: str,
        covariates: list[str] | None = None,
        split_by: str | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> PrivATE:
        """Estimate from a table, wherever it is: `discreet.ATE.fit_table` says what it may be, and all options.

        With ``split``, records are split by a file's or frame's order. ``split_by`` names a column instead, which says
        whose record it is: a hash of it under ``random_state`` divides the records the same way on every engine.
        """
        self.check()
        if split_by is not None:
            return self._fit_by_hash(table, split_by, outcome, treatment, covariates, progress, options)
        return super().fit_table(
            table, outcome=outcome, treatment=treatment, covariates=covariates, progress=progress, **options
        )

    def ate_interval(self, alpha: float = 0.05, *, truncated: bool = True) -> tuple[float, float]:
        """Interval for the average effect; ``truncated=False`` is (15) itself, which may leave the outcome's width."""
        release = self._released()
        if truncated:
            return release.interval(alpha)
        check_alpha(alpha)
        return release.uncertainty.interval(release.estimate, alpha)

    def _warn(self) -> None:
        if self.calibration == "published":
            warn_of_claim("PrivATE", MEASURED)

    def _check_budget(self, budget: Budget) -> None:
        check_parameters(self, budget)
        check_models(*self._models())

    def _parts(self, budget: Budget) -> Parts:
        return budget_parts(self, budget)

    def _models(self) -> tuple[Any, Any]:
        regression, classifier = preset(self.nuisance)
        # Not "or": ensembles that have not been fitted have no truth value.
        regression = regression if self.model_regression is None else self.model_regression
        return regression, classifier if self.model_propensity is None else self.model_propensity

    def _fit_by_hash(
        self,
        source: Any,
        column: str,
        outcome: str,
        treatment: str,
        covariates: list[str] | None,
        progress: Progress | None,
        options: dict[str, Any],
    ) -> PrivATE:
        if self.split is None:
            raise InvalidInput("split_by belongs to split='public' or 'private': choose one, or leave it out.")
        refuse_unknown("fit_table", options, TABLE_OPTIONS - {"sample_by"})
        if options.get("unit") is not None:
            raise InvalidInput(_NO_UNIT)
        self._warn()
        key = self.random_state or 0
        if isinstance(key, bool) or not isinstance(key, int):
            raise InvalidInput("random_state must be a whole number where split_by is given: it is the hash's key.")
        roles = {"outcome": outcome, "treatment": treatment, "covariates": covariates, "bounds": self.bounds}
        split, public = SampleSplit.by_hash(source, column, key, progress, **roles, **options)
        return self._fit_rows(split, (f"which half of the records each {column} is in", *public))

    def _fit(self, records: Records, progress: Progress | None) -> None:
        if records.unit is not None:
            raise InvalidInput(_NO_UNIT)
        if self.split is not None and not records.ordered:
            raise InvalidInput(
                "split needs split_by=, a column of units, on a table whose rows have no order: name it."
            )
        self._fit_rows(SampleSplit.by_order(gather(records, progress)), records.public)

    def _fit_rows(self, rows: SampleSplit, public: tuple[str, ...] = ()) -> PrivATE:
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        if self.split is not None and min(len(rows.first.t), len(rows.second.t)) < MIN_ROWS:
            raise InvalidInput(f"split needs at least {2 * MIN_ROWS} records: bring more, or leave it out.")
        made = self._proved(rows, budget) if self.calibration == "proved" else self._published(rows, budget)
        if public:
            made = replace(made, guarantee=replace(made.guarantee, public=(*made.guarantee.public, *public)))
        self.release_ = made
        return self

    def _published(self, records: Chunk | SampleSplit, budget: Budget) -> Release:
        rows = SampleSplit.by_order(records)
        parts = self._parts(budget)
        surfaces, spent = self._surfaces(rows, budget)
        if spent is not None:
            parts = parts._replace(epsilon1=parts.epsilon1 / 2.0, delta1=parts.delta1 / 2.0)
        exact = self._exact(rows, surfaces)
        tau, sigma2, r = publish(exact, parts)
        # V_DP / n of (16) is sigma2 / n + r^2, so that the interval is (15).
        uncertainty = Uncertainty(sampling=sqrt(sigma2 / exact.n), privacy=r)
        guarantee = claimed_guarantee("PrivATE", budget, unit=self._unit(), public=self._public())
        notes = (f"Claimed, not private: {MEASURED[0].lower()}{MEASURED[1:]}",)
        return self._release(tau, uncertainty, len(rows.whole.t), guarantee, notes)

    def _exact(self, records: Chunk | SampleSplit, surfaces: Surfaces) -> Exact:
        split = SampleSplit.by_order(records)
        rows = split.whole if self.split is None else split.second
        scores = influence(in_own_unit(rows.y, self.bounds), rows.t, rows.x, surfaces)
        check_finite(scores)
        tau, sigma2 = float(scores.mean()), float(scores.var())  # (3) and (8)
        if self.supremum == "closed-form":
            gamma = closed_sensitivity(tau, self.bounds, self._known())
        else:
            gamma = searched_sensitivity(surfaces, tau, self.bounds, starts=self.starts, rng=self._rng())
        return Exact(n=len(scores), tau=tau, sigma2=sigma2, gamma=gamma, scores=scores)

    def _proved(self, records: Chunk | SampleSplit, budget: Budget) -> Release:
        rows = SampleSplit.by_order(records)
        surfaces, trained = self._surfaces(rows, budget)
        bounds = self.bounds
        if self.split == "public":
            check_row_wise(surfaces, rows.first.x[:MIN_ROWS])
        gate = Gate(Part(rows.second, bounds), budget=budget)
        bound = score_bound(bounds, self._known())
        clip = bound if self.clip is None else min(float(self.clip), bound)

        def score(c: Chunk) -> Float:
            return influence(in_own_unit(c.y, bounds), c.t, c.x, surfaces)

        (sums,) = gate.ask(Query("score", 1.0, MeanSquare(clip), score))
        mean, uncertainty = average(sums, gate.n)
        own = gate.guarantee(proof="private_ci.md", public=self._public(), unit=self._unit())
        guarantee = own if trained is None else parallel(trained, own)
        return self._release(mean, uncertainty, len(rows.whole.t), guarantee, self._notes(clip < bound))

    def _surfaces(self, records: Chunk | SampleSplit, budget: Budget) -> tuple[Surfaces, Guarantee | None]:
        """The nuisances, and what they promise to the records that they were trained on, if anything."""
        split = SampleSplit.by_order(records)
        known = self._known()
        if self.split == "private":
            if self.calibration == "published":
                parts = self._parts(budget)
                budget = Budget(epsilon=parts.epsilon1 / 2.0, delta=parts.delta1 / 2.0)
            gate = Gate(Part(split.first, self.bounds), budget=budget)
            surfaces = private_models(gate, known)
            return surfaces, gate.guarantee(proof="private_ci.md", public=self._public(), unit=self._unit())
        rows = split.whole if self.split is None else split.first
        if not 0 < rows.t.sum() < len(rows.t):
            raise InvalidInput("One arm is empty in the half that trains the models: order the records differently.")
        clipped = self.calibration == "proved" or self.supremum == "closed-form"
        models = train(rows, self.bounds, *self._models(), known=known, clipped=clipped, rng=self._rng())
        return models, None

    def _known(self) -> float | None:
        return None if self.propensity is None else float(self.propensity)

    def _rng(self) -> Any:
        from sklearn.utils import check_random_state

        return check_random_state(self.random_state)

    def _unit(self) -> str:
        return "one record of the second half" if self.split == "public" else "one record"

    def _public(self) -> tuple[str, ...]:
        public = ["the declared bounds", "the number of records"]
        public += ["the probability of treatment"] if self.propensity is not None else []
        public += ["all records of the first half, which trained the models"] if self.split == "public" else []
        return tuple(public)

    def _notes(self, clipped: bool) -> tuple[str, ...]:
        notes = []
        if self.propensity is None:
            notes.append(
                "The interval assumes that treatment is as good as random among people with the same declared "
                "covariates, and that the product of the models' errors is small: it does not allow for it."
            )
        if clipped:
            notes.append("Scores were clipped below their largest possible value; the interval ignores the bias of it.")
        return tuple(notes)

    def _release(
        self, estimate: float, uncertainty: Uncertainty, n: int, guarantee: Guarantee, notes: tuple[str, ...]
    ) -> Release:
        trained = {None: "all records", "public": "a public half", "private": "half of the records, with noise"}
        return Release(
            kind="ate",
            estimate=estimate,
            uncertainty=uncertainty,
            n=n,
            guarantee=guarantee,
            bounds=self.bounds,
            design="observational" if self.propensity is None else "known propensity",
            adjustment={
                "covariates": list(self.bounds.names),
                "basis": self._basis(),
                "trained_on": trained[self.split],
                "calibration": self.calibration,
                "trim": list(self.bounds.propensity),
            }
            | (_PUBLIC_HALF if self.split == "public" else {}),
            notes=notes,
        )

    def _basis(self) -> str:
        if self.split == "private":
            return "linear models from noisy moments"
        regression, classifier = (type(model).__name__ for model in self._models())
        return regression if self.propensity is not None else f"{regression} and {classifier}"
