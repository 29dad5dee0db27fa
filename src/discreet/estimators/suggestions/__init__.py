"""Bounds that are suggested by noisy histograms, for records of which nothing was declared."""
