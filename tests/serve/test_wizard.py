"""Registering a data set step by step, by forms alone."""

import re
from html import unescape

import pyarrow as pa
import pyarrow.csv
import pytest

from discreet.exceptions import InvalidInput
from discreet.serve.domain import datasets as catalogue
from discreet.serve.wizard import forms as wizard_forms
from discreet.serve.wizard.columns import columns_of, files_below

SOURCE = {"source": "clinic.parquet"}
COLUMNS = SOURCE | {"outcome": "days", "treatment": "treated"} | {f"use-{j}": "1" for j in range(6)}
RANGES = {"y-kind": "range", "y-low": "0", "y-high": "40", "y-label": "days in hospital", "y-unit": "days"}
RANGES |= {"t-label": "catheter", "t-levels": "0, 1", "overlap-low": "0.03", "overlap-high": "0.97"}
RANGES |= {"c-0-kind": "range", "c-0-low": "18", "c-0-high": "95", "c-0-unit": "years"}
RANGES |= {"c-1-kind": "range", "c-1-low": "0", "c-1-high": "20"}
RANGES |= {"c-2-kind": "levels", "c-2-levels": "f, m", "c-3-kind": "levels", "c-3-levels": "north, east, south, west"}
BUDGET = {"id": "by-steps", "title": "By steps", "epsilon": "3", "delta": "1e-5", "count": "public"}


def step(site, name, form):
    client, csrf = site.sign_in("curator")
    return client.post(f"/curator/register/{name}", data={"csrf": csrf} | form, follow_redirects=False)


def field(page, name):
    """What a field of a page holds."""
    found = re.search(rf'name="{name}"[^>]*?value="([^"]*)"', page)
    return None if found is None else unescape(found[1])


def test_a_source_shows_names_and_types_and_never_a_value(site):
    text = site.get("/curator/register", "curator").text
    assert 'value="clinic.parquet"' in text
    columns = step(site, "source", SOURCE).text
    for word in ("age", "severity", "sex", "ward", "double", "varchar"):
        assert word in columns
    for level in ("north", "south"):
        assert level not in columns


def test_all_steps_lead_to_a_data_set_with_labels_and_units(site):
    bounds = step(site, "columns", COLUMNS).text
    assert "c-0-template" in bounds
    # Outcome and treatment are no covariates, whatever is ticked.
    assert "c-4-kind" not in bounds
    assert "c-5-kind" not in bounds
    budget = step(site, "bounds", COLUMNS | RANGES).text
    assert field(budget, "id") == "clinic"
    assert field(budget, "c-0-low") == "18"
    preview = step(site, "budget", COLUMNS | RANGES | BUDGET).text
    assert "0 to 40 days (days in hospital)" in preview
    assert "Made-up rows" in preview
    assert catalogue.by_id(site.service.engine, "by-steps") is None
    sent = step(site, "preview", COLUMNS | RANGES | BUDGET)
    assert sent.status_code == 303
    site.approve_all()
    made = catalogue.by_id(site.service.engine, "by-steps")
    assert dict(made.bounds.labels) == {"outcome": "days in hospital", "treatment": "catheter"}
    assert dict(made.bounds.units) == {"outcome": "days", "age": "years"}
    assert made.bounds.names == ("age", "severity", "sex", "ward")
    assert made.bounds.propensity == (0.03, 0.97)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("source", {"source": "nothing.csv"}, "matches no file"),
        ("source", {"source": "../secret.csv"}, "file"),
        ("source", {"source": ""}, "source must be"),
        ("columns", {"outcome": "nothing"}, "outcome must be one of the columns"),
        ("columns", {"treatment": "days"}, "two columns"),
        ("bounds", {"y-low": ""}, "outcome: declare the smallest"),
        ("bounds", {"c-0-high": "old"}, "age: its ends must be numbers"),
        ("bounds", {"c-2-levels": " "}, "sex: write its levels"),
        ("bounds", {"overlap-low": "2"}, "propensity"),
        ("bounds", {"c-1-low": "30"}, "severity"),
        ("budget", {"epsilon": "much"}, "epsilon has a value that cannot be used"),
        ("budget", {"records": "1", "n_about": "3", "count": "private"}, "records_about"),
        ("preview", {"c-3-levels": "north, east"}, "ward"),
        ("preview", {"id": "clinic"}, "id is the name of another data set"),
    ],
)
def test_what_is_wrong_comes_back_with_the_next_step_and_all_that_was_typed(site, name, change, words):
    given = COLUMNS | RANGES | BUDGET | {"about": "typed <here>", "id": f"wrong-{name}"} | change
    answer = step(site, name, given)
    assert answer.status_code == 422
    alert = unescape(re.search(r'role="alert"><p>(.*?)</p>', answer.text)[1])
    assert words in alert
    if name not in ("source", "preview"):
        for key in ("about", "c-0-label", *change):
            assert key not in given or field(answer.text, key) in (given[key], None) or key in ("outcome", "treatment")
        assert field(answer.text, "about") == "typed <here>"


def test_going_back_keeps_what_later_steps_hold(site):
    back = step(site, "columns", COLUMNS | RANGES | {"back": "1"}).text
    assert 'aria-current="step">Columns' in back
    assert field(back, "c-0-high") == "95"


def test_analysts_do_not_register(site):
    client, csrf = site.sign_in("analyst")
    assert client.get("/curator/register").status_code == 403
    assert client.post("/curator/register/source", data={"csrf": csrf} | SOURCE).status_code == 403


def test_columns_of_text_files_have_types_and_unreadable_files_are_refused_without_a_value(tmp_path):
    table = pa.table({"when": ["2020-01-31"], "who": ["anna"], "much": [1.5], "yes": [True]})
    pyarrow.csv.write_csv(table, tmp_path / "some.csv")
    found = {column.name: column.kind for column in columns_of(str(tmp_path / "some.csv"))}
    assert found == {"when": "date", "who": "text", "much": "number", "yes": "yes or no"}
    (tmp_path / "broken.parquet").write_bytes(b"secret words")
    with pytest.raises(InvalidInput) as refused:
        columns_of(str(tmp_path / "broken.parquet"))
    assert "secret" not in str(refused.value)
    assert files_below(str(tmp_path)) == ["broken.parquet", "some.csv"]


def test_ranges_of_dates_levels_that_are_numbers_and_further_columns_are_declared():
    from discreet.serve.wizard.columns import Column

    columns = [Column(name, "number", "double") for name in ("y", "t", "day", "grade", "z")]
    given = {"outcome": "y", "treatment": "t", "use-2": "1", "use-3": "1", "use-4": "1", "role-instrument": "z"}
    given |= {"y-kind": "levels", "y-levels": "no, yes", "t-levels": "placebo, drug", "source": "a.csv"}
    given |= {"c-2-kind": "range", "c-2-low": "2020-01-01", "c-2-high": "2020-12-31", "overlap-low": ".1"}
    given |= {"c-3-kind": "levels", "c-3-levels": "1, 2, 3", "overlap-high": ".9", "known": "0.5"}
    bounds = wizard_forms.bounds_from(given, columns)
    assert bounds.binary
    assert bounds.treatment == ("placebo", "drug")
    assert bounds.names == ("day", "grade")
    assert bounds.columns[1].levels == (1, 2, 3)
    made = wizard_forms.new_dataset(given, columns)
    assert made["columns"] == {"instrument": "z"}
    assert made["propensity"] == 0.5
    assert wizard_forms.short_name("a/b/2020 Ward.csv") == "data-2020-ward"
