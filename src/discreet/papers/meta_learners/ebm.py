"""DP-EBM of the library interpret as a base learner: the paper's own. Its guarantee is claimed.

Nori, Caruana, Bu, Shen and Kulkarni, "Accuracy, Interpretability, and Differential Privacy via Explainable Boosting",
with the default hyper-parameters of interpret, as in the meta-algorithm's paper (its section 5.1.1).

Deviations. The authors pass no bounds, so that interpret takes, and publishes, the extremes of the data; here all of
them are declared. Targets are centred: interpret starts boosting at 0 and sets its noise by the range's width, which
covers a range around 0 only. Levels are passed as numbers between declared bounds, because interpret would read
categories off the data. interpret takes the largest weight from the data; here the declared range is widened by as much
as that weight is smaller than the declared bound, so that the noise is that of the bound. (The total weight still
decides the number of bins, without noise.)
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Levels
from discreet.exceptions import InvalidInput, MissingExtra
from discreet.papers.common.claims import claimed_guarantee
from discreet.papers.meta_learners.base_learner import PUBLIC, Task, checked
from discreet.papers.meta_learners.release import ReleasedModel, Term
from discreet.privacy.noise import drawing_is_seeded, published_gaussian

# Numbers are those of docs/evidence/audit.md.
MEASURED = (
    "interpret's DP-EBM sets its noise from the width of the target's range, while boosting starts at 0. Measured by "
    "'python -m evidence.audit': with a target between 100 and 101 and bounds given, a claimed epsilon of 1 is at "
    "least 4.3; without bounds it publishes exact extremes. Here targets are centred and all bounds are passed, and "
    "still nobody has proved it. base='additive' has a proof."
)
_SEEDS = 2**31 - 1
# interpret's own step. It divides a step by the weights in a bin; the releases that the authors ran (0.2) divided by
# the records there, which is the same as steps that are shorter by what weights are on average.
_RATE = 0.01
# interpret refuses weights of zero.
_LEAST_WEIGHT = 1e-9


class EBMLearner:
    """interpret's differentially private explainable boosting machine.

    Parameters
    ----------
    task : Task
        What is learnt from what, in public facts.
    classify : bool
        Whether the target is 0 or 1 and its probability is wanted.

    Privacy
    -------
    Claimed by its authors.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet as dc
    >>> x = np.linspace(-1, 1, 1_000)[:, None]
    >>> bounds, budget = dc.Bounds(outcome=(-1, 1), covariates=[(-1, 1)]), dc.Budget(epsilon=4.0, delta=1e-6)
    >>> task = Task(name="outcome", columns=bounds.columns, target=(-1, 1), bounds=bounds, budget=budget)
    >>> with dc.testing.seeded_noise(0):
    ...     learner = EBMLearner(task).fit(x, x[:, 0])
    >>> learner.guarantee_.epsilon, learner.predict(x).shape
    (4.0, (1000,))
    """

    def __init__(self, task: Task, *, classify: bool = False) -> None:
        self.task = task
        self.classify = classify

    def fit(self, X: Float, y: Float, sample_weight: Float | None = None) -> EBMLearner:
        """Learn; only the released model and its claim are kept."""
        require()
        from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

        task, budget = self.task, self.task.budget
        rows = checked(task, X, y, sample_weight).rows
        given: dict[str, Any] = {
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "composition": "gdp",
            "feature_types": ["continuous"] * len(task.columns),
            "privacy_bounds": {j: _ends(spec) for j, spec in enumerate(task.columns)},
            "random_state": _seed(),
            # One core: replications run side by side.
            "n_jobs": 1,
        }
        weight = None
        with warnings.catch_warnings():
            # In simulations the noise is seeded on purpose, and interpret says that it should not be.
            warnings.filterwarnings("ignore", "Privacy violation: using a fixed random_state", UserWarning)
            if self.classify:
                target = (rows.y > 0).astype(np.int64)
                if target.min() == target.max():
                    raise InvalidInput(f"{task.name} has one arm only in its part: raise its ratio, or bring more.")
                ebm = DPExplainableBoostingClassifier(**given).fit(X, target)
            else:
                half = task.half
                if sample_weight is not None and rows.e is not None and task.weight_bound is not None:
                    # No weight above 1, and the noise that interpret adds for a largest weight of 1.
                    weight = np.maximum(rows.e / task.weight_bound, _LEAST_WEIGHT)
                    half /= float(weight.max())
                ends = {"privacy_target_min": -half, "privacy_target_max": half}
                rate = {} if task.usual_weight is None else {"learning_rate": _RATE * task.usual_weight}
                ebm = DPExplainableBoostingRegressor(**given, **ends, **rate).fit(X, rows.y, sample_weight=weight)
        self.model_ = _model(ebm, len(task.columns), task.middle, self.classify)
        self.guarantee_ = claimed_guarantee(f"DP-EBM, {task.name}", budget, public=PUBLIC)
        return self

    def predict(self, X: Float) -> Float:
        """Predictions of the released model."""
        return self.model_.predict(X)


def require() -> None:
    """Refuse, in one sentence, if interpret is not installed."""
    try:
        import interpret.privacy  # noqa: F401
    except ImportError:
        raise MissingExtra("base='ebm' needs interpret: install it with pip install 'discreet[ebm]'.") from None


def _ends(spec: Any) -> tuple[float, float]:
    """Bounds of an encoded column."""
    return (0.0, len(spec.levels) - 1.0) if isinstance(spec, Levels) else (-1.0, 1.0)


def _seed() -> int | None:
    """A seed from seeded noise in simulations; none, and so the operating system's randomness, for a release."""
    if not drawing_is_seeded():
        return None
    return int(abs(float(published_gaussian(1, _SEEDS)[0]))) % _SEEDS


def _model(ebm: Any, columns: int, middle: float, classify: bool) -> ReleasedModel:
    """The released shape functions, without whatever else interpret keeps."""
    terms = [Term()] * columns
    for (feature,), scores in zip(ebm.term_features_, ebm.term_scores_, strict=True):
        # The first and the last score are for missing and for unknown values, of which there are none.
        terms[feature] = Term(cuts=tuple(ebm.bins_[feature][0]), scores=tuple(scores[1:-1]))
    intercept = float(np.ravel(ebm.intercept_)[0]) + (0.0 if classify else middle)
    return ReleasedModel(intercept=intercept, terms=tuple(terms), link="logit" if classify else "identity")
