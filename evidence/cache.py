"""Raw results on disk, so that an interrupted run continues, and never under code that has changed since."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from discreet.reproduce import cache
from discreet.reproduce.cache import PRESENTATION, Results

__all__ = ["CACHE", "ROOT", "SOURCE", "Results", "comparator_code", "estimator_code", "fingerprint"]

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".evidence-cache"
SOURCE = ROOT / "src" / "discreet"

# Published systems, their tables and the audit are no part of `discreet.ATE`.
_NO_PART = PRESENTATION | {"audit", "papers", "reproduce"}


def estimator_code(settings: object) -> str:
    """Fingerprint of everything that a fitted `discreet.ATE` depends on."""
    paths = [
        path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0].removesuffix(".py") not in _NO_PART
    ]
    return fingerprint(settings, paths)


def comparator_code(settings: object) -> str:
    """Fingerprint of the generators and of the methods that `discreet` is compared with."""
    own = [ROOT / "evidence" / name for name in ("nonprivate.py", "private_ci_formula.py")]
    return fingerprint(
        settings, [*own, SOURCE / "bounds.py", SOURCE / "columns.py", *(SOURCE / "datasets").glob("*.py")]
    )


def fingerprint(settings: object, paths: Iterable[Path]) -> str:
    """Twelve hexadecimal digits that change with the settings and with code, but not with docstrings and comments."""
    return cache.fingerprint(settings, paths, ROOT)
