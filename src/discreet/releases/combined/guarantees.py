"""What the releases of several sites promise together. Proof: docs/proofs/combine.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from discreet.privacy.accountant import SLACK, calibrate_mu, lattice_delta, profile_of, sets_slack_aside
from discreet.privacy.budget import Event, GaussianEvent, LaplaceEvent
from discreet.privacy.guarantee import Guarantee, parallel, sequential
from discreet.releases.combined.weighing import People

_PROOF = "combine.md"
# Theory: a Gaussian event of this scale and dimension one has all the slack that a gate's discrete noise may have.
_SIGMA = 1.0 / math.sqrt(24.0 * SLACK)


def guarantee_of(guarantees: Sequence[Guarantee], people: People) -> Guarantee:
    """One guarantee of all releases: the largest where no one is at two sites, and all of them added up otherwise."""
    if people == "disjoint":
        done, more = _largest(guarantees), "at which site a record is"
    else:
        done, more = _added_up(guarantees), "at which sites someone has records"
        done = replace(done, unit=f"{done.unit} at each site")
    proof = ", ".join([*(done.proof or "").split(", "), _PROOF] if done.proof else [_PROOF])
    return replace(done, proof=proof, public=(*done.public, more))


def _largest(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Parallel composition. Profiles of parts have the largest slack of any, which a claim beside a gate states too."""
    aside = lattice_delta(SLACK, max(guarantee.epsilon for guarantee in guarantees))
    if len({guarantee.status == "claimed" for guarantee in guarantees}) > 1:
        guarantees = [
            replace(each, delta=each.delta + aside) if each.status == "claimed" and each.delta else each
            for each in guarantees
        ]
    return parallel(*guarantees)


def _added_up(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Sequential composition of what the releases could have spent at most, whatever was released in between."""
    done = sequential(*guarantees)
    epsilon = math.fsum(guarantee.epsilon for guarantee in guarantees)
    whole = [_whole(guarantee) for guarantee in guarantees]
    if None not in whole:
        epsilon = min(epsilon, profile_of([event for event in whole if event is not None]).epsilon_at(done.delta))
    # What was spent may be a rounding error more than what could have been.
    return replace(done, epsilon=max(epsilon, done.epsilon))


def _whole(guarantee: Guarantee) -> Event | None:
    """One event that is no better than any way in which a gate can spend the stated budget; None if it was no gate.

    What was released may be less than the whole budget, by as much as the answers in between decided, and what depends
    on answers is no parameter of a mechanism.
    """
    events, epsilon, delta = guarantee.events, guarantee.epsilon, guarantee.delta
    if guarantee.status == "claimed":
        return None
    # Gates that set nothing aside for the lattice promise zCDP alone.
    if delta and sets_slack_aside(epsilon, delta) and all(isinstance(event, GaussianEvent) for event in events):
        mu = calibrate_mu(epsilon, delta)
        return GaussianEvent(name="a site", diameter=mu * _SIGMA, sigma=_SIGMA, dimension=1)
    if not delta and all(isinstance(event, LaplaceEvent) for event in events):
        return LaplaceEvent(name="a site", diameter=epsilon, scale=1.0, dimension=1, lattice=False)
    return None
