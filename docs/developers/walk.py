"""Follow a CSV row to the JSON of an average effect, and count the modules on the way.

``python docs/developers/walk.py`` prints how many modules of discreet are at work and how many calls lead from one of
them into another; with ``--modules`` also their names, in the order in which they are first entered.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import discreet as dc

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 2_000
BOUNDS = dc.Bounds(outcome=(-2, 4), covariates={"x": (0, 1)}, propensity=(0.1, 0.9))


class Walk:
    """The modules that were entered, in order, and the calls between them."""

    def __init__(self) -> None:
        self.modules: dict[str, None] = {}
        self.crossings: Counter[tuple[str, str]] = Counter()

    def see(self, frame: FrameType, event: str, _: Any) -> None:
        """What `sys.setprofile` calls."""
        here = module_of(frame)
        if event != "call" or here is None or is_import(frame.f_code):
            return
        self.modules.setdefault(here)
        back = frame.f_back
        while back is not None and module_of(back) is None:
            back = back.f_back
        before = None if back is None else module_of(back)
        if before is not None and before != here:
            self.crossings[before, here] += 1

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what this thread and those that it starts do."""
        threading.setprofile(self.see)
        sys.setprofile(self.see)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def module_of(frame: FrameType) -> str | None:
    """The module of discreet that a frame belongs to; None outside of the library."""
    name = str(frame.f_globals.get("__name__", ""))
    return name if name.partition(".")[0] == "discreet" else None


def is_import(code: CodeType) -> bool:
    """Whether code runs because a module is imported, and not because anybody called it."""
    return code.co_name == "<module>"


def write_rows(path: Path) -> None:
    """A small study without a random generator: the same rows on every machine."""
    rows = ["y,t,x"]
    for k in range(ROWS):
        x, t = k * 37 % 101 / 101, k * 53 % 7 % 2
        rows.append(f"{x + t + (k * 29 % 13 - 6) / 60},{t},{x}")
    path.write_text("\n".join(rows))


def publish(folder: Path, delta: float) -> None:
    """From a CSV file to the file of a release, with real noise."""
    estimator = dc.ATE(epsilon=1.0, delta=delta, bounds=BOUNDS)
    estimator.fit_table(folder / "rows.csv", outcome="y", treatment="t").release_.save(folder / "effect.json")


def walk() -> Walk:
    """The walk of the rows of one small file."""
    seen = Walk()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder / "rows.csv")
        # Once to have everything imported. Budgets are accounted for once per process: the one that is watched is new.
        publish(folder, delta=1e-6)
        with seen.watching():
            publish(folder, delta=1.0625e-6)
    return seen


if __name__ == "__main__":
    found = walk()
    print(f"{len(found.modules)} modules, {found.crossings.total()} calls from one module into another")
    if "--modules" in sys.argv[1:]:
        print("\n".join(found.modules))
