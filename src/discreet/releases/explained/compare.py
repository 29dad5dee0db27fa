"""Releases of any kinds beside each other, and whether they can be compared at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from discreet.exceptions import InvalidInput
from discreet.releases.combined.guarantees import guarantee_of
from discreet.releases.explained.headline import HasContrasts, Headline, Published, cap_of, design_of, headline
from discreet.releases.page import bounds_rows
from discreet.releases.wording import listed


class Comparison(NamedTuple):
    """A table with a column for each release, and what has to be said about it.

    Examples
    --------
    >>> print(Comparison(("", "a"), (("effect", "1"),), ("Alone.",)))
            a
    effect  1
    <BLANKLINE>
    Alone.
    """

    head: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...]

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.head, *self.lines, strict=True)]
        rows = (
            "  ".join(f"{word:<{width}}" for word, width in zip(row, widths, strict=True)).rstrip()
            for row in (self.head, *self.lines)
        )
        return "\n".join([*rows, "", *self.remarks])


def compare(releases: Sequence[Published], names: Sequence[str] | None = None, alpha: float = 0.05) -> Comparison:
    """Any number of releases side by side.

    Parameters
    ----------
    releases : sequence of releases
        Of any kinds, those of published systems included.
    names : sequence of str, optional
        What to call them; by default by number.
    alpha : float
        Intervals cover with probability ``1 - alpha``.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trial = private_ci_rct(n=1_000, seed=1)
    >>> data = trial.Y, trial.T
    >>> with dc.testing.seeded_noise(0):
    ...     fits = [dc.DifferenceInMeans(epsilon=e, bounds=trial.bounds).fit(*data, X=trial.X) for e in (0.5, 1.0)]
    >>> table = compare([fit.release_ for fit in fits], names=["small", "large"])
    >>> [line[0] for line in table.lines][:3]
    ['estimated', 'effect', '95 % interval']
    """
    if not isinstance(releases, list | tuple) or len(releases) < 2:
        raise InvalidInput("releases must be a list of two or more: read files with discreet.load.")
    called = [f"release {number}" for number in range(1, len(releases) + 1)] if names is None else list(names)
    if len(called) != len(releases) or not all(isinstance(name, str) for name in called):
        raise InvalidInput("names must be as many as there are releases: give one for each, or none at all.")
    firsts = [headline(release, alpha) for release in releases]
    rows = [_column(release, first) for release, first in zip(releases, firsts, strict=True)]
    # Unit: a percentage.
    labels = ["estimated", "effect", f"{100 * (1 - alpha):g} % interval", "records", "privacy", "protects", "relation"]
    labels += ["status", "outcome", "capped at", "arms", "covariates", "design"]
    lines = zip(labels, *rows, strict=True)
    shown = tuple(line for line in lines if any(word != "-" for word in line[1:]))
    return Comparison(("", *called), shown, tuple(_remarks(releases, firsts)))


def _column(release: Published, first: Headline) -> list[str]:
    guarantee, bounds, cap = release.guarantee, release.bounds, cap_of(release)
    words = [first.what, first.estimate, first.interval, first.records, str(guarantee.budget), guarantee.unit]
    words += [guarantee.neighbours, guarantee.status, dict(bounds_rows(bounds))["outcome"]]
    words += ["" if cap is None else f"{cap:g}", ", ".join(map(str, bounds.arms.levels))]
    words += [", ".join(bounds.names), design_of(release)]
    return [word or "-" for word in words]


def _remarks(releases: Sequence[Published], firsts: Sequence[Headline]) -> Iterator[str]:
    """Why they cannot be compared, or what to mind where they can."""
    differ = list(_differences(releases, firsts))
    if differ:
        yield f"Not comparable as they are: they differ in {listed(differ)}."
    else:
        yield "They answer the same question, so that effects and intervals can be read beside each other."
        yield "Intervals that overlap do not show that effects are equal. Sites are put together by 'combine'."
    if len({_covariates(release) for release in releases}) > 1:
        yield "They declare different covariates: part of a difference may come from that."
    if len({design_of(release) for release in releases} - {""}) > 1:
        yield "Treatment came about in different ways: they may differ by confounding alone."
    several = [isinstance(release, HasContrasts) for release in releases]
    if any(several):
        yield "With several arms there are effects of every two of them: read them where 'explain' lists them."
    if any(first.ends is None and not arms for first, arms in zip(firsts, several, strict=True)):
        yield "Where there is no interval, nobody can say how far off an effect may be."
    for status, words in (("test", "a test, and not private"), ("claimed", "claimed, and not proved")):
        if any(release.guarantee.status == status for release in releases):
            yield f"At least one guarantee is {words}."
    if len({(release.guarantee.neighbours, release.guarantee.unit) for release in releases}) > 1:
        yield "Their epsilons cannot be compared: they protect different units, or under different relations."
        return
    together = guarantee_of([release.guarantee for release in releases], "overlapping")
    yield f"If they are about the same people, all of them together have {together.budget}."


def _differences(releases: Sequence[Published], firsts: Sequence[Headline]) -> Iterator[str]:
    facts: tuple[tuple[str, list[Any]], ...] = (
        ("what was estimated", [first.what for first in firsts]),
        ("the outcome's bounds", [release.bounds.outcome_column for release in releases]),
        ("the cap", [cap_of(release) for release in releases]),
        ("the arms", [release.bounds.arms for release in releases]),
    )
    for what, values in facts:
        if any(value != values[0] for value in values):
            yield what


def _covariates(release: Published) -> str:
    return repr(bounds_rows(release.bounds)[2:])
