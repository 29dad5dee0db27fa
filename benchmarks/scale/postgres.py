"""The same records in PostgreSQL: a table with all columns, filled once for each server."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from benchmarks.scale.data import batches
from benchmarks.scale.worker import Failed

_TYPES = {"double": ("double precision", ">f8"), "int32": ("integer", ">i4"), "int64": ("bigint", ">i8")}


def server() -> str:
    """Address of the server that tests/with-postgres.sh has started."""
    url = os.environ.get("DISCREET_TEST_POSTGRES")
    if not url:
        raise Failed(os.environ.get("DISCREET_NO_POSTGRES") or "no server: run it under tests/with-postgres.sh")
    return url


def load(rows: int) -> str:
    """The name of a table with so many records, made and filled if need be."""
    import psycopg

    name = f"criteo_{rows}"
    with psycopg.connect(server(), autocommit=True) as connection:
        # Named only when it is complete.
        if connection.execute("SELECT to_regclass(%s)", [name]).fetchall() == [(None,)]:
            _fill(connection, "filling", rows)
            connection.execute(f"ALTER TABLE filling RENAME TO {name}")
            connection.execute(f"VACUUM ANALYZE {name}")
    return name


def _fill(connection: Any, name: str, rows: int) -> None:
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    made = False
    for batch in batches(rows):
        kinds = {field.name: _TYPES[str(field.type)] for field in batch.schema}
        if not made:
            columns = ", ".join(f"{column} {kind}" for column, (kind, _) in kinds.items())
            connection.execute(f"CREATE UNLOGGED TABLE {name} ({columns})")
            made = True
        with connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT binary)") as copy:
            # PostgreSQL's own format: a signature, then for each record its number of columns, and each one's length.
            copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
            copy.write(_tuples(batch, {column: code for column, (_, code) in kinds.items()}))
            copy.write(b"\xff\xff")


def _tuples(batch: Any, codes: dict[str, str]) -> bytes:
    layout = [("columns", ">i2")]
    for name, code in codes.items():
        layout += [(f"length of {name}", ">i4"), (name, code)]
    packed = np.empty(batch.num_rows, dtype=layout)
    packed["columns"] = len(codes)
    for name, code in codes.items():
        packed[f"length of {name}"] = np.dtype(code).itemsize
        packed[name] = batch[name].to_numpy()
    return packed.tobytes()
