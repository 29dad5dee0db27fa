"""The X-learner on the same frame as the paper's learners, and a template of how another is made.

Not among the paper's. Künzel, Sekhon, Bickel and Yu (2019): outcomes of each arm are learnt; effects are imputed, y
less what the record would have had without treatment, or what it would have had with it less y; effects learnt from
treated and from control records are averaged with 1 - e and e. Here one regression with weights does all of that:
t (1 - e) / e and (1 - t) e / (1 - e) give the two arms these shares at every x.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.records import Chunk
from discreet.estimators._parameters import Parameters
from discreet.papers.meta_learners._base import TRIM, Learner
from discreet.papers.meta_learners.own import Base
from discreet.papers.meta_learners.release import Contrast
from discreet.papers.meta_learners.stages import Stages, Weights
from discreet.privacy.budget import Budget


class XLearner(Learner, Parameters):
    """Effects by regressing imputed effects on covariates.

    Parameters
    ----------
    epsilon, delta, bounds, base, ratios, clip, trim, shuffle, random_state, budgets, propensity
        As for `DRLearner`; parts are "propensity", "treated", "control" and "effect".

    Attributes
    ----------
    release_ : LearnerRelease
        All that fitting leaves behind: propensity, outcome and effect models, which are public.

    Privacy
    -------
    As for `DRLearner`. Proof: docs/proofs/learners.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> study = adum(n=8_000, seed=1, sigma=0.1)
    >>> learner = dc.papers.XLearner(epsilon=4.0, delta=1e-6, bounds=study.bounds, propensity=0.5, random_state=0)
    >>> with dc.testing.seeded_noise(0):
    ...     _ = learner.fit(study.Y, study.T, X=study.X)
    >>> bool(learner.effect([[0.9]])[0] > learner.effect([[-0.9]])[0])
    True
    """

    method_id: ClassVar[str] = "discreet/papers/x-learner"
    _models: ClassVar[dict[str, float]] = {"propensity": 0.2, "treated": 0.2, "control": 0.2, "effect": 0.4}
    _contrast: ClassVar[Contrast] = "effect"
    _title: ClassVar[str] = "Effects by a private X-learner"

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        base: Base | Mapping[str, Base] = "additive",
        ratios: Mapping[str, float] | None = None,
        clip: float | None = None,
        trim: float = TRIM,
        shuffle: bool = True,
        random_state: Any = None,
        budgets: Mapping[str, Budget] | None = None,
        propensity: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.base = base
        self.ratios = ratios
        self.clip = clip
        self.trim = trim
        self.shuffle = shuffle
        self.random_state = random_state
        self.budgets = budgets
        self.propensity = propensity

    def _learn(self, parts: Mapping[str, Chunk], stages: Stages) -> None:
        e = stages.propensity(parts.get("propensity"))
        treated, control = (stages.arm(name, arm, parts[name]) for name, arm in (("treated", 1.0), ("control", 0.0)))
        second, clip = parts["effect"], self._clip()
        x, t = second.x, second.t
        imputed, weight = x_outcome(stages.outcome(second), t, e(x), treated(x), control(x))
        low, high = stages.overlap
        # Propensities are inside the overlap: no weight exceeds this.
        most = max((1.0 - low) / low, high / (1.0 - high))
        stages.regression("effect", x, imputed, (-clip, clip), weight=Weights(weight, most))


def x_outcome(y: Float, t: Float, e: Float, mu1: Float, mu0: Float) -> tuple[Float, Float]:
    """Imputed effects, and weights that give the arms the shares 1 - e and e."""
    return np.where(t > 0.0, y - mu0, mu1 - y), np.where(t > 0.0, (1.0 - e) / e, e / (1.0 - e))
