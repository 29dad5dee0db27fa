"""A population of random studies: some by which allowances are chosen, and others by which figures are reported.

A study is a number: the same number gives the same study on every machine. Numbers below `REPORTING` are for choosing,
and none of them is ever reported; the others are for reporting, and nothing is chosen by them. Studies are harder than
life: outcomes explained up to 95 %, single strong confounders, dependence that no copula of normal variables has,
covariates of few values, outcomes of few events, arms of one in twenty. The covariates of a third are those of real
people, which needs files that are no part of the project: `available` says which numbers can be drawn without them.
"""

from evidence.population.studies import REPORTING, Facts, RandomStudy, available, random_study, source_of

__all__ = ["REPORTING", "Facts", "RandomStudy", "available", "random_study", "source_of"]
