"""The round that moves an average's public effect, and how it changes with the probability of treatment.

What it asks is in docs/proofs/ate.md. What it computes from its noisy sums is post-processing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.data._arrays import Float
from discreet.data.records import Chunk
from discreet.estimators.measurements.nuisances import Outcome
from discreet.postprocessing.feature_selection import Belief
from discreet.postprocessing.reference_population import weighted_gram
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Ball

# Choice: norm of how an effect changes with the probability of treatment, beside a constant effect's, and standard
# deviations of both, in scales of the outcome. By hand; with and without a change on 260 observational studies among
# 170,000 to 171,099 of evidence/population.
_CHANGES, _CHANGED, _FAR_EFFECT = 0.5, 1.0, 3.0


def refine_effect(gate: Gate, share: float, scale: float, outcome: Outcome) -> tuple[Outcome, float]:
    """Move the effect, and how it changes with e, by moments of (t - e) residual; returns the noise of the effect, too.

    They are orthogonal to errors of the prognosis: E[(t - e) residual | x] is e (1 - e) times what the effect lacks.
    """
    model, n, treated = outcome.propensity, gate.n, outcome.treated
    reach = max(treated, 1.0 - treated)

    def changes(e: Float) -> Float:
        return _CHANGES * (e - treated) / reach

    def rows(c: Chunk) -> Float:
        answers = outcome.answers(c)
        product = np.clip(outcome.counted(c, (c.t - answers.e) * answers.residual(c)), -scale, scale)
        return np.column_stack([product, product * changes(answers.e)])

    (moments,) = gate.ask(Query("effect moment", share, Ball(scale * (1.0 + _CHANGES**2) ** 0.5, 2), rows))
    e = model.on_reference
    psi, varies, noise = np.column_stack([np.ones(len(e)), changes(e)]), e * (1.0 - e), float(moments.sd) / n
    slope = weighted_gram(psi, varies) / len(e)
    prior = Belief(np.zeros(2), scale**2 * np.diag([_FAR_EFFECT**2, _CHANGED**2]))
    belief = prior.update(
        moments.value / n, slope, noise**2 * np.eye(2) + scale**2 / n * slope, np.diag([1.0, 0.0]), _FAR_EFFECT * scale
    )
    better = replace(
        outcome,
        effect=outcome.effect + float(belief.mean[0]),
        slope=outcome.slope + float(belief.mean[1]) * _CHANGES / reach,
    )
    return better, noise / float(np.mean(varies))
