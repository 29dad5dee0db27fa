"""The page: one part after the other, each with its command, its targets and its tables; others stay as they are."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import discreet
from evidence.average.report import grid
from evidence.trust.sections import Section

_TITLE = "# Trust: do points and intervals hold?"
_LEAD = """Every part counts how often a 95 % interval holds the truth, and how wide it is beside the narrowest that any
method without privacy could have: coverage below .95 is a promise that was not kept, a width above 1 is its price. A
figure is judged by the target beside it, and a target that is not reached stays on the page.

Parts are written by their own commands, `python -m evidence.trust population` and so on, each with its date; none is
edited by hand. Studies by which anything is chosen have other numbers than those that are reported here
(`evidence/population/`)."""


def provenance(command: str, seeds: str, measured: int, wanted: int) -> str:
    """When, with what and how much of it."""
    packages = ", ".join(_with_version(name) for name in ("numpy", "opendp", "lightgbm"))
    done = f"{measured:,} measurements" if measured == wanted else f"{measured:,} of {wanted:,} measurements so far"
    return (
        f"Written by `{command}` on {date.today().isoformat()}; do not edit. {done}; {seeds}. "
        f"discreet {discreet.__version__}, Python {platform.python_version()}, {packages}."
    )


def _with_version(package: str) -> str:
    """A package and its version; rivals that have it are an extra."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"


def text(title: str, head: str, section: Section) -> str:
    """One part, in Markdown."""
    reached = sum(verdict.reached is True for verdict in section.verdicts)
    judged = sum(verdict.reached is not None for verdict in section.verdicts)
    lines = [[v.target, v.limit, v.figure, v.word] for v in section.verdicts]
    parts = [
        f"## {title}",
        head,
        f"### {title}: targets",
        f"{reached} of {judged} reached.",
        grid(["target", "wanted", "figure", ""], lines),
        *section.parts,
    ]
    return "\n\n".join(parts)


def write(folder: Path, order: Sequence[str], title: str, written: str) -> Path:
    """Put a part onto the page in its place, with all other parts as they were."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "trust.md"
    found = _parts(path.read_text()) if path.exists() else {}
    found[title] = written.strip()
    parts = [found[name] for name in order if name in found]
    path.write_text("\n\n".join([_TITLE, _LEAD, _total(parts), *parts]) + "\n")
    return path


def _total(parts: Sequence[str]) -> str:
    counts = [re.search(r"^(\d+) of (\d+) reached\.$", part, re.MULTILINE) for part in parts]
    reached, judged = (sum(int(count[k]) for count in counts if count) for k in (1, 2))
    return f"In all {reached} of {judged} targets are reached."


def _parts(page: str) -> dict[str, str]:
    """Parts of a page that was written before, by their titles."""
    split = re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]
    return {part.splitlines()[0].removeprefix("## "): part.strip() for part in split}
