"""Pages for people: analysts and curators, by forms alone."""

import csv
import io
import json
import os
import sqlite3
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from discreet.data.backends import TableSpec
from discreet.data.bounds import Bounds
from discreet.datasets._demo import PUBLIC as BOUNDS
from discreet.exceptions import InvalidInput
from discreet.ledger.hash_chain import canonical, in_order, sha256
from discreet.releases.average import Release
from discreet.serve.audit_summary import TABLE, summary
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import plans, sources
from discreet.serve.domain import queries as explore
from discreet.serve.domain import users as people
from discreet.serve.domain.administration import _digests
from discreet.serve.pages.figures import plan_view
from discreet.serve.pages.forms import unit_of
from discreet.serve.pages.rendering import number
from discreet.serve.storage.schema import releases
from tests.serve.conftest import ROW, agree
from tests.test_layers import ROOT


def post(client, csrf, path, **data):
    return client.post(path, data={"csrf": csrf} | data, follow_redirects=False)


def test_an_analyst_plans_asks_waits_and_downloads(site):
    client, csrf = site.sign_in()
    assert "The clinic" in client.get("/datasets").text
    assert "severity" in client.get("/datasets/clinic").text
    plan = client.get("/datasets/clinic/plan")
    assert "Ask for this release" in plan.text
    replaced = client.get("/datasets/clinic/plan", headers={"HX-Request": "true"})
    assert "data-plot" in replaced.text
    assert "<button" not in replaced.text, "a button that htmx replaces while it is pressed loses the click"
    asked = {"kind": "difference-in-means", "epsilon": "0.4", "delta": "1e-7"}
    shown = client.get("/datasets/clinic/request", params=asked)
    assert "Spend ε = 0.4 and release" in shown.text
    answer = post(client, csrf, "/datasets/clinic/request", **asked)
    job = answer.headers["location"].rsplit("/", 1)[1]
    assert "hx-get" in client.get(f"/requests/{job}", follow_redirects=False).text
    release = site.wait(job)["release"]
    part = client.get(f"/requests/{job}", headers={"HX-Request": "true"})
    assert part.headers["hx-redirect"] == f"/releases/{release}"
    page = client.get(f"/requests/{job}")
    assert str(page.url).endswith(f"/releases/{release}")
    for words in ("95 % interval", "Sampling", "Privacy noise", "Copy the paragraph", "50 times in 100", "<svg"):
        assert words in page.text
    file = client.get(f"/releases/{release}/release.json")
    assert "attachment" in file.headers["content-disposition"]
    assert Release.from_dict(json.loads(file.text)).guarantee.epsilon == 0.4
    assert client.get(f"/releases/{release}/release.png").content[:4] == b"\x89PNG"
    again = post(client, csrf, "/datasets/clinic/request", **asked)
    assert again.headers["location"] == f"/releases/{release}?again=1"
    assert "Free." in client.get(again.headers["location"]).text
    assert post(client, csrf, f"/releases/{release}/publish").status_code == 303
    assert "published" in client.get("/releases").text
    assert "released" in client.get("/requests").text


def test_the_plan_follows_the_form_and_finds_an_epsilon(site):
    headers = {"HX-Request": "true"}
    client, _ = site.sign_in()
    part = client.get("/datasets/clinic/plan?kind=ate&epsilon=0.7&delta=1e-6", headers=headers).text
    assert "<html" not in part
    assert "ε = 0.7" in part
    solved = client.get("/datasets/clinic/plan?kind=ate&delta=1e-6&half=1.5&solve=1&epsilon=9", headers=headers).text
    assert "± 1.5" in solved
    assert 'hx-swap-oob="true"' in solved
    for bad, words in (
        ("epsilon=many", "epsilon"),
        ("epsilon=0", "epsilon"),
        ("half=0.0001&solve=1", "no epsilon"),
        ("half=x&solve=1", "±"),
        ("epsilon=1&delta=2", "delta"),
        ("kind=uplift&by-0=x", "segments"),
        ("kind=uplift&by-0=1,b", "segments"),
        ("kind=nothing&epsilon=1", "form"),
    ):
        assert words in client.get(f"/datasets/clinic/plan?{bad}", headers=headers).text, bad


def test_plans_of_all_kinds_are_free_and_the_wider_for_a_smaller_epsilon(site):
    # The first use of a token on a day is a line of its own.
    site.get("/api/v1/me")
    before = site.service.ledger.head
    for kind in ("ate", "difference-in-means", "cate", "uplift", "dp-cate"):
        asked = {"kind": kind, "delta": 1e-6} | ({"by": {"age": 4, "sex": "levels"}} if kind == "uplift" else {})
        widths = [
            site.post("/api/v1/datasets/clinic/plan", asked | {"epsilon": epsilon}).json()["width"]
            for epsilon in (0.3, 1.0, 3.0)
        ]
        assert widths == sorted(widths, reverse=True)
    wanted = site.post("/api/v1/datasets/clinic/plan", {"width": 4.0, "delta": 1e-6}).json()
    assert wanted["width"] == pytest.approx(4.0, rel=0.01)
    assert site.post("/api/v1/datasets/clinic/plan", {"width": 4.0, "epsilon": 1.0}).status_code == 422
    assert site.post("/api/v1/datasets/clinic/plan", {"delta": 1e-6}).status_code == 422
    assert site.service.ledger.head == before


def test_the_figure_of_a_plan_marks_the_chosen_epsilon_inside_its_axes(site):
    dataset = catalogue.by_id(site.service.engine, "clinic")
    for epsilon in (0.05, 0.2, 1.0, 10.0, 60.0):
        asked = plans.Planned(epsilon=epsilon, delta=1e-6)
        made = plans.answer(dataset, asked).plan
        drawn = plan_view(plans.curve(dataset, asked), made, "days")
        assert drawn["x"][0] <= drawn["marked"] <= drawn["x"][-1]
        assert drawn["ends"][0] < drawn["floor"] < drawn["ends"][1]
        assert epsilon > 10.0 or made.width / 2 < drawn["ends"][1]
        assert drawn["floor"] == made.without_privacy / 2


def test_dummy_data_fits_the_schema_and_comes_from_bounds_alone(site):
    text = site.get("/datasets/clinic/dummy.csv").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert set(rows[0]) == {"days", "treated", *BOUNDS.names}
    assert len(rows) == 200
    assert all(0 <= float(row["days"]) <= 40 and row["sex"] in "fm" and row["treated"] in "01" for row in rows)
    made = site.get("/api/v1/datasets/clinic/dummy?n=7").json()
    assert {len(column) for column in made.values()} == {7}
    assert site.get("/api/v1/datasets/clinic/dummy?n=0").status_code == 422


def test_an_uploaded_file_is_answered_as_a_file(site):
    client, csrf = site.sign_in()
    name = site.released(kind="uplift", epsilon=2.0, by={"severity": 4})
    head = "ward,age,severity,sex"
    body = f"{head}\nnorth,50,5,f\neast,60,1,m\n"

    def send(text, field="file"):
        files = {field: ("people.csv", text.encode() if isinstance(text, str) else text, "text/csv")}
        return client.post(f"/releases/{name}/upload", data={"csrf": csrf}, files=files)

    rows = list(csv.DictReader(io.StringIO(send(body).text)))
    assert [row["ward"] for row in rows] == ["north", "east"]
    assert all(float(row["low"]) <= float(row["effect"]) <= float(row["high"]) for row in rows)
    for bad in (
        "",
        head,
        "age,sex\n1,f\n",
        body + "north,old,5,f\n",
        body + "north,50\n",
        body + "x,50,5,f\n",
        b"\xff\xfe",
    ):
        answer = send(bad)
        assert answer.status_code == 422, bad
        assert "alert" in answer.text
    assert send(body, field="other").status_code == 422
    large = head + "\n" + "north,50,5,f\n" * 400_000
    assert send(large).status_code == 413
    assert client.post(f"/releases/{name}/upload", files={"file": ("x", b"x")}).status_code == 403


def test_a_file_with_too_many_lines_is_refused():
    body = b"age,severity,sex,ward\n" + b"50,5,f,north\n" * 11
    assert len(explore.rows_in(body, BOUNDS, 11)) == 11
    with pytest.raises(InvalidInput, match="more than 10"):
        explore.rows_in(body, BOUNDS, 10)


def test_formulas_in_uploaded_text_do_not_come_back_as_formulas():
    from discreet.serve.pages.analyst import harmless

    assert [harmless(text) for text in ("=1+1", "@x", "-2", "fine", -2.0)] == ["'=1+1", "'@x", "'-2", "fine", -2.0]


def test_levels_that_look_like_formulas_are_none_in_dummy_data(site):
    levels = ["=HYPERLINK(1)", "+1", "-1", "@x", " =1", "fine"]
    rows = {"days": [float(k % 30) for k in range(60)], "treated": [k % 2 for k in range(60)]}
    rows["=ward"] = [levels[k % 6] for k in range(60)]
    pq.write_table(pa.table(rows), Path(site.settings.data) / "risky.parquet")
    new = {"id": "risky", "title": "x", "source": "risky.parquet", "outcome": "days", "treatment": "treated"}
    new |= {"bounds": Bounds(outcome=(-30, 40), covariates={"=ward": levels}).to_dict(), "epsilon": 1.0}
    site.agreed(site.post("/api/v1/curator/datasets", new, "curator"))
    head, *lines = csv.reader(io.StringIO(site.get("/datasets/risky/dummy.csv", "curator").text))
    assert head == ["days", "treated", "'=ward"]
    assert {line[2] for line in lines} == {f"'{level}" for level in levels[:-1]} | {"fine"}
    # Numbers stay numbers, negative ones too.
    assert min(float(line[0]) for line in lines) < 0


def test_the_explorer_shows_curves_and_answers_for_one_person(site):
    name = site.released(kind="cate", epsilon=3.0)
    text = site.get(f"/releases/{name}/explore").text
    assert text.count("data-plot=") == len(BOUNDS.names)
    part = person(site, name, "x-0=50&x-1=5&x-2=0&x-3=0").text
    effect = site.post(f"/api/v1/releases/{name}/effects", {"rows": [ROW]}).json()["effects"][0]["effect"]
    assert number(effect) in part
    for bad in ("x-0=old&x-1=5&x-2=0&x-3=0", "x-0=50&x-1=5&x-2=9&x-3=0", "x-0=50"):
        assert "alert" in person(site, name, bad).text


def person(site, name, form, **headers):
    """The explorer's answer for one person."""
    client, csrf = site.sign_in()
    kind = {"content-type": "application/x-www-form-urlencoded", "HX-Request": "true", "X-CSRF-Token": csrf}
    return client.post(f"/releases/{name}/explore", content=form, headers=kind | headers)


def test_looking_at_a_page_has_no_function_answer(site):
    """Answers of a function that remembers them are asked for by a form that no other site can send."""
    name = site.released(kind="dp-cate", epsilon=1.02, calibration="claimed")
    form = "x-0=50&x-1=5&x-2=0&x-3=0"

    def count():
        return len(site.get(f"/api/v1/releases/{name}").json()["release"]["effects"])

    client, _ = site.sign_in()
    for headers in ({}, {"HX-Request": "true"}):
        assert "<html" in client.get(f"/releases/{name}/explore?{form}", headers=headers).text
    assert count() == 0
    assert person(site, name, form, **{"X-CSRF-Token": "wrong"}).status_code in (200, 403)
    assert count() == 0
    assert "Expected effect" in person(site, name, form).text
    assert count() == 1


def nothing_waits(site):
    """Take what other tests proposed out of the way."""
    for each in site.service.ledger.proposals():
        site.service.ledger.reject(each.id, curator="second")


def test_a_curator_registers_gives_access_freezes_and_reads_the_log(site):
    nothing_waits(site)
    client, csrf = site.sign_in("curator")
    assert "Nothing waits" in client.get("/curator").text
    form = {
        "id": "wards",
        "title": "<b>Wards</b>",
        "source": "clinic.parquet",
        "outcome": "days",
        "treatment": "treated",
    }
    form |= {"bounds": BOUNDS.to_toml(), "epsilon": "3", "delta": "1e-5", "n_public": "1"}
    second, other_csrf = site.sign_in("second")

    def agree(**more):
        number = site.service.ledger.proposals()[-1].id
        return post(second, other_csrf, f"/curator/approvals/{number}", **more)

    assert post(client, csrf, "/curator/datasets/new", **form).headers["location"] == "/curator"
    assert site.get("/curator/datasets/wards", "curator").status_code == 404
    # The same records as those of another data set: whoever approves has to say that this is known.
    assert "registered as clinic already" in second.get("/curator").text
    assert agree().status_code == 409
    assert agree(again="1").status_code == 303
    assert "&lt;b&gt;Wards" in client.get("/curator/datasets/wards").text
    here = "/curator/datasets/wards"
    # Two caps on the same records: any curator can see that.
    for page, other in ((here, "clinic"), ("/curator/datasets/clinic", "wards")):
        assert f'registered as <a href="/curator/datasets/{other}">' in client.get(page).text
    assert "registered as" not in client.get("/curator/datasets/trial").text
    assert post(client, csrf, f"{here}/allow", person="colleague", epsilon="1", delta="1e-6").status_code == 303
    assert site.get("/datasets/wards", "colleague").status_code == 404
    assert agree().status_code == 303
    assert "Wards" in site.get("/datasets", "colleague").text
    assert post(client, csrf, f"{here}/freeze", frozen="1", reason="until Monday").status_code == 303
    assert "frozen" in site.get("/datasets", "colleague").text.lower()
    assert post(client, csrf, f"{here}/freeze", frozen="0").status_code == 303
    assert site.service.ledger.account("wards").frozen
    assert agree().status_code == 303
    assert not site.service.ledger.account("wards").frozen
    assert post(client, csrf, f"{here}/deny", person="colleague").status_code == 303
    assert site.get("/datasets/wards", "colleague").status_code == 404
    for person in ("nobody", "second"):
        assert post(client, csrf, f"{here}/allow", person=person, epsilon="1").status_code == 422
    assert set(site.service.ledger.account("wards").quotas) == {"colleague"}
    assert post(client, csrf, f"{here}/recheck").status_code == 303
    assert post(client, csrf, f"{here}/elsewhere").status_code == 422
    log = client.get("/curator/log?anchor=").text
    assert "Intact." in log
    assert "until Monday" in log
    assert client.get("/curator/log.jsonl").text.count("\n") == site.service.ledger.head.seq


def test_raising_a_cap_takes_two_curators(site):
    nothing_waits(site)
    first, one = site.sign_in("curator")
    second, other = site.sign_in("second")
    cap = lambda: site.service.ledger.account("clinic").cap.epsilon  # noqa: E731
    assert post(first, one, "/curator/datasets/clinic/cap", epsilon="70", delta="1e-4").status_code == 303
    assert cap() == 60.0
    proposal = site.get("/api/v1/curator/approvals", "curator").json()[0]["id"]
    assert "Another curator has to approve it" in first.get("/curator").text
    assert post(first, one, f"/curator/approvals/{proposal}").status_code == 409
    assert site.post(f"/api/v1/curator/approvals/{proposal}", person="curator").json()["error"] == "twice"
    assert cap() == 60.0
    assert "Approve" in second.get("/curator").text
    assert post(second, other, f"/curator/approvals/{proposal}").status_code == 303
    assert cap() == 70.0
    assert post(second, other, f"/curator/approvals/{proposal}").status_code == 404
    # Lowering is done at once.
    assert site.put("/api/v1/curator/datasets/clinic/cap", {"epsilon": 60.0, "delta": 1e-4}).json() == {
        "proposal": None
    }
    assert cap() == 60.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": "missing.parquet"}, "matches no file"),
        ({"source": "../clinic.parquet"}, "matches no file"),
        ({"source": "/etc/passwd"}, "leaves"),
        ({"source": "../../../../../../../etc/passwd"}, "leaves"),
        ({"source": "postgresql://nowhere/base"}, "table"),
        ({"source": "postgresql://nowhere/base#people"}, "may not read"),
        ({"source": "x" * 900}, "matches no file"),
        ({"source": "[{*.parquet"}, "matches no file"),
        ({"source": f"sqlite:///{'x' * 900}#people"}, "matches no file"),
        ({"source": "sqlite:///missing.db#people"}, "matches no file"),
        ({"source": "sqlite:///service.db#nothing"}, "own database"),
        ({"source": "sqlite:///../outside.db#people"}, "leaves"),
        ({"source": "sqlite:///service.db?mode=rwc#people"}, "matches no file"),
        ({"source": "sqlite://#people"}, "sqlite:///file"),
        ({"outcome": "height"}, "no column"),
        ({"id": "Not A Name"}, "short name"),
        ({"id": "clinic"}, "already"),
        ({"bounds": "outcome = 3"}, "outcome"),
        ({"bounds": "outcome = {low = 0, high = 40}\n[covariates.height]\nlow = 1\nhigh = 2\n"}, "no column"),
        ({"bounds": "outcome = {low = 0, high = 40}\n[covariates.sex]\nlevels = ['a', 'b']\n"}, "declared levels"),
        ({"bounds": "outcome = {levels = [0, 1]}"}, "one of the two labels"),
        ({"bounds": "["}, "TOML"),
        ({"epsilon": "much"}, "epsilon"),
        ({"title": ""}, "title"),
    ],
)
def test_a_data_set_that_does_not_fit_what_is_declared_is_refused(site, change, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    client, csrf = site.sign_in("curator")
    form = {"id": "new", "title": "New", "source": "clinic.parquet", "outcome": "days", "treatment": "treated"}
    form |= {"bounds": BOUNDS.to_toml(), "epsilon": "3", "delta": "1e-5", "n_public": "1"}
    (Path(site.settings.data).parent / "outside.db").touch()
    there = sorted(path.name for path in Path(site.settings.data).glob("*.db"))
    answer = post(client, csrf, "/curator/datasets/new", **(form | change))
    assert sorted(path.name for path in Path(site.settings.data).glob("*.db")) == there
    assert list(tmp_path.iterdir()) == []
    assert answer.status_code == 422
    assert words in answer.text
    assert site.get("/api/v1/datasets/new", "curator").status_code == 404


def test_a_link_out_of_the_data_directory_is_refused(site, tmp_path):
    outside = tmp_path / "outside.parquet"
    outside.write_bytes((Path(site.settings.data) / "clinic.parquet").read_bytes())
    link = Path(site.settings.data) / "link.parquet"
    link.symlink_to(outside)
    try:
        new = {"id": "linked", "title": "x", "source": "link.parquet", "outcome": "days", "treatment": "treated"}
        new |= {"bounds": BOUNDS.to_dict(), "epsilon": 1.0}
        answer = site.post("/api/v1/curator/datasets", new, "curator")
    finally:
        link.unlink()
    assert answer.status_code == 422
    assert "leaves" in answer.json()["text"]


def test_a_table_of_a_database_can_be_registered_and_asked(site):
    rows = pq.read_table(Path(site.settings.data) / "clinic.parquet").to_pylist()
    address = f"sqlite:///{site.settings.data}/records.db"
    engine = sa.create_engine(address)
    kinds = {
        "days": sa.Float,
        "treated": sa.Integer,
        "age": sa.Float,
        "severity": sa.Float,
        "sex": sa.Text,
        "ward": sa.Text,
    }
    patients = sa.Table("people", sa.MetaData(), *(sa.Column(name, kind) for name, kind in kinds.items()))
    with engine.begin() as connection:
        patients.create(connection)
        connection.execute(sa.insert(patients), [{**row, "treated": int(row["treated"])} for row in rows])
    engine.dispose()
    new = {"id": "table", "title": "A table", "source": f"{address}#people", "outcome": "days", "treatment": "treated"}
    new |= {"bounds": BOUNDS.to_dict(), "epsilon": 5.0, "delta": 1e-5}
    site.agreed(site.post("/api/v1/curator/datasets", new, "curator"))
    assert site.get("/api/v1/datasets/table", "curator").json()["records"] == len(rows)
    site.agreed(site.put("/api/v1/curator/datasets/table/analysts/analyst", {"epsilon": 5.0, "delta": 1e-5}))
    assert site.released(dataset="table", epsilon=1.0)
    # It is read, and cannot be written.
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        sources._read_only(f"{site.settings.data}/records.db").execute("DELETE FROM people")
    # A table of SQLite is a file as well: that it was changed shows.
    assert catalogue.unchanged(catalogue.by_id(site.service.engine, "table"))
    with sa.create_engine(address).begin() as connection:
        connection.execute(sa.text("UPDATE people SET days = 0"))
    assert not catalogue.unchanged(catalogue.by_id(site.service.engine, "table"))


def test_a_pattern_names_the_same_files_when_it_is_checked_and_when_it_is_read(site, tmp_path):
    """Python and DuckDB read patterns differently: two stars, or braces."""
    home = tmp_path / "data [1]"
    (home / "a" / "b").mkdir(parents=True)
    rows = pq.read_table(Path(site.settings.data) / "clinic.parquet")
    pq.write_table(rows.slice(0, 700), home / "part.parquet")
    pq.write_table(rows.slice(700), home / "a" / "b" / "part.parquet")
    (home / "elsewhere").symlink_to(tmp_path)
    facts = {"outcome": "days", "treatment": "treated", "bounds": BOUNDS, "propensity": None}
    for pattern, count in (("**/part.parquet", len(rows)), ("*.parquet", 700), ("part.parquet", 700)):
        where = sources.located(pattern, str(home))
        assert sources.records_in(where, TableSpec(**facts)) == count
        assert sources.in_memory(where, "days", "treated", BOUNDS).num_rows == count
        before = sources.fingerprint(where)
        os.utime(home / "a" / "b" / "part.parquet")
        assert (sources.fingerprint(where) != before) == (count == len(rows))
    pq.write_table(rows, tmp_path / "outside.parquet")
    with pytest.raises(InvalidInput, match="leaves"):
        sources.located("*/outside.parquet", str(home))
    (home / "part.parquet").unlink()
    assert sources.fingerprint(where) == "nothing"


def test_a_source_that_is_changed_while_it_is_read_is_refused(site, monkeypatch):
    file = Path(site.settings.data) / "clinic.parquet"
    new = {"id": "moving", "title": "x", "source": "clinic.parquet", "outcome": "days", "treatment": "treated"}
    new |= {"bounds": BOUNDS.to_dict(), "epsilon": 1.0}
    times, read = (file.stat().st_atime_ns, file.stat().st_mtime_ns), sources.records_in

    def touched(*args, **kwargs):
        found = read(*args, **kwargs)
        os.utime(file)
        return found

    monkeypatch.setattr(sources, "records_in", touched)
    try:
        for path, body in (("/datasets", new), ("/datasets/clinic/recheck", None)):
            answer = site.post(f"/api/v1/curator{path}", body, "curator")
            assert (answer.status_code, "while it was read" in answer.json()["text"]) == (422, True)
    finally:
        os.utime(file, ns=times)
    assert site.get("/api/v1/datasets/moving", "curator").status_code == 404
    assert catalogue.unchanged(catalogue.by_id(site.service.engine, "clinic"))


def test_people_get_tokens_that_are_shown_once(site):
    client, csrf = site.sign_in("curator")
    page = post(client, csrf, "/curator/people", person="grace", name="Grace <script>", role="analyst")
    token = page.text.split('id="made">')[1].split("<")[0]
    assert "<script>" not in page.text.replace('<script src="', "")
    assert "in force when another curator has approved it" in page.text
    assert site.client.get("/api/v1/me", headers={"Authorization": f"Bearer {token}"}).status_code == 401
    for each in site.service.ledger.proposals():
        if each.facts.get("whom") == "grace":
            agree(site.service, each.id)
    assert site.client.get("/api/v1/me", headers={"Authorization": f"Bearer {token}"}).json()["person"] == "grace"
    assert token not in client.get("/curator/people").text
    more = post(client, csrf, "/curator/people/grace/tokens").text.split('id="made">')[1].split("<")[0]
    assert post(client, csrf, f"/curator/tokens/{more.split('_')[1]}/revoke").status_code == 303
    site.service.ledger.reject(site.service.ledger.proposals()[-1].id, curator="second")
    assert site.client.get("/api/v1/me", headers={"Authorization": f"Bearer {more}"}).status_code == 401
    for bad in (
        {"person": "grace"},
        {"person": "X Y"},
        {"person": "eve", "role": "king"},
        {"person": "eve", "name": ""},
    ):
        form = {"person": "eve", "name": "Eve", "role": "analyst"} | bad
        assert post(client, csrf, "/curator/people", **form).status_code == 422


def test_no_curator_makes_another_or_acts_for_one(site):
    client, csrf = site.sign_in("curator")
    before = len(people.tokens_of(site.service.engine, "second"))
    refused = post(client, csrf, "/curator/people/second/tokens")
    assert refused.status_code == 403
    assert "--curator" in refused.text
    api = site.post("/api/v1/curator/people/second/tokens", {}, "curator")
    assert (api.status_code, api.json()["error"]) == (403, "other-curator")
    assert len(people.tokens_of(site.service.engine, "second")) == before
    page = post(client, csrf, "/curator/people", person="third", name="Third", role="curator")
    assert (page.status_code, "--curator" in page.text) == (422, True)
    new = {"person": "third", "name": "Third", "role": "curator"}
    assert site.post("/api/v1/curator/people", new, "curator").status_code == 422
    assert "third" not in {each["id"] for each in people.everybody(site.service.engine)}
    # For oneself, and for analysts, it is what curators are there for.
    for person in ("curator", "colleague"):
        assert site.post(f"/api/v1/curator/people/{person}/tokens", {}, "curator").status_code == 201
    assert "/curator/people/second/tokens" not in client.get("/curator/people").text


def test_a_changed_line_of_the_log_shows(site):
    path = "/api/v1/curator/log/verification"
    # The first use of a token is a line of its own.
    site.get(path, "curator")
    head = str(site.service.ledger.head)
    assert site.get(f"{path}?anchor={head}", "curator").json() == {
        "intact": True,
        "head": head,
        "text": f"All {head.split(':')[0]} lines follow from each other.",
    }
    assert site.get(f"{path}?anchor=nonsense", "curator").status_code == 422
    triggers = sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'ledger_log'")
    with site.service.engine.begin() as connection:
        for name in connection.scalars(triggers).all():
            connection.execute(sa.text(f"DROP TRIGGER {name}"))
        connection.execute(sa.text("UPDATE ledger_log SET actor = 'somebody' WHERE seq = 1"))
    found = site.get(path, "curator").json()
    assert found["intact"] is False
    assert "Not intact." in site.get("/curator/log?anchor=", "curator").text
    with site.service.engine.begin() as connection:
        connection.execute(sa.text("UPDATE ledger_log SET actor = 'operator' WHERE seq = 1"))
    assert site.get(path, "curator").json()["intact"] is True


def test_a_release_that_was_changed_where_pages_read_it_shows(site):
    path, name = "/api/v1/curator/log/verification", site.released(epsilon=0.77)
    here = releases.c.id == name

    def put(plain):
        with site.service.engine.begin() as connection:
            connection.execute(sa.update(releases).where(here).values(plain=plain))
        return site.get(path, "curator").json()

    with site.service.engine.begin() as connection:
        plain = connection.scalar(sa.select(releases.c.plain).where(here))
    for changed in (json.dumps(json.loads(plain) | {"estimate": 0.0}), plain[:-1], "NaN"):
        found = put(changed)
        assert found["intact"] is False
        assert name in found["text"]
    assert put(plain)["intact"] is True


def test_pages_are_quick(site):
    """Twice the limit here: tests share their machine. The evidence measures it alone."""
    client, _ = site.sign_in("curator")
    analyst, _ = site.sign_in("analyst")
    pages = [
        (analyst, path) for path in ("/datasets", "/datasets/clinic", "/datasets/clinic/plan", "/releases", "/audit")
    ]
    pages += [(client, path) for path in ("/curator", "/curator/datasets/clinic", "/curator/people", "/curator/log")]
    for who, path in pages:
        taken = []
        for _ in range(3):
            started = time.perf_counter()
            assert who.get(path).status_code == 200
            taken.append(time.perf_counter() - started)
        assert min(taken) < 0.6, path


def test_the_audit_page_shows_what_the_evidence_says(site):
    assert TABLE.read_bytes() == (ROOT / "docs" / "evidence" / "audit.csv").read_bytes()
    found = summary()
    assert {"ATE", "CATE", "Uplift", "DifferenceInMeans"} <= {line["mechanism"] for line in found["proved"]}
    assert not any(line["violated"] for line in found["proved"])
    assert all(line["ratio"] <= 1.0 for line in found["proved"])
    assert all(
        line["epsilon_lower"] > line["epsilon"] or line["delta_lower"] > line["delta"] for line in found["refuted"]
    )
    assert len(found["refuted"]) > 5
    assert "no violation found" in site.get("/audit").text


def test_units_are_points_where_outcomes_are_shares():
    assert unit_of(Bounds(outcome=(0, 1))) == (0.01, "points")
    assert unit_of(BOUNDS)[0] == 1.0


def test_releases_that_ledgers_formerly_wrote_with_sorted_names_are_still_verified():
    release = {"format": "discreet-release", "bounds": {"covariates": {"sex": 1, "age": 2}}}
    other = {"format": "discreet-release", "bounds": {"covariates": {"age": 2, "sex": 1}}}
    now, formerly = (sha256(write(release)) for write in (in_order, canonical))
    assert _digests(json.dumps(release)) == {now, formerly}
    # The order of covariates is part of what a release says.
    assert now not in _digests(json.dumps(other))
    assert _digests("no JSON") == set()
