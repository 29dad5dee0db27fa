"""What has been spent on which data set: reserved, charged before noise is drawn, settled, never refunded."""

from discreet.ledger.account import Account, Quota
from discreet.ledger.charging import Wanted, wanted_by
from discreet.ledger.composition import Cost, Total
from discreet.ledger.governance.rules import Proposal
from discreet.ledger.hash_chain import Entry, Head, verify_lines
from discreet.ledger.ledger import Ledger
from discreet.ledger.state import Request

__all__ = [
    "Account",
    "Cost",
    "Entry",
    "Head",
    "Ledger",
    "Proposal",
    "Quota",
    "Request",
    "Total",
    "Wanted",
    "verify_lines",
    "wanted_by",
]
