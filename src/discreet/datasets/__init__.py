"""Studies with a known truth, generated."""

from discreet.datasets.study import Study
from discreet.datasets.synthetic import DESIGNS, Design, draw, private_ci

__all__ = ["DESIGNS", "Design", "Study", "draw", "private_ci"]
