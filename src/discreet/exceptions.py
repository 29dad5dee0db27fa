"""What can go wrong, as exceptions that belong to two families: discreet's own and a built-in's.

Messages are one sentence that names the argument, the reason and the next step. They never contain data values.
"""


class DiscreetError(Exception):
    """Anything that discreet refuses to do."""


class InvalidInput(DiscreetError, ValueError):
    """An argument or a record source that cannot be used; nothing has been spent."""


class SourceFailed(DiscreetError, RuntimeError):
    """A table that could not be read again as it was; nothing came of a part of it, and what was spent stays spent."""


class MissingBounds(InvalidInput):
    """A public bound that was not declared, and must not be read off the data."""


class InvalidBudget(InvalidInput):
    """An epsilon, a delta or a share of them that makes no sense."""


class BudgetExceeded(DiscreetError, ValueError):
    """More privacy was asked for than is left."""


class LedgerRefused(DiscreetError, PermissionError):
    """Something that a ledger does not allow: a frozen data set, a missing second curator, a request out of turn."""


class NotFitted(DiscreetError, AttributeError):
    """A result was asked for before ``fit``."""


class MissingExtra(DiscreetError, ImportError):
    """An optional dependency that is not installed; the message names the extra."""


class UnsupportedRelease(DiscreetError, ValueError):
    """A release file of a kind or version that this version of discreet cannot read."""


class LedgerCorrupt(DiscreetError, RuntimeError):
    """A ledger whose log does not verify, or that this version of discreet cannot read; nothing is charged to it."""


class LedgerUnavailable(DiscreetError, ConnectionError):
    """A ledger whose database cannot be reached or written; nothing is drawn without it."""
