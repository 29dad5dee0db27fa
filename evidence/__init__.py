"""Simulations behind the documentation's numbers: ``python -m evidence.run``."""
