"""Effects on compliers: Fieller's region, what is released, what is refused, and the same from every source."""

import math
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet import LATE, Bounds, InvalidInput, Uncertainty
from discreet.estimators.natural_experiments.allocation import INSTRUMENT_PARTS, PILOT
from discreet.estimators.natural_experiments.views import Compliance, Remainder
from discreet.exceptions import InvalidBudget
from discreet.releases.local_effects.fieller import Part, combined, fieller
from discreet.releases.wording import rounds
from discreet.testing import frozen_noise, record_sums, seeded_noise

BOUNDS = Bounds(outcome=(-2, 6), covariates={"age": (0, 1)}, propensity=(0.2, 0.8))
COLUMNS = {"outcome": "y", "treatment": "t", "instrument": "z"}


def study(n: int = 3_000, seed: int = 1, compliance: float = 0.5) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, keen = rng.random(n), rng.random(n)
    z = (rng.random(n) < 0.3 + 0.4 * age).astype(int)
    t = ((keen > 0.8) | ((keen > 0.8 - compliance) & (z == 1))).astype(int)
    y = 2.0 * keen + age + 1.0 * t + rng.normal(0, 0.4, n)
    return pd.DataFrame({"y": y, "t": t, "z": z, "age": age, "id": np.arange(n)})


def late(**given: Any) -> LATE:
    return LATE(**({"epsilon": 4.0, "delta": 1e-6, "bounds": BOUNDS} | given))


def fitted(estimator: LATE, frame: pd.DataFrame | None = None) -> Any:
    frame = study() if frame is None else frame
    with seeded_noise(2):
        return estimator.fit(frame["y"], frame["t"], Z=frame["z"], X=frame[["age"]])


def part(estimate: float, se: float, bias: float = 0.0) -> Part:
    return Part(estimate, Uncertainty(sampling=0.0, privacy=se, clipping=bias))


def solved(top: Part, bottom: Part, alpha: float = 0.05) -> tuple[float, float, float]:
    """Fieller's quadratic: leading coefficient and roots, for independent errors."""
    z = 1.959963984540054
    a = bottom.estimate**2 - z**2 * bottom.uncertainty.privacy**2
    b, c = -top.estimate * bottom.estimate, top.estimate**2 - z**2 * top.uncertainty.privacy**2
    root = math.sqrt(max(b * b - a * c, 0.0))
    return a, (-b - root) / a, (-b + root) / a


@pytest.mark.parametrize("scale", [0.1, 1.0, 50.0])
@pytest.mark.parametrize(
    ("top", "bottom"),
    [
        (part(1.0, 0.1), part(0.5, 0.05)),
        (part(-1.0, 0.1), part(0.5, 0.05)),
        (part(0.0, 0.1), part(0.5, 0.2)),
        (part(1e-4, 1e-5), part(0.9, 1e-3)),
        (part(1.0, 0.1), part(-0.5, 0.05)),
    ],
)
def test_a_strong_instrument_has_fiellers_interval(top: Part, bottom: Part, scale: float) -> None:
    a, low, high = solved(top, bottom)
    assert a > 0
    ((found_low, found_high),) = fieller(top, bottom, scale, 0.05)
    assert found_low == pytest.approx(low, rel=1e-6, abs=1e-9)
    assert found_high == pytest.approx(high, rel=1e-6, abs=1e-9)


def test_a_weak_instrument_excludes_an_interval_or_nothing() -> None:
    top, bottom = part(1.0, 0.1), part(0.05, 0.05)
    a, one, other = solved(top, bottom)
    assert a < 0
    below, above = fieller(top, bottom, 1.0, 0.05)
    assert (below[0], above[1]) == (-math.inf, math.inf)
    assert below[1] == pytest.approx(min(one, other), rel=1e-6)
    assert above[0] == pytest.approx(max(one, other), rel=1e-6)
    assert fieller(part(0.05, 0.1), bottom, 1.0, 0.05) == ((-math.inf, math.inf),)
    # No effect and no instrument.
    assert fieller(part(0.0, 0.1), part(0.0, 0.1), 1.0, 0.05) == ((-math.inf, math.inf),)


def test_biases_and_errors_that_go_together_widen_the_region() -> None:
    plain = Uncertainty(sampling=0.1, privacy=0.0)
    alone = fieller(part(1.0, 0.1), part(0.5, 0.1), 1.0, 0.05)
    together = fieller(Part(1.0, plain), Part(0.5, plain), 1.0, 0.05)
    biased = fieller(part(1.0, 0.1, 0.05), part(0.5, 0.1, 0.02), 1.0, 0.05)
    for wider in (together, biased):
        assert wider[0][0] < alone[0][0] < alone[0][1] < wider[0][1]
    made = combined(Part(1.0, plain), Part(2.0, plain), 1.0, -3.0)
    assert made.estimate == -5.0
    assert made.uncertainty.sampling == pytest.approx(0.4)


def test_the_region_holds_the_true_quotient_as_often_as_it_says_however_weak() -> None:
    rng = np.random.default_rng(3)
    for moved in (0.0, 0.03, 0.1, 0.5):
        held = 0
        for _ in range(400):
            top, bottom = part(0.7 * moved + 0.1 * rng.normal(), 0.1), part(moved + 0.05 * rng.normal(), 0.05)
            held += any(low <= 0.7 <= high for low, high in fieller(top, bottom, 1.0, 0.1))
        # Four standard errors.
        assert abs(held / 400 - 0.9) < 4 * math.sqrt(0.09 / 400)


def test_views_are_what_they_say_they_are() -> None:
    declared = Bounds(outcome=(-2, 6), treatment=("no", "yes"))
    assert Compliance().bounds(declared).outcome == (0, 1)
    assert Compliance().bounds(declared).binary
    assert Remainder.of(1.5, declared).bounds(declared).outcome == (-3.5, 6)
    assert Remainder.of(-1.5, declared).bounds(declared).outcome == (-2, 7.5)
    assert Remainder.of(0.0, declared).bounds(declared).outcome == (-2, 6)
    from discreet.data.in_memory import ArrayRecords
    from discreet.estimators.natural_experiments.views import INSTRUMENT

    frame = study(40)
    frame.loc[0, "y"], frame.loc[1, "y"] = 100.0, -100.0
    records = ArrayRecords.of(frame["y"], frame["t"], bounds=Bounds(outcome=(-2, 6)))
    records = records.beside({INSTRUMENT.column(records.bounds): frame["z"]}, {"instrument": "Z"})
    (chunk,) = records._chunks()
    y = frame["y"].clip(-2, 6)
    for guess in (0.0, 1.5, -0.7, 8.0):
        view = Remainder.of(guess, records.bounds)
        seen, range_ = view(chunk), view.bounds(records.bounds).outcome_range
        np.testing.assert_allclose(seen.y, range_.encode((y - guess * frame["t"]).to_numpy()), atol=1e-12)
        np.testing.assert_array_equal(seen.t, frame["z"])
        assert np.abs(seen.y).max() <= 1.0
    np.testing.assert_array_equal(Compliance()(chunk).y, 2 * frame["t"] - 1)


def test_without_noise_the_estimate_is_near_the_truth_and_the_interval_around_it() -> None:
    with frozen_noise():
        found = fitted(late(epsilon=50.0), study(20_000))
    low, high = found.interval()
    assert low < 1.0 < high
    assert abs(found.estimate_ - 1.0) < 0.1
    share, below, above = found.release_.share_of_compliers()
    assert below < 0.5 < above
    assert abs(share - 0.5) < 0.05


def test_wider_intervals_for_higher_levels_and_parts_that_agree() -> None:
    release = fitted(late()).release_
    (narrow,), (wide,) = release.region(0.2), release.region(0.01)
    assert wide[0] < narrow[0] < release.estimate < narrow[1] < wide[1]
    itt, low, high = release.effect_of_instrument()
    assert itt == pytest.approx(release.remainder.estimate + release.guess * release.compliance.estimate)
    assert low < itt < high
    assert release.estimate == pytest.approx(itt / release.compliance.estimate)
    assert sum(release.uncertainty.share().values()) == pytest.approx(1.0)


def test_an_instrument_that_moves_nobody_says_that_it_is_unbounded(tmp_path: Any) -> None:
    frame = study(1_500).assign(z=np.arange(1_500) % 2)
    release = fitted(late(epsilon=1.0, propensity=0.5), frame).release_
    assert release.interval() == (-math.inf, math.inf)
    assert not release.bounded()
    assert "unbounded" in release.summary()
    assert "unbounded" in release.methods()
    assert "unbounded" in dict(release.display().lines)["95 % interval"]
    assert math.isfinite(release.estimate)
    assert abs(release.estimate) <= BOUNDS.outcome_width
    release.save(tmp_path / "it.json")
    assert dc.load(tmp_path / "it.json") == release
    page = dc.render_page(release, title="Offer")
    assert "may be nobody at all" in page
    assert "drawn where no effect can be any larger" in page


def test_the_page_says_what_was_found() -> None:
    release = fitted(late()).release_
    assert release.bounded()
    for guess, words in [(release.guess, "treatment raised"), (release.guess - 4.0, "treatment lowered")]:
        assert words in dc.render_page(replace(release, guess=guess))
    nothing = replace(release, guess=0.0, remainder=release.remainder._replace(estimate=0.0))
    assert "includes zero" in dc.render_page(nothing)


def test_shares_are_those_of_the_tables_and_add_up() -> None:
    assert sum(INSTRUMENT_PARTS.values()) == pytest.approx(1.0)
    assert sum(PILOT.shares.values()) == pytest.approx(1.0)
    for given in ({}, {"neighbours": "add-remove"}, {"propensity": 0.5}):
        release = fitted(late(**given)).release_
        stated = release.adjustment["shares"]
        assert sum(stated.values()) == pytest.approx(1.0, abs=1e-6)
        found = {name: share for name, _, share in rounds(release.guarantee.events)}
        assert found.keys() == stated.keys()
        for name, share in found.items():
            assert share == pytest.approx(stated[name], rel=0.02, abs=1e-4), name
    assert stated.keys() >= {"guess: arm means", "outcome: score", "compliance: score"}


def test_every_source_gives_the_same_release(tmp_path: Any) -> None:
    frame = study()
    frame.to_csv(tmp_path / "it.csv", index=False, float_format="%.17g")
    frame.to_parquet(tmp_path / "it.parquet")

    def release(table: Any, **options: Any) -> Any:
        with seeded_noise(2), record_sums() as sums:
            made = late().fit_table(table, **COLUMNS, **options)
        return made.release_, [each for _, _, each, _ in sums]

    expected, expected_sums = release(frame)
    assert expected.to_dict() == fitted(late(), frame).release_.to_dict()
    for name in ("it.csv", "it.parquet"):
        found, sums = release(str(tmp_path / name))
        for ours, theirs in zip(sums, expected_sums, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert found.to_dict() == expected.to_dict()


def test_a_release_says_what_it_is_about() -> None:
    release = fitted(late()).release_
    assert release.guarantee.proof == "late.md"
    assert release.guarantee.public == ("the declared bounds", "the number of records")
    assert "the instrument is as good as random" in release.summary()
    assert "Probabilities" not in release.summary() or "of the instrument" in release.summary()
    known = fitted(late(propensity=0.5, neighbours="add-remove")).release_
    assert known.guarantee.public == ("the declared bounds", "the probability of the instrument")
    assert known.design == "known propensity"
    assert "about" in known.summary()


def test_units_with_several_rows_are_protected_together() -> None:
    frame = study(3_000)
    frame["person"] = frame["id"] // 2
    with seeded_noise(2):
        release = late().fit_table(frame, **COLUMNS, unit="person", max_rows=2).release_
    assert release.guarantee.proof == "late.md, units.md"
    assert release.guarantee.unit == "one person with at most 2 rows"
    assert any("person" in note for note in release.notes)


REFUSED = {
    "missing": ({"Z": None}, "LATE needs Z=, the instrument"),
    "not binary": ({"Z": np.arange(200) % 3}, "Z has values outside its declared levels"),
    "too short": ({"Z": np.arange(150) % 2}, "Z and Y must have one entry per record"),
    "missing value": ({"Z": np.where(np.arange(200) == 7, np.nan, np.arange(200) % 2)}, "Z has missing values"),
    "another estimator's": ({"Z": np.arange(200) % 2, "before": np.zeros(200)}, "fit does not take before="),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_an_instrument_is_refused_before_anything_is_spent(name: str, monkeypatch: Any) -> None:
    from discreet.privacy import gate

    monkeypatch.setattr(gate, "discrete_gaussian", lambda *_: pytest.fail("noise was drawn"))
    given, why = REFUSED[name]
    frame, estimator = study(200), late()
    with pytest.raises(InvalidInput, match=why):
        estimator.fit(frame["y"], frame["t"], X=frame[["age"]], **given)
    assert not hasattr(estimator, "release_")


@pytest.mark.parametrize("known", [None, 0.5])
@pytest.mark.parametrize("value", [0, 1])
def test_an_instrument_that_never_varies_is_known_by_noisy_numbers_alone(value: int, known: float | None) -> None:
    """A refusal would be one exact bit; nothing but the gate's answers may decide what is said."""
    frame = study(2_000)
    release = fitted(late(propensity=known), frame.assign(z=value)).release_
    assert release.interval() == (-math.inf, math.inf)
    assert release.region() == ((-math.inf, math.inf),)
    assert any("the same in nearly every record" in note for note in release.notes)
    assert release.share_of_compliers()[1:] == (-1.0, 1.0)
    one_more = fitted(late(propensity=known), frame.assign(z=np.where(frame["id"] == 7, 1 - value, value))).release_
    assert [note[:60] for note in one_more.notes] == [note[:60] for note in release.notes]


def test_an_instrument_that_is_the_treatment_is_known_by_noisy_numbers_alone() -> None:
    frame = study(4_000)
    frame["z"] = frame["t"]
    release = fitted(late(propensity=0.5), frame).release_
    assert any("may move everybody" in note for note in release.notes)
    low, high = release.interval()
    assert math.isfinite(low)
    assert math.isfinite(high)
    other = fitted(late(propensity=0.5), frame.assign(z=np.where(frame["id"] == 7, 1 - frame["z"], frame["z"])))
    assert any("may move everybody" in note for note in other.release_.notes)
    plain = fitted(late(propensity=0.5), study(4_000)).release_
    assert not any(
        "may move everybody" in note or "not certain" in note or "nearly every" in note for note in plain.notes
    )


def test_what_is_written_twice_is_refused_without_a_look_at_records(monkeypatch: Any) -> None:
    from discreet.data.in_memory import ArrayRecords

    monkeypatch.setattr(ArrayRecords, "of", lambda *_, **__: pytest.fail("records were read"))
    treatment = study(200)["t"]
    with pytest.raises(InvalidInput, match="Z is the object that was given as the treatment"):
        late().fit(np.zeros(200), treatment, Z=treatment)


def test_other_refusals_name_what_to_do() -> None:
    frame = study(200)
    with pytest.raises(InvalidBudget, match="LATE needs delta"):
        fitted(late(delta=None))
    with pytest.raises(InvalidInput, match="LATE needs instrument=, the instrument"):
        late().fit_table(frame, outcome="y", treatment="t")
    with pytest.raises(InvalidInput, match="instrument and propensity must be different columns"):
        late().fit_table(frame, outcome="y", treatment="t", instrument="t")
    with pytest.raises(InvalidInput, match="fit_table does not take before="):
        late().fit_table(frame, **COLUMNS, before="age")
    with pytest.raises(InvalidInput, match="fit does not take Z="):
        dc.ATE(epsilon=1, delta=1e-6, bounds=BOUNDS).fit(frame["y"], frame["t"], Z=frame["z"], X=frame[["age"]])
    release = fitted(late()).release_
    with pytest.raises(InvalidInput, match="alpha must lie between 0 and 1"):
        release.interval(1.5)
    with pytest.raises(InvalidInput, match="finite numbers"):
        replace(release, guess=math.nan)
    with pytest.raises(InvalidInput, match="say how the instrument came about"):
        replace(release, design="by chance")
    with pytest.raises(InvalidInput, match="n must be positive"):
        replace(release, n=0.0)


def test_a_ledger_knows_an_instrument_from_another(tmp_path: Any) -> None:
    frame = study(400)
    ledger = dc.Ledger(f"sqlite:///{tmp_path}/it.db")
    with closing(ledger), seeded_noise(2):
        ledger.open("them", epsilon=20, delta=1e-3)
        paid = {"ledger": ledger, "dataset": "them"}

        def fit(z: Any) -> Any:
            return late().fit(frame["y"], frame["t"], Z=z, X=frame[["age"]], **paid).release_

        first, again, other = fit(frame["z"]), fit(frame["z"]), fit(1 - frame["z"])
        assert (first == again, first == other) == (True, False)
        assert len(ledger.requests("them")) == 2
        named = late().fit_table(frame, **COLUMNS, **paid).release_
        assert late().fit_table(frame, **COLUMNS, **paid).release_ == named
        assert len(ledger.requests("them")) == 3
