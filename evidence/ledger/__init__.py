"""Races, crashes and tampering: ``python -m evidence.ledger``."""
