"""The noise that a fit really draws is the noise that its guarantee counts."""

import numpy as np
import pytest

from discreet import ATE, CATE, DifferenceInMeans
from discreet import gate as gate_module
from discreet.datasets import draw


@pytest.mark.parametrize("estimator", [ATE, CATE, DifferenceInMeans])
def test_every_round_draws_the_noise_that_its_event_states(estimator, monkeypatch) -> None:
    """Real noise, recorded beside the exact sums as it is drawn, has unit variance in units of the event's sigma."""
    study = draw("correlated", 600, 5)
    drawn: list[tuple[float, np.ndarray]] = []
    exact_sampler = gate_module.discrete_gaussian

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
        counted = 0
        # A symmetric matrix is drawn in two parts, its upper half with scale / sqrt(2).
        size = event.dimension if event.name != "second moments" else None
        while counted < (1 if size is None else size):
            _, noise = next(draws)
            ratios.setdefault(event.name, []).append(noise / event.sigma)
            counted += noise.size
            if size is None:
                _, rest = next(draws)
                ratios[event.name].append(rest / event.sigma * np.sqrt(2.0))
    assert next(draws, None) is None
    for name, parts in ratios.items():
        values = np.concatenate(parts)
        spread = float(np.mean(values**2))
        assert abs(spread - 1.0) < 5.0 * np.sqrt(2.0 / values.size), name
