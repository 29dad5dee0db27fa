"""The noise that a fit really draws is the noise that its guarantee counts."""

import numpy as np
import pytest

from discreet import ATE, ATO, CATE, DifferenceInMeans
from discreet.datasets import draw
from discreet.privacy import gate as gate_module


@pytest.mark.parametrize("estimator", [ATE, ATO, CATE, DifferenceInMeans])
def test_every_round_draws_the_noise_that_its_event_states(estimator, monkeypatch) -> None:
    """Real noise, recorded beside the exact sums as it is drawn, has unit variance in units of the event's sigma."""
    study = draw("correlated", 600, 5)
    drawn: list[tuple[float, np.ndarray]] = []
    exact_sampler = gate_module.discrete_gaussian  # type: ignore[attr-defined]

    def recorded(sums, sigma):
        noisy = exact_sampler(sums, sigma)
        drawn.append((sigma, (noisy - sums).astype(float)))
        return noisy

    monkeypatch.setattr(gate_module, "discrete_gaussian", recorded)
    fits = [estimator(epsilon=1, delta=1e-5, bounds=study.bounds).fit(study.Y, study.T, X=study.X) for _ in range(12)]
    events = [event for fit in fits for event in fit.guarantee_.events]
    draws = iter(drawn)
    ratios: dict[str, list[np.ndarray]] = {}
    for event in events:
        if event.name.endswith(("second moments", "correlations")):
            # A symmetric matrix is drawn in two parts, what is off its diagonal with scale / sqrt(2).
            diagonal, above = sorted((next(draws) for _ in range(2)), key=lambda part: part[1].size)
            size = diagonal[1].size
            assert (above[1].size, size * size) == (size * (size - 1) // 2, event.dimension)
            parts = [diagonal[1] / event.sigma, above[1] / event.sigma * np.sqrt(2.0)]
        else:
            parts = [next(draws)[1] / event.sigma]
            assert parts[0].size == event.dimension
        ratios.setdefault(event.name, []).extend(parts)
    assert next(draws, None) is None
    for name, parts in ratios.items():
        values = np.concatenate(parts)
        spread = float(np.mean(values**2))
        assert abs(spread - 1.0) < 5.0 * np.sqrt(2.0 / values.size), name
