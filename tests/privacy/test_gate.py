import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.bounds import Bounds
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import CHUNK_ROWS, Chunk
from discreet.exceptions import BudgetExceeded, InvalidBudget, InvalidInput
from discreet.privacy import gate as gate_module
from discreet.privacy.accountant import SLACK, calibrate_mu, lattice_slack, sets_slack_aside
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.noise import MAX_SCALE
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.fixed_point import CAPACITY_BITS, GRID_BITS, SUM_BITS, noise_sd
from discreet.privacy.sensitivity.sets import Ball, Cells, Gram, Interval, MeanSquare
from discreet.testing import frozen_noise, record_sums, seeded_noise, watched

N = 5_000
BUDGET, PURE = Budget(epsilon=1, delta=1e-6), Budget(epsilon=1)
RNG = np.random.default_rng(11)
Y, T, X = RNG.uniform(-1, 1, N), RNG.integers(0, 2, N), RNG.uniform(-1, 1, (N, 3))
RECORDS = ArrayRecords.of(Y, T, X, bounds=Bounds(outcome=(-1, 1), covariates=[(-1, 1)] * 3))


def outcome(chunk):
    return chunk.y


def covariates(chunk):
    return chunk.x


def cells(chunk):
    return np.stack([chunk.t, 2 * chunk.t], axis=1)


QUERIES = [
    Query("outcome", 0.1, Interval(-0.5, 0.75), outcome),
    Query("covariates", 0.2, Ball(1.0, 3), covariates),
    Query("arms", 0.1, Cells((2, 3)), cells),
    Query("moments", 0.1, MeanSquare(0.8), outcome),
    Query("gram", 0.3, Gram(1.0, 3), covariates),
]
LAPLACE = QUERIES[:4]


class Counted:
    """Records that count their passes, claim any number of records and may break."""

    bounds = RECORDS.bounds
    unit, public = None, ()

    def __init__(self, n=N, breaks=None):
        self.n, self.passes, self.breaks = n, 0, breaks

    def group_sums(self, partition, formulas, progress=None):
        return None

    def sum(self, kernel, progress=None):
        self.passes += 1
        total = RECORDS.sum(kernel, progress)
        if self.breaks:
            raise self.breaks
        return total


def gate(budget=BUDGET, neighbours="replace-one", records=RECORDS):
    return Gate(records, budget=budget, neighbours=neighbours)


# --- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_without_noise_the_gate_gives_plain_sums_of_clipped_records(neighbours):
    with frozen_noise():
        interval, ball, counts, moments, gram = gate(neighbours=neighbours).ask(*QUERIES)
    phi = X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    s = np.clip(Y, -0.8, 0.8)
    # Rounding to the grid moves a record by no more than 2**-16 (the coarsest grid here), and mostly cancels.
    tolerance = N * 2.0**-16
    assert interval.value.shape == ()
    assert float(interval.value) == pytest.approx(np.clip(Y, -0.5, 0.75).sum(), abs=tolerance)
    np.testing.assert_allclose(ball.value, phi.sum(axis=0), atol=tolerance)
    np.testing.assert_allclose(counts.value, [N - T.sum(), T.sum(), N - T.sum(), 0, T.sum()], atol=1e-6)
    np.testing.assert_allclose(moments.value, [s.sum(), (s**2).sum()], atol=tolerance)
    np.testing.assert_allclose(gram.value, phi.T @ phi, atol=tolerance)
    assert [released.name for released in (interval, ball, counts, moments, gram)] == [q.name for q in QUERIES]


def test_nan_counts_as_low_or_zero_and_infinities_are_clipped():
    def awkward(chunk):
        return np.where(np.arange(len(chunk.t)) % 2 == 0, np.nan, np.inf)

    evens = sum((min(CHUNK_ROWS, N - start) + 1) // 2 for start in range(0, N, CHUNK_ROWS))
    queries = [
        Query("interval", 0.1, Interval(-1, 2), awkward),
        Query("ball", 0.1, Ball(1.0, 2), lambda chunk: np.stack([awkward(chunk), np.ones(len(chunk.t))], axis=1)),
        Query("cells", 0.1, Cells((4,)), awkward),
        Query("moments", 0.1, MeanSquare(2), awkward),
    ]
    with frozen_noise():
        interval, ball, counts, moments = gate().ask(*queries)
    odds = N - evens
    assert float(interval.value) == pytest.approx(2 * odds - evens)
    np.testing.assert_allclose(ball.value, [odds, evens], rtol=1e-6)
    np.testing.assert_allclose(counts.value, [evens, 0, 0, odds], rtol=1e-9)
    np.testing.assert_allclose(moments.value, [2 * odds, 4 * odds], rtol=1e-9)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_one_nan_counts_as_the_low_end_of_an_interval(neighbours):
    grid = Interval(-1, 2).grid(30, neighbours)
    # Cast to an integer, NaN would be a number: no warning about that may be what saves the sum.
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = grid.add(np.array([np.nan, 1.0, 2.0]))
    np.testing.assert_array_equal(found, grid.add(np.array([-1.0, 1.0, 2.0])))


def test_a_direction_survives_clipping_even_from_far_outside():
    far = np.array([3e200, 4e200])
    with frozen_noise():
        (ball,) = gate().ask(Query("ball", 0.5, Ball(5.0, 2), lambda chunk: np.tile(far, (len(chunk.t), 1))))
    np.testing.assert_allclose(ball.value, [3 * N, 4 * N], rtol=1e-6)


def test_one_factor_or_one_dimension_may_come_as_a_vector():
    with frozen_noise():
        counts, ball, gram = gate().ask(
            Query("arms", 0.1, Cells((2,)), lambda chunk: chunk.t),
            Query("ball", 0.1, Ball(1.0, 1), outcome),
            Query("gram", 0.1, Gram(1.0, 1), outcome),
        )
    np.testing.assert_allclose(counts.value, [N - T.sum(), T.sum()])
    np.testing.assert_allclose(ball.value, [Y.sum()], atol=1e-3)
    np.testing.assert_allclose(gram.value, [[(Y**2).sum()]], atol=1e-3)


def test_records_of_a_chunk_are_not_written_to():
    seen = []

    def kept(chunk):
        seen.append((chunk.x, chunk.x.copy()))
        return chunk.x

    with frozen_noise():
        gate().ask(Query("ball", 0.2, Ball(0.1, 3), kept), Query("gram", 0.2, Gram(0.1, 3), kept))
    assert all(np.array_equal(after, before) for after, before in seen)


# --- noise ----------------------------------------------------------------------------------------------------------


def test_stated_noise_follows_from_diameter_and_share():
    mu = calibrate_mu(1, 1e-6)
    golden = (1 + math.sqrt(5)) / 2
    interval, ball, counts, moments, gram = gate().ask(*QUERIES)
    assert interval.sd == pytest.approx(1.25 / (mu * math.sqrt(0.1)))
    assert ball.sd == pytest.approx(2 / (mu * math.sqrt(0.2)))
    assert counts.sd == pytest.approx(2 / (mu * math.sqrt(0.1)))
    scale = 1.6 / (mu * math.sqrt(0.1))
    np.testing.assert_allclose(moments.sd, [scale, scale * 2 * 0.8 / golden**2.5])
    assert gram.sd == pytest.approx(math.sqrt(2) / (mu * math.sqrt(0.3)))
    interval, ball, counts, moments, gram = gate(neighbours="add-remove").ask(*QUERIES)
    assert interval.sd == pytest.approx(0.75 / (mu * math.sqrt(0.1)))
    assert ball.sd == pytest.approx(1 / (mu * math.sqrt(0.2)))
    assert counts.sd == pytest.approx(math.sqrt(2) / (mu * math.sqrt(0.1)))
    assert moments.sd[0] == pytest.approx(0.8 * math.hypot(1, golden**2.5 / 2) / (mu * math.sqrt(0.1)))
    assert gram.sd == pytest.approx(1 / (mu * math.sqrt(0.3)))


def test_stated_pure_noise_follows_from_the_l1_diameter():
    interval, ball, counts, moments = gate(PURE).ask(*LAPLACE)
    s, free = np.linspace(-1, 1, 2_001), ((1 + math.sqrt(5)) / 2) ** 2.5 / 2
    widest = (np.abs(s[:, None] - s) + free * np.abs(s[:, None] ** 2 - s**2)).max()
    for released, diameter, share in [
        (interval, 1.25, 0.1),
        (ball, 2 * math.sqrt(3), 0.2),
        (counts, 4, 0.1),
    ]:
        assert released.sd == pytest.approx(math.sqrt(2) * diameter / share)
    assert moments.sd[0] == pytest.approx(math.sqrt(2) * 0.8 * widest / 0.1, rel=1e-5)


@pytest.mark.parametrize("budget", [BUDGET, PURE])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_noise_is_known_before_anything_is_touched(query, neighbours, budget):
    records = Counted()
    opened = gate(budget, neighbours, records)
    if budget.pure and isinstance(query.geometry, Gram):
        with pytest.raises(InvalidInput, match="no Laplace noise"):
            opened.noise_sd(query.geometry, query.share)
        return
    known = opened.noise_sd(query.geometry, query.share)
    assert records.passes == 0
    assert opened.spent == 0
    total = budget.epsilon if budget.pure else calibrate_mu(budget.epsilon, budget.delta)
    assert known == noise_sd(query.geometry, query.share, total, budget.pure, neighbours, N)
    (released,) = opened.ask(query)
    assert known == np.atleast_1d(released.sd)[0]


DRAWS = 3_000


# Tolerances are six standard errors: Var z^2 is 2 for a Gaussian and 5 for a Laplace.
@pytest.mark.parametrize(("budget", "spread"), [(BUDGET, 2), (PURE, 5)])
@pytest.mark.parametrize("geometry", [Ball(1.0, DRAWS), Cells((DRAWS,))])
def test_drawn_noise_has_the_stated_spread(geometry, budget, spread):
    def zeros(chunk):
        return np.zeros((len(chunk.t), geometry.columns))

    query = Query("zeros", 0.7, geometry, zeros)
    small = ArrayRecords.of(Y[:50], T[:50], X[:50], bounds=RECORDS.bounds)
    (real,) = gate(budget, records=small).ask(query)
    with frozen_noise():
        (exact,) = gate(budget, records=small).ask(query)
    z = (real.value - exact.value) / real.sd
    assert abs(z.mean()) < 6 / math.sqrt(DRAWS)
    assert abs((z**2).mean() - 1) < 6 * math.sqrt(spread / DRAWS)


@pytest.mark.parametrize("budget", [BUDGET, PURE])
def test_both_moments_have_their_own_stated_spread(budget):
    query = Query("moments", 1.0, MeanSquare(0.8), outcome)
    small = ArrayRecords.of(Y[:50], T[:50], X[:50], bounds=RECORDS.bounds)
    with frozen_noise():
        (exact,) = gate(budget, records=small).ask(query)
    drawn = [gate(budget, records=small).ask(query)[0] for _ in range(500)]
    z = np.array([(released.value - exact.value) / released.sd for released in drawn])
    assert np.all(abs((z**2).mean(axis=0) - 1) < 6 * math.sqrt(5 / len(z)))


def test_noise_on_a_matrix_is_symmetric_and_smaller_off_the_diagonal():
    d, times = 40, 20

    def zeros(chunk):
        return np.zeros((len(chunk.t), d))

    small = ArrayRecords.of(Y[:50], T[:50], X[:50], bounds=RECORDS.bounds)
    opened = gate(records=small)
    drawn = opened.ask(*[Query("gram", 1 / times, Gram(1.0, d), zeros) for _ in range(times)])
    z = np.array([released.value / released.sd for released in drawn])
    assert np.array_equal(z, z.transpose(0, 2, 1))
    diagonal = z[:, np.arange(d), np.arange(d)].ravel()
    above = z[:, *np.triu_indices(d, 1)].ravel()
    assert abs((diagonal**2).mean() - 1) < 6 * math.sqrt(2 / diagonal.size)
    assert abs((above**2).mean() - 0.5) < 3 * math.sqrt(2 / above.size)


def test_a_matrix_is_refused_under_a_pure_budget():
    with pytest.raises(InvalidInput, match=r"Gram has no Laplace noise.*delta"):
        gate(PURE).ask(QUERIES[-1])


# --- budget ---------------------------------------------------------------------------------------------------------


def test_shares_add_up_and_cannot_be_overspent():
    records = Counted()
    opened = gate(records=records)
    opened.ask(Query("first", 0.6, Interval(-1, 1), outcome))
    assert (opened.spent, opened.left) == (0.6, 0.4)
    with pytest.raises(BudgetExceeded, match=r"more, and more: asked for 0.45 .* 0.4 is left, 0.05 is missing") as e:
        opened.ask(
            Query("more", 0.3, Interval(-1, 1), outcome),
            Query("and more", 0.15, Interval(-1, 1), outcome),
        )
    assert isinstance(e.value, ValueError)
    assert (opened.spent, len(opened.events), records.passes) == (0.6, 1, 1)
    opened.ask(Query("rest", 0.4, Interval(-1, 1), outcome))
    assert opened.left == 0
    with pytest.raises(BudgetExceeded, match="0 is left"):
        opened.ask(Query("a little more", 1e-12, Interval(-1, 1), outcome))


@pytest.mark.parametrize("share", [0, -0.1, math.nan, math.inf, 1.1, True])
def test_shares_that_make_no_sense_are_refused(share):
    with pytest.raises(InvalidBudget, match="share"):
        gate().ask(Query("outcome", share, Interval(-1, 1), outcome))
    with pytest.raises(InvalidBudget, match="share"):
        gate().noise_sd(Interval(-1, 1), share)


@settings(max_examples=40)
@given(
    epsilon=st.floats(1e-3, 1e3),
    delta=st.none() | st.floats(1e-12, 0.1),
    parts=st.lists(st.floats(0.01, 1), min_size=1, max_size=6),
    neighbours=st.sampled_from(["replace-one", "add-remove"]),
)
def test_whatever_the_shares_the_whole_budget_is_covered_and_not_much_more(epsilon, delta, parts, neighbours):
    # Pure budgets that are composed take a tenth of a second each to check.
    parts = parts[:1] if delta is None else parts
    opened = gate(Budget(epsilon=epsilon, delta=delta), neighbours)
    with seeded_noise(0):
        for part in parts:
            opened.ask(Query("ball", part / math.fsum(parts), Ball(1.0, 3), covariates))
    stated = opened.guarantee("gate.md")
    assert (stated.epsilon, stated.delta) == (epsilon, delta or 0.0)
    if delta is None:
        assert stated.epsilon_at(0.0) == pytest.approx(epsilon, rel=1e-9)
    else:
        assert stated.delta_at(epsilon) <= delta
        # Above, zCDP takes over, and noise may be a little larger than needed.
        assert epsilon > 10 or stated.delta_at(epsilon) >= delta * (1 - 1e-4)


def test_several_pure_releases_together_state_the_pure_budget():
    opened = gate(PURE)
    with seeded_noise(0):
        opened.ask(*[Query(f"part {i}", 1 / 3, Interval(-1, 1), outcome) for i in range(3)])
    assert opened.guarantee("gate.md").budget == PURE
    assert sum(event.epsilon for event in opened.events) == pytest.approx(1, rel=1e-12)


def test_shares_that_exceed_one_by_rounding_are_cut_to_fit():
    opened = gate(PURE)
    with seeded_noise(0):
        opened.ask(Query("half", 0.5, Interval(-1, 1), outcome))
        opened.ask(Query("other half", 0.5 + 5e-10, Interval(-1, 1), outcome))
    assert opened.spent == 1
    assert math.fsum(event.epsilon for event in opened.events) <= 1
    assert opened.guarantee("gate.md").epsilon == 1


def test_each_query_is_one_event_and_all_of_a_call_take_one_pass():
    records = Counted()
    opened = gate(records=records)
    opened.ask(*QUERIES)
    assert records.passes == 1
    assert [event.name for event in opened.events] == [query.name for query in QUERIES]
    assert [event.dimension for event in opened.events] == [1, 3, 5, 2, 9]
    assert math.hypot(*(event.mu for event in opened.events)) == pytest.approx(opened.mu * math.sqrt(0.8))


def test_a_pure_gate_has_no_mu():
    assert gate(PURE).pure
    with pytest.raises(InvalidBudget, match="pure"):
        _ = gate(PURE).mu


def fails_late(chunk):
    if len(chunk.t) < CHUNK_ROWS:
        raise RuntimeError("broken map")
    return chunk.y


@pytest.mark.parametrize(
    ("bad", "records", "error"),
    [
        (Query("late", 0.5, Interval(-1, 1), fails_late), RECORDS, "broken map"),
        (QUERIES[0], Counted(breaks=OSError("disk")), "disk"),
        (Query("long", 0.5, Interval(-1, 1), lambda chunk: np.ones(len(chunk.t) + 1)), RECORDS, "one row per record"),
        (Query("flat", 0.5, Ball(1, 3), lambda chunk: chunk.y), RECORDS, "3 columns"),
        (Query("tall", 0.5, MeanSquare(1), lambda chunk: chunk.x), RECORDS, "no columns"),
        (Query("total", 0.5, Interval(0, 1), lambda chunk: chunk.y.sum()), RECORDS, "one row per record"),
        (Query("text", 0.5, Cells((2,)), lambda chunk: chunk.t.astype(str)), RECORDS, "real numbers"),
        (Query("complex", 0.5, Interval(0, 1), lambda chunk: chunk.y * 1j), RECORDS, "real numbers"),
    ],
    ids=lambda case: getattr(case, "name", None),
)
def test_whatever_goes_wrong_before_the_sums_are_complete_spends_and_draws_nothing(bad, records, error, monkeypatch):
    opened = gate(records=records)
    with monkeypatch.context() as patched:
        patched.setattr(gate_module, "discrete_gaussian", lambda *_: pytest.fail("noise was drawn"))
        with pytest.raises((InvalidInput, RuntimeError, OSError), match=error):
            opened.ask(Query("fine", 0.5, Interval(-1, 1), outcome), bad)
    assert (opened.spent, opened.left, opened.events) == (0, 1, ())


def test_the_budget_is_charged_before_the_first_draw(monkeypatch):
    opened = gate()

    def crash(*_):
        raise RuntimeError("power cut")

    monkeypatch.setattr(gate_module, "discrete_gaussian", crash)
    with pytest.raises(RuntimeError, match="power cut"):
        opened.ask(QUERIES[0])
    assert opened.spent == QUERIES[0].share
    assert len(opened.events) == 1


def test_chunks_too_long_for_exact_sums_are_refused():
    class Long(Counted):
        def sum(self, kernel, progress=None):
            return kernel(Chunk(y=Y, t=T.astype(float), x=X, e=None))

    with pytest.raises(InvalidInput, match="at most 4096 records"):
        gate(records=Long()).ask(QUERIES[0])


def test_an_empty_call_and_unknown_neighbours_are_refused():
    with pytest.raises(InvalidInput, match="at least one query"):
        gate().ask()
    with pytest.raises(InvalidInput, match="neighbours"):
        gate(neighbours="swap")


# --- budgets and tables of any size -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("n", [10, 3_000, 14 * 10**6])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_budgets_from_tiny_to_huge_find_a_grid(epsilon, n, neighbours):
    opened = gate(Budget(epsilon=epsilon, delta=1e-6), neighbours, Counted(n))
    with seeded_noise(0):
        released = opened.ask(*QUERIES, Query("small", 0.01, Interval(0, 1), outcome))
    assert all(np.all(np.isfinite(part.value)) for part in released)
    # A huge budget gets a little more noise than it needs, where less would show the lattice.
    needed = Ball(1.0, 3).l2(neighbours) / (opened.mu * math.sqrt(0.2))
    assert needed * (1 - 1e-9) <= released[1].sd <= max(0.2, needed * (1 + 1e-9))
    assert opened.guarantee("gate.md").epsilon == epsilon


def test_more_noise_than_64_bits_hold_is_refused_before_the_records_are_read():
    records = Counted()
    with pytest.raises(InvalidBudget, match="so small a budget"):
        gate(Budget(epsilon=1e-30), records=records).ask(QUERIES[0])
    assert records.passes == 0


@pytest.mark.parametrize("n", [3_000, 14 * 10**6, 10**9])
@pytest.mark.parametrize("epsilon", [0.1, 5.0, 20.0, 1e4])
def test_lattices_of_all_releases_add_up_to_no_more_than_calibration_sets_aside(n, epsilon):
    opened = gate(Budget(epsilon=epsilon, delta=1e-9), records=Counted(n))
    with seeded_noise(0):
        opened.ask(
            *(Query(f"gram {i}", 0.3, Gram(1.0, 100), lambda chunk: np.ones((len(chunk.t), 100))) for i in range(2)),
            Query("cells", 0.4, Cells((1_000,)), lambda chunk: chunk.t),
        )
    slack = sum(lattice_slack(event.sigma, event.dimension) for event in opened.events)
    assert slack <= SLACK * (1 + 1e-12) or not sets_slack_aside(epsilon, 1e-9)
    assert sets_slack_aside(epsilon, 1e-9) is (epsilon < 1e4)
    assert opened.guarantee("gate.md").delta == 1e-9


def test_add_remove_takes_no_more_records_than_its_grid_is_laid_out_for():
    gate(neighbours="add-remove", records=Counted(2**CAPACITY_BITS))
    with pytest.raises(InvalidInput, match="at most 2"):
        gate(neighbours="add-remove", records=Counted(2**CAPACITY_BITS + 1))


# --- number of records ------------------------------------------------------------------------------------------------


def test_the_number_of_records_is_public_under_replace_one():
    opened = gate()
    assert opened.n == opened.count(0.1) == N
    assert opened.spent == 0


def test_the_number_of_records_is_private_under_add_remove():
    opened = gate(neighbours="add-remove")
    with pytest.raises(InvalidInput, match=r"gate\.count"):
        _ = opened.n
    with seeded_noise(0):
        count = opened.count(0.25)
    assert opened.n == count != N
    sd = 1 / (opened.mu * 0.5)
    assert abs(count - N) < 6 * sd
    assert opened.spent == 0.25


def test_a_noisy_count_is_at_least_one():
    tiny = ArrayRecords.of(Y[:10], np.arange(10) % 2, X[:10], bounds=RECORDS.bounds)
    with seeded_noise(0):
        counts = [gate(neighbours="add-remove", records=tiny).count(1e-4) for _ in range(20)]
    assert min(counts) == 1


# --- guarantee and testing tools --------------------------------------------------------------------------------------


def test_real_noise_is_proved_and_any_seeded_round_makes_it_a_test():
    opened = gate()
    opened.ask(QUERIES[0])
    guarantee = opened.guarantee("gate.md", public=("n",), unit="one patient")
    assert (guarantee.status, guarantee.proof, guarantee.public) == ("proved", "gate.md", ("n",))
    assert (guarantee.unit, guarantee.neighbours) == ("one patient", "replace-one")
    with seeded_noise(0):
        opened.ask(QUERIES[1])
    opened.ask(QUERIES[2])
    assert opened.guarantee("gate.md").status == "test"
    frozen = gate()
    with frozen_noise():
        frozen.ask(QUERIES[0])
    assert frozen.guarantee("gate.md").status == "test"


def test_a_gate_that_released_nothing_has_no_guarantee():
    with pytest.raises(InvalidInput, match="at least one event"):
        gate().guarantee("gate.md")


def test_seeded_noise_makes_a_release_reproducible():
    def released():
        with seeded_noise(5):
            return [part.value for part in gate().ask(*QUERIES)]

    assert all(np.array_equal(first, second) for first, second in zip(released(), released(), strict=True))


def test_exact_sums_are_recorded_under_test_noise_only():
    with pytest.raises(InvalidInput, match="seeded_noise or frozen_noise"), record_sums():
        pass
    with frozen_noise(), record_sums() as recorded:
        (released,) = gate().ask(QUERIES[2])
    ((name, geometry, sums, diameter),) = recorded
    assert (name, geometry, diameter) == ("arms", QUERIES[2].geometry, pytest.approx(2.0**40 * 2))  # type: ignore[comparison-overlap]
    np.testing.assert_array_equal(sums / 2.0**40, released.value)
    # A real draw inside the block is refused too, before anything is spent.
    opened = gate()
    token = gate_module._watchers.set((lambda gate, rounds: None,))
    try:
        with pytest.raises(InvalidInput, match="seeded"):
            opened.ask(QUERIES[2])
    finally:
        gate_module._watchers.reset(token)
    assert opened.spent == 0


def test_progress_is_told_about_every_row():
    told = []
    opened = Gate(RECORDS, budget=BUDGET, progress=told.append)
    opened.ask(QUERIES[0])
    assert sum(told) == N


# --- geometries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (Interval, (1, 1)),
        (Interval, (2, 1)),
        (Interval, (0, math.nan)),
        (Interval, (-math.inf, 0)),
        (Interval, (0, 1e200)),
        (Interval, (0, 1e-200)),
        (Ball, (0, 3)),
        (Ball, (math.nan, 3)),
        (Ball, (1e-200, 3)),
        (Ball, (1, 0)),
        (Ball, (1, 2.5)),
        (Gram, (-1, 3)),
        (Gram, (1, 0)),
        (MeanSquare, (0,)),
        (MeanSquare, (math.inf,)),
        (Cells, ((),)),
        (Cells, ((3, 0),)),
    ],
)
def test_geometries_that_bound_nothing_are_refused(make, arguments):
    with pytest.raises(InvalidInput, match=r"must|needs"):
        make(*arguments)


@pytest.mark.parametrize("epsilon", [1.0, 1e6])
def test_even_huge_budgets_get_no_more_noise_than_they_ask_for(epsilon):
    """At the larger one, what a lattice of so many numbers would need is far above it; zCDP does without."""
    opened, geometry, share = gate(Budget(epsilon=epsilon, delta=1e-5)), Gram(3.0, 60), 0.04
    asked = geometry.l2("replace-one") / (opened.mu * math.sqrt(share))
    assert opened.noise_sd(geometry, share) == pytest.approx(asked, rel=1e-6)
    with seeded_noise(0):
        opened.ask(Query("second moments", share, geometry, lambda chunk: np.ones((len(chunk.t), 60))))
    # The guarantee is checked against its events when it is made.
    assert opened.guarantee("gate.md").epsilon == epsilon


def test_sums_that_were_prepared_on_another_grid_are_taken_anew():
    # Two shares that exceed one by a rounding error are cut, and so small a budget then asks for a coarser grid than
    # the one that was prepared: its integers would be twice too large.
    grid_bits = min(GRID_BITS, SUM_BITS - (RECORDS.n - 1).bit_length())
    epsilon = 2.0 ** (grid_bits + 1) / (MAX_SCALE * 0.5) * (1 - 1e-10)
    first, second = (Query(name, 0.5 + 4e-10, Interval(-1, 1), outcome) for name in ("first", "second"))
    seen = []
    with frozen_noise(), watched(lambda _, rounds: seen.extend(rounds)):
        asked = gate(Budget(epsilon=epsilon))
        asked.prepare(first, second)
        prepared = asked._plan(first.geometry, first.share)[0]
        asked.ask(first, second)
    assert [each.grid.grid_bits for each in seen] == [prepared.grid_bits - 1] * 2
    for each in seen:
        assert float(each.released.value) == pytest.approx(Y.sum(), abs=1e-3)
