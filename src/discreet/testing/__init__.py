"""Tools for simulations and tests, never for releases: other noise, exact sums, and the contracts of extensions."""

from discreet.testing._backends import check_backend
from discreet.testing._estimators import check_estimator
from discreet.testing._noise import frozen_noise, record_sums, seeded_noise, watched

__all__ = ["check_backend", "check_estimator", "frozen_noise", "record_sums", "seeded_noise", "watched"]
