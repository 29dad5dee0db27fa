"""Models looked up in tables say what features times coefficients say, and the same of a record wherever it stands."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from discreet.data.columns import Levels, Range
from discreet.postprocessing.basis import Basis, Size, combine
from discreet.postprocessing.lookup_tables import STEPS, LookupTables

RNG = np.random.default_rng(11)
COLUMNS = (Range(0, 1), Levels(("a", "b", "c")), Range(-3, 5), Range(0, 9))
SIZES = [
    Size(degree=2, pairs=True, curved=True, steps=True),
    Size(degree=3, pairs=False, curved=False, jumps=3),
    Size(degree=1, pairs=True, curved=False),
]


def basis(size: Size, windows: tuple = ()) -> Basis:
    marginals = tuple(RNG.dirichlet(np.full(3 if isinstance(each, Levels) else 24, 2.0)) for each in COLUMNS)
    return Basis(COLUMNS, marginals, size, windows)


def rows(n: int) -> np.ndarray:
    x = RNG.uniform(-1, 1, (n, len(COLUMNS)))
    x[:, 1] = RNG.integers(0, 3, n)
    x[0, [0, 2, 3]], x[1, [0, 2, 3]] = 1.0, -1.0
    return np.asfortranarray(x)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("windows", [(), (None, None, (0.1, 0.4), None)], ids=["whole", "window"])
def test_looking_up_is_as_good_as_features(size, windows):
    made, x = basis(size, windows), rows(3_000)
    coefficients = [RNG.normal(0, 0.2, made.m) for _ in range(3)]
    coefficients[2][5:] = 0.0
    features = made.features(x)
    for found, each in zip(LookupTables(made, *coefficients)(x), coefficients, strict=True):
        exact = combine(features, each)
        # Steps are as narrow as this, and jumps fall into one of them.
        off = np.abs(found - exact)
        assert np.quantile(off, 0.9) < 400.0 / STEPS * np.std(exact)
        assert np.mean(off > 0.1 * np.std(exact)) < 0.01


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_record_gets_the_same_values_wherever_it_stands(size):
    made, x = basis(size), rows(997)
    tables = LookupTables(made, *(RNG.normal(0, 1, made.m) for _ in range(2)))
    whole = np.stack(tables(x))
    order = RNG.permutation(len(x))
    np.testing.assert_array_equal(np.stack(tables(np.asfortranarray(x[order]))), whole[:, order])
    for k in (0, 1, 5, 996):
        np.testing.assert_array_equal(np.stack(tables(x[k : k + 1]))[:, 0], whole[:, k])
    np.testing.assert_array_equal(np.stack(pickle.loads(pickle.dumps(tables))(x)), whole)


def test_no_covariates_leave_the_constant():
    made = Basis((), (), SIZES[0])
    np.testing.assert_array_equal(LookupTables(made, np.array([2.0]))(np.empty((4, 0)))[0], 2.0 * made.weight[0])


def test_only_basis_and_coefficients_are_sent_elsewhere():
    made = basis(SIZES[0])
    tables = LookupTables(made, np.ones(made.m))
    assert len(pickle.dumps(tables)) < 60_000 < tables._tables[0].nbytes


def test_tables_do_not_depend_on_the_machine_that_makes_them():
    code = (
        "import sys, pickle, hashlib, numpy as np; tables, x = pickle.load(sys.stdin.buffer); "
        "print(hashlib.sha256(np.stack(tables(x)).tobytes()).hexdigest())"
    )
    made, x = basis(SIZES[0]), rows(500)
    sent = pickle.dumps((LookupTables(made, *(RNG.normal(0, 1, made.m) for _ in range(2))), x))
    digests = set()
    # Kernels of BLAS for several processors, as far as this one can run them.
    for kind in ("Prescott", "Haswell", ""):
        environment = os.environ | ({"OPENBLAS_CORETYPE": kind} if kind else {})
        answer = subprocess.run(
            [sys.executable, "-c", code], input=sent, env=environment, capture_output=True, check=True
        )
        digests.add(answer.stdout)
    assert len(digests) == 1
