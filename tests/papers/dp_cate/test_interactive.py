"""A function that answers queries: what it remembers, what a crash leaves, and what it never gives away."""

import copy
import json
import multiprocessing
import os
import pickle
import stat

import numpy as np
import pytest

from discreet import InvalidInput
from discreet.exceptions import UnsupportedRelease
from discreet.papers.dp_cate import answer_log as query_state
from discreet.papers.dp_cate.answer_log import SECRET, Journal
from discreet.papers.dp_cate.interactive import SecretFunction
from discreet.papers.dp_cate.kernel_regression import Function, GaussianKernel
from discreet.testing import frozen_noise, seeded_noise

RNG = np.random.default_rng(0)
CENTRES = RNG.random((10, 2))
FUNCTION = Function(kernel=GaussianKernel(0.4, 1.0), centres=CENTRES, weights=RNG.normal(0, 1, 10))
POINTS = RNG.random((20, 2))


def make(r=0.5, **given):
    return SecretFunction(FUNCTION, r, **given)


def test_without_noise_answers_are_the_function():
    with frozen_noise():
        np.testing.assert_allclose(make().ask(POINTS), FUNCTION(POINTS), atol=1e-4)


def test_the_same_query_has_the_same_answer_however_it_is_asked():
    f = make()
    first = f.ask(POINTS[:5])
    np.testing.assert_array_equal(f.ask(POINTS[4::-1]), first[::-1])
    both = f.ask(np.vstack([POINTS[5:6], POINTS[:2], POINTS[5:6]]))
    assert both[0] == both[3]
    np.testing.assert_array_equal(both[1:3], first[:2])
    assert f.answers == (*first, both[0])


def test_close_queries_have_close_answers():
    f = make(r=100.0)
    here = f.ask(POINTS[:1])
    there = f.ask(POINTS[:1] + 1e-3)
    assert abs(here - there)[0] < 0.05 * abs(here - FUNCTION(POINTS[:1]))[0] + 1.5


def test_the_noise_of_single_queries_has_the_law_of_a_batch():
    """Whitened noise at ten points: means 0 and covariance the identity, one at a time and all at once."""
    points, draws = POINTS[:10], 800
    root = np.linalg.cholesky(FUNCTION.kernel(points, points) + 1e-10 * np.eye(10))
    with seeded_noise(1):
        for at_once in (False, True):
            noise = np.empty((draws, 10))
            for draw in range(draws):
                f = make()
                asked = f.ask(points) if at_once else np.concatenate([f.ask(point[None, :]) for point in points])
                noise[draw] = (asked - FUNCTION(points)) / 0.5
            white = np.linalg.solve(root, noise.T)
            # Entries of an empirical covariance of 800 draws have standard errors of at most 0.05.
            assert np.abs(white @ white.T / draws - np.eye(10)).max() < 5 * 0.05


def test_algorithm_2_as_printed_never_looks_at_the_function_again():
    with seeded_noise(2):
        printed = make(as_printed=True)
        printed.ask(POINTS[:1])
        there = printed.ask(POINTS[1:2])
    other = SecretFunction(
        Function(kernel=FUNCTION.kernel, centres=CENTRES, weights=FUNCTION.weights + 0.0), 0.5, as_printed=True
    )
    with seeded_noise(2):
        other.ask(POINTS[:1])
        other._function = Function(kernel=FUNCTION.kernel, centres=CENTRES, weights=1e6 * FUNCTION.weights)
        assert other.ask(POINTS[1:2]) == there
    corrected = make()
    with seeded_noise(2):
        corrected.ask(POINTS[:1])
        corrected._function = Function(kernel=FUNCTION.kernel, centres=CENTRES, weights=1e6 * FUNCTION.weights)
        assert abs(corrected.ask(POINTS[1:2]) - there)[0] > 1e3


def test_a_point_that_others_fix_tells_nothing_new_about_the_function():
    f = make()
    f.ask(POINTS[:1])
    f._function = Function(kernel=FUNCTION.kernel, centres=CENTRES, weights=1e9 * FUNCTION.weights)
    assert abs(f.ask(POINTS[:1] + 1e-7) - f.ask(POINTS[:1]))[0] < 1e-3


def test_a_state_file_goes_on_where_it_stopped(tmp_path):
    f = make()
    before = f.ask(POINTS[:3])
    f.save(tmp_path / "state", {"a": 1})
    during = f.ask(POINTS[3:8])
    f.close()
    again, about = SecretFunction.load(tmp_path / "state")
    assert about == {"a": 1}
    np.testing.assert_array_equal(again.ask(POINTS[:8]), np.concatenate([before, during]))
    with frozen_noise():
        # Noise at new points follows from the noise that was drawn before the file was closed.
        one = again._path.rows(POINTS[8:9])
        expected = FUNCTION(POINTS[8:9]) + 0.5 * (one.old @ again._numbers)
        assert again.ask(POINTS[8:9]) == pytest.approx(expected, abs=1e-6)


def test_an_answer_is_on_disk_before_it_is_given(tmp_path, monkeypatch):
    f = make()
    f.save(tmp_path / "state", {})
    forced = []

    def crash(file):
        file.flush()
        forced.append((tmp_path / "state").read_bytes().count(b"\n"))
        raise SystemExit("the machine stops")

    monkeypatch.setattr(query_state, "_force", crash)
    with pytest.raises(SystemExit):
        f.ask(POINTS[:2])
    assert forced == [2]  # the function, and the line of this call
    assert f.answers == ()
    f._journal.close()
    monkeypatch.undo()
    written = json.loads((tmp_path / "state").read_text().splitlines()[1])
    again, _ = SecretFunction.load(tmp_path / "state")
    np.testing.assert_array_equal(again.ask(POINTS[:2]), written["answers"])


def test_a_line_that_a_crash_cut_short_was_never_answered(tmp_path):
    f = make()
    f.save(tmp_path / "state", {})
    first = f.ask(POINTS[:2])
    f.ask(POINTS[2:4])
    f.close()
    whole = (tmp_path / "state").read_bytes()
    (tmp_path / "state").write_bytes(whole[:-7])
    again, _ = SecretFunction.load(tmp_path / "state")
    assert again.answers == tuple(first)
    again.ask(POINTS[4:6])
    again.close()
    third, _ = SecretFunction.load(tmp_path / "state")
    assert len(third.answers) == 4


def test_a_full_disk_means_no_answer_and_no_trace(tmp_path, monkeypatch):
    f = make()
    f.save(tmp_path / "state", {})
    size = (tmp_path / "state").stat().st_size
    force = query_state._force

    def full(file):
        force(file)
        raise OSError("no space left")

    monkeypatch.setattr(query_state, "_force", full)
    with pytest.raises(InvalidInput, match="nothing was answered"):
        f.ask(POINTS[:1])
    monkeypatch.undo()
    assert f.answers == ()
    assert (tmp_path / "state").stat().st_size == size
    f.ask(POINTS[:1])
    f.close()
    assert SecretFunction.load(tmp_path / "state")[0].answers == f.answers


def test_only_one_can_hold_a_state_file(tmp_path):
    f = make()
    f.save(tmp_path / "state", {})
    with pytest.raises(InvalidInput, match="held by another"):
        SecretFunction.load(tmp_path / "state")
    with pytest.raises(InvalidInput, match="kept in"):
        f.save(tmp_path / "other", {})
    f.close()
    with pytest.raises(InvalidInput, match="another process"):
        f.ask(POINTS[:1])
    SecretFunction.load(tmp_path / "state")[0].close()


def _ask(f, pipe):
    try:
        f.ask(POINTS[:1])
    except InvalidInput as error:
        pipe.send(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only forked processes share an object")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_gets_no_answers():
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_ask, args=(make(), there))
    child.start()
    child.join(20)
    assert here.poll(1)
    assert "another process" in here.recv()


def test_the_file_says_that_it_is_secret_and_is_its_owners_only(tmp_path):
    f = make()
    f.save(tmp_path / "state", {})
    f.close()
    assert json.loads((tmp_path / "state").read_text().splitlines()[0])["secret"] == SECRET
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o600


def test_the_object_is_neither_copied_nor_pickled_nor_printed():
    f = make()
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(InvalidInput, match="cannot be copied"):
            attempt(f)
    assert "SECRET" in repr(f)
    assert not any(str(weight)[:6] in repr(f) for weight in FUNCTION.weights)
    assert "array" not in repr(FUNCTION)


def test_files_that_are_no_state_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no state file"):
        Journal.open(tmp_path / "nothing")
    for text in ("{not json}\n", '{"format": "other"}\n', "[1]\n", ""):
        (tmp_path / "file").write_text(text)
        with pytest.raises(UnsupportedRelease, match="no state file"):
            Journal.open(tmp_path / "file")
    with pytest.raises(InvalidInput, match="exists already"):
        Journal.create(tmp_path / "file", {}, [])
    with pytest.raises(InvalidInput, match="cannot be written"):
        Journal.create(tmp_path / "no" / "file", {}, [])


def test_seeded_answers_are_remembered_as_such(tmp_path):
    f = make()
    with seeded_noise(0):
        f.ask(POINTS[:1])
    f.save(tmp_path / "state", {})
    f.close()
    assert SecretFunction.load(tmp_path / "state")[0].seeded
    assert not make().seeded
