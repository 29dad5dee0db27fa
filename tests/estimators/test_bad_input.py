"""Input that cannot be used: one sentence that names the argument and the reason, nothing spent, no data shown."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from discreet import ATE, Bounds, DifferenceInMeans, Levels, Range, Release
from discreet.datasets import draw
from discreet.exceptions import DiscreetError, InvalidBudget, InvalidInput, MissingBounds, NotFitted, UnsupportedRelease
from discreet.privacy import gate as gate_module
from discreet.testing import seeded_noise

N = 60
# Values that no sentence may repeat.
TELLTALE = (123456.789, 987654)
RNG = np.random.default_rng(0)
Y, T, X = RNG.uniform(0, 1, N), np.arange(N) % 2, RNG.uniform(0, 1, (N, 2))
Y[7], X[9, 0] = TELLTALE
BOUNDS = Bounds(outcome=(0, 1), covariates=[(0, 1), (0, 1)])
NAMED = Bounds(outcome=(0, 1), covariates={"age": (0, 1), "sex": ["f", "m"]})
FRAME = pd.DataFrame({"age": X[:, 0], "sex": np.where(T, "f", "m"), "y": Y, "t": T, "day": pd.Timestamp("2020-01-01")})


@pytest.fixture(autouse=True)
def no_noise_is_drawn(monkeypatch):
    """Whoever draws noise has spent budget."""

    def drawn(*_):
        pytest.fail("noise was drawn for input that had to be refused")

    monkeypatch.setattr(gate_module, "discrete_gaussian", drawn)
    monkeypatch.setattr(gate_module, "discrete_laplace", drawn)


def ate(**given):
    return ATE(**({"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS} | given))


def changed(array, place, value):
    copy = np.array(array, dtype=np.float64)
    copy[place] = value
    return copy


def refuse(estimator, message, error=InvalidInput, *, y=Y, t=T, x=X):
    with pytest.raises(error, match=message) as caught:
        estimator.fit(y, t, X=x)
    check_sentence(caught.value)
    assert not hasattr(estimator, "release_")


def refuse_table(estimator, table, message, **columns):
    with pytest.raises(InvalidInput, match=message) as caught:
        estimator.fit_table(table, **({"outcome": "y", "treatment": "t"} | columns))
    check_sentence(caught.value)
    assert not hasattr(estimator, "release_")


def check_sentence(error):
    text = str(error)
    assert isinstance(error, DiscreetError)
    assert text.endswith(".")
    assert "\n" not in text
    assert len(text) < 300
    for value in TELLTALE:
        assert str(value) not in text
        assert str(int(value)) not in text
    # Nor does Python print the original error, which may quote a value.
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__


def test_the_watch_on_noise_would_notice_a_fit():
    with pytest.raises(pytest.fail.Exception, match="noise was drawn"):
        ate().fit(Y, T, X=X)


# --- bounds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [None, (0, 1), {"outcome": (0, 1)}])
@pytest.mark.parametrize("make", [ATE, DifferenceInMeans])
def test_missing_bounds_are_refused(make, bounds):
    refuse(make(epsilon=1.0, delta=1e-6, bounds=bounds), f"{make.__name__} needs bounds=Bounds", MissingBounds)


def test_bounds_without_an_outcome_are_refused():
    with pytest.raises(MissingBounds, match=r"Bounds needs outcome=\(low, high\)"):
        Bounds(covariates=[(0, 1)])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"outcome": (1, 0)}, "outcome: .* reversed"),
        ({"outcome": (1, 1)}, "outcome: .* low < high"),
        ({"outcome": (0, np.nan)}, "outcome: .* finite"),
        ({"outcome": (0, np.inf)}, "outcome: .* finite"),
        ({"outcome": ("0", "1")}, "outcome: .* number"),
        ({"outcome": Y}, "outcome: .* not data"),
        ({"outcome": pd.Series(Y)}, "outcome: .* not data"),
        ({"outcome": Y.tolist()}, r"outcome: .* tuple \(low, high\)"),
        ({"outcome": (0, 1), "covariates": {"age": (3, 2)}}, "covariate 'age': .* reversed"),
        ({"outcome": (0, 1), "covariates": {"age": (2, 2)}}, "covariate 'age': .* constant"),
        ({"outcome": (0, 1), "covariates": {"sex": ["f"]}}, "covariate 'sex': .* single level"),
        ({"outcome": (0, 1), "covariates": {"sex": ["f", "f"]}}, "covariate 'sex': .* duplicates"),
        ({"outcome": (0, 1), "covariates": {"age": X[:, 0]}}, "covariate 'age': .* not data"),
        ({"outcome": (0, 1), "covariates": X}, "covariates .* not data"),
        ({"outcome": (0, 1), "covariates": FRAME}, "covariates .* not data"),
        ({"outcome": (0, 1), "propensity": (0, 0.9)}, "propensity: .* 0 < low"),
        ({"outcome": (0, 1), "propensity": (0.9, 0.1)}, "propensity: .* low < high"),
        ({"outcome": (0, 1), "treatment": ("a",)}, "treatment=.* two labels"),
    ],
)
def test_bounds_that_are_no_bounds_are_refused(given, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        Bounds(**given)
    check_sentence(caught.value)


# --- the budget -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, -1.0, np.nan, np.inf, "1", None, True])
@pytest.mark.parametrize("make", [ATE, DifferenceInMeans])
def test_an_epsilon_that_is_no_positive_number_is_refused(make, epsilon):
    refuse(make(epsilon=epsilon, delta=1e-6, bounds=BOUNDS), "epsilon must be", InvalidBudget)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 2.0, np.nan, np.inf, "1e-6"])
@pytest.mark.parametrize("make", [ATE, DifferenceInMeans])
def test_a_delta_outside_zero_and_one_is_refused(make, delta):
    refuse(make(epsilon=1.0, delta=delta, bounds=BOUNDS), "delta must", InvalidBudget)


@pytest.mark.parametrize("delta", [None, 0, 0.0])
def test_an_ate_without_delta_is_refused(delta):
    refuse(ate(delta=delta), "ATE needs delta.*Gaussian noise.*DifferenceInMeans", InvalidBudget)


@pytest.mark.parametrize("neighbours", ["swap", "", None, "Replace-one"])
def test_an_unknown_relation_is_refused(neighbours):
    refuse(ate(neighbours=neighbours), "neighbours must be 'replace-one' or 'add-remove'")


# --- records --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_missing_and_infinite_values_are_refused_wherever_they_are(bad, last):
    place, what = (N - 1 if last else 0), ("missing" if np.isnan(bad) else "infinite")
    refuse(ate(), f"Y has {what} values", y=changed(Y, place, bad))
    refuse(ate(), "T must hold 0 or 1", t=changed(T, place, bad))
    refuse(ate(), f"column 'x1' of X has {what} values", x=changed(X, (place, 1), bad))
    refuse(ate(propensity=changed(np.full(N, 0.5), place, bad)), "propensity must lie inside")


def test_the_last_of_many_chunks_is_checked_before_anything_is_spent():
    n = 9_000
    y = changed(np.tile(Y, n // N), n - 1, np.nan)
    refuse(ate(), "Y has missing values", y=y, t=np.tile(T, n // N), x=np.tile(X, (n // N, 1)))


@pytest.mark.parametrize(
    "treatment",
    [T + 1, T * 2, T * 0.5, changed(T, 3, TELLTALE[0]), np.where(T, "drug", "none"), T.astype(complex)],
    ids=["1 and 2", "0 and 2", "halves", "one stray value", "text", "complex"],
)
def test_a_treatment_that_is_not_binary_is_refused(treatment):
    refuse(ate(), "T must hold 0 or 1", t=treatment)


@pytest.mark.parametrize("arm", [0, 1])
def test_an_empty_arm_is_refused(arm):
    refuse(ate(), "One arm is empty", t=np.full(N, arm))


def test_lengths_that_do_not_match_are_refused():
    refuse(ate(), "T and Y must have one entry per record", t=T[:-1])
    refuse(ate(), "X and Y must have one entry per record", x=X[:-1])
    refuse(ate(propensity=np.full(N - 1, 0.5)), "propensity and Y must have one entry per record")
    refuse(ate(), "T and Y must have one entry per record", y=Y[:-1])


@pytest.mark.parametrize("n", [0, 1, 9])
def test_too_few_records_are_refused(n):
    refuse(ate(), "fewer than 10 records", y=Y[:n], t=T[:n], x=X[:n])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (np.full(N, "a"), "must hold numbers"),
        (np.array(["2020-01-01"] * N, dtype="datetime64[D]"), "must hold numbers"),
        (np.full(N, 1j), "must hold"),
        (np.array([TELLTALE[0], "text"] * (N // 2), dtype=object), "must hold one kind of value"),
    ],
    ids=["text", "dates", "complex", "mixed"],
)
def test_a_column_of_the_wrong_kind_is_refused(column, message):
    refuse(ate(), f"Y {message}", y=column)
    frame = pd.DataFrame({"age": pd.Series(column), "sex": FRAME["sex"]})
    refuse(ate(bounds=NAMED), f"column 'age' of X {message}", x=frame)


def test_numbers_where_levels_are_text_are_refused():
    refuse(ate(bounds=NAMED), "column 'sex' of X must hold text", x=FRAME[["age"]].assign(sex=TELLTALE[1]))


def test_a_level_that_was_not_declared_is_refused_without_naming_it():
    sex = FRAME["sex"].where(FRAME.index != 5, str(TELLTALE[1]))
    refuse(
        ate(bounds=NAMED), "column 'sex' of X has values outside its declared levels", x=FRAME[["age"]].assign(sex=sex)
    )


def test_columns_must_be_those_of_the_bounds():
    refuse(ate(bounds=NAMED), "X lacks columns that the bounds declare: 'sex'", x=FRAME[["age"]])
    refuse(ate(bounds=NAMED), "do not declare: .*'y'", x=FRAME[["age", "sex", "y"]])
    refuse(ate(), "X has 1 columns, but the bounds declare 2", x=X[:, :1])
    refuse(ate(), "X is missing, but the bounds declare covariates", x=None)


@pytest.mark.parametrize("shape", [(N, 2), (N, 1, 1), ()])
def test_an_outcome_of_the_wrong_shape_is_refused(shape):
    refuse(ate(), "Y must be", y=np.ones(shape))


def test_a_lazy_table_is_refused():
    refuse(ate(bounds=NAMED), "X is a lazy table: collect it first", x=pl.from_pandas(FRAME[["age", "sex"]]).lazy())


@pytest.mark.parametrize("propensity", [0.0, 1.0, 0.01, 0.99, -3, np.full(N, 0.01), changed(np.full(N, 0.5), 8, 0.97)])
@pytest.mark.parametrize("make", [ATE, DifferenceInMeans])
def test_a_known_propensity_outside_the_declared_overlap_is_refused(make, propensity):
    refuse(make(epsilon=1.0, delta=1e-6, bounds=BOUNDS, propensity=propensity), "propensity must lie inside")


def test_a_constant_covariate_cannot_be_declared():
    with pytest.raises(InvalidInput, match=r"A range .* carries no information, so drop the column"):
        Range(1.0, 1.0)
    with pytest.raises(InvalidInput, match=r"levels .* carries no information, so drop the column"):
        Levels(("f",))


# --- tables ---------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["csv", "parquet", "frame"])
def table(request, tmp_path):
    def write(frame):
        path = tmp_path / f"records.{request.param}"
        if request.param == "frame":
            return frame
        frame.to_csv(path, index=False) if request.param == "csv" else frame.to_parquet(path)
        return path

    return write


def test_an_unknown_column_of_a_table_is_refused_by_name(table):
    source = table(FRAME)
    refuse_table(ate(bounds=NAMED), source, "no column 'dead'", outcome="dead")
    refuse_table(ate(bounds=NAMED), source, "no column 'drug'", treatment="drug")


def test_a_declared_column_that_a_table_lacks_is_refused_by_name(table):
    refuse_table(ate(bounds=NAMED), table(FRAME.drop(columns="sex")), "no column 'sex'")


def test_values_of_the_wrong_kind_in_a_table_are_refused(table):
    refuse_table(ate(bounds=NAMED), table(FRAME.assign(age="old")), "column 'age' .*must hold numbers")
    refuse_table(ate(bounds=NAMED), table(FRAME), "must hold numbers", outcome="day")


def test_missing_values_empty_arms_and_short_tables_are_refused(table):
    holes = FRAME.assign(y=FRAME["y"].where(FRAME.index != 4))
    refuse_table(ate(bounds=NAMED), table(holes), "has missing values")
    refuse_table(ate(bounds=NAMED), table(FRAME.assign(t=1)), "One arm is empty")
    refuse_table(ate(bounds=NAMED), table(FRAME.assign(t=FRAME["t"] + 1)), "must hold 0 or 1")
    refuse_table(ate(bounds=NAMED), table(FRAME[:9]), "fewer than 10 records")


def test_a_file_that_is_not_there_or_has_no_known_ending_is_refused(tmp_path):
    refuse_table(ate(bounds=NAMED), tmp_path / "none.csv", "There is no file")
    refuse_table(ate(bounds=NAMED), tmp_path / "records.doc", "not a CSV or Parquet file")


# --- releases -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [ATE, DifferenceInMeans])
@pytest.mark.parametrize("name", ["ate_", "guarantee_", "ate_interval", "summary"])
def test_an_unfitted_estimator_says_so(make, name):
    estimator = make(epsilon=1.0, delta=1e-6, bounds=BOUNDS)
    with pytest.raises(NotFitted, match=f"this {make.__name__} has no release yet; call fit first"):
        getattr(estimator, name)() if not name.endswith("_") else getattr(estimator, name)


def saved(tmp_path, monkeypatch, **changes):
    monkeypatch.undo()
    with seeded_noise(0):
        release = ate().fit(Y, T, X=X).release_
    path = tmp_path / "release.json"
    path.write_text(json.dumps(release.to_dict() | changes))
    return path


def test_a_release_of_a_newer_version_is_refused(tmp_path, monkeypatch):
    with pytest.raises(UnsupportedRelease, match="version 99, newer than 2; upgrade discreet"):
        Release.load(saved(tmp_path, monkeypatch, version=99))


def test_a_foreign_or_broken_file_is_no_release(tmp_path, monkeypatch):
    with pytest.raises(UnsupportedRelease, match="not a release of discreet"):
        Release.load(saved(tmp_path, monkeypatch, format="something else"))
    path = saved(tmp_path, monkeypatch)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(UnsupportedRelease, match="not complete JSON"):
        Release.load(path)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 2, np.nan, "0.05"])
def test_an_impossible_alpha_is_refused(alpha, monkeypatch):
    monkeypatch.undo()
    with seeded_noise(0):
        estimator = ate().fit(Y, T, X=X)
    with pytest.raises(InvalidInput, match="alpha must lie between 0 and 1"):
        estimator.ate_interval(alpha)


def test_a_failed_fit_leaves_no_release_of_an_earlier_one(monkeypatch):
    monkeypatch.undo()
    with seeded_noise(0):
        estimator = ate().fit(Y, T, X=X)
    estimator.set_params(epsilon=0.01)
    with pytest.raises(InvalidInput, match="One arm is empty"):
        estimator.fit(Y, np.ones(N), X=X)
    assert not hasattr(estimator, "release_")


def test_a_file_takes_a_propensity_by_number_or_column_only(tmp_path: Path) -> None:
    study = draw("correlated", 400, 3)
    path = tmp_path / "study.parquet"
    pd.DataFrame(study.X, columns=list("abcdef")).assign(y=study.Y, t=study.T).to_parquet(path)
    estimator = ATE(epsilon=1, delta=1e-5, bounds=study.bounds, propensity=[0.5] * 400)
    with pytest.raises(InvalidInput, match="propensity must be a number or the name of a column"):
        estimator.fit_table(path, outcome="y", treatment="t", covariates=list("abcdef"))


@pytest.mark.parametrize("table", [{"y": [1]}, np.zeros((20, 3))])
def test_what_is_no_table_is_refused(table: object) -> None:
    bounds = Bounds(outcome=(0, 1))
    with pytest.raises(InvalidInput, match="table must be a path or pattern"):
        ATE(epsilon=1, delta=1e-5, bounds=bounds).fit_table(table, outcome="y", treatment="t")


def test_covariates_must_be_listed_where_the_bounds_have_no_names() -> None:
    study = draw("correlated", 400, 3)
    frame = pd.DataFrame(study.X, columns=list("abcdef")).assign(y=study.Y, t=study.T)
    estimator = ATE(epsilon=1, delta=1e-5, bounds=study.bounds)
    with pytest.raises(InvalidInput, match="covariates must list the columns"):
        estimator.fit_table(frame, outcome="y", treatment="t")
    with pytest.raises(InvalidInput, match="put the name in a list"):
        estimator.fit_table(frame, outcome="y", treatment="t", covariates="a")
