"""Effects of people in a file, a batch at a time: shown, or written with what is kept of their rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from discreet.exceptions import InvalidInput

if TYPE_CHECKING:
    from discreet.data.backends.text.people import People
    from discreet.releases.protocol import AnswersIntervals

_ANSWERS = ("effect", "low", "high")
_SUFFIXES = (".csv", ".parquet")


def check_columns(out: Path | None, source: str, kept: list[str] | None) -> None:
    """Refuse a file that cannot be written, and columns that would be there twice."""
    if out is None and kept != []:
        raise InvalidInput("--id and --keep belong to --out: name a CSV or Parquet file to write.")
    if out is None:
        return
    if out.suffix.lower() not in _SUFFIXES:
        raise InvalidInput(f"--out {str(out)!r} must end in {' or '.join(_SUFFIXES)}, which says how it is written.")
    if out.exists() and Path(source).exists() and out.samefile(source):
        raise InvalidInput("--out is the file that is read: name another.")
    twice = [name for name in kept or () if name in _ANSWERS]
    if twice:
        raise InvalidInput(f"--id names {twice[0]!r}, which the effects are called: rename that column.")


def answered(release: "AnswersIntervals", people: "People", alpha: float) -> Iterator[Any]:
    """Batches of what is kept, with effect, low and high beside it; those of other rows never matter."""
    rows = 0
    for covariates, kept in people.batches():
        if any(name in _ANSWERS for name in kept.schema.names):
            raise InvalidInput("--keep meets a column called effect, low or high: rename it, or name an --id instead.")
        if covariates.num_rows:
            rows += covariates.num_rows
            columns = map(pa.array, release.effect_with_interval(pa.Table.from_batches([covariates]), alpha))
            yield pa.RecordBatch.from_arrays([*kept.columns, *columns], names=[*kept.schema.names, *_ANSWERS])
    if not rows:
        raise InvalidInput(f"{people.path!r} has no rows: give a file with at least one.")


@contextmanager
def writer(out: Path | None) -> Iterator[Any]:
    """Takes batches and writes them; what was written so far becomes the file at the end, and not before."""
    if out is None:
        yield lambda batch: None
        return
    part = out.with_name(f"{out.name}.part")
    opened: list[Any] = []

    def write(batch: Any) -> None:
        if not opened:
            opened.append(_open(part, out.suffix.lower(), batch.schema))
        opened[0].write_batch(batch)

    try:
        yield write
        for each in opened:
            each.close()
        part.replace(out)
    finally:
        for each in opened:
            each.close()
        part.unlink(missing_ok=True)


def _open(path: Path, suffix: str, schema: Any) -> Any:
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(path, schema)
    import pyarrow.csv as pcsv

    return pcsv.CSVWriter(path, schema, write_options=pcsv.WriteOptions(quoting_style="needed"))
