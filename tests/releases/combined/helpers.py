"""Releases of sites, made by hand."""

from discreet import Bounds, Guarantee, Release, Uncertainty
from discreet.privacy.accountant import calibrate_mu
from discreet.privacy.budget import GaussianEvent, LaplaceEvent

BOUNDS = Bounds(outcome=(0, 10), covariates={"age": (0, 1), "sex": ["f", "m"]})
_SIGMA = 1e9


def gaussian(epsilon=1.0, delta=1e-6, spent=1.0, **more):
    """The guarantee of a gate that spent a part of its mu."""
    mu = spent * calibrate_mu(epsilon, delta)
    events = (GaussianEvent(name="score", diameter=mu * _SIGMA, sigma=_SIGMA, dimension=1),)
    return made(epsilon, delta, events, **more)


def pure(epsilon=1.0, **more):
    """The guarantee of a gate with Laplace noise."""
    events = (LaplaceEvent(name="score", diameter=epsilon * _SIGMA, scale=_SIGMA, dimension=1),)
    return made(epsilon, 0.0, events, **more)


def made(epsilon, delta, events, status="proved", neighbours="replace-one", unit="one record", proof="ate.md"):
    return Guarantee(
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        unit=unit,
        status=status,
        proof=proof,
        public=("the declared bounds",),
        events=events,
        audit=1,
    )


def site(estimate, sampling=0.3, privacy=0.4, nuisance=0.0, clipping=0.0, guarantee=None, bounds=BOUNDS, **more):
    """A site's release."""
    options = {"kind": "ate", "n": 1_000.0, "design": "observational"} | more
    return Release(
        estimate=estimate,
        uncertainty=Uncertainty(sampling=sampling, privacy=privacy, nuisance=nuisance, clipping=clipping),
        guarantee=gaussian() if guarantee is None else guarantee,
        bounds=bounds,
        **options,
    )
