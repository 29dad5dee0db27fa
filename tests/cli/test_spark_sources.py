"""Commands on a Spark cluster: the same release as from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.test_sources import released, run, saved
from tests.seeded_fits import study


def test_a_cluster_gives_the_same_release_as_a_file(spark: Any, tmp_path: Path) -> None:
    bounds = saved(tmp_path)
    frame = study(800).assign(t=lambda rows: rows["t"].astype(bool))
    frame.to_parquet(tmp_path / "it.parquet")
    frame[:300].to_csv(tmp_path / "a.csv", index=False)
    frame[300:].to_csv(tmp_path / "b.csv", index=False)
    expected = released("uplift", str(tmp_path / "it.parquet"), bounds, tmp_path / "file.json")
    spark.read.parquet(str(tmp_path / "it.parquet")).createOrReplaceTempView("claims")
    for source in (str(tmp_path / "it.parquet"), str(tmp_path / "*.csv"), "claims"):
        out = tmp_path / f"{len(source)}.json"
        assert released("uplift", source, bounds, out, "--spark", "local[2]") == expected


def test_text_in_a_numeric_csv_column_is_refused_by_name_on_a_cluster_too(spark: Any, tmp_path: Path) -> None:
    bounds = saved(tmp_path)
    frame = study(100).astype({"age": object})
    frame.loc[60, "age"] = "secret"
    frame.to_csv(tmp_path / "it.csv", index=False)
    result = run("uplift", str(tmp_path / "it.csv"), bounds, "--spark", "local[2]")
    assert result.exit_code == 2
    assert "column 'age' must hold numbers, but has text" in result.output
    assert "secret" not in result.output
    result = run("uplift", "no_such_table", bounds, "--spark", "local[2]")
    assert result.exit_code == 2
    assert "Spark could not read the table" in result.output
