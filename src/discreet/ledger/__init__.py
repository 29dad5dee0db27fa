"""What has been spent on which data set: reserved, charged before noise is drawn, settled, never refunded."""

from discreet.ledger.accounts import Account
from discreet.ledger.chain import Entry, Head, verify_lines
from discreet.ledger.costs import Cost
from discreet.ledger.durable import Ledger

__all__ = ["Account", "Cost", "Entry", "Head", "Ledger", "verify_lines"]
