"""Two medical sources of the DP-CATE paper, for those who have access to them: MIMIC-III and the Cancer Genome Atlas.

Neither may be redistributed. Loaders read the files as their publishers hand them out. Bounds are declared from what
the columns mean, never from what the files hold. Where the paper's own preparation uses the records (percentiles as
limits, red blood cells "adapted to be more responsive"), it is not followed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.bounds import Bounds
from discreet.datasets.observational import data_file
from discreet.datasets.study import Float, Study
from discreet.exceptions import InvalidInput

# Possible values in adults under intensive care. Units: beats and breaths a minute, mEq/l, millions per microlitre,
# mg/dl, per cent of volume, years.
MIMIC_RANGES: dict[str, tuple[float, float] | list[float]] = {
    "heart_rate": (20.0, 220.0),
    "sodium": (110.0, 170.0),
    "red_blood_cells": (1.0, 8.0),
    "glucose": (30.0, 600.0),
    "hematocrit": (10.0, 65.0),
    "respiratory_rate": (4.0, 60.0),
    "age": (16.0, 90.0),
    "male": [0.0, 1.0],
}
MIMIC_OUTCOME = (1.0, 8.0)
# Identifiers of measurements: those of the two bedside systems, and of the laboratory.
_CHART = {"heart_rate": (211, 220045), "respiratory_rate": (618, 615, 220210, 224690)}
_LAB = {
    "sodium": (50983, 50824),
    "red_blood_cells": (51279,),
    "glucose": (50931, 50809),
    "hematocrit": (51221, 50810),
}
# Invasive ventilation as a procedure with a start and an end, which the newer of the two systems records.
_VENTILATION = (225792,)
MIMIC_FILES = ("ICUSTAYS", "PATIENTS", "CHARTEVENTS", "LABEVENTS", "PROCEDUREEVENTS_MV")
_HOURS = 10

# log2(1 + normalised counts) of RNA sequencing.
TCGA_RANGE = (0.0, 25.0)
TCGA_FILE = Path("tcga") / "EBPlusPlusAdjustPANCAN_IlluminaHiSeq_RNASeqV2.geneExp.tsv"
TCGA_EFFECT = 1.0
TCGA_OUTCOME = (-6.0, 7.0)


def mimic(path: str | Path | None = None, *, seed: int = 0) -> Study:
    """MIMIC-III: mechanical ventilation and red blood cells, one random hour of each stay in intensive care.

    Covariates are means over the ten hours before that hour, the treatment is invasive ventilation during it, and the
    outcome is the mean red blood cell count of the ten hours after it. Stays that lack any of these are left out;
    values are clipped to `MIMIC_RANGES`. Ages above 89, which the source shifts to 300, count as 90. The truth is not
    known.

    Parameters
    ----------
    path : path, optional
        The folder with ``ICUSTAYS.csv.gz``, ``PATIENTS.csv.gz``, ``CHARTEVENTS.csv.gz``, ``LABEVENTS.csv.gz`` and
        ``PROCEDUREEVENTS_MV.csv.gz`` (or without ``.gz``), or the data folder that holds it as ``mimic-iii``.
    seed : int
        Which hour of each stay.

    Examples
    --------
    >>> from discreet.datasets import mimic
    >>> study = mimic("mimic-iii")  # doctest: +SKIP
    """
    # Imported when used: a tenth of a second.
    import duckdb

    files = _mimic_files(path)
    try:
        with duckdb.connect() as con:
            table = con.execute(_mimic_sql(files), {"seed": seed}).fetchnumpy()
    except duckdb.Error:
        # DuckDB's own sentences quote values.
        raise InvalidInput(
            "the MIMIC-III files lack columns or hold other types than version 1.4: check them."
        ) from None
    columns = {name: np.ma.filled(values.astype(np.float64), np.nan) for name, values in table.items()}
    whole = np.all([np.isfinite(values) for values in columns.values()], axis=0)
    x = [_clipped(columns[name][whole], ends) for name, ends in MIMIC_RANGES.items()]
    return Study(
        name="mimic-iii",
        X=np.column_stack(x),
        T=columns["ventilated"][whole],
        Y=np.clip(columns["outcome"][whole], *MIMIC_OUTCOME),
        bounds=Bounds(outcome=MIMIC_OUTCOME, covariates=dict(MIMIC_RANGES), propensity=(0.05, 0.95)),
    )


def tcga(path: str | Path | None = None, *, genes: int = 4_000, seed: int = 0) -> Study:
    """The Cancer Genome Atlas: real gene expressions, with a simulated treatment and a constant effect.

    Expressions become log2(1 + x). The genes with the largest variance are the covariates, in that order: a choice that
    depends on the records, as the paper's does. Treatment and outcome follow the sum of the first ten, which the paper
    leaves at that: its standardised value is the logit of treatment, and the outcome without treatment, to which noise
    from [-1, 1] is added; the effect is 1.

    Parameters
    ----------
    path : path, optional
        The pan-cancer matrix ``EBPlusPlusAdjustPANCAN_IlluminaHiSeq_RNASeqV2.geneExp.tsv`` (genes in rows, samples in
        columns, also as ``.gz``), or the data folder that holds it as ``tcga``.
    genes : int
        Number of covariates.
    seed : int
        Seeds treatment and noise.

    Examples
    --------
    >>> from discreet.datasets import tcga
    >>> study = tcga("data", genes=100)  # doctest: +SKIP
    """
    names, expression = _tcga_matrix(data_file(TCGA_FILE, path))
    if isinstance(genes, bool) or not 10 <= genes <= len(names):
        raise InvalidInput("genes must lie between 10 and the number of genes in the file: choose another.")
    chosen = np.argsort(-expression.var(axis=1), kind="stable")[:genes]
    x = np.clip(expression[chosen].T, *TCGA_RANGE)
    total = x[:, :10].sum(axis=1)
    index = (total - total.mean()) / max(float(total.std()), 1e-12)
    rng = np.random.default_rng(seed)
    propensity = np.clip(1.0 / (1.0 + np.exp(-index)), 0.1, 0.9)
    t = (rng.random(len(x)) < propensity).astype(np.float64)
    y = np.clip(TCGA_EFFECT * t + index + rng.uniform(-1.0, 1.0, len(x)), *TCGA_OUTCOME)
    return Study(
        name="tcga",
        X=x,
        T=t,
        Y=y,
        bounds=Bounds(
            outcome=TCGA_OUTCOME,
            covariates={names[place]: TCGA_RANGE for place in chosen},
            propensity=(0.1, 0.9),
        ),
        ate=TCGA_EFFECT,
        effects=np.full(len(x), TCGA_EFFECT),
        propensity=propensity,
    )


def _tcga_matrix(path: Path) -> tuple[list[str], Float]:
    """Names of genes, and a row of expressions for each; genes with missing values or repeated names are left out."""
    import pyarrow as pa
    from pyarrow import csv

    try:
        table = csv.read_csv(
            path, parse_options=csv.ParseOptions(delimiter="\t"), convert_options=csv.ConvertOptions(null_values=["NA"])
        )
        labels = [str(name) for name in table.column(0).to_pylist()]
        numbers = np.column_stack([table.column(j).cast(pa.float64()).to_numpy() for j in range(1, table.num_columns)])
    except (pa.ArrowException, ValueError):
        raise InvalidInput(f"{str(path)!r} must hold a gene in each row and numbers beside it: check it.") from None
    first = {label: row for row, label in reversed(list(enumerate(labels)))}
    whole = [row for row in sorted(first.values()) if np.isfinite(numbers[row]).all()]
    return [labels[row] for row in whole], np.log2(1.0 + np.maximum(numbers[whole], 0.0))


def _mimic_files(path: str | Path | None) -> dict[str, str]:
    # The shortest of them finds the folder.
    found = {}
    for name in MIMIC_FILES:
        places = [Path("mimic-iii") / f"{name}.csv.gz", Path("mimic-iii") / f"{name}.csv"]
        places += [place.relative_to("mimic-iii") for place in places]
        found[name] = str(_first_file(places, path))
    return found


def _first_file(places: list[Path], path: str | Path | None) -> Path:
    for place in places[:-1]:
        try:
            return data_file(place, path)
        except InvalidInput:
            continue
    return data_file(places[-1], path)


def _mimic_sql(files: dict[str, str]) -> str:
    """One row for each stay: means before its hour, ventilation, and the mean outcome after."""
    source = {name: f"read_csv('{file.replace(chr(39), chr(39) * 2)}', header = true)" for name, file in files.items()}
    before = f"charted BETWEEN moment - INTERVAL {_HOURS} HOUR AND moment"
    after = f"charted > moment AND charted <= moment + INTERVAL {_HOURS} HOUR"

    def means(groups: dict[str, Any], when: str) -> str:
        return ", ".join(
            f"avg(value) FILTER (WHERE item IN {_listed(items)} AND {when}) AS {name}" for name, items in groups.items()
        )

    return f"""
    WITH stays AS (
        SELECT i.ICUSTAY_ID AS stay, i.SUBJECT_ID AS subject, p.GENDER = 'M' AS male,
            least(date_diff('day', p.DOB::TIMESTAMP, i.INTIME::TIMESTAMP) / 365.25, 90) AS age,
            i.INTIME::TIMESTAMP + to_hours({_HOURS} + (hash(i.ICUSTAY_ID, $seed)
                % greatest(1, date_diff('hour', i.INTIME::TIMESTAMP, i.OUTTIME::TIMESTAMP) - {2 * _HOURS}))::INT)
            AS moment
        FROM {source["ICUSTAYS"]} i JOIN {source["PATIENTS"]} p USING (SUBJECT_ID)
        WHERE date_diff('hour', i.INTIME::TIMESTAMP, i.OUTTIME::TIMESTAMP) >= {2 * _HOURS}
    ), chart AS (
        SELECT stay, {means(_CHART, before)} FROM stays JOIN (
            SELECT ICUSTAY_ID AS stay, ITEMID AS item, CHARTTIME::TIMESTAMP AS charted, VALUENUM AS value
            FROM {source["CHARTEVENTS"]}) USING (stay) GROUP BY stay
    ), lab AS (
        SELECT stay, {means(_LAB, before)}, {means({"outcome": _LAB["red_blood_cells"]}, after)}
        FROM stays JOIN (
            SELECT SUBJECT_ID AS subject, ITEMID AS item, CHARTTIME::TIMESTAMP AS charted, VALUENUM AS value
            FROM {source["LABEVENTS"]}) USING (subject) GROUP BY stay
    ), procedures AS (
        SELECT stay, max(moment >= begun AND moment < ended) AS ventilated FROM stays JOIN (
            SELECT ICUSTAY_ID AS stay, STARTTIME::TIMESTAMP AS begun, ENDTIME::TIMESTAMP AS ended
            FROM {source["PROCEDUREEVENTS_MV"]} WHERE ITEMID IN {_listed(_VENTILATION)}) USING (stay) GROUP BY stay
    )
    SELECT {", ".join(f"{name}::DOUBLE AS {name}" for name in MIMIC_RANGES)}, outcome::DOUBLE AS outcome,
        coalesce(ventilated, false)::DOUBLE AS ventilated
    FROM stays JOIN chart USING (stay) JOIN lab USING (stay) LEFT JOIN procedures USING (stay) ORDER BY stay
    """


def _listed(items: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, items))})"


def _clipped(values: Float, ends: tuple[float, float] | list[float]) -> Float:
    return np.clip(values, *ends) if isinstance(ends, tuple) else values
