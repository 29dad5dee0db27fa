"""Compiled loops give the integers that NumPy gives, or are not used; codes in memory change nothing."""

import shutil
import subprocess
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.data import in_memory
from discreet.data.bounds import Bounds
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import CHUNK_ROWS, Chunk
from discreet.data.views import coded
from discreet.data.views.coded import CodedRecords, packed
from discreet.estimators.measurements import coded_features
from discreet.estimators.measurements.coded_features import ChunkCache, CodedFeatures, CodesOf
from discreet.exceptions import InvalidInput
from discreet.postprocessing.feature_selection import FeatureSelection
from discreet.postprocessing.kernel_basis import CodedTables
from discreet.privacy.compiled import library, products
from discreet.privacy.compiled.products import Layout, Products, TableSums, agrees, second_moments, tiled, trusted
from discreet.privacy.query import Query, rows_of
from discreet.privacy.sensitivity.fixed_point import halves, into_ball, sum_in_ball, whole
from discreet.privacy.sensitivity.sets import Ball, Gram
from tests.privacy.test_coded_features import basis_of
from tests.privacy.test_coded_features import rows_of as records_of


@contextmanager
def asked():
    """Whoever runs these tests asks for compiled loops, where there can be any."""
    with pytest.MonkeyPatch.context() as patch:
        if shutil.which("cc") is not None:
            patch.setenv("DISCREET_COMPILED", "1")
        for each in (library.library, trusted):
            each.cache_clear()
        yield
    for each in (library.library, trusted):
        each.cache_clear()


@pytest.fixture(autouse=True, scope="module")
def always_asked():
    with asked():
        yield


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
seeds = st.integers(0, 10_000)


def chunk_of(x, rng):
    return Chunk(rng.uniform(-1, 1, len(x)), rng.integers(0, 2, len(x)).astype(float), x, None)


def made_up(seed, n, *, first=False, factors=1, values=0):
    """Products of any tables, and the array that NumPy makes of them."""
    rng = np.random.default_rng(seed)
    functions = [(j, rng.normal(size=9)) for j in rng.integers(0, 3, 7)]
    members = [[], *(sorted(rng.choice(7, size, replace=False).tolist()) for size in rng.integers(1, 4, 12))]
    size, which = rng.normal(size=len(members)), rng.integers(0, factors, len(members))
    codes, factor = rng.integers(0, 9, (3, n)).astype(np.uint16), rng.normal(size=(factors, n))
    more = tuple(rng.normal(size=(values, n)))
    layout = Layout(functions, members, size, factor=which, values=values, first=first)

    def rows():
        columns = []
        for member, own, f in zip(members, size, which, strict=True):
            lead, *others = [functions[k][1][codes[functions[k][0]]] for k in member] or [np.ones(n)]
            column = lead * factor[f] * own if first and member else lead * own
            for other in others:
                column = column * other
            columns.append(column if first and member else column * factor[f])
        return np.array([*columns, *(value * factor[0] for value in more)]).T

    return Products(layout, codes, factor, rows, more), rows()


@needs_compiler
@settings(max_examples=60, deadline=None)
@given(seeds, st.sampled_from([1, 7, 128, 129, 1_000]), st.booleans(), st.integers(1, 3), st.integers(0, 2))
def test_compiled_integers_are_those_of_numpy(seed, n, first, factors, values):
    check_integers_are_those_of_numpy(seed, n, first=first, factors=factors, values=values)


def check_integers_are_those_of_numpy(seed=1, n=1_000, **more):
    found, rows = made_up(seed, n, **more)
    largest, norm = np.abs(rows).max(), np.median(np.linalg.norm(rows, axis=1))
    # Records inside of the ball and beyond it; and outside of the cube, where NumPy takes over.
    for radius in (4 * largest + 1, max(norm, largest) + 1e-9, largest / 2 + 1e-9):
        for bits in (12, 20):
            expected = into_ball(rows, radius, bits).copy()
            np.testing.assert_array_equal(into_ball(found, radius, bits), expected)
            np.testing.assert_array_equal(sum_in_ball(found, radius, bits), whole(expected.sum(axis=0)))
    assert found.sums(largest / 2, 2.0**12, 2.0**12) is None
    np.testing.assert_array_equal(np.asarray(found), rows)


def check_loops_that_were_asked_for():
    with asked():
        # Loops that disagree are not used, so that the integers alone would not tell.
        assert shutil.which("cc") is None or trusted() is not None
        check_integers_are_those_of_numpy()


@needs_compiler
def test_numbers_that_are_none_go_the_way_of_numpy():
    found, _ = made_up(3, 300)
    found.factors[0, [5, 200]] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        rows = np.asarray(found)
        assert found.sums(1e9, 2.0**12, 2.0**12) is None
        steps = into_ball(found, 50.0, 12)
        np.testing.assert_array_equal(steps, into_ball(rows, 50.0, 12))
    assert np.all(np.sum(steps**2, axis=1) <= 4.0**12)


@needs_compiler
@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from([1, 2, 5, 6, 7, 13, 40]), st.sampled_from([1, 8, 511, 513, CHUNK_ROWS]))
def test_second_moments_are_exact_in_any_order(seed, m, n):
    rng = np.random.default_rng(seed)
    steps = np.asfortranarray(rng.integers(-(2**20) + 1, 2**20, (n, m)).astype(float))
    once, _ = halves(m)
    whole_numbers = steps.astype(np.int64)
    expected = (whole_numbers.T @ whole_numbers).ravel()[once]
    np.testing.assert_array_equal(tiled(trusted(), steps), expected)
    assert second_moments(np.ascontiguousarray(steps)) is None or 1 in (m, n)


@needs_compiler
@settings(max_examples=30, deadline=None)
@given(seeds, st.sampled_from([1e-6, 0.02]), st.sampled_from([1, 2]))
def test_compiled_functions_are_those_of_numpy(seed, noise, power):
    basis, rng = basis_of(seed, noise, 60), np.random.default_rng(seed)
    tables, x = CodedTables(basis, rng.normal(0, 1, basis.m), power), records_of(rng)
    small = CodesOf(basis.codings)(x).astype(np.uint16)
    np.testing.assert_array_equal(TableSums(tables.constant, tables.groups)(small), tables(x))


@needs_compiler
@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(0, 2))
def test_questions_of_features_have_the_same_sums_either_way(seed, functions):
    basis, rng = basis_of(seed, 1e-3, 60), np.random.default_rng(seed)
    chunk = chunk_of(records_of(rng, n=400), rng)
    phi = basis.from_codes(basis.codes(chunk.x), 400)
    selection = FeatureSelection.of(rng.dirichlet(np.ones(basis.m)), np.mean(phi**2, axis=0))
    selection = selection.beside(phi.T @ phi / 400, *rng.normal(0, 1, (functions, basis.m)))

    def sums():
        features = CodedFeatures(basis, 400)
        asked = [
            Query("gram", 1.0, Gram(basis.radius, basis.m), lambda c: features.times(c, np.sqrt(features.weights(c)))),
            Query("moments", 1.0, Ball(basis.radius, 2 * basis.m), lambda c: features.times(c, c.y, c.t)),
            Query("few", 1.0, Ball(selection.radius, selection.m), lambda c: features.selected(c, selection, c.y)),
        ]
        return [each.geometry.grid(30, "replace-one").add(rows_of(each, chunk)) for each in asked]

    compiled = sums()
    with pytest.MonkeyPatch.context() as patch:
        without_loops(patch)
        plain = sums()
    for one, other in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(one, other)


def without_loops(patch):
    """As on a machine without a compiler."""
    for module in (products, coded_features):
        patch.setattr(module, "trusted", lambda: None)


def study(n=6_000, p=3):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, p)).clip(-3, 3)
    T = (rng.random(n) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    Y = (X[:, 0] + T + rng.normal(size=n)).clip(-6, 6)
    return Y, T, X, Bounds(outcome=(-6, 6), covariates=[(-3, 3)] * p)


@needs_compiler
@pytest.mark.parametrize("kind", [dc.ATE, dc.CATE])
def test_a_release_is_the_same_with_compiled_loops_and_without(kind, monkeypatch):
    Y, T, X, bounds = study()

    def release():
        with dc.testing.seeded_noise(1):
            return kind(epsilon=4.0, delta=1e-6, bounds=bounds).fit(Y, T, X=X).release_.to_dict()

    assert trusted() is not None
    compiled = release()
    without_loops(monkeypatch)
    assert release() == compiled


def test_a_code_that_no_table_has_is_refused():
    basis, rng = basis_of(1, 1e-3, 20), np.random.default_rng(1)
    x = records_of(rng)
    codes = CodesOf(basis.codings)(x)
    codes[0, 3] = basis.codings[0].count
    chunk = Chunk(np.zeros(len(x)), np.zeros(len(x)), np.empty((len(x), 0)), None, c=codes)
    with pytest.raises(ValueError, match="not one of its covariate's"):
        CodedFeatures(basis, len(x)).weights(chunk)


# Where loops are built.


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """As on first use."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DISCREET_COMPILED", "1")
    library.library.cache_clear()
    yield tmp_path / "discreet"
    library.library.cache_clear()


@needs_compiler
def test_loops_are_built_once_in_a_folder_of_ones_own(fresh, monkeypatch):
    loops = library.library()
    assert loops is not None
    assert agrees(loops)
    assert fresh.stat().st_mode & 0o077 == 0
    (made,) = fresh.iterdir()
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("it is there already"))
    library.library.cache_clear()
    assert library.library() is not None
    assert list(fresh.iterdir()) == [made]


@needs_compiler
def test_a_folder_that_others_may_write_to_is_not_trusted(fresh):
    fresh.mkdir(mode=0o777)
    fresh.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="written to by others"):
        assert library.library() is None


def test_without_a_compiler_numpy_is_used_and_whoever_asked_is_told_once(fresh, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.warns(RuntimeWarning, match="no C compiler"):
        assert library.library() is None
    assert library.library() is None


@needs_compiler
def test_loops_for_another_processor_are_not_opened_and_whoever_asked_is_told_once(fresh, recwarn):
    made = library._built()
    elf = bytearray(made.read_bytes())
    assert elf[:4] == b"\x7fELF"
    # The machine that an ELF file is for stands in its bytes 18 and 19: one that nobody has.
    elf[18:20] = b"\xfe\xca"
    made.write_bytes(elf)
    check_numpy_is_used_and_says_so_once(recwarn)


def check_numpy_is_used_and_says_so_once(recwarn):
    trusted.cache_clear()
    Y, T, X, bounds = study(400)
    for _ in range(2):
        assert trusted() is None
        dc.ATE(epsilon=4.0, delta=1e-6, bounds=bounds).fit(Y, T, X=X)
    told = [each for each in recwarn if "cannot be used here" in str(each.message)]
    assert len(told) == 1
    trusted.cache_clear()


@needs_compiler
def test_loops_that_were_built_on_another_processor_are_not_taken_for_ones_own(fresh, monkeypatch):
    made = library._built()
    monkeypatch.setattr(library, "_processor", lambda: b"flags: none that this one has")
    assert library._built() != made


@needs_compiler
def test_nothing_is_built_for_those_who_did_not_ask(fresh, monkeypatch):
    monkeypatch.delenv("DISCREET_COMPILED")
    assert library.library() is None
    assert not fresh.exists()


@needs_compiler
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rint(products[i] * scale)", "trunc(products[i] * scale)"),
        ("lead[i] * factor[i] * size", "lead[i] * size * factor[i]"),
        ("trunc(own_steps[i] * shrink[i])", "rint(own_steps[i] * shrink[i])"),
        ("safe / sqrt(squares[i]) : 1.0", "safe / sqrt(squares[i]) : 0.5"),
    ],
)
def test_loops_that_disagree_with_numpy_are_not_used(fresh, tmp_path, monkeypatch, old, new):
    source = library.SOURCE.read_text()
    assert source.count(old) == 1
    wrong = tmp_path / "kernels.c"
    wrong.write_text(source.replace(old, new))
    monkeypatch.setattr(library, "SOURCE", wrong)
    assert not agrees(library.library())
    trusted.cache_clear()
    assert trusted() is None
    trusted.cache_clear()


# Codes in memory.


def digest(chunk):
    """A kernel that sees outcomes, arms, probabilities and codes."""
    assert chunk.x.shape[1] == 0
    return np.rint([1e6 * chunk.y.sum(), chunk.t.sum(), 1e6 * chunk.e.sum(), chunk.c.sum()]).astype(np.int64)


@pytest.mark.parametrize("outcomes", [np.linspace(-1, 1, 900), np.arange(900) % 2 * 1.0, np.ones(900)])
@pytest.mark.parametrize("e", [0.3, np.linspace(0.2, 0.7, 900)])
def test_what_is_kept_as_codes_has_the_same_numbers(outcomes, e, monkeypatch):
    monkeypatch.setattr(in_memory, "KEPT_NUMBERS", 0)
    check_codes_keep_numbers(outcomes, e)


def check_codes_keep_numbers(outcomes=None, e=0.3):
    outcomes = np.linspace(-1, 1, 900) if outcomes is None else outcomes
    rng, codings = np.random.default_rng(2), basis_of(2, 1e-3, 20).codings[:1]
    bounds = Bounds(outcome=(-1, 1), covariates=[(0, 1)], propensity=(0.1, 0.9))
    records = ArrayRecords.of(
        outcomes, rng.integers(0, 2, 900), rng.uniform(0, 1, (900, 1)), bounds=bounds, propensity=e
    )
    chunks, codes = list(records._chunks()), CodesOf(codings)
    kept = tuple(packed(chunks, codes))
    for plain, own in zip(chunks, kept, strict=True):
        for one, other in ((own.y, plain.y), (own.t, plain.t), (own.e, plain.e)):
            np.testing.assert_array_equal(one.astype(float), other)
        np.testing.assert_array_equal(own.c, codes(plain.x))
    expected = sum(digest(chunk._replace(c=codes(chunk.x), x=chunk.x[:, :0])) for chunk in chunks)
    np.testing.assert_array_equal(CodedRecords(n=900, bounds=bounds, kept=kept).sum(digest), expected)
    with pytest.raises(InvalidInput, match="changed"):
        CodedRecords(n=901, bounds=bounds, kept=kept).sum(digest)


def test_records_are_coded_once_for_the_same_codings(monkeypatch):
    monkeypatch.setattr(in_memory, "KEPT_NUMBERS", 0)
    Y, T, X, bounds = study(200)
    records, codings = ArrayRecords.of(Y, T, X, bounds=bounds), basis_of(2, 1e-3, 20).codings[:3]
    kept = records.coded(CodesOf(codings))
    assert isinstance(kept, CodedRecords)
    assert records.coded(CodesOf(codings)) is kept
    assert records.coded(CodesOf(codings[::-1])) is not kept


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", [dc.ATE, dc.CATE])
def test_a_release_is_the_same_from_codes_and_from_passes_over_rows(kind, neighbours, monkeypatch, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    Y, T, X, bounds = study()
    pq.write_table(pa.table({"y": Y, "t": T, **{f"x{j}": X[:, j] for j in range(3)}}), tmp_path / "rows.parquet")

    def release(kept_bytes, numbers, file):
        monkeypatch.setattr(coded, "KEPT_BYTES", kept_bytes)
        monkeypatch.setattr(in_memory, "KEPT_NUMBERS", numbers)
        estimator = kind(epsilon=4.0, delta=1e-6, bounds=bounds, neighbours=neighbours)
        with dc.testing.seeded_noise(1):
            if file:
                named = {"outcome": "y", "treatment": "t", "covariates": ["x0", "x1", "x2"]}
                return estimator.fit_table(str(tmp_path / "rows.parquet"), **named).release_.to_dict()
            return estimator.fit(Y, T, X=X).release_.to_dict()

    expected = release(0, 10**9, False)
    assert release(2**28, 0, False) == expected
    assert release(0, 0, False) == expected
    assert release(2**28, 0, True) == expected
    assert release(0, 0, True) == expected


def test_records_are_kept_as_codes_where_they_fit_and_may_leave_where_they_are(monkeypatch):
    Y, T, X, bounds = study(200)
    codes = CodesOf(basis_of(2, 1e-3, 20).codings[:3])
    assert ArrayRecords.of(Y, T, X, bounds=bounds).coded(codes) is not None
    short = ArrayRecords.of(Y, T, X, bounds=bounds)
    assert list(short._chunks())
    # Short tables are kept encoded: nothing is read again.
    assert short.coded(codes) is short
    monkeypatch.setattr(in_memory, "KEPT_NUMBERS", 0)
    long = ArrayRecords.of(Y, T, X, bounds=bounds)
    monkeypatch.setattr(coded, "KEPT_BYTES", 200 * 12)
    assert isinstance(long.coded(codes), CodedRecords)
    monkeypatch.setattr(coded, "KEPT_BYTES", 200 * 12 - 1)
    assert long.coded(codes) is long


def test_what_was_made_of_codes_is_kept_with_them_and_of_nothing_else():
    cache, made = ChunkCache(3 * CHUNK_ROWS, 2), []

    def of(chunk):
        return cache(chunk, lambda: made.append(chunk) or len(made))

    codes = [np.zeros((2, 3), dtype=np.uint8) for _ in range(3)]
    chunks = [Chunk(np.zeros(3), np.zeros(3), np.empty((3, 0)), None, c=own) for own in codes]
    assert [of(chunk) for chunk in chunks] == [1, 2, 3]
    # The next pass makes chunks of its own, with the same codes.
    assert [of(chunk._replace(y=np.ones(3))) for chunk in chunks] == [1, 2, 3]
    assert of(chunks[0]._replace(c=codes[0].copy())) == 4
