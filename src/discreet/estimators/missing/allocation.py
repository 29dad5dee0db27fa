"""Who gets which share of the budget beside the rounds of an average; as `discreet.estimators._allocation`."""

from __future__ import annotations

from discreet.estimators._allocation import QUESTION

# Of the count of missing outcomes by arm, where they are adjusted for; and of the mean survey weight, where records
# have one.
MISSING = MEAN_WEIGHT = QUESTION
