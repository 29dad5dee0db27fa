"""Averages over some of the records: those who were treated, those who were not, those who could be either."""
