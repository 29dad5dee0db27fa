"""Charge, then draw: whoever is about to draw noise, or to let records decide what happens next, says so here first.

Outside a ledger nothing happens. Inside ``fit(..., ledger=...)`` the first call makes the charge durable, and raises
where it cannot be made, so that nothing is drawn.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# A context variable, as for seeded noise: a fit in another thread or task has its own.
_due: ContextVar[Callable[[], None] | None] = ContextVar("discreet_charge", default=None)


def charge_first() -> None:
    """Make what this fit costs durable, unless it is so already."""
    due = _due.get()
    if due is not None:
        due()


@contextmanager
def charged_by(charge: Callable[[], None]) -> Iterator[None]:
    """Have ``charge`` called before every draw inside a ``with`` block; it must be quick from its second call on."""
    token = _due.set(charge)
    try:
        yield
    finally:
        _due.reset(token)
