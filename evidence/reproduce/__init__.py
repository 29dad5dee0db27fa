"""Tables and figures of the papers, beside their published numbers and beside `discreet.ATE` at the same epsilon.

Runs (``*_runs.py``) draw studies and keep raw results; pages turn results into a table, a figure and text.
"""

from evidence.reproduce.targets import Target, find, papers

__all__ = ["Target", "find", "papers"]
