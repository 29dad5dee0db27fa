"""How well effect functions do: root mean squared error and coverage of 90 % intervals on simulated designs.

    python -m evidence.effects --designs step,null --n 30000 --epsilon 2 --replications 10

Intervals are judged by the projection of the true effect on the release's own basis, which is what they are for.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from discreet import CATE, Bounds
from discreet.testing import seeded_noise


def _logistic(z):
    return 1.0 / (1.0 + np.exp(-z))


def _normal(n, p, rng):
    return np.clip(rng.standard_normal((n, p)), -3.0, 3.0)


def _bounds(outcome, covariates, propensity=(0.1, 0.9)):
    return Bounds(outcome=outcome, covariates=covariates, propensity=propensity)


def dataset_1(n, rng):
    """Dataset 1 of the DP-CATE paper: two uniform covariates, a bent effect."""
    x, beta, gamma = rng.random((n, 2)), rng.uniform(0, 0.3, 2), rng.uniform(0, 1, 2)
    tau = np.exp(2 * x[:, 0]) + 3 * np.sin(4 * x[:, 0])
    e = np.clip((1 + x @ beta) / 2, 0.05, 0.95)
    return _bounds((-3.5, 11), [(0.0, 1.0)] * 2, (0.05, 0.95)), x, e, x @ gamma, tau, rng.uniform(-1, 1, n)


def dataset_2(n, rng):
    """Dataset 2 of the DP-CATE paper: thirty uniform covariates, two of which modify the effect."""
    x, beta, gamma = rng.random((n, 30)), np.zeros(30), np.zeros(30)
    beta[rng.permutation(30)[:6]] = rng.uniform(0, 0.3, 6)
    gamma[rng.permutation(30)[:6]] = rng.uniform(0, 1, 6)
    tau = np.exp(2 * x[:, 0]) + 3 * np.sin(4 * x[:, 1])
    e = np.clip((1 + x @ beta) / 2, 0.05, 0.95)
    return _bounds((-3.5, 17.4), [(0.0, 1.0)] * 30, (0.05, 0.95)), x, e, x @ gamma, tau, rng.uniform(-1, 1, n)


def interaction(n, rng):
    """A product of two covariates."""
    x = _normal(n, 6, rng)
    tau = 2 * x[:, 0] * x[:, 1]
    return _bounds((-14, 14), [(-3.0, 3.0)] * 6), x, _logistic(0.5 * x[:, 0]), x[:, 0] + x[:, 2], tau, _noise(n, rng)


def skewed(n, rng):
    """Skewed and correlated covariates."""
    z = 0.7 * rng.standard_normal((n, 1)) + 0.7 * rng.standard_normal((n, 6))
    x = np.clip(np.exp(0.6 * z), 0, 8)
    tau = 1 + 0.5 * np.log(np.maximum(x[:, 0], 0.05)) - 0.3 * (x[:, 2] - 1.2)
    e = _logistic(0.5 * (x[:, 0] - 1.2) - 0.3 * (x[:, 1] - 1.2))
    return _bounds((-10, 20), [(0.0, 8.0)] * 6, (0.05, 0.95)), x, e, x[:, 0] + 0.5 * x[:, 1], tau, _noise(n, rng)


def step(n, rng):
    """A jump at the median of a covariate."""
    x = _normal(n, 6, rng)
    tau = 1.0 * (x[:, 1] > 0)
    return _bounds((-10, 10), [(-3.0, 3.0)] * 6), x, _logistic(0.4 * x[:, 0]), _plain(x), tau, _noise(n, rng)


def off_step(n, rng):
    """A jump away from every rank at which the basis may jump."""
    x = _normal(n, 6, rng)
    tau = 1.0 * (x[:, 1] > 0.45)
    return _bounds((-10, 10), [(-3.0, 3.0)] * 6), x, _logistic(0.4 * x[:, 0]), _plain(x), tau, _noise(n, rng)


def null(n, rng):
    """No effect at all."""
    x = _normal(n, 6, rng)
    return _bounds((-10, 10), [(-3.0, 3.0)] * 6), x, _logistic(0.4 * x[:, 0]), _plain(x), np.zeros(n), _noise(n, rng)


def overlap(n, rng):
    """Probabilities of treatment down to 0.05."""
    x = _normal(n, 6, rng)
    e = np.clip(_logistic(1.2 * x[:, 0] + 0.8 * x[:, 1]), 0.05, 0.95)
    tau = 0.5 + 0.5 * x[:, 0] - 0.5 * x[:, 2]
    return _bounds((-12, 12), [(-3.0, 3.0)] * 6, (0.05, 0.95)), x, e, x[:, :3].sum(axis=1), tau, _noise(n, rng)


def heavy(n, rng):
    """Student's t with two degrees of freedom."""
    x = _normal(n, 4, rng)
    return (
        _bounds((-30, 30), [(-3.0, 3.0)] * 4),
        x,
        _logistic(0.4 * x[:, 0]),
        x[:, 0],
        1 + 0.5 * x[:, 1],
        rng.standard_t(2, n),
    )


def binary(n, rng):
    """An outcome of zeros and ones."""
    x = _normal(n, 4, rng)
    without, treated = _logistic(-0.5 + 0.5 * x[:, 0]), _logistic(-0.2 + 0.8 * x[:, 0] - 0.3 * x[:, 1])
    e = _logistic(0.4 * x[:, 0] + 0.3 * x[:, 2])
    return _bounds((0, 1), [(-3.0, 3.0)] * 4), x, e, without, treated - without, None


def _plain(x):
    return x[:, 0] + 0.5 * x[:, 1]


def _noise(n, rng):
    return rng.standard_normal(n)


DESIGNS: dict[str, Callable] = {
    made.__name__.replace("_", "-"): made
    for made in (dataset_1, dataset_2, interaction, skewed, step, off_step, null, overlap, heavy, binary)
}


def draw(design, n, seed):
    """Bounds, covariates, treatment, outcome and true effects."""
    rng = np.random.default_rng(seed)
    bounds, x, e, level, tau, noise = DESIGNS[design](n, rng)
    t = (rng.random(n) < e) * 1.0
    mean = level + t * tau
    y = (rng.random(n) < mean) * 1.0 if noise is None else np.clip(mean + noise, *bounds.outcome)
    return bounds, x, t, y, tau


def measure(design, n, epsilon, seed):
    """Squared error, that of the function's own average, coverage and width of 90 % intervals."""
    bounds, x, t, y, tau = draw(design, n, seed)
    with seeded_noise(seed):
        cate = CATE(epsilon=epsilon, delta=1e-5, bounds=bounds).fit(y, t, X=x)
    x, tau = x[:5_000], tau[:5_000]
    features = np.concatenate(list(cate.release_._features(x)))
    gram = features.T @ features + 1e-6 * len(x) * np.eye(features.shape[1])
    projection = features @ np.linalg.solve(gram, features.T @ tau)
    low, high = cate.effect_interval(x, alpha=0.1)
    inside = np.mean((low <= projection) & (projection <= high))
    errors = np.mean((cate.effect(x) - tau) ** 2), np.mean((cate.ate() - tau) ** 2)
    return *errors, inside, np.mean(high - low)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", default=",".join(DESIGNS))
    parser.add_argument("--n", type=int, default=30_000)
    parser.add_argument("--epsilon", default="2")
    parser.add_argument("--replications", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1_000)
    asked = parser.parse_args()
    print(
        "design, n, epsilon, replications: root-PEHE, its constant's, coverage of 90 % intervals, mean width, seconds"
    )
    for design in asked.designs.split(","):
        for epsilon in map(float, asked.epsilon.split(",")):
            start = time.perf_counter()
            seeds = range(asked.seed, asked.seed + asked.replications)
            error, constant, inside, width = np.mean([measure(design, asked.n, epsilon, s) for s in seeds], axis=0)
            seconds = (time.perf_counter() - start) / asked.replications
            print(
                f"{design}, {asked.n}, {epsilon:g}, {asked.replications}: {error**0.5:.4f}, {constant**0.5:.4f}, "
                f"{inside:.3f}, {width:.3f}, {seconds:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
