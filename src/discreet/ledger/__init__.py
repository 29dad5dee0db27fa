"""What has been spent on which data set: reserved, charged before noise is drawn, settled, never refunded."""

from discreet.ledger.account import Account
from discreet.ledger.composition import Cost
from discreet.ledger.hash_chain import Entry, Head, verify_lines
from discreet.ledger.ledger import Ledger

__all__ = ["Account", "Cost", "Entry", "Head", "Ledger", "verify_lines"]
