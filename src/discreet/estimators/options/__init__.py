"""What estimators may be told, as commands and forms offer it; and what plans may be told of records alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A parameter of some estimators, as a command or a form offers it.

    Parameters
    ----------
    name
        Its name; on the command line with hyphens.
    type
        What it holds.
    help
        One sentence for people.
    default
        Its value where it is left out.
    """

    name: str
    type: Any
    help: str
    default: Any = None


COMPLIANCE = Option(
    name="compliance",
    type=float | None,
    help="Expected share of people whom the instrument moves to treatment. Default: 0.5.",
)
CORRELATION = Option(
    name="correlation",
    type=float | None,
    help="Expected correlation of the outcome in both periods. Default: 0.5.",
)
EVENTS = Option(
    name="events", type=float | None, help="Expected share of people with the event up to the horizon. Default: 0.5."
)
LOST = Option(
    name="lost", type=float | None, help="Expected share of people who are lost before the horizon. Default: 0.2."
)
SHARE = Option(name="share", type=float | None, help="Expected share of people whom the policy treats. Default: 0.5.")
