"""Base learners of a user's own: what is checked of them, and scikit-learn models that were fitted to public data.

A base is a name, or a function that makes a learner from a `Task`: anything with ``fit(X, y, sample_weight=None)``,
``predict`` and a ``guarantee_`` of its own. The task says which columns there are (as `Bounds` encodes them), where the
target lies and what may be spent; targets and weights are clipped to what it says before a learner sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from discreet.data._arrays import Float
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.papers.meta_learners.base_learner import BaseLearner, Task, checked
from discreet.papers.meta_learners.release import OwnModel, ReleasedModel
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee

Base: TypeAlias = str | Callable[[Task], Any]


class PublicLearner:
    """A model that was fitted to public data, as a base learner: it reads no record, and spends nothing.

    Parameters
    ----------
    model : fitted scikit-learn regressor or classifier
        Predicts from covariates as the records' are encoded: ranges on [-1, 1], levels as their position.
    about : str
        What it was fitted to, for the guarantee's list of what is public.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> public, study = adum(n=500, seed=2, sigma=0.1), adum(n=4_000, seed=1, sigma=0.1)
    >>> outcome = LinearRegression().fit(np.column_stack([public.T, public.X]), public.Y)
    >>> base = {"outcome": dc.papers.PublicLearner(outcome, about="500 records of a pilot study")}
    >>> learner = dc.papers.DRLearner(epsilon=4.0, delta=1e-6, bounds=study.bounds, base=base, random_state=0)
    >>> with dc.testing.seeded_noise(0):
    ...     _ = learner.fit(study.Y, study.T, X=study.X)
    >>> "500 records of a pilot study" in learner.guarantee_.public
    True
    """

    def __init__(self, model: Any, *, about: str) -> None:
        self.model = model
        self.about = about

    def __call__(self, task: Task) -> PublicLearner:
        """The same model for any task."""
        return self

    def fit(self, X: Float, y: Float, sample_weight: Float | None = None) -> PublicLearner:
        """Nothing is learnt."""
        return self

    def predict(self, X: Float) -> Float:
        """Predictions; probabilities of a classifier's second class."""
        if hasattr(self.model, "predict_proba"):
            return np.asarray(self.model.predict_proba(X)[:, 1], dtype=np.float64)
        return np.asarray(self.model.predict(X), dtype=np.float64)


def learnt(
    task: Task, learner: Any, X: Float, y: Float, weight: Float | None
) -> tuple[ReleasedModel | OwnModel, Guarantee | None]:
    """Fit a learner of somebody's own; the model that may be published, and its guarantee if it read records."""
    if isinstance(learner, type) or not all(hasattr(learner, name) for name in ("fit", "predict")):
        raise InvalidInput(f"base of {task.name} must make an object with fit, predict and guarantee_: check it.")
    rows = checked(task, X, y, weight).rows
    target = rows.y + task.middle
    try:
        if weight is None:
            learner.fit(X, target)
        else:
            learner.fit(X, target, sample_weight=rows.e)
    except (InvalidInput, InvalidBudget):
        raise
    except Exception as error:
        # What the learner says may quote records.
        raise InvalidInput(
            f"base of {task.name} could not be fitted ({type(error).__name__}): try it on made-up records."
        ) from None
    released = vars(learner).get("model_")
    model: ReleasedModel | OwnModel = (
        released if isinstance(released, ReleasedModel) else OwnModel(name=task.name, learner=learner)
    )
    if isinstance(learner, PublicLearner):
        return model, None
    return model, _guarantee_of(task, learner)


def _guarantee_of(task: Task, learner: BaseLearner) -> Guarantee:
    found: object = vars(learner).get("guarantee_")
    if not isinstance(found, Guarantee):
        raise InvalidInput(
            f"base of {task.name} has no guarantee_: set it in fit, for example to task.claim('what it does'), or wrap "
            "a model of public data in PublicLearner."
        )
    if (found.neighbours, found.unit) != ("replace-one", "one record"):
        raise InvalidInput(f"base of {task.name} must protect one record under replace-one: state that guarantee.")
    if not task.budget.covers(found.budget):
        raise InvalidBudget(
            f"base of {task.name} spends {found.budget}, but its part has {task.budget}: spend what the task says."
        )
    return found


def check_bases(base: object, names: tuple[str, ...], known: tuple[str, ...]) -> None:
    """Refuse bases that are neither names nor functions, or that are for modules that there are not."""
    each: Mapping[Any, object] = base if isinstance(base, Mapping) else dict.fromkeys(names, base)
    for name, one in each.items():
        if name not in names:
            raise InvalidInput(f"base names {name!r}, which is no module: choose from {', '.join(names)}.")
        if not (callable(one) or (isinstance(one, str) and one in known)):
            raise InvalidInput(f"base must be one of {', '.join(known)}, or a function from a Task to a learner.")


def base_of(base: Base | Mapping[str, Base], name: str) -> Base:
    """The base of one module; "additive" where none is given."""
    return base.get(name, "additive") if isinstance(base, Mapping) else base


def check_budgets(budgets: object, names: tuple[str, ...], total: Budget) -> None:
    """Refuse budgets of modules that there are not, or that are above the whole."""
    if budgets is None:
        return
    if not isinstance(budgets, Mapping) or not all(isinstance(each, Budget) for each in budgets.values()):
        raise InvalidInput(f"budgets must be a dictionary from {', '.join(names)} to Budget(epsilon=..., delta=...).")
    for name, each in budgets.items():
        if name not in names:
            raise InvalidInput(f"budgets names {name!r}, which is no module: choose from {', '.join(names)}.")
        if not total.covers(each):
            raise InvalidBudget(f"budgets: {name} has {each}, above the {total} of the whole: lower it.")
