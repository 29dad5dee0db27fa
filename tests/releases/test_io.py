"""Release files are read for ever: one of every kind and version, as the code of its time wrote it, gives its numbers.

Files are named after their format and version; a suffix names a shape that was written under the same version. What
they are to give, in expected.json, was computed by the code that wrote them. Noise was seeded: they are tests.
"""

import json
import pickle
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet import ATE, Bounds, InvalidInput, UnsupportedRelease
from discreet.releases import _upgrades, io
from discreet.releases.report import render_page
from discreet.testing import seeded_noise

HOME = Path(__file__).parent.parent / "golden" / "releases"
FILES = sorted(path for path in HOME.glob("*.json") if path.name != "expected.json")
EXPECTED = json.loads((HOME / "expected.json").read_text())
ROWS = pd.DataFrame({"age": [0.1, 0.5, 0.9], "sex": ["f", "m", "f"]})
# The same for methods that know ranges alone.
POINTS = pd.DataFrame({"age": [0.1, 0.5, 0.9], "bp": [0.5, 0.5, 0.1]})


def numbers(release):
    """What a release says, by name."""
    kind = release.format
    if kind == "discreet-local-effect":
        return {"headline": release.estimate, "interval": release.interval()}
    if kind == "discreet-release":
        found = {"headline": release.estimate, "interval": release.interval()}
        if release.arms is not None:
            found["means"] = [value for mean in release.means().values() for value in mean]
            found["risk ratio"] = release.risk_ratio()
        return found
    if kind == "discreet-effect-release":
        low, high = release.effect_interval(ROWS)
        interval = release.ate_interval()
        return {
            "headline": release.ate(),
            "interval": interval,
            "effects": release.effect(ROWS),
            "low": low,
            "high": high,
        }
    if kind == "discreet-uplift":
        return {"headline": release.counts.sum(), "counts": release.counts, "effects": release.effects}
    if kind == "discreet-policy":
        return {"headline": release.gain.value, "lower": release.gain_lower(), "assigned": release.assign(ROWS)}
    if kind == "discreet-policy-value":
        found = {"headline": release.estimate, "interval": release.interval(), "lower": release.lower()}
        return found | {"assigned": release.policy.assign(ROWS)}
    if kind == "discreet-combined-release":
        return {"headline": release.estimate, "interval": release.interval(), "tau": release.tau}
    if kind == "discreet-survival":
        bands = {
            f"{part} of the {arm}": getattr(band, part)
            for arm, band in release.curves().items()
            for part in band._fields
        }
        return {"headline": release.estimate, "interval": release.interval()} | bands
    if kind == "discreet-arms":
        contrasts = [row[2:] for row in release.contrasts(simultaneous=True)]
        return {"headline": release.estimates[0], "means": release.estimates, "contrasts": contrasts}
    if kind == "discreet-arm-segments":
        contrasts = [row[3:] for row in release.contrasts(simultaneous=True)]
        return {"headline": release.noisy.counts.sum(), "contrasts": contrasts}
    if kind == "discreet-suggested-bounds":
        return {"headline": release.bounds.outcome[1], "low": release.bounds.outcome[0]}
    if kind == "discreet-paper-release":
        return {"headline": release.estimate}
    effects = release.effect() if kind == "discreet-paper-answers" else release.effect(POINTS)
    return {"headline": effects[0], "effects": effects}


def version_of(path):
    """Kind and version in a golden file's name."""
    found = re.fullmatch(r"([a-z-]+)\.v(\d+)(-[a-z]+)?\.json", path.name)
    return found[1], int(found[2])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_of_any_kind_and_version_is_read_and_gives_its_numbers(path, tmp_path):
    plain = json.loads(path.read_text())
    assert (plain["format"], plain["version"]) == version_of(path)
    release = discreet.load(path)
    found = numbers(release)
    assert found.keys() == EXPECTED[path.name].keys()
    for name, value in found.items():
        # Floating point differs between machines, and the first factors were written in five digits. Pairs were never
        # written by a public name: their counts are kept, and have been smoothed a little better since.
        rtol = 2e-3 if "pairs" in path.name and name == "effects" else 1e-4
        np.testing.assert_allclose(value, EXPECTED[path.name][name], rtol=rtol, atol=1e-6, err_msg=name)
    # Saved again it is of the current version, and says the same.
    release.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text())["version"] == io.REGISTRY[release.format].version
    for name, value in numbers(discreet.load(tmp_path / "again.json")).items():
        np.testing.assert_allclose(value, found[name], rtol=2e-3, atol=1e-5, err_msg=name)
    assert release.guarantee == discreet.load(tmp_path / "again.json").guarantee


@pytest.mark.parametrize("path", [path for path in FILES if "uplift" in path.name], ids=lambda path: path.name)
def test_segments_of_any_version_answer_for_each_and_for_all_at_once(path):
    release = discreet.load(path)
    for row, wider in zip(release.table(), release.table(simultaneous=True), strict=True):
        assert wider["low"] <= row["low"] < row["effect"] < row["high"] <= wider["high"]


def test_every_kind_has_a_file_of_every_version():
    wanted = {(name, v) for name, kind in io.REGISTRY.items() for v in range(1, kind.version + 1)}
    assert {version_of(path) for path in FILES} == wanted
    assert {path.name for path in FILES} == EXPECTED.keys()


@pytest.mark.parametrize(
    "name",
    [
        "discreet-release.v2",
        "discreet-effect-release.v3",
        "discreet-uplift.v2",
        "discreet-policy.v1",
        "discreet-local-effect.v1",
        "discreet-combined-release.v1",
        "discreet-survival.v1",
    ],
)
def test_a_file_has_its_fields_in_the_order_of_the_class(name):
    # An order that came from a set would change with the seed of Python's hashes, and with it every digest of a file.
    release = discreet.load(HOME / f"{name}.json")
    declared = [part.name for part in fields(release) if part.init]
    written = list(release.to_dict())
    assert written == ["format", "version", *(part for part in declared if part in written)]


def test_a_binary_outcome_is_in_the_file_by_its_labels_and_a_range_as_before(tmp_path):
    binary, ranged = (HOME / f"discreet-release.v1{end}.json" for end in ("-binary", ""))
    assert json.loads(binary.read_text())["bounds"]["outcome"] == {"levels": ["no", "yes"], "fill": "no"}
    assert json.loads(ranged.read_text())["bounds"]["outcome"].keys() == {"low", "high"}
    release = discreet.load(binary)
    assert release.bounds.binary
    assert not discreet.load(ranged).bounds.binary
    assert "outcomes were coded as 0 (no) and 1 (yes), and covariates (age and sex) clipped" in release.methods()
    assert "no (no event), yes (event); missing counts as no" in render_page(release)
    release.save(tmp_path / "again.json")
    again = json.loads((tmp_path / "again.json").read_text())
    assert again == json.loads(binary.read_text()) | {"version": 2}


def test_first_effects_by_segment_call_their_moments_what_they_are_now():
    old = json.loads((HOME / "discreet-uplift.v1.json").read_text())
    new = json.loads((HOME / "discreet-uplift.v2.json").read_text())
    assert io.upgrade(old, 1) == new
    assert new["outcome_moments"] == old["look"]


def test_every_kind_is_registered_under_the_name_that_its_class_writes():
    for name, kind in io.REGISTRY.items():
        assert kind.load_class().format == name


def test_a_kind_without_a_step_from_each_older_version_is_refused():
    with pytest.raises(InvalidInput, match="must lead from each version below 3"):
        io.Kind(home="discreet.releases.average:Release", version=3, upgrades={1: _upgrades.effect_function_1})


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@pytest.mark.parametrize(
    ("edit", "error", "sentence"),
    [
        (lambda plain: plain | {"version": 99}, UnsupportedRelease, "version 99, newer than .; upgrade discreet"),
        (lambda plain: plain | {"version": True}, UnsupportedRelease, "no valid version"),
        (lambda plain: plain | {"format": "discreet-new"}, UnsupportedRelease, "or upgrade discreet"),
        (lambda plain: plain | {"extra": 1}, InvalidInput, "exactly the fields"),
        (lambda plain: without(plain, "notes"), InvalidInput, "exactly the fields"),
        (lambda plain: without(plain, "guarantee"), InvalidInput, "exactly the fields"),
        (lambda plain: plain | {"guarantee": 3}, InvalidInput, "wrong type"),
        (lambda plain: plain | {"bounds": [1]}, InvalidInput, "check the file|Bounds|bounds"),
        (lambda plain: promised(plain, epsilon=1e-3), (InvalidInput, discreet.InvalidBudget), "epsilon|events"),
        (lambda plain: promised(plain, events=[]), (InvalidInput, discreet.InvalidBudget), "events"),
        (lambda plain: promised(plain, events=[{"kind": "staircase"}]), InvalidInput, "staircase"),
    ],
)
def test_an_edited_file_is_refused(path, edit, error, sentence, tmp_path):
    (tmp_path / "edited.json").write_text(json.dumps(edit(json.loads(path.read_text()))))
    with pytest.raises(error, match=sentence):
        discreet.load(tmp_path / "edited.json")


def without(plain, name):
    """A release without one of its fields."""
    return {key: value for key, value in plain.items() if key != name}


def promised(plain, **change):
    """A release with another guarantee."""
    return plain | {"guarantee": plain["guarantee"] | change}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_truncated_file_is_refused(path, tmp_path):
    content = path.read_bytes()
    for length in (0, 1, len(content) // 2, len(content) - 3):
        (tmp_path / "half.json").write_bytes(content[:length])
        with pytest.raises(UnsupportedRelease, match="not complete JSON"):
            discreet.load(tmp_path / "half.json")


@pytest.mark.parametrize("text", ["[1, 2]", "3", '"discreet-release"', '{"format": ["discreet-release"]}', "{}"])
def test_json_that_is_no_release_is_refused(text, tmp_path):
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(UnsupportedRelease, match="not a release of discreet"):
        discreet.load(tmp_path / "other.json")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_is_called_one_and_not_opened(protocol, tmp_path):
    rng = np.random.default_rng(0)
    with seeded_noise(0):
        made = ATE(epsilon=1, delta=1e-6, bounds=Bounds(outcome=(0, 1))).fit(rng.uniform(size=200), np.arange(200) % 2)
    (tmp_path / "ate.pkl").write_bytes(pickle.dumps(made, protocol))
    with pytest.raises(UnsupportedRelease, match="is a pickle, not a release file: unpickle it with the version of"):
        discreet.load(tmp_path / "ate.pkl")


def test_a_first_effect_function_keeps_the_intervals_that_were_published_with_it():
    release = discreet.load(HOME / "discreet-effect-release.v1.json")
    assert release.centre is not None
    plain = json.loads((HOME / "discreet-effect-release.v1.json").read_text())
    with pytest.raises(InvalidInput, match="wrong type"):
        io.read(without(plain, "centre"))
    with pytest.raises(InvalidInput, match="coefficients; check the file"):
        io.read(plain | {"centre": plain["centre"][1:]})
    assert discreet.load(HOME / "discreet-effect-release.v2.json").centre is None


def test_releases_without_a_page_say_so():
    with pytest.raises(UnsupportedRelease, match="print its summary"):
        render_page(discreet.load(HOME / "discreet-paper-segments.v1.json"))
