"""The service's log, followed by an anchor: before a charge, after it, and every few seconds."""

from __future__ import annotations

import logging
import threading

import sqlalchemy as sa

from discreet.exceptions import LedgerCorrupt, LedgerUnavailable
from discreet.ledger import Ledger
from discreet.ledger.governance.anchors import anchor_at, compare
from discreet.ledger.governance.backups import close_functions

_log = logging.getLogger("discreet.serve")
_OPERATOR = "operator"


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
        self._freeze, self._lock = freeze, threading.Lock()
        # Why nothing may be charged now, as curators read it.
        self.problem: str | None = None

    def begin(self, ledger: Ledger, engine: sa.Engine) -> None:
        """Compare all of both: a log that is behind gets its lines back and is halted; one that contradicts stops."""
        if self._anchor is None:
            return
        try:
            ours = ledger.log()
            missing = compare(ours, self._anchor.entries())
            if missing:
                with engine.begin() as connection:
                    close_functions(connection)
                ledger.readmit(missing)
                reason = f"this is an older copy, which ended at line {len(ours)}; the anchor knew {len(missing)} more."
                ledger.halt(reason, curator=_OPERATOR)
        except LedgerCorrupt as error:
            self.problem = str(error)
            _log.error("anchor: the log and the anchor contradict each other")
            return
        except LedgerUnavailable as error:
            self._unreachable(error)
            return
        self.follow(ledger)

    def follow(self, ledger: Ledger) -> bool:
        """Hand over new lines; whether charging may go on."""
        if self._anchor is None:
            return True
        with self._lock:
            try:
                kept = self._anchor.head()
                after = max(0, kept.seq - 1) if kept is not None else 0
                found = ledger.log(after)
                if kept is not None and (not found or (found[0].seq, found[0].hash) != (kept.seq, kept.hash)):
                    raise LedgerCorrupt(
                        "the log does not go on from what its anchor holds: it is an older copy or was rewritten."
                    )
                new = found if kept is None else found[1:]
                if new:
                    self._anchor.append(new)
            except LedgerCorrupt as error:
                self.problem = str(error)
                _log.error("anchor: the log and the anchor contradict each other")
                return False
            except LedgerUnavailable as error:
                self._unreachable(error)
                return not self._freeze
            self.problem = None
            return True

    def _unreachable(self, error: LedgerUnavailable) -> None:
        self.problem = str(error)
        _log.warning("anchor: %s", "nothing is charged without it" if self._freeze else "it cannot be reached")
