"""Studies with a known truth, generated, and loaders for real ones."""

from discreet.datasets import metrics
from discreet.datasets.hospital import Hospital, hospital
from discreet.datasets.marketing import adum, criteo, criteo_shaped, hillstrom
from discreet.datasets.medical import mimic, tcga
from discreet.datasets.observational import ihdp, nsw, rhc
from discreet.datasets.paper_designs import dp_cate, meta_learners, private_ci_rct, propensity_scores
from discreet.datasets.published import actg175, fertility, nhefs, pension_401k, star
from discreet.datasets.simulated import DESIGNS, Design, draw, private_ci
from discreet.datasets.study import Study
from discreet.datasets.survival import SurvivalStudy, survival_trial
from discreet.datasets.voters import social_pressure

__all__ = [
    "DESIGNS",
    "Design",
    "Hospital",
    "Study",
    "SurvivalStudy",
    "actg175",
    "adum",
    "criteo",
    "criteo_shaped",
    "dp_cate",
    "draw",
    "fertility",
    "hillstrom",
    "hospital",
    "ihdp",
    "meta_learners",
    "metrics",
    "mimic",
    "nhefs",
    "nsw",
    "pension_401k",
    "private_ci",
    "private_ci_rct",
    "propensity_scores",
    "rhc",
    "social_pressure",
    "star",
    "survival_trial",
    "tcga",
]
