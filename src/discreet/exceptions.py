"""What can go wrong, as exceptions that belong to two families: discreet's own and a built-in's.

Messages are one sentence that names the argument, the reason and the next step. They never contain data values.
"""


class DiscreetError(Exception):
    """Anything that discreet refuses to do.

    Examples
    --------
    >>> import discreet as dc
    >>> try:
    ...     dc.Bounds(outcome=(1, 0))
    ... except dc.DiscreetError:
    ...     print("refused")
    refused
    """


class InvalidInput(DiscreetError, ValueError):
    """An argument or a record source that cannot be used; nothing has been spent.

    Examples
    --------
    >>> import discreet as dc
    >>> dc.Range(1, 0)
    Traceback (most recent call last):
        ...
    discreet.exceptions.InvalidInput: A range needs low < high, but its ends are reversed: swap them.
    """


class SourceFailed(DiscreetError, RuntimeError):
    """A table that could not be read again as it was; nothing came of a part of it, and what was spent stays spent.

    Examples
    --------
    >>> from pathlib import Path
    >>> import discreet as dc
    >>> from pyarrow import csv, table
    >>> csv.write_csv(table({"days": [1, 2] * 100, "treated": [0, 1] * 100}), "table.csv")
    >>> estimator = dc.DifferenceInMeans(epsilon=1, bounds=dc.Bounds(outcome=(0, 9)))
    >>> roles = {"outcome": "days", "treatment": "treated"}
    >>> def vanish(*told):
    ...     Path("table.csv").unlink(missing_ok=True)
    >>> estimator.fit_table("table.csv", **roles, progress=vanish)
    Traceback (most recent call last):
        ...
    discreet.exceptions.SourceFailed: The records changed while they were being read: keep the source fixed and ...
    """


class MissingBounds(InvalidInput):
    """A public bound that was not declared, and must not be read off the data.

    Examples
    --------
    >>> import discreet as dc
    >>> dc.Bounds()
    Traceback (most recent call last):
        ...
    discreet.exceptions.MissingBounds: Bounds needs outcome=(low, high), the outcome's range: declare it, do ...
    """


class InvalidBudget(InvalidInput):
    """An epsilon, a delta or a share of them that makes no sense.

    Examples
    --------
    >>> import discreet as dc
    >>> dc.Budget(epsilon=-1)
    Traceback (most recent call last):
        ...
    discreet.exceptions.InvalidBudget: epsilon must be positive; typical values lie between 0.1 and 10.
    """


class BudgetExceeded(DiscreetError, ValueError):
    """More privacy was asked for than is left.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.ledger import Cost
    >>> ledger = dc.Ledger("sqlite:///budget.db")
    >>> ledger.open("clinic", epsilon=1)
    >>> ledger.reserve("clinic", Cost(epsilon=2))
    Traceback (most recent call last):
        ...
    discreet.exceptions.BudgetExceeded: data set 'clinic' has a cap of epsilon = 1; requests so far add up to ...
    """


class LedgerRefused(DiscreetError, PermissionError):
    """Something that a ledger does not allow: a frozen data set, a missing second curator, a request out of turn.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.ledger import Cost
    >>> ledger = dc.Ledger("sqlite:///budget.db")
    >>> ledger.open("clinic", epsilon=1)
    >>> ledger.freeze("clinic", curator="Ada")
    >>> ledger.reserve("clinic", Cost(epsilon=0.5))
    Traceback (most recent call last):
        ...
    discreet.exceptions.LedgerRefused: data set 'clinic' is frozen: stored releases can be read, nothing new is ...
    """


class NotFitted(DiscreetError, AttributeError):
    """A result was asked for before ``fit``.

    Examples
    --------
    >>> import discreet as dc
    >>> dc.ATE(epsilon=1, delta=1e-6, bounds=dc.Bounds(outcome=(0, 1))).ate_
    Traceback (most recent call last):
        ...
    discreet.exceptions.NotFitted: this ATE has no release yet; call fit first.
    """


class MissingExtra(DiscreetError, ImportError):
    """An optional dependency that is not installed; the message names the extra.

    Examples
    --------
    >>> from unittest.mock import patch
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> study = adum(n=200, seed=1)
    >>> learner = dc.papers.SLearner(epsilon=1, delta=1e-6, bounds=study.bounds, base="ebm")
    >>> with patch.dict("sys.modules", {"interpret.privacy": None}):  # as if it were not installed
    ...     _ = learner.fit(study.Y, study.T, X=study.X)
    Traceback (most recent call last):
        ...
    discreet.exceptions.MissingExtra: base='ebm' needs interpret: install it with pip install 'discreet[ebm]'.
    """


class UnsupportedRelease(DiscreetError, ValueError):
    """A release file of a kind or version that this version of discreet cannot read.

    Examples
    --------
    >>> import discreet as dc
    >>> dc.Release.from_dict({"format": "discreet-release", "version": 99})
    Traceback (most recent call last):
        ...
    discreet.exceptions.UnsupportedRelease: the release has version 99, newer than 1; upgrade discreet.
    """


class LedgerCorrupt(DiscreetError, RuntimeError):
    """A ledger whose log does not verify, or that this version of discreet cannot read; nothing is charged to it.

    Examples
    --------
    >>> from discreet.ledger import Head
    >>> Head.parse("7:not a hash")
    Traceback (most recent call last):
        ...
    discreet.exceptions.LedgerCorrupt: a head is written NUMBER:HASH with 64 hexadecimal digits; copy it as it ...
    """


class LedgerUnavailable(DiscreetError, ConnectionError):
    """A ledger whose database cannot be reached or written; nothing is drawn without it.

    Examples
    --------
    >>> import discreet as dc
    >>> dc.Ledger("sqlite:////no/such/folder/budget.db")
    Traceback (most recent call last):
        ...
    discreet.exceptions.LedgerUnavailable: the ledger's database does not answer as it should, so that nothing ...
    """
