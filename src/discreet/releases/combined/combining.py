"""Several sites' releases of one average effect, as one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, get_args

from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidInput
from discreet.releases.average import Release
from discreet.releases.combined.guarantees import guarantee_of
from discreet.releases.combined.release import CombinedRelease
from discreet.releases.combined.sites import Site
from discreet.releases.combined.weighing import ALONE, Model, People, Weighed, together, weigh
from discreet.releases.function import EffectRelease
from discreet.releases.wording import listed

# Choice: at this level, the one that meta-analyses use for Cochran's Q, sites are said to differ by more than their
# errors explain. Nothing is estimated with it.
_DIFFER = 0.1


def combine(
    releases: Sequence[Any], *, model: Model, people: People = "overlapping", names: Sequence[str] | None = None
) -> CombinedRelease:
    """One estimate and interval from several sites' releases: post-processing, which costs no privacy.

    Parameters
    ----------
    releases : sequence of Release or EffectRelease
        One for each site, of one estimand, outcome and privacy unit: of `ATE`, `DifferenceInMeans` or another average,
        or the average effect of `CATE`.
    model : {"fixed", "random"}
        "fixed": all sites have one effect. "random": effects differ between sites, and their mean is estimated.
    people : {"overlapping", "disjoint"}
        "disjoint" if no one has records at two sites: guarantees then do not add up, and errors are independent. It
        cannot be checked, is yours to state, and is printed. Otherwise budgets add up, and so do errors of sampling.
    names : sequence of str, optional
        What sites are called; by default "site 1", "site 2" and so on.

    Returns
    -------
    CombinedRelease
        Estimate, interval, weights, heterogeneity, and one guarantee.

    Privacy
    -------
    Made of releases alone. What they promise together: docs/proofs/combine.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import draw
    >>> studies = [draw("private-ci-1", n=4_000, seed=seed) for seed in (1, 2, 3)]
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     fits = [dc.ATE(epsilon=1.0, delta=1e-6, bounds=s.bounds).fit(s.Y, s.T, X=s.X) for s in studies]
    >>> trio = dc.combine([fit.release_ for fit in fits], model="random", people="disjoint", names=["A", "B", "C"])
    >>> low, high = trio.interval(alpha=0.05)
    >>> low < 1.0 < high, trio.guarantee.epsilon
    (True, 1.0)
    """
    _check_choices(model, people)
    called, averages = _checked(releases, names)
    parts = [each.uncertainty for each in averages]
    found = weigh([each.estimate for each in averages], parts, model)
    weights, first = found.weights.tolist(), averages[0]
    sites = _sites(called, weights, averages)
    combined = CombinedRelease(
        kind=first.kind,
        estimand=first.title,
        model=model,
        people=people,
        estimate=math.fsum(site.weight * site.estimate for site in sites),
        uncertainty=together(weights, parts, people),
        tau=found.tau,
        q=found.q,
        sites=sites,
        guarantee=guarantee_of([each.guarantee for each in averages], people),
        bounds=_common([each.bounds for each in averages]),
        cap=first.cap,
    )
    return replace(combined, notes=tuple(_notes(combined, found, called, averages)))


def _check_choices(model: object, people: object) -> None:
    if model not in get_args(Model):
        raise InvalidInput("model must be 'fixed' (one effect at all sites) or 'random' (effects that differ): choose.")
    if people not in get_args(People):
        raise InvalidInput("people must be 'disjoint' (no one is at two sites) or 'overlapping': state what holds.")


def _sites(called: Sequence[str], weights: Sequence[float], averages: Sequence[Release]) -> tuple[Site, ...]:
    """What each release says, under its site's name and with its weight."""
    return tuple(
        Site(
            name=name,
            weight=weight,
            estimate=float(each.estimate),
            uncertainty=each.uncertainty,
            n=each.n,
            design=each.design,
        )
        for name, weight, each in zip(called, weights, averages, strict=True)
    )


def _itself(release: Release) -> Release:
    return release


def _average_of(release: EffectRelease) -> Release:
    """The average that `CATE` measured, as `ATE` would have released it."""
    if release.measured is None:
        raise InvalidInput("releases: an effect function of this age has no measured average; fit ATE at that site.")
    return Release(
        kind="ate",
        estimate=release.measured.estimate,
        uncertainty=release.measured.uncertainty,
        n=release.n,
        guarantee=release.guarantee,
        bounds=release.bounds,
        design=release.design,
    )


# How the average is read off each class of release that has one, with the sources of its error.
_AVERAGES: dict[type[Any], Callable[[Any], Release]] = {Release: _itself, EffectRelease: _average_of}


def _checked(releases: object, names: object) -> tuple[list[str], list[Release]]:
    """Names and averages of the sites, if they can be combined at all."""
    if isinstance(releases, str) or not isinstance(releases, list | tuple):
        raise InvalidInput("releases must be a list of releases, one for each site: read files with discreet.load.")
    if any(isinstance(each, CombinedRelease) for each in releases):
        raise InvalidInput("releases: one is combined already; give the sites' own releases, all at once.")
    if any(type(each) not in _AVERAGES for each in releases):
        raise InvalidInput(
            "releases must be those of ATE, DifferenceInMeans, another average or CATE: give release_ of each "
            "estimator, or what discreet.load reads."
        )
    if len(releases) < 2:
        raise InvalidInput("releases must be two or more: a single one is its own estimate.")
    called = [f"site {number}" for number in range(1, len(releases) + 1)] if names is None else names
    if isinstance(called, str) or not isinstance(called, list | tuple) or len(called) != len(releases):
        raise InvalidInput("names must be as many as there are releases: give one for each, or none at all.")
    if not all(isinstance(name, str) and name.strip() for name in called) or len(set(called)) < len(called):
        raise InvalidInput("names must be text, and no two the same: call each site by a name of its own.")
    averages = [_AVERAGES[type(each)](each) for each in releases]
    for (one, first), (other, second) in combinations(zip(called, averages, strict=True), 2):
        _check_pair(f"{one!r} and {other!r}", first, second)
    if min(each.uncertainty.se for each in averages) <= 0.0:
        raise InvalidInput("releases: one has no standard error, so that nothing can be weighed; check its file.")
    return list(called), averages


def _check_pair(both: str, one: Release, other: Release) -> None:
    """Refuse two releases that do not answer one question about different sites."""
    if (one.estimate, one.uncertainty, one.n, one.guarantee.events) == (
        (other.estimate, other.uncertainty, other.n, other.guarantee.events)
    ):
        raise InvalidInput(f"releases: {both} are the same release; give each site's once.")
    for same, what in (
        (one.kind == other.kind, "estimate different things: fit the same estimator at each"),
        (one.bounds.outcome_column == other.bounds.outcome_column, "declare different outcomes: agree on its bounds"),
        (one.bounds.arms == other.bounds.arms, "declare different arms: agree on the labels of treatment"),
        (one.cap == other.cap, "cap the outcome at different numbers, or only one does: agree on one cap="),
        (
            (one.guarantee.neighbours, one.guarantee.unit) == (other.guarantee.neighbours, other.guarantee.unit),
            "protect different units or relations: agree on neighbours=, unit= and max_rows=",
        ),
    ):
        if not same:
            raise InvalidInput(f"releases: {both} {what}, and fit again.")


def _common(bounds: Sequence[Bounds]) -> Bounds:
    """What all sites declared: the covariates that they share, and overlap as wide as anywhere."""
    first, others = bounds[0], bounds[1:]
    low, high = min(each.propensity[0] for each in bounds), max(each.propensity[1] for each in bounds)
    if all(each.columns == first.columns and each.names == first.names for each in others):
        return replace(first, propensity=(low, high))
    shared: dict[str, Any] = {
        name: spec for name, spec in first.declared.items() if all(each.declared.get(name) == spec for each in others)
    }
    return replace(first.declaring(shared if first.named else None), propensity=(low, high))


def _notes(
    combined: CombinedRelease, found: Weighed, called: Sequence[str], averages: Sequence[Release]
) -> Iterator[str]:
    if combined.people == "disjoint":
        yield (
            "That no one has records at two sites was stated, and cannot be checked: the guarantee and the interval "
            "rest on it."
        )
    else:
        yield (
            "People may have records at several sites: budgets add up, errors of sampling and adjustment are added up "
            "as if they were the same everywhere, and what is said of differences between sites takes sites to be "
            "independent."
        )
    if combined.model == "random":
        yield (
            f"The interval is for the mean effect over sites like these. {len(called)} of them, so weighed, leave "
            f"{combined.degrees:.2g} degree{'s' if combined.degrees > 1.0 else ''} of freedom."
        )
        if max(site.weight for site in combined.sites) > ALONE:
            yield (
                "One site has nearly all of the weight: the others hardly show how far effects differ, and if they do "
                "the interval may be too narrow."
            )
    else:
        yield "The interval is for the one effect of all sites, or else for the mean of these sites by their weights."
        if combined.heterogeneity.p < _DIFFER:
            yield "Sites differ by more than their errors explain: model='random' allows for it."
    yield (
        "I squared and Q are relative to the errors of the sites, privacy noise included: noise makes them smaller, "
        "and with few sites a difference may go unseen. The standard deviation between sites is in the outcome's unit."
    )
    for status, words in (
        ("test", "drawn with seeded noise, so that all of this is a test and not private"),
        ("claimed", "claimed and not proved, and so is what is promised here"),
    ):
        named = [name for name, each in zip(called, averages, strict=True) if each.guarantee.status == status]
        if named:
            yield f"{listed(named)}: {words}."
    if combined.kind != "difference-in-means" and len({each.bounds.names for each in averages}) > 1:
        yield "Sites adjusted for different covariates; those that all of them declare alike are listed."
    if len({each.design for each in averages}) > 1:
        yield "In some sites the probability of treatment was known, and others are observational."
    yield "What the sites' own releases assume is assumed here; a bias that all sites share is not averaged away."
