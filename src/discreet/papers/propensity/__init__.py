"""Weighting by a private propensity score."""
