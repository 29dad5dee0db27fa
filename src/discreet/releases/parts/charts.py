"""Figures as numbers: what pages that can be touched draw by themselves, from releases alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from discreet.data.bounds import Bounds
from discreet.releases.diagnostics.released import name_of
from discreet.releases.parts.labels import capital, effect_axis

if TYPE_CHECKING:
    from discreet.releases.arms.release import ArmsRelease
    from discreet.releases.arms.segments import ArmSegmentsRelease, SegmentContrast
    from discreet.releases.combined.release import CombinedRelease
    from discreet.releases.diagnostics.diagnosed import Diagnosed
    from discreet.releases.function import EffectRelease
    from discreet.releases.policies.value import PolicyValueRelease
    from discreet.releases.segments import UpliftRelease
    from discreet.releases.survival.release import SurvivalRelease

# Choice: an axis leaves zero out where that is further away than so many times what the axis has to show.
FAR = 4.0
# Choice: a difference of the arms in so many standard deviations is what most authors call small, and bars are of so
# many standard deviations of the noise: as in the love plots of papers.
_SMALL, _DEVIATIONS = 0.1, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An estimate and its interval: ``inner`` is a narrower one."""

    at: float
    low: float
    high: float
    inner: tuple[float, float] | None = None
    colour: str = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of a forest: what it is about, its numbers in words, and its marks."""

    label: str
    text: str
    marks: tuple[Mark, ...]
    total: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """Estimates with intervals on one axis, a row each."""

    caption: str
    axis: str
    rows: tuple[Row, ...]
    legend: tuple[tuple[str, str], ...] = ()

    def ends(self) -> tuple[float, float]:
        """Where the axis ends: it holds zero, unless that would hide the intervals."""
        marks = [mark for row in self.rows for mark in row.marks]
        return axis_ends([mark.low for mark in marks], [mark.high for mark in marks])


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line with its band."""

    name: str
    y: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    colour: str = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines over one axis, which holds numbers."""

    name: str
    caption: str
    x_label: str
    y_label: str
    x: tuple[float, ...]
    series: tuple[Series, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charts:
    """What a page draws of a release."""

    forests: tuple[Forest, ...] = ()
    lines: tuple[Lines, ...] = ()


class OneEffect(Protocol):
    """A release of one number with an interval."""

    @property
    def estimate(self) -> float: ...
    @property
    def bounds(self) -> Bounds: ...
    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval at level ``1 - alpha``."""

    def text(self, value: float) -> str:
        """A number in words."""


def axis_ends(low: Iterable[float], high: Iterable[float]) -> tuple[float, float]:
    """Ends of an axis with a margin; zero is on it unless it lies so far away that it would hide everything."""
    first, last = min(low), max(high)
    if max(first, -last, 0.0) <= FAR * (last - first):
        first, last = min(first, 0.0), max(last, 0.0)
    margin = 0.06 * (last - first) or abs(first) * 0.1 or 1.0
    return first - margin, last + margin


def one_effect(release: OneEffect) -> Charts:
    """One estimate with its 80 % and 95 % intervals, and how the arms differ where that is known."""
    caption = "The dot is the estimate, the thick bar its 80 % and the thin bar its 95 % interval."
    axis = effect_axis(release.bounds, average=True)
    most = release.bounds.outcome_width
    (low, high), (inner_low, inner_high) = (
        (max(ends[0], -most), min(ends[1], most)) for ends in (release.interval(), release.interval(0.2))
    )
    mark = Mark(at=release.estimate, low=low, high=high, inner=(inner_low, inner_high))
    words = f"{release.text(release.estimate)} ({release.text(low)} to {release.text(high)})"
    return Charts(forests=(Forest(caption=caption, axis=axis, rows=(Row(label="effect", text=words, marks=(mark,)),)),))


def diagnosed(release: Any) -> Charts:
    """One estimate, with how the arms differ in their covariates."""
    return Charts(forests=(*one_effect(release).forests, *balance(release)))


def balance(release: Diagnosed) -> tuple[Forest, ...]:
    """How the arms differ in each covariate, before and after adjustment, the largest differences first."""
    if "balance" not in (release.diagnostics or {}):
        return ()
    rows = []
    for each in sorted(release.balance(), key=lambda row: -abs(row["before"])):
        marks = []
        for when, colour in (("before", "orange"), ("after", "blue")):
            if each[when] is not None:
                reach = _DEVIATIONS * each[f"{when}_sd"]
                value = float(each[when])
                marks.append(Mark(at=value, low=value - reach, high=value + reach, colour=colour))
        words = " → ".join(f"{mark.at:.2g}" for mark in marks)
        rows.append(Row(label=name_of(each), text=words, marks=tuple(marks)))
    caption = (
        "Balance: how the arms differ in each covariate, treated minus controls. Bars are two standard deviations of "
        f"the noise; most authors call a difference below {_SMALL:g} small."
    )
    axis = "difference in standard deviations (levels: in shares)"
    legend = (("orange", "as they are"), ("blue", "after adjustment"))
    return (Forest(caption=caption, axis=axis, rows=tuple(rows), legend=legend),)


def effect_function(release: EffectRelease) -> Charts:
    """The average of an effect function, and how the arms differ; its curves are asked for by covariate."""
    return Charts(forests=(_average(release), *balance(release)))


def _average(release: EffectRelease | UpliftRelease) -> Forest:
    axis = effect_axis(release.bounds, average=True)
    caption = "The average effect with its 80 % and 95 % intervals."
    return Forest(caption=caption, axis=axis, rows=(_average_row(release),))


def _average_row(release: EffectRelease | UpliftRelease) -> Row:
    low, high = release.ate_interval()
    mark = Mark(at=release.ate(), low=low, high=high, inner=release.ate_interval(0.2))
    return Row(label="average", text=f"{release.ate():.3g} ({low:.3g} to {high:.3g})", marks=(mark,), total=True)


def curve(release: Any, name: str) -> Lines:
    """The effect along one covariate, the others averaged: a point for each level, or a line."""
    found = release.curve(name, points=61)
    levels = not all(isinstance(value, float) for value in found.values)
    series = _series("effect", found.effect, found.low, found.high)
    x = range(len(found.values)) if levels else found.values
    label, unit = release.bounds.label(name), release.bounds.unit(name)
    return Lines(
        name=name,
        caption=f"The effect along {label}, with a 95 % band at each point",
        x_label=label + (f" ({unit})" if unit else ""),
        y_label=capital(effect_axis(release.bounds)),
        x=tuple(float(value) for value in x),
        series=(series,),
    )


def segments(release: UpliftRelease) -> Charts:
    """The effect in each segment and on average, and what treating the best first is worth."""
    (low, high), inner = release.interval(), release.interval(0.2)
    rows = [
        Row(
            label=label,
            text=f"{effect:.3g} ({a:.3g} to {b:.3g})",
            marks=(Mark(at=float(effect), low=float(a), high=float(b), inner=(float(c), float(d))),),
        )
        for label, effect, a, b, c, d in zip(
            release.partition.labels(), release.effects, low, high, *inner, strict=True
        )
    ]
    caption = "The effect in each segment; each 95 % interval is one for its own segment, not for all at once."
    forest = Forest(caption=caption, axis=effect_axis(release.bounds), rows=(*rows, _average_row(release)))
    gains = release.uplift_curve()
    worth = Lines(
        name="worth",
        caption="What treating the segments that gain most first is worth, with a 95 % band at each point",
        x_label="share of people treated",
        y_label="gain per person of all",
        x=tuple(float(share) for share in gains.share),
        series=(_series("gain", gains.value, gains.low, gains.high),),
    )
    return Charts(forests=(forest,), lines=(worth,))


def several_arms(release: ArmsRelease) -> Charts:
    """Differences between arms, by themselves and all at once."""
    labels, effects, (low, high) = release.forest()
    _, _, (least, most) = release.forest(simultaneous=True)
    rows = tuple(
        Row(
            label=label,
            text=f"{effect:.3g} ({a:.3g} to {b:.3g})",
            marks=(Mark(at=float(effect), low=float(c), high=float(d), inner=(float(a), float(b))),),
        )
        for label, effect, a, b, c, d in zip(labels, effects, low, high, least, most, strict=True)
    )
    caption = (
        "Differences between the arms' mean outcomes. Thick: a 95 % interval for each by itself, as in words; thin: "
        "one that holds for all at once."
    )
    return Charts(forests=(Forest(caption=caption, axis=effect_axis(release.bounds), rows=rows),))


def arm_segments(release: ArmSegmentsRelease) -> Charts:
    """The effects of each arm against the first, by segment and on average."""
    control = release.arms[0]
    each, at_once = (release.contrasts(simultaneous=joint, against=control) for joint in (False, True))
    forests = []
    for average in release.averages(against=control):
        rows = [
            _contrast_row(one.segment, one, joint)
            for one, joint in zip(each, at_once, strict=True)
            if one.arm == average.arm
        ]
        mark = Mark(at=average.effect, low=average.low, high=average.high)
        total = Row(label="average", text=_contrast_words(average), marks=(mark,), total=True)
        caption = (
            f"{average.arm} against {control}, by segment. Thick: a 95 % interval for each by itself, as in words; "
            "thin: one that holds for all arms and segments at once."
        )
        forests.append(Forest(caption=caption, axis=effect_axis(release.bounds), rows=(*rows, total)))
    return Charts(forests=tuple(forests))


def _contrast_row(label: str, one: SegmentContrast, joint: SegmentContrast) -> Row:
    mark = Mark(at=one.effect, low=joint.low, high=joint.high, inner=(one.low, one.high))
    return Row(label=label, text=_contrast_words(one), marks=(mark,))


def _contrast_words(one: SegmentContrast) -> str:
    return f"{one.effect:.3g} ({one.low:.3g} to {one.high:.3g})"


def sites(release: CombinedRelease) -> Charts:
    """The effect at each site, and at all of them together."""
    rows = [
        Row(
            label=f"{site.name} ({100 * site.weight:.0f} %)",
            text=f"{release.text(site.estimate)} ({release.text(low)} to {release.text(high)})",
            marks=(Mark(at=site.estimate, low=low, high=high, inner=release.site_interval(site, 0.2)),),
        )
        for site, (low, high) in ((site, release.site_interval(site)) for site in release.sites)
    ]
    low, high = release.interval()
    words = f"{release.text(release.estimate)} ({release.interval_text()})"
    mark = Mark(at=release.estimate, low=low, high=high, inner=release.interval(0.2))
    rows.append(Row(label="all sites together", text=words, marks=(mark,), total=True))
    caption = "The effect at each site with its 95 % interval, and at all together; in brackets a site's weight."
    return Charts(forests=(Forest(caption=caption, axis=effect_axis(release.bounds), rows=tuple(rows)),))


def survival(release: SurvivalRelease) -> Charts:
    """The difference, and who is without the event by arm."""
    curves = release.curves()
    series = tuple(
        _series(str(name), band.survival, band.low, band.high, colour)
        for (name, band), colour in zip(curves.items(), ("orange", "blue"), strict=False)
    )
    lines = Lines(
        name="survival",
        caption="Who is without the event, by arm, with a 95 % band at each time; not adjusted for covariates",
        x_label="time" + (f" ({release.bounds.unit('outcome')})" if release.bounds.unit("outcome") else ""),
        y_label="without the event",
        x=tuple(float(time) for time in next(iter(curves.values())).time),
        series=series,
    )
    return Charts(forests=one_effect(release).forests, lines=(lines,))


def policy(release: PolicyValueRelease) -> Charts:
    """What a policy gains, and the effect among those whom it treats."""
    among = release.effect_among
    found = (
        ("gain per person", release.estimate, release.interval(), release.interval(0.2)),
        ("effect among treated", among, release.uncertainty.interval(among), release.uncertainty.interval(among, 0.2)),
    )
    rows = tuple(
        Row(
            label=label,
            text=f"{value:.3g} ({low:.3g} to {high:.3g})",
            marks=(Mark(at=value, low=low, high=high, inner=inner),),
        )
        for label, value, (low, high), inner in found
    )
    unit = release.bounds.unit("outcome") or "the outcome's unit"
    return Charts(
        forests=(Forest(caption="What the policy gains, with 95 % intervals.", axis=f"in {unit}", rows=rows),)
    )


def _series(name: str, y: Any, low: Any, high: Any, colour: str = "blue") -> Series:
    """A line with its band, of arrays."""
    middle, lower, upper = (tuple(float(each) for each in part) for part in (y, low, high))
    return Series(name=name, y=middle, low=lower, high=upper, colour=colour)
