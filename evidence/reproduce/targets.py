"""What can be reproduced: one target per table or figure, found by the names of its paper and of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet.exceptions import InvalidInput

if TYPE_CHECKING:
    from evidence.reproduce.pages import Page

Row: TypeAlias = dict[str, Any]
Results: TypeAlias = Mapping[str, list[Row]]
"""Rows of each cell, in the order of their replications."""

# Last word of the cells in which `discreet` itself is run, beside what was published.
FLAGSHIP_CELL = "discreet"

# Modules that hold the targets of a paper, imported when asked for.
_HOME = {
    "adum": "adum.pages",
    "dp-cate": "dp_cate.tables",
    "meta-learners": "meta_learners.pages",
    "private-ci": "private_ate.pages",
    "propensity": "propensity.pages",
}


@dataclass(frozen=True, kw_only=True)
class Target:
    """A table or a figure.

    Parameters
    ----------
    name, title
        What it is called on the command line and on its page.
    experiment
        Name of the raw results; targets about the same studies share it.
    run
        One replication of one cell, as plain JSON; it must be importable by name, for other processes.
    cells
        What is run, for a full run or a quick one.
    replications
        How often, for a full run or a quick one.
    page
        From raw results to a page.
    files
        Data files that it reads, by their places in the data folder.
    """

    name: str
    title: str
    experiment: str
    run: Callable[[str, int], Row]
    cells: Callable[[bool], tuple[str, ...]]
    replications: Callable[[bool], int]
    page: Callable[[Results], Page]
    files: tuple[Path, ...] = ()


def papers() -> dict[str, dict[str, Target]]:
    """All targets by paper and name."""
    return {paper: _targets(paper) for paper in _HOME}


def find(paper: str, name: str) -> Target:
    """The target of this name."""
    if paper not in _HOME:
        raise InvalidInput(f"there is no paper {paper!r} to reproduce; choose from {', '.join(_HOME)}.")
    targets = _targets(paper)
    if name not in targets:
        raise InvalidInput(f"{paper} has no {name!r} to reproduce; choose from {', '.join(targets)}.")
    return targets[name]


def _targets(paper: str) -> dict[str, Target]:
    targets: tuple[Target, ...] = import_module(f"evidence.reproduce.{_HOME[paper]}").TARGETS
    return {target.name: target for target in targets}
