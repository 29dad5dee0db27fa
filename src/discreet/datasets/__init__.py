"""Studies with a known truth, generated, and loaders for real ones."""

from discreet.datasets.papers import private_ci_rct, propensity_scores
from discreet.datasets.real import ihdp, nsw, rhc
from discreet.datasets.study import Study
from discreet.datasets.synthetic import DESIGNS, Design, draw, private_ci
from discreet.datasets.uplift import adum, criteo, criteo_shaped, hillstrom

__all__ = [
    "DESIGNS",
    "Design",
    "Study",
    "adum",
    "criteo",
    "criteo_shaped",
    "draw",
    "hillstrom",
    "ihdp",
    "nsw",
    "private_ci",
    "private_ci_rct",
    "propensity_scores",
    "rhc",
]
