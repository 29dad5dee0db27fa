"""Generators with a known average effect: the designs on which `discreet` is measured.

A design is a law of covariates, a propensity, two outcome surfaces and a noise. Covariates are clipped to their public
bounds *before* treatment and outcome are drawn, so what an analyst may see is what matters. Effects refer to the
outcome after it has been clipped to its own bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from discreet.data.bounds import Bounds
from discreet.datasets.study import Float, Study

Rng = np.random.Generator


@dataclass(frozen=True, kw_only=True)
class Design:
    """A law from which studies are drawn.

    ``covariates(n, rng)`` draws the covariates, ``surface(x)`` returns (propensity, outcome under control, effect), and
    ``noise(n, rng)`` the error of the outcome; without a ``noise`` the outcome is binary and the surface is its risk.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import Design
    >>> trial = Design(
    ...     name="coin",
    ...     bounds=dc.Bounds(outcome=(-5, 5), covariates=[(0, 1)]),
    ...     covariates=lambda n, rng: rng.random((n, 1)),
    ...     surface=lambda x: (0.5 + 0 * x[:, 0], x[:, 0], 1 + 0 * x[:, 0]),
    ...     known_ate=1.0,
    ... )
    >>> trial.draw(n=100, seed=1).n
    100
    """

    name: str
    bounds: Bounds
    covariates: Callable[[int, Rng], Float]
    surface: Callable[[Float], tuple[Float, Float, Float]]
    noise: Callable[[int, Rng], Float] | None = field(default=lambda n, rng: rng.standard_normal(n))
    known_ate: float | None = None

    def draw(self, n: int, seed: int) -> Study:
        """Draw a study of ``n`` records."""
        rng = np.random.default_rng(seed)
        x = self.covariates(n, rng)
        propensity, control, effect = self.surface(x)
        t = (rng.random(n) < propensity).astype(np.float64)
        y = self._outcome(control + t * effect, rng)
        return Study(
            name=self.name, X=x, T=t, Y=y, bounds=self.bounds, ate=self.ate, effects=effect, propensity=propensity
        )

    @property
    def ate(self) -> float:
        """Average effect in the population, of the clipped outcome."""
        return self.known_ate if self.known_ate is not None else _population_effect(self)

    def _outcome(self, mean: Float, rng: Rng) -> Float:
        low, high = self.bounds.outcome
        if self.noise is None:
            return (rng.random(mean.size) < mean).astype(np.float64)
        return np.clip(mean + self.noise(mean.size, rng), low, high)

    def __hash__(self) -> int:
        return hash(self.name)


@cache
def _population_effect(design: Design) -> float:
    # Common random numbers in both arms, so that the error is that of the effect alone: about 1e-3 of its sd.
    total, draws, size = 0.0, 16, 250_000
    for batch in range(draws):
        x = design.covariates(size, np.random.default_rng([977, batch]))
        _, control, effect = design.surface(x)
        if design.noise is None:
            total += float(np.mean(effect))
            continue
        treated = design._outcome(control + effect, np.random.default_rng([978, batch]))
        untreated = design._outcome(control, np.random.default_rng([978, batch]))
        total += float(np.mean(treated - untreated))
    return total / draws


def _expit(v: Float) -> Float:
    return np.asarray(1.0 / (1.0 + np.exp(-v)))


def _softplus(v: Float) -> Float:
    return np.asarray(np.logaddexp(0.0, v))


def _normal(p: int, limit: float = 3.0) -> Callable[[int, Rng], Float]:
    return lambda n, rng: np.asarray(np.clip(rng.standard_normal((n, p)), -limit, limit))


def _uniform(p: int) -> Callable[[int, Rng], Float]:
    return lambda n, rng: rng.random((n, p))


def _ranges(p: int, low: float, high: float) -> list[tuple[float, float]]:
    return [(low, high)] * p


# --- PrivATE, supplement C.1.1 (equations 37 to 39) -----------------------------------------------------------------


def private_ci(which: int, n: int, seed: int) -> Study:
    """Dataset 1 (p = 2) or Dataset 2 (p = 24, six of them active) of the PrivATE paper.

    The coefficients are drawn anew for each study, as the paper's text says; the effect is 1.

    Examples
    --------
    >>> from discreet.datasets import private_ci
    >>> study = private_ci(2, n=100, seed=1)
    >>> study.X.shape, study.ate
    ((100, 24), 1.0)
    """
    p, support = {1: (2, 2), 2: (24, 6)}[which]
    rng = np.random.default_rng(seed)
    beta, gamma = np.zeros(p), np.zeros(p)
    beta[rng.choice(p, support, replace=False)] = rng.uniform(0.0, 0.3, support)
    gamma[rng.choice(p, support, replace=False)] = rng.uniform(0.0, 1.0, support)
    x = rng.random((n, p))  # (37)
    propensity = np.clip((1.0 + x @ beta) / 2.0, 0.1, 0.9)  # P(x'beta >= eta), eta uniform on [-1, 1]
    t = (rng.random(n) < propensity).astype(np.float64)  # (38)
    y = t + x @ gamma + rng.uniform(-1.0, 1.0, n)  # (39), tau = 1
    bounds = Bounds(outcome=(-1.0, support + 2.0), covariates=_ranges(p, 0.0, 1.0), propensity=(0.1, 0.9))
    return Study(
        name=f"private-ci-{which}", X=x, T=t, Y=y, bounds=bounds, ate=1.0, effects=np.ones(n), propensity=propensity
    )


# --- Setups A to D of the sample-splitting paper (its Table 1), covariates clipped to public bounds ------------------


def _setup_a(x: Float) -> tuple[Float, Float, Float]:
    wave = np.sin(np.pi * x[:, 0] * x[:, 1])
    control = wave + 2.0 * (x[:, 2] - 0.5) ** 2 + x[:, 3] + 0.5 * x[:, 4]
    return np.clip(wave, 0.1, 0.9), control, (x[:, 0] + x[:, 1]) / 2.0


def _setup_b(x: Float) -> tuple[Float, Float, Float]:
    control = np.maximum(np.maximum(x[:, 0] + x[:, 1], x[:, 2]), 0.0) + np.maximum(x[:, 3] + x[:, 4], 0.0)
    return np.full(len(x), 0.5), control, x[:, 0] + _softplus(x[:, 1])


def _setup_c(x: Float) -> tuple[Float, Float, Float]:
    return _expit(-x[:, 1] - x[:, 2]), 2.0 * _softplus(x[:, 0] + x[:, 1] + x[:, 2]), np.ones(len(x))


def _setup_d(x: Float) -> tuple[Float, Float, Float]:
    first = np.maximum(x[:, 0] + x[:, 1] + x[:, 2], 0.0)
    second = np.maximum(x[:, 3] + x[:, 4], 0.0)
    return 1.0 / (1.0 + np.exp(-x[:, 0]) + np.exp(-x[:, 1])), first + second, first - second


# --- Further designs -----------------------------------------------------------------------------------------------


def _correlated(n: int, rng: Rng) -> Float:
    # Equicorrelated normals; the last two are seen as binary only.
    z = np.sqrt(0.5) * rng.standard_normal((n, 6)) + np.sqrt(0.5) * rng.standard_normal((n, 1))
    z[:, 4:] = z[:, 4:] > 0.4
    return np.asarray(np.clip(z, -3.0, 3.0))


def _correlated_surface(x: Float) -> tuple[Float, Float, Float]:
    propensity = _expit(x @ np.array([0.5, -0.3, 0.3, 0.0, 0.6, -0.4]) - 0.2)
    control = x @ np.array([1.0, 0.7, -0.5, 0.8, 1.0, 0.5])
    return propensity, control, np.full(len(x), 0.5)


def _kang_schafer(n: int, rng: Rng) -> Float:
    z = np.clip(rng.standard_normal((n, 4)), -3.0, 3.0)
    x = np.column_stack(
        [
            np.exp(z[:, 0] / 2.0),
            z[:, 1] / (1.0 + np.exp(z[:, 0])) + 10.0,
            (z[:, 0] * z[:, 2] / 25.0 + 0.6) ** 3,
            (z[:, 1] + z[:, 3] + 20.0) ** 2,
        ]
    )
    return np.asarray(np.clip(x, [0.2, 7.0, 0.0, 200.0], [4.5, 13.0, 1.0, 700.0]))


def _kang_schafer_surface(x: Float) -> tuple[Float, Float, Float]:
    # The latent variables are recovered from the (clipped) ones that the analyst sees.
    z1 = 2.0 * np.log(x[:, 0])
    z2 = (x[:, 1] - 10.0) * (1.0 + x[:, 0] ** 2)
    z3 = np.where(np.abs(z1) < 0.05, 0.0, 25.0 * (np.cbrt(x[:, 2]) - 0.6) / np.where(np.abs(z1) < 0.05, 1.0, z1))
    z4 = np.sqrt(x[:, 3]) - 20.0 - z2
    z1, z2, z3, z4 = (np.clip(z, -3.0, 3.0) for z in (z1, z2, z3, z4))
    propensity = _expit(-z1 + 0.5 * z2 - 0.25 * z3 - 0.1 * z4)
    return propensity, 210.0 + 13.7 * (2.0 * z1 + z2 + z3 + z4), np.full(len(x), 10.0)


def _interactions(x: Float) -> tuple[Float, Float, Float]:
    propensity = _expit(0.8 * x[:, 0] * x[:, 1] + 0.5 * x[:, 2] - 0.4 * x[:, 3])
    control = x[:, 0] * x[:, 1] + x[:, 2] + 0.5 * x[:, 3] ** 2 + 0.5 * x[:, 4] * x[:, 5]
    return propensity, control, 0.5 + 0.5 * x[:, 0]


def _clinic(n: int, rng: Rng) -> Float:
    age = np.clip(rng.normal(58.0, 16.0, n), 18.0, 95.0)
    severity = np.clip(rng.lognormal(1.0 + 0.01 * (age - 58.0), 0.6, n), 0.0, 20.0)
    sex = (rng.random(n) < 0.48).astype(np.float64)
    ward = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1]).astype(np.float64)
    return np.column_stack([age, severity, sex, ward])


def _clinic_surface(x: Float) -> tuple[Float, Float, Float]:
    # The very young and the very old are treated less; days in hospital grow with severity and at both ends of age.
    age, severity, sex, ward = (x[:, 0] - 58.0) / 16.0, np.log1p(x[:, 1]), x[:, 2], x[:, 3].astype(int)
    propensity = _expit(0.4 - 0.5 * age**2 + 0.6 * (severity - 1.3) + np.array([0.3, 0.0, -0.3, -0.5])[ward])
    control = 6.0 + 1.2 * age**2 + 2.5 * severity + 0.5 * sex + np.array([0.0, 0.7, -0.4, 1.5])[ward]
    return propensity, control, -1.0 - 0.8 * (severity - 1.3)


def _trial_surface(x: Float) -> tuple[Float, Float, Float]:
    # The same patients, treated by lot; the outcome is what is left of forty days, those at home.
    _, days, effect = _clinic_surface(x)
    return np.full(len(x), 0.5), 40.0 - days, -effect


def _guideline_surface(x: Float) -> tuple[Float, Float, Float]:
    # Treatment becomes common over a short stretch of x0, where the outcome has a kink; the effect saturates.
    propensity = 0.2 + 0.6 * _expit(5.0 * (x[:, 0] - 0.2))
    control = 2.0 * np.abs(x[:, 0] - 0.2) + x[:, 1] + 0.6 * x[:, 2] * x[:, 3]
    return propensity, control, 1.0 - np.exp(-np.maximum(x[:, 1] + 1.0, 0.0))


# --- Stress: what a user will meet sooner or later -------------------------------------------------------------------


def _poor_overlap(x: Float) -> tuple[Float, Float, Float]:
    return np.clip(_expit(1.6 * x[:, 0] + 1.2 * x[:, 1]), 0.02, 0.98), x[:, 0] + x[:, 1] + x[:, 2], np.ones(len(x))


def _binary_outcome(x: Float) -> tuple[Float, Float, Float]:
    base = _expit(-0.6 + 0.8 * x[:, 0] - 0.5 * x[:, 1])
    treated = _expit(-0.1 + 0.8 * x[:, 0] - 0.5 * x[:, 1])
    return _expit(0.5 * x[:, 0] + 0.4 * x[:, 2]), base, treated - base


def _few_treated(x: Float) -> tuple[Float, Float, Float]:
    return np.clip(0.05 * np.exp(0.4 * x[:, 0] - 0.08), 0.01, 0.3), x[:, 0] + 0.5 * x[:, 1], np.ones(len(x))


def _heavy_tailed(x: Float) -> tuple[Float, Float, Float]:
    return _expit(0.5 * x[:, 0] - 0.5 * x[:, 1]), x[:, 0] + x[:, 1], np.ones(len(x))


_SIX = _ranges(6, -3.0, 3.0)

DESIGNS: dict[str, Design] = {
    design.name: design
    for design in (
        Design(
            name="setup-a",
            bounds=Bounds(outcome=(-4.0, 8.0), covariates=_ranges(6, 0.0, 1.0), propensity=(0.1, 0.9)),
            covariates=_uniform(6),
            surface=_setup_a,
        ),
        Design(
            name="setup-b",
            bounds=Bounds(outcome=(-8.0, 20.0), covariates=_SIX, propensity=(0.1, 0.9)),
            covariates=_normal(6),
            surface=_setup_b,
        ),
        Design(
            name="setup-c",
            bounds=Bounds(outcome=(-4.0, 24.0), covariates=_SIX, propensity=(0.01, 0.99)),
            covariates=_normal(6),
            surface=_setup_c,
        ),
        Design(
            name="setup-d",
            bounds=Bounds(outcome=(-10.0, 22.0), covariates=_SIX, propensity=(0.02, 0.98)),
            covariates=_normal(6),
            surface=_setup_d,
        ),
        Design(
            name="correlated",
            bounds=Bounds(
                outcome=(-12.0, 14.0),
                covariates=[*_ranges(4, -3.0, 3.0), [0.0, 1.0], [0.0, 1.0]],
                propensity=(0.05, 0.95),
            ),
            covariates=_correlated,
            surface=_correlated_surface,
        ),
        Design(
            name="kang-schafer",
            bounds=Bounds(
                outcome=(0.0, 440.0),
                covariates=[(0.2, 4.5), (7.0, 13.0), (0.0, 1.0), (200.0, 700.0)],
                propensity=(0.02, 0.98),
            ),
            covariates=_kang_schafer,
            surface=_kang_schafer_surface,
            noise=lambda n, rng: 10.0 * rng.standard_normal(n),
        ),
        Design(
            name="interactions",
            bounds=Bounds(outcome=(-12.0, 16.0), covariates=_ranges(10, -3.0, 3.0), propensity=(0.03, 0.97)),
            covariates=_normal(10),
            surface=_interactions,
        ),
        Design(
            name="clinic",
            bounds=Bounds(
                outcome=(0.0, 40.0),
                covariates=[(18.0, 95.0), (0.0, 20.0), [0.0, 1.0], [0.0, 1.0, 2.0, 3.0]],
                propensity=(0.03, 0.97),
            ),
            covariates=_clinic,
            surface=_clinic_surface,
            noise=lambda n, rng: rng.gamma(4.0, 0.75, n) - 3.0,
        ),
        Design(
            name="clinic-trial",
            bounds=Bounds(
                outcome=(0.0, 40.0),
                covariates=[(18.0, 95.0), (0.0, 20.0), [0.0, 1.0], [0.0, 1.0, 2.0, 3.0]],
                propensity=(0.3, 0.7),
            ),
            covariates=_clinic,
            surface=_trial_surface,
            noise=lambda n, rng: 3.0 - rng.gamma(4.0, 0.75, n),
        ),
        Design(
            name="guideline",
            bounds=Bounds(outcome=(-12.0, 20.0), covariates=_ranges(5, -3.0, 3.0), propensity=(0.1, 0.9)),
            covariates=_normal(5),
            surface=_guideline_surface,
        ),
        Design(
            name="poor-overlap",
            bounds=Bounds(outcome=(-12.0, 14.0), covariates=_ranges(4, -3.0, 3.0), propensity=(0.02, 0.98)),
            covariates=_normal(4),
            surface=_poor_overlap,
        ),
        Design(
            name="binary-outcome",
            bounds=Bounds(outcome=(0.0, 1.0), covariates=_ranges(4, -3.0, 3.0), propensity=(0.05, 0.95)),
            covariates=_normal(4),
            surface=_binary_outcome,
            noise=None,
        ),
        Design(
            name="few-treated",
            bounds=Bounds(outcome=(-8.0, 9.0), covariates=_ranges(4, -3.0, 3.0), propensity=(0.01, 0.3)),
            covariates=_normal(4),
            surface=_few_treated,
        ),
        Design(
            name="heavy-tailed",
            bounds=Bounds(outcome=(-20.0, 21.0), covariates=_ranges(4, -3.0, 3.0), propensity=(0.05, 0.95)),
            covariates=_normal(4),
            surface=_heavy_tailed,
            noise=lambda n, rng: rng.standard_t(2.5, n),
        ),
    )
}


def draw(name: str, n: int, seed: int) -> Study:
    """Draw a study of ``n`` records from a design by name: ``"private-ci-1"``, ``"setup-a"``, ``"clinic"``, ...

    Examples
    --------
    >>> from discreet.datasets import draw
    >>> study = draw("private-ci-1", n=100, seed=1)
    >>> study.name, study.n
    ('private-ci-1', 100)
    """
    if name.startswith("private-ci-"):
        return private_ci(int(name[-1]), n, seed)
    return DESIGNS[name].draw(n, seed)
