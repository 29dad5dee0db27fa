"""The commands for effect functions: they do what the library does, and say refusals in one sentence."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from discreet import Bounds, EffectRelease, Policy, load
from discreet.estimators import cate as cate_module
from tests.cli.helpers import ESTIMATE, plain, refused, run

TEXT = pcsv.ConvertOptions(column_types={"id": pa.string()})


@pytest.fixture
def published(here):
    """A release in the directory of the study, and a file of people."""
    result = run("cate", "study.parquet", *ESTIMATE, "--out", "effect.json", "--report", "page.html")
    assert result.exit_code == 0, result.output
    people = pa.table({"age": [0.1, 0.5, 0.9], "sex": ["f", "m", "f"]})
    pcsv.write_csv(people, "people.csv")
    return result, people


def test_an_effect_is_estimated_shown_saved_and_asked(published, tmp_path):
    result, people = published
    release = EffectRelease.load("effect.json")
    assert release.guarantee.status == "proved"
    assert "average effect" in result.stdout
    assert "The effect along" in (tmp_path / "page.html").read_text()
    answered = run("effect", "effect.json", "people.csv", "--out", "effects.csv", "--alpha", "0.2")
    assert answered.exit_code == 0, answered.output
    table = pcsv.read_csv("effects.csv")
    assert table.column_names == ["effect", "low", "high"]
    X = people.select(["age", "sex"])
    np.testing.assert_allclose(table["effect"].to_numpy(), release.effect(X))
    np.testing.assert_allclose(table["low"].to_numpy(), release.effect_interval(X, 0.2)[0])
    assert "Average over 3 rows" in answered.stdout
    shown = run("effect", "effect.json", "people.csv", "--report", "about.html")
    assert shown.exit_code == 0
    assert "95 % interval" in plain(shown.stdout)
    page = run("report", "effect.json", "--out", "again.html")
    assert page.exit_code == 0
    assert "The effect along" in (tmp_path / "again.html").read_text()
    assert (tmp_path / "about.html").read_text() == (tmp_path / "again.html").read_text()


def test_the_correction_can_be_chosen(here):
    result = run("cate", "study.parquet", *ESTIMATE, "--correction", "DR", "--out", "effect.json")
    assert result.exit_code == 0, result.output
    release = EffectRelease.load("effect.json")
    assert release.adjustment.get("correction", "DR") == "DR"
    assert run("cate", "study.parquet", *ESTIMATE, "--correction", "AIPW").exit_code == 2


def test_a_file_may_have_other_columns(published):
    _, people = published
    pcsv.write_csv(
        people.append_column("id", pa.array([1, 2, 3])).append_column("day", pa.array([4, 5, 6])), "more.csv"
    )
    assert run("effect", "effect.json", "more.csv", "--out", "a.csv").exit_code == 0
    assert run("effect", "effect.json", "people.csv", "--out", "b.csv").exit_code == 0
    assert pcsv.read_csv("a.csv") == pcsv.read_csv("b.csv")
    assert run("effect", "effect.json", "more.csv", "--covariates", "sex,age", "--out", "a.csv").exit_code == 0
    assert run("effect", "effect.json", "people.csv", "--out", "b.csv").exit_code == 0
    assert pcsv.read_csv("a.csv") == pcsv.read_csv("b.csv")
    refused(run("effect", "effect.json", "more.csv", "--covariates", "age"), "lacks columns")
    refused(run("effect", "effect.json", "more.csv", "--covariates", "age,sex,id"), "drop or declare 'id'")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("out", ["a.csv", "a.parquet"])
def test_an_id_or_all_columns_are_kept(published, suffix, out):
    _, people = published
    more = people.append_column("id", pa.array(["007", "a,b", '"']))
    pcsv.write_csv(more, "more.csv")
    pq.write_table(more, "more.parquet")
    read = pq.read_table if out == "a.parquet" else lambda name: pcsv.read_csv(name, convert_options=TEXT)
    assert run("effect", "effect.json", f"more.{suffix}", "--out", out, "--id", "id").exit_code == 0
    found = read(out)
    assert found.column_names == ["id", "effect", "low", "high"]
    assert found["id"].to_pylist() == ["007", "a,b", '"']
    release = EffectRelease.load("effect.json")
    np.testing.assert_allclose(found["effect"].to_numpy(), release.effect(people))
    assert run("effect", "effect.json", f"more.{suffix}", "--out", out, "--keep").exit_code == 0
    assert read(out).column_names == ["age", "sex", "id", "effect", "low", "high"]
    refused(run("effect", "effect.json", f"more.{suffix}", "--id", "id"), "--id and --keep belong to --out")
    refused(run("effect", "effect.json", f"more.{suffix}", "--out", out, "--id", "nobody"), "no column 'nobody'")
    refused(run("effect", "effect.json", f"more.{suffix}", "--out", "a.json"), "must end in .csv or .parquet")
    refused(run("effect", "effect.json", f"more.{suffix}", "--out", f"more.{suffix}"), "the file that is read")


def test_effects_are_written_a_batch_at_a_time(published, monkeypatch):
    rng = np.random.default_rng(1)
    many = pa.table({"age": rng.random(150_000), "sex": rng.choice(np.array(["f", "m"]), 150_000)})
    pcsv.write_csv(many, "many.csv")
    whole = EffectRelease.effect_with_interval
    seen = []
    monkeypatch.setattr(
        EffectRelease, "effect_with_interval", lambda self, X, a: seen.append(len(X)) or whole(self, X, a)
    )
    result = run("effect", "effect.json", "many.csv", "--out", "many.parquet")
    assert result.exit_code == 0, result.output
    assert len(seen) > 1
    assert max(seen) <= 65_536
    release = EffectRelease.load("effect.json")
    low, high = release.effect_on_interval(many)
    assert f"Average over 150,000 rows: {release.effect_on(many):.4g} ({low:.4g} to {high:.4g})" in plain(result.stdout)
    np.testing.assert_allclose(pq.read_table("many.parquet")["effect"].to_numpy(), release.effect(many))


def test_a_row_that_cannot_be_used_leaves_no_file(published, tmp_path):
    (tmp_path / "odd.csv").write_text("age;sex\n" + "0,5;f\n" * 70_000 + "secret;m\n")
    answer = run("effect", "effect.json", "odd.csv", "--decimal", ",", "--out", "odd-effects.csv")
    refused(answer, "column 'age' must hold numbers")
    assert "secret" not in answer.output
    assert not list(tmp_path.glob("odd-effects*"))


def test_files_that_hold_something_else_are_refused(published, tmp_path):
    assert run("ate", "study.parquet", *ESTIMATE, "--out", "average.json").exit_code == 0
    refused(run("effect", "average.json", "people.csv"), "holds no function with intervals")
    text = (tmp_path / "effect.json").read_text()
    for old, new, sentence in [
        ('"version": 3', '"version": 99', "version 99, newer than 3; upgrade discreet"),
        ('"version": 3', '"version": "new"', "no valid version"),
        ("discreet-effect-release", "somebody-else", "is not a release of discreet"),
        ('"design"', '"plan"', "exactly the fields"),
        ("{", "", "not complete JSON"),
    ]:
        assert old in text
        (tmp_path / "other.json").write_text(text.replace(old, new, 1))
        refused(run("effect", "other.json", "people.csv"), sentence)
        refused(run("report", "other.json", "--out", "never.html"), sentence)
    assert not (tmp_path / "never.html").exists()


def test_queries_that_do_not_fit_are_refused(published):
    table = pa.table({"age": [0.1], "sex": ["x"]})
    pcsv.write_csv(table, "levels.csv")
    pcsv.write_csv(table.drop_columns(["sex"]), "short.csv")
    pcsv.write_csv(pa.table({"age": [None, 0.2], "sex": ["f", "m"]}), "missing.csv")
    refused(run("effect", "effect.json", "levels.csv"), "outside its declared levels")
    refused(run("effect", "effect.json", "short.csv"), "no column 'sex'")
    refused(run("effect", "effect.json", "missing.csv"), "missing values")
    refused(run("effect", "effect.json", "nothing.csv"), "There is no file")
    refused(run("effect", "nothing.json", "people.csv"), "There is no release file")
    refused(run("effect", "effect.json", "people.csv", "--alpha", "2"), "--alpha must lie between 0 and 1")
    refused(run("effect", "effect.json", "people.csv", "--out", "missing/e.csv"), "name a file in a directory")


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        (["--epsilon", "-1"], "epsilon must be positive"),
        (["--outcome", "dayz"], "no column 'dayz'"),
        (["--covariates", "age,weight"], "--covariates names 'weight'"),
        (["--out", "study.csv"], "exists already"),
    ],
)
def test_refusals_come_before_anything_is_spent(here, monkeypatch, extra, sentence):
    monkeypatch.setattr(cate_module.CATE, "_fit", lambda *_: pytest.fail("the budget was spent"))
    refused(run("cate", "study.parquet", *ESTIMATE, *extra), sentence)


def test_covariates_without_names_are_named_by_hand(here):
    bounds = Bounds(outcome=(0, 10), covariates=[(0, 1)])
    rng = np.random.default_rng(0)
    cate = cate_module.CATE(epsilon=5.0, delta=1e-6, bounds=bounds)
    release = cate.fit(rng.uniform(0, 10, 300), np.arange(300) % 2, X=rng.random((300, 1))).release_
    release.save("plain.json")
    refused(run("effect", "plain.json", "study.csv"), "covariates must list the columns")
    refused(run("effect", "plain.json", "study.csv", "--covariates", "age,days"), "names 2 columns")
    assert run("effect", "plain.json", "study.csv", "--covariates", "age").exit_code == 0


def test_a_policy_is_chosen_saved_and_measured(here, tmp_path):
    segments = [*ESTIMATE, "--by", "age=4", "--out", "segments.json"]
    assert run("uplift", "study.parquet", *segments).exit_code == 0
    chosen = run("policy", "segments.json", "--cost", "0", "--capacity", "0.8", "--out", "policy.json")
    assert chosen.exit_code == 0, chosen.output
    assert "Whom to treat" in chosen.stdout
    policy = load("policy.json")
    assert (policy.cost, policy.capacity) == (0.0, 0.8)
    Policy.declare(bounds=policy.bounds, by={"age": 2}, treated=[False, True]).save("older.json")
    measured = ["--policy", "older.json", *ESTIMATE, "--out", "value.json", "--report", "page.html"]
    result = run("policy-value", "study.parquet", *measured)
    assert result.exit_code == 0, result.output
    assert "gain per person" in plain(result.stdout)
    assert load("value.json").guarantee.status == "proved"
    assert "person" in (tmp_path / "page.html").read_text()
    refused(run("policy", "value.json"), "a policy is chosen from a release of Uplift or CATE")
    refused(run("policy", "segments.json", "--capacity", "2"), "capacity must lie above 0")
    refused(run("policy-value", "study.parquet", *ESTIMATE), "--policy is needed")
    refused(run("policy-value", "study.parquet", "--policy", "segments.json", *ESTIMATE), "policy must be a Policy")


def test_a_policy_of_a_function_counts_the_people_of_a_file(published):
    refused(run("policy", "effect.json", "--capacity", "0.4"), "capacity needs people to count")
    result = run("policy", "effect.json", "--capacity", "0.4", "--people", "people.csv", "--out", "policy.json")
    assert result.exit_code == 0, result.output
    assert load("policy.json").share <= 0.4
