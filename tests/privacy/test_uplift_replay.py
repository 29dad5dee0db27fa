"""Effects by segment on neighbours, released values held fixed: no round outruns its noise, which is as stated."""

import numpy as np
import pytest

from discreet import Bounds, PrivateKMeans, Uplift
from discreet.audit._tape import Tape
from discreet.datasets import adum
from discreet.privacy import gate as gate_module
from discreet.privacy.sensitivity.fixed_point import plan_noise
from discreet.privacy.sensitivity.table import Pairs
from discreet.testing import seeded_noise

BOUNDS = Bounds(outcome=(-4, 10), covariates=[(-3, 3), ["a", "b", "c"]], propensity=(0.2, 0.7))
N, BASES, NEIGHBOURS = 40, 50, 20
CUTS = {0: 4, 1: [["a", "c"], ["b"]]}
CASES = {
    "arms": {"by": CUTS, "epsilon": 2.0},
    "gaussian": {"by": CUTS, "epsilon": 1.0, "delta": 1e-6},
    "auto": {"by": {0: "auto"}, "epsilon": 1.0},
    # At so small a budget arms share a sum.
    "signed": {"by": CUTS, "epsilon": 0.01, "propensity": 0.4},
    "weighted": {"by": CUTS, "epsilon": 1.0, "propensity": "chance"},
    "clusters": {"by": PrivateKMeans(clusters=3, rounds=1), "epsilon": 1.0},
}
RELATIONS = ["replace-one", "add-remove"]


def records(rng):
    """Records of one of three scales: outcome, treatment, covariates, known probability."""
    kind = rng.integers(0, 3)
    x = np.column_stack([rng.normal(0, [0.01, 1.0, 9.0][kind], N).astype(object), rng.choice(["a", "b", "c"], N)])
    t = (np.arange(N) % rng.integers(2, 9) == 0) * 1.0
    t[:2] = 0.0, 1.0
    return rng.normal(3, [0.1, 3.0, 50.0][kind], N), t, x, rng.uniform(0.2, 0.7, N)


def replaced(data, rng, place):
    """One record replaced by an extreme or an ordinary one; places 0 and 1 hold an arm each and stay."""
    y, t, x, e = (part.copy() for part in data)
    y[place] = rng.choice([-4.0, 10.0, 1e12, -1e12, rng.normal(3, 3)])
    t[place] = rng.integers(0, 2)
    x[place] = [rng.choice([-3.0, 3.0, -1e9, 1e9, 0.0]), rng.choice(["a", "b", "c"])]
    e[place] = rng.choice([0.2, 0.7, 0.45])
    return y, t, x, e


def neighbour(data, rng, place, relation):
    if relation == "replace-one":
        return replaced(data, rng, place)
    return tuple(np.delete(part, place, axis=0) for part in data)


def fit(given, relation, data):
    y, t, x, e = data
    table = {"y": y, "t": t, "a": x[:, 0].astype(float), "b": list(x[:, 1]), "chance": e}
    import pandas as pd

    bounds = Bounds(
        outcome=BOUNDS.outcome, covariates=dict(zip("ab", BOUNDS.columns, strict=True)), propensity=(0.2, 0.7)
    )
    estimator = Uplift(bounds=bounds, neighbours=relation, **given)
    return estimator.fit_table(pd.DataFrame(table), outcome="y", treatment="t")


def taped(given, relation, data):
    """A first fit. Smoothing comes after the release's numbers, and takes most of the time: it is left out."""

    def fitted(data):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("discreet.releases.segments.posterior", lambda *_: None)
            return fit(given, relation, data)

    return Tape(fitted, data)


def search(given, relation, bases=BASES, neighbours=NEIGHBOURS):
    """Moves of all rounds over random pairs of neighbours."""
    rng, moves = np.random.default_rng(0), []
    for _ in range(bases):
        extreme = rng.integers(2, N)
        data = replaced(records(rng), rng, extreme)
        tape = taped(given, relation, data)
        places = np.where(np.arange(neighbours) % 2, extreme, rng.integers(2, N, neighbours))
        moves += [tape.moves(neighbour(data, rng, place, relation)) for place in places]
    return np.array(moves)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", CASES)
def test_over_many_pairs_no_round_exceeds_its_diameter(name, relation):
    # All 1,000 pairs for either kind of table, and fewer for their variants.
    bases = BASES if name in ("arms", "signed") else 10
    moves = search(CASES[name], relation, bases)
    assert len(moves) == bases * NEIGHBOURS
    assert moves.max() <= 1
    # The bound is no idle one: every round comes near it.
    assert np.all(moves.max(axis=0) > (0.3 if name == "weighted" else 0.6))


def test_the_small_budget_above_does_share_sums_and_the_others_do_not():
    data = records(np.random.default_rng(3))
    with seeded_noise(0):
        kinds = {name: fit(given, "replace-one", data).release_.kind for name, given in CASES.items()}
    assert kinds.pop("signed") == "signed"
    assert set(kinds.values()) == {"arms"}


def test_a_diameter_stated_too_small_is_found(monkeypatch):
    right = Pairs.grid

    def halved(self, grid_bits, neighbours):
        from dataclasses import replace

        grid = right(self, grid_bits, neighbours)
        return replace(grid, l1=grid.l1 / 2)

    monkeypatch.setattr(Pairs, "grid", halved)
    plan_noise.cache_clear()
    try:
        assert search(CASES["arms"], "replace-one", bases=3).max() > 1.5
    finally:
        plan_noise.cache_clear()


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_every_round_draws_the_noise_that_its_event_states(delta, monkeypatch):
    study = adum(600, 5)
    drawn = []
    for name in ("discrete_gaussian", "discrete_laplace"):
        sampler = getattr(gate_module, name)

        def recorded(sums, scale, sampler=sampler):
            noisy = sampler(sums, scale)
            drawn.append((scale, (noisy - sums).astype(float)))
            return noisy

        monkeypatch.setattr(gate_module, name, recorded)
    given = {"epsilon": 1.0, "delta": delta, "bounds": study.bounds, "by": {0: 50}}
    fits = [Uplift(**given).fit(study.Y, study.T, X=study.X) for _ in range(4)]
    events = [event for fitted in fits for event in fitted.guarantee_.events]
    ratios = {}
    for event, (scale, noise) in zip(events, drawn, strict=True):
        stated = event.scale if delta is None else event.sigma
        assert scale == stated
        ratios.setdefault(event.name, []).append(noise / stated / (np.sqrt(2) if delta is None else 1.0))
    values = np.concatenate(ratios["pairs by segment and arm"])
    assert len(values) == 4 * 200
    # The square of a Laplace number has a variance of five times its squared mean, a normal one's of two.
    assert abs(np.mean(values**2) - 1.0) < 5.0 * np.sqrt((5.0 if delta is None else 2.0) / len(values))
