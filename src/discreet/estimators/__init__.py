"""Estimators whose guarantee is proved: each a list of rounds through the gate."""
