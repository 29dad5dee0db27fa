"""Ranges and frequent levels of columns of which nothing was declared, from released histograms."""
