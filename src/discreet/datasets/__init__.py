"""Studies with a known truth, generated, and loaders for real ones."""

from discreet.datasets.medical import mimic, tcga
from discreet.datasets.papers import dp_cate, private_ci_rct, propensity_scores
from discreet.datasets.real import ihdp, nsw, rhc
from discreet.datasets.study import Study
from discreet.datasets.synthetic import DESIGNS, Design, draw, private_ci

__all__ = [
    "DESIGNS",
    "Design",
    "Study",
    "dp_cate",
    "draw",
    "ihdp",
    "mimic",
    "nsw",
    "private_ci",
    "private_ci_rct",
    "propensity_scores",
    "rhc",
    "tcga",
]
