"""Public models of treatment, outcome and effect on one basis, and what noisy moments say about them together.

The outcome is y = m(x) + (t - e(x)) tau(x) + noise, with m(x) = E[y | x]: the residual's moments with the features
identify m, its moments with (t - e) times the features identify tau, and an error in one model disturbs the other only
by the product with an error of e (Neyman orthogonality).

Post-processing: only released numbers and public facts come in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.columns import Range
from discreet.data.records import Chunk
from discreet.estimators.measurements.covariates import Setting
from discreet.estimators.measurements.nuisances import Propensity
from discreet.postprocessing.basis import Basis
from discreet.postprocessing.group_shrinkage import CoefficientGroup, Information, Shrunk, shrink

# Relative size of a coefficient that a shape leaves out, and the prior probability of a jump among all shapes.
_FAINT, _JUMPY = 1e-3, 0.3
# Prior variances of coefficients on the logit: the unit of those that are tried, and the intercept's.
_LOGIT, _LOGIT_CAP = 0.25, 4.0
# Prior standard deviation of both intercepts around the centre and the pilot effect, in scales of the outcome.
_FAR = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Models:
    """Public models m(x) and tau(x) beside a propensity, all on the setting's features.

    ``outcome`` and ``effect`` are the coefficients in use; ``fitted`` holds both one after the other, and is ahead of
    ``effect`` between an outcome round and the effect round that follows.
    """

    setting: Setting
    propensity: Propensity
    groups: tuple[CoefficientGroup, ...]
    centre: float
    pilot: float
    scale: float
    known_outcome: Information
    known_effect: Information
    sampling: tuple[Float, Float]
    fitted: Shrunk
    outcome: Float
    effect: Float

    @classmethod
    def first(
        cls,
        propensity: Propensity,
        groups: tuple[CoefficientGroup, ...],
        centre: float,
        pilot: float,
        scale: float,
        known_outcome: Information,
        known_effect: Information,
        sampling: tuple[Float, Float],
    ) -> Models:
        """Fit both models to what is known."""
        fitted = _shrunk(groups, scale, _joined(known_outcome, known_effect, sampling), None)
        m = len(known_outcome.target)
        coefficients = fitted.mean[:m].copy(), fitted.mean[m:].copy()
        return cls(
            propensity.setting,
            propensity,
            groups,
            centre,
            pilot,
            scale,
            known_outcome,
            known_effect,
            sampling,
            fitted,
            *coefficients,
        )

    def residual(self, c: Chunk) -> Float:
        """What the models leave unexplained of each record's outcome."""
        features = self.setting.features
        effect = self.pilot + features.combine(c, self.effect)
        return c.y - self.centre - features.combine(c, self.outcome) - (c.t - self.propensity(c)) * effect

    @property
    def information(self) -> tuple[Float, Float]:
        """Precision and target of both models' coefficients."""
        return _joined(self.known_outcome, self.known_effect, self.sampling)

    def variance(self, effect: bool) -> Float:
        """Variance that is left in each feature's part of the effect, or of the outcome."""
        m = self.setting.basis.m
        return np.diag(self.fitted.covariance)[m:] if effect else np.diag(self.fitted.covariance)[:m]

    def with_outcome(self, known: Information, sampling: Float) -> Models:
        """After more is known of the outcome; the effect in use stays until its own round."""
        changed = replace(self, known_outcome=known, sampling=(sampling, self.sampling[1]))
        fitted = _shrunk(self.groups, self.scale, changed.information, self.fitted.mean)
        return replace(changed, fitted=fitted, outcome=fitted.mean[: self.setting.basis.m].copy())

    def with_effect(self, known: Information, sampling: Float, *, last: bool) -> Models:
        """After more is known of the effect; at last, whether it varies at all is weighed too."""
        changed = replace(self, known_effect=known, sampling=(self.sampling[0], sampling))
        fitted = _shrunk(self.groups, self.scale, changed.information, self.fitted.mean, together=last)
        m = self.setting.basis.m
        return replace(changed, fitted=fitted, outcome=fitted.mean[:m].copy(), effect=fitted.mean[m:].copy())


def _shrunk(
    groups: tuple[CoefficientGroup, ...],
    scale: float,
    information: tuple[Float, Float],
    start: Float | None,
    together: bool = False,
) -> Shrunk:
    return shrink(*information, groups, scale=scale**2, cap=(_FAR * scale) ** 2, start=start, together=together)


def _joined(outcome: Information, effect: Information, sampling: tuple[Float, Float]) -> tuple[Float, Float]:
    """Precision and target of both models' coefficients, those of the effect after the outcome's."""
    m = len(outcome.target)
    first, second = outcome.sampled(sampling[0]), effect.sampled(sampling[1])
    precision = np.zeros((2 * m, 2 * m))
    precision[:m, :m], precision[m:, m:] = first.precision, second.precision
    return precision, np.concatenate([first.target, second.target])


def prior_variance(groups: tuple[CoefficientGroup, ...], scale: float, cap: float) -> Float:
    """Variance of each coefficient before anything is seen."""
    m = sum(len(group.index) for group in groups)
    return np.diag(shrink(np.zeros((m, m)), np.zeros(m), groups, scale=scale, cap=cap).covariance)


def fit_treatment(
    seen: Information, sampling: Float, groups: tuple[CoefficientGroup, ...], start: Float | None
) -> Shrunk:
    """Coefficients of the logit."""
    known = seen.sampled(sampling)
    return shrink(known.precision, known.target, groups, scale=_LOGIT, cap=_LOGIT_CAP, start=start)


def single_groups(basis: Basis) -> tuple[CoefficientGroup, ...]:
    """Groups of one model's coefficients: a covariate's own curves, a factor's contrasts, each product."""
    groups = [CoefficientGroup(np.array([0]), "intercept")]
    for kind, index, curves, weights in _curves(basis):
        groups.append(CoefficientGroup(index, kind, curves, weights))
    return tuple(groups)


def joint_groups(basis: Basis, treated: float) -> tuple[CoefficientGroup, ...]:
    """Groups of the outcome's and the effect's coefficients together, those of the effect after all of the outcome's.

    A covariate may be prognostic and no more; it may act in either arm by itself; or in the treated arm alone, which is
    what an effect modifier without a prognostic role does.
    """
    m, p = basis.m, treated
    groups = [CoefficientGroup(np.array([0, m]), "intercept")]
    for kind, index, curves, weights in _curves(basis):
        shapes, parts, special = [], [], []
        for curve, weight in zip(curves, weights, strict=True):
            nothing = np.zeros_like(curve)
            shapes.append(np.vstack([curve, nothing]))
            # m = p mu_1 + (1 - p) mu_0 and tau = mu_1 - mu_0.
            shapes.append(np.block([[p * curve, (1.0 - p) * curve], [curve, -curve]]))
            shapes.append(np.vstack([p * curve, curve]))
            parts += [weight] * 3
            special += [False, True, True]
        both = np.concatenate([index, m + index])
        groups.append(CoefficientGroup(both, kind, tuple(shapes), tuple(parts), tuple(special)))
    return tuple(groups)


def _curves(basis: Basis) -> list[tuple[str, IntArray, tuple[Float, ...], tuple[float, ...]]]:
    """Kind, features, shapes and their weights of every group of features but the constant."""
    out: list[tuple[str, IntArray, tuple[Float, ...], tuple[float, ...]]] = []
    for j, column in enumerate(basis.columns):
        is_range, index = isinstance(column, Range), np.array(basis.covariate_features(j))
        shapes = _range_shapes(basis, j) if is_range else [np.eye(len(index))]
        smooth = len(shapes) - basis.size.jumps if is_range else 1
        weights = [(1.0 - _JUMPY) / smooth if len(shapes) > smooth else 1.0] * smooth
        weights += [_JUMPY / max(basis.size.jumps, 1)] * (len(shapes) - smooth)
        # Features carry weights: coefficients are divided by them.
        unweighted = tuple(shape / basis.weight[index][:, None] for shape in shapes)
        out.append(("own" if is_range else "level", index, unweighted, tuple(weights)))
    start = basis.m - len(basis.products)
    return out + [
        ("pair", np.array([k]), (np.array([[1.0 / basis.weight[k]]]),), (1.0,)) for k in range(start, basis.m)
    ]


def _range_shapes(basis: Basis, j: int) -> list[Float]:
    """Shapes of a covariate's curve: rougher, smoother, a straight line; with jumps, anything, or a single jump."""
    total, degree = basis.size.curves, basis.size.degree
    order = np.arange(1.0, total + 1.0)
    if total == 1:
        return [np.eye(1)]
    faint = np.where(order > degree, _FAINT, 1.0) if basis.size.jumps else np.ones(total)
    shapes = [np.diag(faint / order), np.diag(faint / order**2), np.diag(np.where(order == 1.0, 1.0, _FAINT))]
    if basis.size.jumps:
        shapes.append(np.diag(np.minimum(1.0 / order, 1.0)))
        shapes += [jump[:, None] for jump in basis.jump_shapes(j)]
    return shapes
