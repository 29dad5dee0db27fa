"""Parts of a table in several processes, one thread each: threads gain nothing, as sums are short of memory's speed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from discreet.engines.sweeps import Sweep, Tally, total
from discreet.errors import InvalidInput
from discreet.records import OnRows

# Shorter tables are done before a second process has started.
MANY_ROWS = 5_000_000
_USUAL_WORKERS, _MOST_WORKERS = 8, 64


class Part(Protocol):
    """Rows that one process can read by itself; it has to be picklable."""

    @property
    def rows(self) -> int:
        """How many there are, whether they are meant or not."""
        ...

    def batches(self, columns: Iterable[str]) -> Iterator[Any]:
        """Arrow batches of the wanted columns, in their order."""
        ...


def workers_for(asked: int | None, rows: int) -> int:
    """How many processes read a table: as many as asked for, or two and more from a few million rows on."""
    if asked is not None:
        if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= _MOST_WORKERS:
            raise InvalidInput(f"workers must be a whole number from 1 to {_MOST_WORKERS}: 1 reads in this process.")
        return asked
    return min(os.cpu_count() or 1, _USUAL_WORKERS) if rows > MANY_ROWS else 1


def run_parts(sweep: Sweep, parts: Sequence[Part], workers: int, on_rows: OnRows | None) -> Tally:
    """One sweep over all parts."""
    if workers == 1 or len(parts) == 1:
        return sweep((batch for part in parts for batch in part.batches(sweep.columns.wanted)), on_rows)
    import cloudpickle
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    sent = cloudpickle.dumps(sweep)
    # Nothing is memory-mapped: a sweep comes as bytes, and no file with anything about records is left behind.
    pool = Parallel(
        n_jobs=min(workers, len(parts)), backend="loky", return_as="generator_unordered", batch_size=1, max_nbytes=None
    )
    tallies = []
    try:
        for tally in pool(delayed(_run)(sent, part) for part in parts):
            tallies.append(tally)
            if on_rows is not None and tally.rows:
                on_rows(tally.rows)
            if tally.refusal is not None:
                break
    except (TerminatedWorkerError, OSError):
        raise InvalidInput(
            "A process that read the table ended early: there may be too little memory; try workers=1."
        ) from None
    if len(tallies) < len(parts) and not any(tally.refusal for tally in tallies):
        raise InvalidInput("Some parts of the table were not read: try workers=1.")
    return total(tallies)


def _run(sent: bytes, part: Part) -> Tally:
    import cloudpickle
    from threadpoolctl import threadpool_limits

    sweep: Sweep = cloudpickle.loads(sent)
    with threadpool_limits(1):
        return sweep(part.batches(sweep.columns.wanted))
