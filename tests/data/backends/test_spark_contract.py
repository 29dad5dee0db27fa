"""Spark keeps the contract that `discreet.testing.check_backend` states."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.testing import check_backend


def test_spark_keeps_the_contract(spark: Any, tmp_path: Path) -> None:
    count = 0

    def write(rows: pa.Table) -> Any:
        nonlocal count
        count += 1
        pq.write_table(rows, tmp_path / f"{count}.parquet")
        return spark.read.parquet(str(tmp_path / f"{count}.parquet"))

    check_backend(write)
