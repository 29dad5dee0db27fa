"""Which lines of a log somebody wants to see."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """A filter of lines; what is left empty matches all.

    Parameters
    ----------
    who
        A person: who did it, or to whom it was done.
    what
        An action, the event of a note, or the deed of a proposal.
    dataset
        A data set, or "*" for what concerns none.
    since, until
        Days, as 2026-01-31, the last one included.
    skip
        How many lines that match to leave out, for the next page.
    """

    who: str = ""
    what: str = ""
    dataset: str = ""
    since: str = ""
    until: str = ""
    skip: int = 0
