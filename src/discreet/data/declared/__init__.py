"""Kinds of columns that bounds may declare, beside ranges of numbers and levels."""
