"""Raw results on disk, so that an interrupted run continues, and never under code that has changed since."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from evidence.reproduce import cache
from evidence.reproduce.cache import PRESENTATION, Results, package_files

__all__ = ["CACHE", "ROOT", "SOURCE", "Results", "comparator_code", "estimator_code", "fingerprint"]

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".evidence-cache"
SOURCE = ROOT / "src" / "discreet"

# Published systems and the audit are no part of `discreet.ATE`.
_NO_PART = (*PRESENTATION, "discreet.audit", "discreet.papers", "discreet.serve")


def estimator_code(settings: object) -> str:
    """Fingerprint of everything that a fitted `discreet.ATE` depends on."""
    return fingerprint(settings, package_files(_NO_PART))


def comparator_code(settings: object) -> str:
    """Fingerprint of the generators and of the methods that `discreet` is compared with."""
    own = [ROOT / "evidence" / "average" / name for name in ("nonprivate.py", "private_ci_formula.py")]
    facts = [SOURCE / "data" / name for name in ("bounds.py", "columns.py")]
    return fingerprint(settings, [*own, *facts, *(SOURCE / "datasets").glob("*.py")])


def fingerprint(settings: object, paths: Iterable[Path]) -> str:
    """Twelve hexadecimal digits that change with the settings and with code, but not with docstrings and comments."""
    return cache.fingerprint(settings, paths, ROOT)
