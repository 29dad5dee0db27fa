"""Awkward files: each gives the right numbers, or one sentence with the remedy, and nothing is charged on refusal."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet as dc
from discreet.data.backends import TableSpec, open_table
from discreet.data.backends.base import Options
from discreet.data.bounds import Bounds, Levels, Range
from discreet.exceptions import DiscreetError, MissingExtra

# What a record of every readable file says: outcome, arm, age, sex; an age is missing, and counts as 50.
ROWS = [(k % 5 / 4, k % 2, 20 + 3 * k, "fm"[k // 2 % 2]) for k in range(20)]
ROWS[7] = (*ROWS[7][:2], None, ROWS[7][3])  # type: ignore[assignment]
BOUNDS = Bounds(outcome=(0, 1), covariates={"age": Range(0, 100, fill=50), "sex": ["f", "m"]})
NAMES = "days,arm,age,sex"


def sums(path: Path, bounds: Bounds = BOUNDS, **options: Any) -> list[float]:
    """Sums of outcome, arm and covariates in their declared units."""
    spec = TableSpec(outcome="days", treatment="arm", bounds=bounds, where=options.pop("where", None))
    with open_table(str(path), spec, Options.of(options)) as records:

        def kernel(chunk: Any) -> Any:
            rows = np.column_stack([chunk.y, chunk.t, chunk.x])
            return np.rint(rows.sum(axis=0) * 2**20).astype(np.int64)

        return [round(each, 4) for each in (records.sum(kernel) / 2**20).tolist()]


def expected(rows: list[Any] = ROWS) -> list[float]:
    ages = [50 if age is None else age for _, _, age, _ in rows]
    found = [2 * y - 1 for y, *_ in rows], [t for _, t, *_ in rows], [age / 50 - 1 for age in ages]
    return [round(float(sum(each)), 4) for each in found] + [float(sum(sex == "m" for *_, sex in rows))]


def text(
    *, na: str = "NA", sep: str = ",", point: str = ".", arms: tuple[str, str] = ("0", "1"), head: str = NAMES
) -> str:
    """The records as somebody writes them."""
    lines = [head.replace(",", sep)]
    for y, t, age, sex in ROWS:
        shown = na if age is None else str(age)
        lines.append(sep.join([str(y).replace(".", point), arms[t], shown, sex]))
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class File:
    """A file, how it is read, and what comes of it: the right numbers, or a sentence that holds these words."""

    content: str | bytes
    name: str = "it.csv"
    options: dict[str, Any] = field(default_factory=dict)
    refused: str | None = None
    bounds: Bounds = BOUNDS


DRUGS = Bounds(
    outcome=(0, 1), covariates={"age": Range(0, 100, fill=50), "sex": ["f", "m"]}, treatment=("placebo", "drug")
)
PLAIN = text()
LATIN = text(head="days,arm,age,sex,größe").replace("f\n", "f,ä\n").replace("m\n", "m,ß\n")
FILES: dict[str, File] = {
    # Missing values, as programs write them.
    "R": File(text(na="NA")),
    "R, quoted": File(text(na='"NA"')),
    "SAS": File(text(na=".")),
    "SAS, a special code": File(text(na=".B")),
    "Stata": File(text(na=".z")),
    "SPSS": File(text(na=" ")),
    "SPSS, a spreadsheet": File(text(na="#NULL!")),
    "pandas": File(text(na="")),
    "pandas, nan": File(text(na="nan")),
    "a database": File(text(na="NULL")),
    "a spreadsheet": File(text(na="#N/A")),
    "Python": File(text(na="None")),
    "a code": File(text(na="-99"), options={"na": ["-99"]}),
    "a code, as a number": File(text(na="-99.0"), options={"na": -99}),
    "a word": File(text(na="unknown"), options={"na": ["unknown", "refused"]}),
    "a word that is not named": File(text(na="unknown"), refused="column 'age' must hold numbers.*na="),
    "no fill": File(
        PLAIN,
        bounds=Bounds(outcome=(0, 1), covariates={"age": (0, 100), "sex": ["f", "m"]}),
        refused="column 'age' has missing values: declare its fill",
    ),
    # Separators, decimal commas and quotes.
    "semicolons": File(text(sep=";")),
    "tabs": File(text(sep="\t"), name="it.tsv"),
    "bars": File(text(sep="|"), name="it.txt"),
    "a separator of its own": File(text(sep="^"), options={"delimiter": "^"}),
    "a separator of its own, not named": File(text(sep="^"), refused="has no column .*delimiter="),
    "decimal commas": File(text(sep=";", point=","), options={"decimal": ","}),
    "decimal commas, not named": File(text(sep=";", point=","), refused="decimal=','"),
    "thousands": File(text().replace("\n0.25,", '\n"1,000.25",'), refused="column 'days' must hold numbers"),
    "points among commas": File(text(sep=";"), options={"decimal": ","}, refused="column 'days' must hold numbers"),
    "quotes": File("\n".join(",".join(f'"{each}"' for each in line.split(",")) for line in PLAIN.splitlines())),
    "spaces around numbers": File(PLAIN.replace(",2", ", 2")),
    "line ends of Windows": File(PLAIN.replace("\n", "\r\n")),
    "no last line end": File(PLAIN.rstrip("\n")),
    "more columns": File(PLAIN.replace("sex", "sex,note").replace("f\n", 'f,"a, ""b"""\n').replace("m\n", "m,\n")),
    "a longer line": File(PLAIN + "1,1,20,f,5\n", refused="not readable as CSV"),
    "no header": File(PLAIN.split("\n", 1)[1], refused="has no column .*first line must hold the names"),
    "a repeated name": File(PLAIN.replace("sex", "age", 1), refused="has no column 'sex'"),
    "nothing": File("", refused="has no column|not readable"),
    "a header only": File(NAMES + "\n", refused="fewer than 10 records"),
    # Encodings.
    "a mark of UTF-8": File(b"\xef\xbb\xbf" + PLAIN.encode()),
    "UTF-16": File(PLAIN.encode("utf-16")),
    "latin-1": File(LATIN.encode("latin-1"), options={"encoding": "latin-1"}),
    "cp1252": File(LATIN.replace("ä", "€").encode("cp1252"), options={"encoding": "windows-1252"}),
    "latin-1, not named": File(LATIN.encode("latin-1"), refused="encoding="),
    "an unknown encoding": File(
        PLAIN, options={"encoding": "klingon"}, refused="encoding must be one that Python knows"
    ),
    "packed": File(gzip.compress(PLAIN.encode()), name="it.csv.gz"),
    # Treatments and levels.
    "yes and no": File(text(arms=("no", "yes"))),
    "R's logicals": File(text(arms=("FALSE", "TRUE"))),
    "letters": File(text(arms=("N", "Y"))),
    "labels": File(text(arms=("placebo", "drug")), bounds=DRUGS),
    "labels, not declared": File(text(arms=("placebo", "drug")), refused="column 'arm' must hold numbers"),
    "NA is a level": File(
        PLAIN.replace(",f\n", ",NA\n"),
        bounds=Bounds(outcome=(0, 1), covariates={"age": Range(0, 100, fill=50), "sex": ["NA", "m"]}),
    ),
    "NA is none": File(
        PLAIN.replace(",f\n", ",NA\n"),
        bounds=Bounds(outcome=(0, 1), covariates={"age": Range(0, 100, fill=50), "sex": Levels(("f", "m"), fill="f")}),
    ),
    "codes that float64 cannot hold": File(PLAIN.replace(",23,", ",90071992547409931,"), refused="beyond 2\\*\\*53"),
    # What is no text file.
    "by its name": File(PLAIN, name="it.doc", refused="must end in"),
    "a Parquet file by its name only": File(PLAIN, name="it.parquet", refused="not readable as Parquet"),
    "a Stata file by its name only": File(PLAIN, name="it.dta", refused="not readable as Stata"),
    "options that do not fit": File(PLAIN, options={"delimiter": ";;"}, refused="delimiter must be one character"),
}


@pytest.fixture(name="path")
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file: File = request.param
    path = tmp_path / file.name
    path.write_bytes(file.content if isinstance(file.content, bytes) else file.content.encode())
    return path


READABLE = {name: file for name, file in FILES.items() if file.refused is None}
REFUSED = {name: file for name, file in FILES.items() if file.refused is not None}


@pytest.mark.parametrize(
    ("path", "file"), [(each, each) for each in READABLE.values()], ids=READABLE, indirect=["path"]
)
def test_what_can_be_read_gives_the_right_numbers(path: Path, file: File) -> None:
    assert sums(path, file.bounds, **file.options) == expected()


@pytest.mark.parametrize(("path", "file"), [(each, each) for each in REFUSED.values()], ids=REFUSED, indirect=["path"])
def test_what_cannot_be_read_is_one_sentence_and_costs_nothing(path: Path, file: File, tmp_path: Path) -> None:
    ledger = dc.Ledger(f"sqlite:///{tmp_path / 'budget.db'}")
    ledger.open("it", epsilon=1, delta=1e-5)
    estimator = dc.DifferenceInMeans(epsilon=0.5, bounds=file.bounds)
    with pytest.raises(DiscreetError, match=file.refused) as refusal:
        estimator.fit_table(str(path), outcome="days", treatment="arm", ledger=ledger, dataset="it", **file.options)
    assert ledger.account("it").spent.epsilon == 0
    said = str(refusal.value).replace(str(tmp_path), "")
    assert said.endswith(".")
    assert "90071992547409931" not in said
    ledger.close()


def test_how_a_record_is_read_does_not_depend_on_the_others(tmp_path: Path) -> None:
    """Each record alone among ten plain ones, in any order, adds what it adds among all others."""
    odd = ["0.5,yes,NA,f", "0.5,0, 7 ,m", "0.5,TRUE,.,m", "1e0,f,2020,f"]
    plain = ["0,0,10,f", "1,1,20,m"] * 5

    def of(lines: list[str]) -> np.ndarray[Any, Any]:
        path = tmp_path / f"it{abs(hash(tuple(lines)))}.csv"
        path.write_text("\n".join([NAMES, *lines]) + "\n")
        return np.array(sums(path))

    base = of(plain)
    alone = sum((of([*plain, line]) - base for line in odd), np.zeros(4))
    np.testing.assert_allclose(of([*odd, *plain]) - base, alone, atol=1e-3)


DATES = ["2020-01-01", "2020-07-01 12:00", "2020-12-31", "1999-01-01", "NA"] * 4
DATED = Bounds(
    outcome=(0, 1),
    covariates={"admitted": dc.Bounds(outcome=(0, 1), covariates={"a": ("2020-01-01", "2020-12-31")}).columns[0]},
)


def dated(fill: str) -> pd.DataFrame:
    when = pd.to_datetime([fill if each == "NA" else each for each in DATES], format="mixed")
    return pd.DataFrame({"days": [k % 2 for k in range(20)], "arm": [k // 2 % 2 for k in range(20)], "admitted": when})


@pytest.mark.parametrize("suffix", ["csv", "parquet", "dta"])
def test_dates_are_days_in_every_kind_of_file(tmp_path: Path, suffix: str) -> None:
    frame = dated("2020-07-01 12:00")
    path = tmp_path / f"it.{suffix}"
    if suffix == "dta":
        frame.to_stata(path, write_index=False)
    else:
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    # -1, 0, 1, clipped to -1, and the middle again.
    assert sums(path, DATED)[2] == pytest.approx(-4, abs=1e-3)
    assert sums(path, DATED, where={"admitted": ("2020-07-01", None)})[2] == pytest.approx(4, abs=1e-3)
    # The last day is meant as a whole.
    narrow = {"admitted": ("1999-01-01", "2020-07-01")}
    assert sums(path, DATED, where=narrow)[2] == pytest.approx(-8, abs=1e-3)


def test_a_frame_in_memory_has_dates_too() -> None:
    frame = dated("2020-07-01")
    for table in (frame, pa.Table.from_pandas(frame), frame.astype({"admitted": str})):
        records = dc.data.in_memory.ArrayRecords.of(  # type: ignore[attr-defined]
            frame["days"],
            frame["arm"],
            table[["admitted"]] if isinstance(table, pd.DataFrame) else table.select(["admitted"]),
            bounds=DATED,
        )
        (total,) = records.sum(lambda chunk: np.rint(chunk.x.sum(axis=0) * 1000).astype(np.int64))
        assert total == pytest.approx(-4000, abs=20)


def test_text_that_is_no_date_is_refused_without_quoting_it(tmp_path: Path) -> None:
    path = tmp_path / "it.csv"
    path.write_text("days,arm,admitted\n" + "1,0,2020-03-01\n0,1,31.12.2020\n" * 6)
    with pytest.raises(DiscreetError, match="column 'admitted' must hold dates like 2020-01-31") as refusal:
        sums(path, DATED)
    assert "31.12" not in str(refusal.value)


def test_dates_in_bounds_survive_every_way_of_writing_them() -> None:
    bounds = dc.Bounds(outcome=(0, 1), covariates={"admitted": ("2020-01-01", "2023-12-31")})
    assert bounds.to_dict()["covariates"] == {"admitted": {"low": "2020-01-01", "high": "2023-12-31"}}
    assert dc.Bounds.from_toml(bounds.to_toml()) == bounds
    assert (
        dc.Bounds.from_toml("outcome = {low = 0, high = 1}\n[covariates.admitted]\nlow = 2020-01-01\nhigh = 2023-12-31")
        == bounds
    )
    with pytest.raises(DiscreetError, match="or of dates like 2020-01-31"):
        dc.Bounds(outcome=(0, 1), covariates={"admitted": ("2020-01-01", "soon")})


def test_stata_files_are_read_as_frames(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS, columns=NAMES.split(",")).astype({"age": float, "sex": "category"})
    frame.to_stata(tmp_path / "it.dta", write_index=False)
    assert sums(tmp_path / "it.dta") == expected()
    with pytest.raises(DiscreetError, match="na, delimiter, decimal and encoding are for CSV and Excel files"):
        sums(tmp_path / "it.dta", na="-9")


def test_excel_cells_are_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "it.xlsx").write_bytes(b"")
    frame = pd.DataFrame(ROWS, columns=NAMES.split(","), dtype=object).replace({1: True, 0: False})
    frame.loc[7, "age"] = "NA"
    monkeypatch.setattr("discreet.data.backends.text.workbooks.import_module", lambda name: pd)
    monkeypatch.setattr(pd, "read_excel", lambda *_, **__: frame)
    assert sums(tmp_path / "it.xlsx") == expected()


def test_a_reader_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name)

    (tmp_path / "it.xlsx").write_bytes(b"")
    monkeypatch.setattr("discreet.data.backends.text.workbooks.import_module", absent)
    with pytest.raises(MissingExtra, match=r"install discreet\[files\], or save the table as CSV"):
        sums(tmp_path / "it.xlsx")


def test_yes_and_no_are_read_in_frames_too() -> None:
    frame = pd.DataFrame(ROWS, columns=NAMES.split(",")).assign(arm=["No", "Yes"] * 10)
    records = dc.data.in_memory.ArrayRecords.of(frame["days"], frame["arm"], bounds=Bounds(outcome=(0, 1)))  # type: ignore[attr-defined]
    assert records.sum(lambda chunk: np.array([int(chunk.t.sum())])) == [10]


def test_different_indexes_are_refused_and_not_matched_by_position() -> None:
    frame = pd.DataFrame(ROWS, columns=NAMES.split(",")).fillna({"age": 50})
    estimator = dc.DifferenceInMeans(epsilon=1, bounds=Bounds(outcome=(0, 1)))
    with pytest.raises(DiscreetError, match=r"Y and T have different indexes.*reset_index"):
        estimator.fit(frame["days"], frame["arm"].sort_index(ascending=False))
    with dc.testing.seeded_noise(0):
        estimator.fit(frame["days"], frame["arm"].to_numpy())
        estimator.fit(frame["days"], frame["arm"])
