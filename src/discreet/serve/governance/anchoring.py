"""The service's log, followed by an anchor: before a charge, after it, and every few seconds."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import sqlalchemy as sa

from discreet.exceptions import DiscreetError, LedgerCorrupt, LedgerUnavailable
from discreet.ledger import Ledger
from discreet.ledger.governance.anchors import anchor_at, compare
from discreet.ledger.governance.backups import forget_secrets
from discreet.serve.domain.users import OPERATOR

_log = logging.getLogger("discreet.serve")
_MISFIT = (
    "the anchor holds lines that do not fit this ledger: nothing is taken from it. Find out who can write to it, and "
    "set it right from a copy."
)


class Anchoring:
    """What keeps a log and its anchor together.

    Parameters
    ----------
    address : str
        Of the anchor; nothing is followed if it is empty.
    freeze : bool
        Whether nothing may be charged while the anchor cannot be reached.
    """

    def __init__(self, address: str, *, freeze: bool) -> None:
        self._anchor = anchor_at(address) if address else None
        self._freeze, self._lock = freeze, threading.RLock()
        # What compares the two, until they have agreed once.
        self._begin: Callable[[], None] | None = None
        # Why nothing may be charged now, as curators read it.
        self.problem: str | None = None

    def begin(self, ledger: Ledger, engine: sa.Engine, first: Callable[[], None] = lambda: None) -> None:
        """Compare all of both: a log that is behind gets its lines back and is halted; one that contradicts stops.

        A line at the end of an older copy would contradict the anchor. So where nothing is charged without the anchor,
        nothing at all is written before both were compared; ``first`` is what is written then.
        """
        if self._anchor is not None:
            self._begin = lambda: self._compare(ledger, engine, first)
            self.follow(ledger)
        else:
            first()

    def follow(self, ledger: Ledger) -> bool:
        """Hand over new lines; whether charging may go on."""
        if self._anchor is None:
            return True
        with self._lock:
            try:
                if self._begin is not None:
                    self._begin()
                kept = self._anchor.head()
                after = max(0, kept.seq - 1) if kept is not None else 0
                found = ledger.sealed(after)
                if kept is not None and (
                    not found or (found[0].entry.seq, found[0].entry.hash) != (kept.seq, kept.hash)
                ):
                    raise LedgerCorrupt(
                        "the log does not go on from what its anchor holds: it is an older copy or was rewritten."
                    )
                new = found if kept is None else found[1:]
                if new:
                    self._anchor.append(new)
            except LedgerUnavailable as error:
                self._unreachable(error)
                return not self._freeze
            except (DiscreetError, ValueError, TypeError, LookupError) as error:
                # Lines that do not even fit the ledger are no reason for a server not to start: curators are told.
                self.problem = str(error) if isinstance(error, DiscreetError) else _MISFIT
                _log.error("anchor: the log and the anchor contradict each other")
                return False
            self.problem = None
            return True

    def _compare(self, ledger: Ledger, engine: sa.Engine, first: Callable[[], None]) -> None:
        assert self._anchor is not None
        try:
            # The anchor first: other servers may write, and hand over, while this one reads.
            kept = self._anchor.entries()
            ours = ledger.log()
            missing = compare(ours, kept)
            if missing:
                ledger.check_wrote(missing)
                with engine.begin() as connection:
                    forget_secrets(connection)
                reason = f"this is an older copy, which ended at line {len(ours)}; the anchor knew {len(missing)} more."
                ledger.held = None
                ledger.readmit(missing, reason, curator=OPERATOR)
        except LedgerUnavailable as error:
            if not self._freeze:
                first()
                self._begin = None
            else:
                ledger.held = f"nothing is written before the log was compared with its anchor: {error}"
            raise
        except Exception:
            ledger.held = None
            first()
            raise
        ledger.held = self._begin = None
        first()

    def _unreachable(self, error: LedgerUnavailable) -> None:
        self.problem = str(error)
        _log.warning("anchor: %s", "nothing is charged without it" if self._freeze else "it cannot be reached")
