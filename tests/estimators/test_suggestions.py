"""Suggested bounds: what is found, what it costs, what is refused."""

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet import ATE, Bounds, InvalidBudget, InvalidInput, Ledger, MissingBounds, suggest_bounds
from discreet.estimators._allocation import COUNT, SUGGESTION
from discreet.estimators.suggestions.suggest import BoundsFinder, budget_for
from discreet.privacy.budget import Budget
from discreet.releases.wording import rounds
from discreet.testing import seeded_noise

N = 10_000


def frame(n=N, seed=1):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "days": rng.gamma(2.0, 3.0, n),
            "age": rng.normal(60.0, 12.0, n).round(),
            "cost": np.where(rng.random(n) < 0.3, 0.0, np.exp(rng.normal(7.0, 0.8, n))),
            "died": rng.integers(0, 2, n),
            "zero": np.zeros(n),
            "ward": rng.choice(["north", "south", "attic"], n, p=[0.7, 0.295, 0.005]),
            "t": rng.integers(0, 2, n),
        }
    )


def suggested(seed=0, **given):
    with seeded_noise(seed):
        return suggest_bounds(given.pop("table", frame()), **{"outcome": "days", "epsilon": 1.0, **given})


@pytest.mark.parametrize("column", ["days", "age", "cost"])
def test_a_range_holds_nearly_all_values_and_is_not_much_wider(column):
    values = frame()[column]
    low, high = suggested(outcome=column).bounds.outcome
    assert np.mean((values < low) | (values > high)) <= 0.005
    assert high - low <= 2.0 * np.subtract(*np.quantile(values, [0.99, 0.01]))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e12])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_no_scale_is_special(scale, sign):
    values = sign * scale * np.random.default_rng(1).normal(50.0, 10.0, N)
    low, high = suggested(table=pd.DataFrame({"days": values})).bounds.outcome
    assert low < values.min() + 2 * scale * 10 < high
    assert np.mean((values < low) | (values > high)) <= 0.005
    assert high - low <= 100 * scale


def test_whole_numbers_and_years_have_whole_ends():
    years = np.random.default_rng(1).normal(2015, 3, N).round()
    low, high = suggested(table=pd.DataFrame({"days": years})).bounds.outcome
    assert low == int(low)
    assert 1995 < low < 2010
    assert 2020 < high < 2035


def test_a_second_group_of_values_is_not_cut_off():
    rng = np.random.default_rng(1)
    values = np.where(rng.random(N) < 0.05, 999.0, rng.normal(50.0, 10.0, N))
    assert suggested(table=pd.DataFrame({"days": values})).bounds.outcome[1] >= 999.0


def test_zeros_and_ones_and_missing_values_are_remarked_on():
    found = suggested(outcome="died")
    assert found.bounds.outcome == (0.0, 1.0)
    assert "nothing but 0 and 1" in found.summary()
    assert "levels = [0, 1]" in found.to_toml()
    table = frame()
    table.loc[: N // 5, "cost"] = np.nan
    found = suggested(table=table, covariates=["cost"])
    assert "are exactly 0" in found.summary()
    assert "are missing" in found.summary()
    assert found.bounds.columns[0].fill is not None
    assert ATE(epsilon=1.0, delta=1e-6, bounds=found.bounds) is not None


def test_what_noise_hides_is_left_to_people():
    found = suggested(table=frame(200), covariates=["age"], epsilon=0.01)
    assert "hidden by noise" in found.summary()
    assert "fill in, or delete" in found.to_toml()
    with pytest.raises(InvalidInput, match="Noise hides where the values of days and age are"):
        _ = found.bounds
    with pytest.raises(InvalidInput, match="covariate 'age' is not filled in"):
        Bounds.from_toml(found.to_toml())
    with pytest.raises(MissingBounds):
        Bounds.from_toml(suggested(table=frame(200), epsilon=0.01).to_toml())
    # Zeros that stand out do not say that there is nothing else.
    (zeros,) = suggested(outcome="zero", epsilon=0.1).columns
    assert zeros.low is None
    assert zeros.zeros > 0.9


def test_frequent_candidates_are_levels_and_nothing_else_is_named():
    found = suggested(categories={"ward": ["south", "north", "east"]}, epsilon=0.5)
    (levels,) = found.columns[1:]
    assert levels.levels == ("north", "south")
    assert found.bounds.columns[0].levels == ("north", "south", "other")
    assert "'attic'" not in str(found.to_dict())
    numbers = suggested(categories={"died": [0, 1]}, epsilon=0.5)
    assert set(numbers.bounds.columns[0].levels) == {0, 1}


def test_bounds_go_to_an_estimator_and_to_a_file():
    given = {"covariates": ["age", "cost"], "categories": {"ward": ["north", "south"]}, "treatment": ("no", "yes")}
    found = suggested(**given)
    assert found.bounds.treatment == ("no", "yes")
    assert Bounds.from_toml(found.to_toml()) == found.bounds
    bounds = suggested(**{**given, "treatment": None}).bounds
    with seeded_noise(0):
        assert ATE(epsilon=1.0, delta=1e-6, bounds=bounds).fit_table(frame(), outcome="days", treatment="t").ate_ < 1


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_shares_are_those_of_the_table_and_add_up_to_one(neighbours):
    given = {"covariates": ["age", "cost"], "categories": {"ward": ["north", "south"]}}
    for delta in (None, 1e-6):
        found = suggested(**given | {"delta": delta, "neighbours": neighbours})
        spent = {name: share for name, _, share in rounds(found.guarantee.events)}
        count = spent.pop("number of records", 0.0)
        assert count == pytest.approx(COUNT if neighbours == "add-remove" else 0.0)
        part = (1.0 - count) / 4
        assert spent["levels: ward"] == pytest.approx(part, rel=1e-3)
        assert spent["powers of ten: age"] == pytest.approx(part * SUGGESTION["powers of ten"], rel=1e-3)
        for column in ("days", "age", "cost"):
            mine = [share for name, share in spent.items() if name.endswith(f": {column}")]
            assert sum(mine) == pytest.approx(part, rel=1e-3)
    assert sum(SUGGESTION.values()) == pytest.approx(1.0)


def test_gaussian_noise_is_used_where_it_is_less():
    budget = Budget(epsilon=0.1, delta=1e-6)
    assert budget_for(budget, 1, "replace-one").pure
    assert not budget_for(budget, 10, "replace-one").pure
    assert suggested(delta=1e-6).guarantee.delta == 0.0
    names = [f"x{k}" for k in range(9)]
    wide = pd.DataFrame({"days": frame(500)["days"], **{name: frame(500)["age"] for name in names}})
    assert suggested(table=wide, covariates=names, delta=1e-6).guarantee.delta == 1e-6


def test_the_guarantee_is_proved_and_says_what_is_public():
    found = suggest_bounds(frame(), outcome="days", epsilon=0.5)
    assert (found.guarantee.status, found.guarantee.proof) == ("proved", "bounds.md")
    assert found.guarantee.epsilon_at(0.0) <= 0.5 * (1 + 1e-9)
    assert "the number of records" in found.guarantee.public
    private = suggest_bounds(frame(), outcome="days", epsilon=0.5, neighbours="add-remove")
    assert "the number of records" not in private.guarantee.public


def test_a_ledger_is_charged_once_for_the_same_question(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.open("icu", epsilon=1.0, delta=1e-5)
    given = {"outcome": "days", "covariates": ["age"], "epsilon": 0.4, "ledger": ledger, "dataset": "icu"}
    first = suggest_bounds(frame(), **given)
    assert suggest_bounds(frame(), **given) == first
    assert ledger.account("icu").spent.epsilon == pytest.approx(0.4)
    other = suggest_bounds(frame(), **{**given, "covariates": ["cost"]})
    assert [column.name for column in other.columns] == ["days", "cost"]
    with pytest.raises(dc.BudgetExceeded):
        suggest_bounds(frame(seed=2), **given)
    ledger.close()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"outcome": None}, "Nothing is asked for"),
        ({"covariates": "age"}, "put the name in a list"),
        ({"covariates": ["days"]}, "must be different columns"),
        ({"covariates": [1]}, "must be names of columns"),
        ({"categories": ["ward"]}, "dictionary from columns to candidates"),
        ({"categories": {"ward": "north"}}, "must be a list of candidates"),
        ({"categories": {"ward": ["north"]}}, "at least two"),
        ({"treatment": ("a",)}, "two labels"),
        ({"neighbours": "both"}, "neighbours must be"),
        ({"unit": "t"}, "unit and max_rows belong together"),
        ({"sample_by": "t"}, "sample_by belongs to ATE and CATE"),
        ({"dataset": "icu"}, "belong to a ledger"),
        ({"bounds": (0, 1)}, "does not take bounds="),
        ({"table": frame()["days"].to_numpy()}, "table must be a path"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(given, words):
    with pytest.raises(InvalidInput, match=words):
        suggested(**given)
    with pytest.raises(InvalidBudget):
        suggested(epsilon=0.0)


def test_its_identity_is_its_id_and_its_parameters():
    assert BoundsFinder.method_id == "discreet/suggest-bounds"
    finder = BoundsFinder(epsilon=1.0, categories={"ward": ["a", "b"]})
    assert finder.get_params() == {
        "epsilon": 1.0,
        "delta": None,
        "neighbours": "replace-one",
        "categories": {"ward": ["a", "b"]},
        "treatment": None,
    }
