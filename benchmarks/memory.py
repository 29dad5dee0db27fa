"""The largest memory that a process has held, read from Linux's own count (VmHWM)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.data import BOUNDS, arrays


def high_water(process: str = "self") -> int:
    """Bytes of the process's peak resident memory since it was started; 0 once it has ended."""
    try:
        status = Path("/proc", process, "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def of_command(command: Sequence[str]) -> tuple[int, float]:
    """Peak memory and seconds of a command, which has to succeed."""
    start, peak = time.perf_counter(), 0
    # The count is looked up while the command runs: what the system reports afterwards includes the parent's memory.
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, high_water(str(process.pid)))
            time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with code {process.returncode}.")
    return peak, time.perf_counter() - start


def of_arrays(rows: int) -> dict[str, float]:
    """Peak memory beyond the input, and seconds, of a fit in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory", str(rows)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def _fit(rows: int) -> dict[str, float]:
    import discreet

    Y, T, X = arrays(rows)
    bounds = discreet.Bounds(outcome=BOUNDS.outcome, covariates=list(BOUNDS.columns), propensity=BOUNDS.propensity)
    start = time.perf_counter()
    discreet.ATE(epsilon=1, delta=1e-6, bounds=bounds).fit(Y, T, X=X)
    seconds = time.perf_counter() - start
    size = Y.nbytes + T.nbytes + X.nbytes
    # What Python and its libraries take is counted as beyond the input, too.
    return {"input": size, "beyond": high_water() - size, "seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(_fit(int(sys.argv[1]))))
