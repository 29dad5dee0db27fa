"""Uplift by segment: the aggregated-data uplift model and the two-model baseline."""
