"""Studies with a known truth, generated, and loaders for real ones."""

from discreet.datasets import metrics
from discreet.datasets.marketing import adum, criteo, criteo_shaped, hillstrom
from discreet.datasets.medical import mimic, tcga
from discreet.datasets.observational import ihdp, nsw, rhc
from discreet.datasets.paper_designs import dp_cate, meta_learners, private_ci_rct, propensity_scores
from discreet.datasets.simulated import DESIGNS, Design, draw, private_ci
from discreet.datasets.study import Study
from discreet.datasets.survival import SurvivalStudy, survival_trial
from discreet.datasets.voters import social_pressure

__all__ = [
    "DESIGNS",
    "Design",
    "Study",
    "SurvivalStudy",
    "adum",
    "criteo",
    "criteo_shaped",
    "dp_cate",
    "draw",
    "hillstrom",
    "ihdp",
    "meta_learners",
    "metrics",
    "mimic",
    "nsw",
    "private_ci",
    "private_ci_rct",
    "propensity_scores",
    "rhc",
    "social_pressure",
    "survival_trial",
    "tcga",
]
