"""A release of any kind in plain words: what it says, what it promises, and what would make it say more."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.privacy.accountant import calibrate_mu
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee
from discreet.releases.average import SOURCES, Release, Uncertainty
from discreet.releases.combined.release import BETWEEN
from discreet.releases.explained.headline import (
    HasAverage,
    HasAverages,
    HasContrasts,
    HasEstimate,
    HasSites,
    HasSources,
    Headline,
    Published,
    design_of,
    headline,
)
from discreet.releases.page import guess
from discreet.releases.parts.average_page import EXPLANATIONS
from discreet.releases.wording import RELATION, listed

_DESIGNS = {
    "observational": "Nobody's chance of treatment was known: the estimate is off where something that was not "
    "adjusted for drove both treatment and outcome.",
    "known propensity": "The chance of treatment was known by design, so that the comparison itself needs no luck.",
    "differs between sites": "At some sites the chance of treatment was known by design, and others are observational.",
}
_REPEATED = "If the study were repeated many times, with other people and other noise"
_ALLOWED = "Noise that was added for privacy is allowed for."
_NOT_PROMISED = (
    "It does not hide what is true of people in general: a study that shows that a treatment works says so of those "
    "who took no part as well.",
    "It is about this release. Others about the same people add up with it, and a ledger keeps count.",
    "It is about one at a time. What many people have in common, such as a whole family or ward, is protected less.",
)
_STATUS = {
    "proved": "The promise is proved for every data set.",
    "claimed": "The promise is claimed by a paper, and could not be proved here. Do not rely on it.",
    "test": "This release is a test: its noise can be subtracted again, and nothing of this holds. Do not publish it.",
}


def explain(release: Published, alpha: float = 0.05) -> str:
    """What a release says and promises, for people who know neither statistics nor privacy.

    Parameters
    ----------
    release
        A release of any kind, those of published systems included.
    alpha : float
        Intervals cover with probability ``1 - alpha``.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trial = private_ci_rct(n=1_000, seed=1)
    >>> with dc.testing.seeded_noise(0):
    ...     means = dc.DifferenceInMeans(epsilon=1.0, bounds=trial.bounds).fit(trial.Y, trial.T, X=trial.X)
    >>> print(explain(means.release_).splitlines()[0])
    Difference in mean outcomes
    """
    first = headline(release, alpha)
    sections = (
        ("What was estimated", _estimated(release, first)),
        ("What the interval means", _interval(release, first, alpha)),
        ("What is promised to the people in the records", _promised(release.guarantee)),
        ("What is not promised", _not_promised(release.guarantee)),
        ("Where the uncertainty comes from", _sources(release)),
        ("What would help", _help(release)),
        ("What it rests on", iter(release.notes)),
    )
    text = [first.name]
    for title, sentences in sections:
        lines = [f"  - {sentence}" for sentence in sentences]
        text += ["", title, *lines] if lines else []
    return "\n".join(text)


def _estimated(release: Published, first: Headline) -> Iterator[str]:
    low, high = release.bounds.outcome
    if release.bounds.outcome_levels is not None:
        event = release.bounds.outcome_levels.levels[1]
        unit = f"The outcome is yes or no; effects are differences of the probability of {str(event)!r}."
    else:
        unit = f"Effects are in the unit of the outcome, which was declared to lie between {low:g} and {high:g}."
    if first.estimate:
        average = "On average over these people, the" if isinstance(release, HasAverage) else "The"
        records = f" from {first.records} records" if first.records else ""
        yield f"{average} effect of treatment on the outcome is estimated as {first.estimate}{records}."
    if isinstance(release, HasAverage):
        names = listed(release.bounds.names) if release.bounds.names else "no covariates"
        yield f"The file holds more than the average: effects of people or segments, by {names}."
    elif isinstance(release, HasContrasts):
        where = " in each segment" if isinstance(release, HasAverages) else ""
        names = listed(map(str, release.arms))
        yield f"The file holds effects of every two of {len(release.arms)} arms{where}: {names}."
    elif not isinstance(release, HasEstimate):
        yield "The file holds effects of people, segments or queries, and no single number that stands for all of them."
    yield unit
    if isinstance(release, HasSites):
        names = listed(site.name for site in release.sites)
        yield f"It is put together of what {len(release.sites)} sites published: {names}."
    design = _DESIGNS.get(design_of(release))
    if design:
        yield design


def _interval(release: Published, first: Headline, alpha: float) -> Iterator[str]:
    # Unit: a percentage.
    level = f"{100 * (1 - alpha):g}"
    if isinstance(release, HasContrasts):
        yield from _of_arms(release, alpha)
        yield f"{_REPEATED}, {level} in 100 intervals of one effect would hold its true value. {_ALLOWED}"
        return
    if first.ends is None:
        yield "There is none: the method gives no interval, so that nobody can say how far off it may be."
        return
    yield (
        f"It goes from {first.interval}. {_REPEATED}, {level} in 100 such intervals would hold the true effect. "
        f"{_ALLOWED}"
    )
    low, high = first.ends
    if low <= 0.0 <= high:
        yield "It includes zero: the data do not show whether treatment raises or lowers the outcome."
    else:
        verb = "raises" if low > 0.0 else "lowers"
        yield f"It does not include zero: treatment {verb} the outcome, if what is said below under 'rests on' holds."
    if isinstance(release, HasSites) and release.model == "random":
        yield "It is about the mean over sites like these; a single site may differ from it by more."


def _of_arms(release: HasContrasts, alpha: float) -> Iterator[str]:
    """The effect of every other arm against the control: over all segments, where there are segments."""
    control = release.arms[0]
    everyone = isinstance(release, HasAverages)
    rows = release.averages if isinstance(release, HasAverages) else release.contrasts
    for row in rows(alpha, against=control):
        zero = "includes zero" if row.low <= 0.0 <= row.high else "does not include zero"
        pair = f"{row.arm} against {control}" + ", on average over all segments" * everyone
        yield f"{pair}: {row.effect:.3g}, from {row.low:.3g} to {row.high:.3g}, which {zero}."


def _promised(guarantee: Guarantee) -> Iterator[str]:
    if guarantee.status != "test":
        changed = "another" if guarantee.neighbours == "replace-one" else "missing"
        yield (
            f"Noise was added on purpose, so that what was published would look almost the same had {guarantee.unit} "
            f"been {changed} ({RELATION[guarantee.neighbours]})."
        )
        found = guess(guarantee)
        yield (
            f"{found['word']} protection: someone who knows all other records and guesses about one is right at most "
            f"{found['times']} times in 100, where a coin is right 50 times ({guarantee.budget})."
        )
    yield _STATUS[guarantee.status]


def _not_promised(guarantee: Guarantee) -> Iterator[str]:
    yield f"Public, and not hidden: {'; '.join(guarantee.public) or 'nothing beyond the settings of the method'}."
    if guarantee.delta:
        yield f"With a chance of at most {guarantee.delta:.3g} (delta) more may be learnt than the promise says."
    yield from _NOT_PROMISED


def _sources(release: Published) -> Iterator[str]:
    if not isinstance(release, HasSources):
        yield "From a limited number of records, and from noise. This kind of release does not say how much each is."
        return
    words = {SOURCES[name]: text for name, text in EXPLANATIONS.items()}
    words[BETWEEN] = (
        "sites have effects of their own, and few of them say little of their mean. More sites would shrink it."
    )
    for name, share in sorted(release.shares().items(), key=lambda item: -item[1]):
        reason = f": {words[name]}" if name in words else ""
        yield f"{name.capitalize()}, {100 * share:.0f} %{reason}"


def _help(release: Published) -> Iterator[str]:
    if isinstance(release, HasSites) and isinstance(release, HasSources):
        between = release.shares().get(BETWEEN, 0.0)
        more = (
            "more sites"
            if between > 0.5
            else "more records at each site, or one release of all records where that is allowed"
        )
        yield f"Mostly {more}."
    elif isinstance(release, Release):
        yield _expected(release.uncertainty, release.guarantee.budget)
    else:
        yield "More records or a larger epsilon; 'discreet plan' says how much of either, before anything is spent."
    yield "Fitting again does not help: it spends as much again, and what was published stays published."


def _expected(uncertainty: Uncertainty, budget: Budget) -> str:
    """How wide the interval would be with more, by the release's own parts of the error."""
    delta = budget.delta
    mu = 2.0 if delta is None else calibrate_mu(2.0 * budget.epsilon, delta) / calibrate_mu(budget.epsilon, delta)

    def width(**more: float) -> float:
        low, high = uncertainty.scaled(**more).interval(0.0)
        return high - low

    now = width() or 1.0
    return (
        f"With twice the records the interval would be about {width(records=2.0) / now:.2g} times as wide, and with "
        f"twice the epsilon about {width(mu=mu) / now:.2g} times."
    )
