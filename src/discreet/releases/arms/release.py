"""Mean outcomes of several arms as they may be published, and all differences between them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, get_args

import numpy as np

from discreet.data._arrays import Float, Level
from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidInput
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io
from discreet.releases.average import Kind, StudyDesign, Uncertainty
from discreet.releases.notebooks.card import ReleaseCard
from discreet.releases.parts.labels import titled
from discreet.releases.protocol import Display
from discreet.releases.wording import clipping_words, columns, guarantee_words, listed, mechanism_words, rounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMAT = "discreet-arms"
_OPTIONAL = frozenset({"cap"})
_SOURCES = ("sampling", "privacy", "nuisance")
_LABELLED = {
    "ate": "Average {effect}, several arms",
    "difference-in-means": "Average {effect}, several arms, as differences in means",
}
_TITLE = {"ate": "Average effects of several arms", "difference-in-means": "Differences in mean outcomes, several arms"}
_METHOD = {
    "ate": "augmented inverse probability weighting",
    "difference-in-means": "the arms' mean outcomes",
}


class Contrast(NamedTuple):
    """How much higher the mean outcome of an arm is than that of another, with its interval.

    Examples
    --------
    >>> Contrast("high", "placebo", 1.5, 1.0, 2.0).effect
    1.5
    """

    arm: Level
    against: Level
    effect: float
    low: float
    high: float


class _NoSingleEffect(InvalidInput, AttributeError):
    """Asked of several arms for what two arms have; whoever only looks whether it is there finds that it is not."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ArmsRelease(ReleaseCard):
    """Mean outcomes of several arms, and everything that follows from them alone.

    Parameters
    ----------
    kind
        "ate" or "difference-in-means".
    estimates
        Mean outcome that everybody would have in each arm, in the order of the declared labels.
    covariances
        Covariances of the errors of these means, by source: sampling, privacy noise, and what adjustment leaves.
    clipping, clipping_of_means
        Bias that clipping is taken to have caused in a difference, and in a mean; intervals allow for it.
    n
        Number of records: exact where it is public, noisy where it is not.
    guarantee, bounds
        What is promised and to whom; the public facts that were declared, the arms among them.
    design
        "observational", or "known propensity" where the probabilities of the arms were known.
    adjustment, notes
        Public description of the adjustment, plain JSON; assumptions and warnings, one sentence each.
    cap
        What larger outcomes counted as, where means are those of a capped outcome.

    Privacy
    -------
    Everything here is covered by ``guarantee``: means, differences of any two arms, at any level and together, cost
    nothing more.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet as dc
    >>> T = np.tile(["placebo", "low", "high"], 1_000)
    >>> Y = np.random.default_rng(1).normal(0.0, 1.0, 3_000) + 2.0 * (T == "high")
    >>> bounds = dc.Bounds(outcome=(-5, 5), treatment=["placebo", "low", "high"])
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     trial = dc.DifferenceInMeans(epsilon=1.0, delta=1e-6, bounds=bounds).fit(Y, T)
    >>> for row in trial.release_.contrasts(simultaneous=True):
    ...     print(row.arm, "against", row.against, row.low > 0)
    low against placebo False
    high against placebo True
    high against low True
    """

    format: ClassVar[str] = FORMAT

    kind: Kind
    estimates: tuple[float, ...]
    covariances: dict[str, list[list[float]]]
    clipping: float
    clipping_of_means: float
    n: float
    guarantee: Guarantee
    bounds: Bounds
    design: StudyDesign
    adjustment: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    cap: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind) or self.design not in get_args(StudyDesign):
            raise InvalidInput("kind and design must be those of an average effect; say what was estimated, and how.")
        arms = len(self.arms)
        if len(self.estimates) != arms or set(self.covariances) != set(_SOURCES):
            raise InvalidInput("estimates and covariances must have a number for every declared arm; check the file.")
        for part in self.covariances.values():
            matrix = np.asarray(part, dtype=np.float64)
            if matrix.shape != (arms, arms) or not np.isfinite(matrix).all() or np.diag(matrix).min() < 0.0:
                raise InvalidInput("covariances must be a matrix for all declared arms; check the file.")
        numbers = (*self.estimates, self.clipping, self.clipping_of_means, self.n)
        if not all(isinstance(each, int | float) and math.isfinite(each) for each in numbers):
            raise InvalidInput("estimates, clipping and n must be finite numbers to be released; check them.")
        if self.n <= 0 or min(self.clipping, self.clipping_of_means) < 0:
            raise InvalidInput("n must be positive and clipping not negative; check how they were computed.")
        low, high = self.bounds.outcome
        if self.cap is not None and (isinstance(self.cap, bool) or not low < self.cap <= high):
            raise InvalidInput("cap must be a number above the lower end of the outcome's range, and in it: check it.")
        object.__setattr__(self, "estimates", tuple(float(each) for each in self.estimates))
        object.__setattr__(self, "covariances", {name: _plain(self.covariances[name]) for name in _SOURCES})
        for name in ("clipping", "clipping_of_means", "n"):
            object.__setattr__(self, name, float(getattr(self, name)))
        object.__setattr__(self, "notes", tuple(map(str, self.notes)))
        object.__setattr__(self, "adjustment", io.plain_copy(self.adjustment))

    @property
    def arms(self) -> tuple[Level, ...]:
        """The declared labels, the control first."""
        return self.bounds.arms.levels

    def means(self, alpha: float = 0.05) -> dict[Level, tuple[float, float, float]]:
        """Mean outcome of every arm, with an interval at level ``1 - alpha`` each."""
        low, high = self.bounds.outcome
        high = high if self.cap is None else self.cap
        found = {}
        for place, arm in enumerate(self.arms):
            weights = np.eye(len(self.arms))[place]
            parts = self._uncertainty(weights, self.clipping_of_means)
            # No mean is outside of the outcome's range.
            first, last = (min(max(end, low), high) for end in parts.interval(self.estimates[place], _level(alpha)))
            found[arm] = self.estimates[place], first, last
        return found

    def contrasts(
        self, alpha: float = 0.05, simultaneous: bool = False, against: Level | None = None
    ) -> list[Contrast]:
        """Differences between the arms' means: of every two arms, or of all others against one.

        Parameters
        ----------
        alpha : float
            Each interval covers its difference with probability ``1 - alpha``;
        simultaneous : bool
            if true, all of them do at once (by Bonferroni's inequality, whatever their errors have in common).
        against : label, optional
            Only differences from this arm, such as the control.
        """
        arms = range(len(self.arms))
        if against is None:
            pairs = [(second, first) for first, second in combinations(arms, 2)]
        else:
            one = self._place(against, "against")
            pairs = [(arm, one) for arm in arms if arm != one]
        level = _level(alpha) / (len(pairs) if simultaneous else 1)
        return [self._contrast(*pair, level) for pair in pairs]

    def contrast(self, arm: Level, against: Level, alpha: float = 0.05) -> Contrast:
        """The difference between the means of two arms, with an interval for itself."""
        first, second = self._place(arm, "arm"), self._place(against, "against")
        if first == second:
            raise InvalidInput("arm and against must be two different arms: name another one.")
        return self._contrast(first, second, _level(alpha))

    def uncertainty(self, arm: Level, against: Level) -> Uncertainty:
        """Where the error of a difference comes from."""
        return self._uncertainty(self._weights(self._place(arm, "arm"), self._place(against, "against")), self.clipping)

    def _contrast(self, arm: int, against: int, alpha: float) -> Contrast:
        effect = self.estimates[arm] - self.estimates[against]
        low, high = self._uncertainty(self._weights(arm, against), self.clipping).interval(effect, alpha)
        # No effect can exceed the outcome's range.
        most = self.bounds.outcome_width if self.cap is None else self.cap - self.bounds.outcome[0]
        ends = min(max(low, -most), effect), max(min(high, most), effect)
        return Contrast(self.arms[arm], self.arms[against], effect, *ends)

    def _weights(self, arm: int, against: int) -> Float:
        one = np.eye(len(self.arms))
        return np.asarray(one[arm] - one[against])

    def _uncertainty(self, weights: Float, clipping: float) -> Uncertainty:
        parts = {
            name: math.sqrt(max(float(weights @ np.asarray(part) @ weights), 0.0))
            for name, part in self.covariances.items()
        }
        return Uncertainty(**parts, clipping=clipping)

    def _place(self, label: object, argument: str) -> int:
        if isinstance(label, str | int | float) and label in self.arms:
            return self.arms.index(label)
        raise InvalidInput(f"{argument} must be one of the declared arms: {', '.join(map(str, self.arms))}.")

    @property
    def estimate(self) -> NoReturn:
        """There is no single effect of several arms."""
        raise _NoSingleEffect("Several arms have no single effect: ask the release for contrasts(), means() or plot().")

    def interval(self, alpha: float = 0.05) -> NoReturn:
        """There is no single effect of several arms."""
        raise _NoSingleEffect(
            "Several arms have no single interval: ask the release for contrasts(), means() or plot()."
        )

    @property
    def title(self) -> str:
        """What was estimated, for people."""
        found = titled(self.bounds, _TITLE[self.kind], _LABELLED[self.kind])
        return found + ("" if self.cap is None else f" (outcome capped at {self.cap:g})")

    @property
    def records(self) -> str:
        """The number of records in words: exact, or about so many where it is private."""
        return f"{self.n:,.0f}" if self.guarantee.counts_public else f"about {self.n:,.0f}"

    def shown(self, alpha: float = 0.05) -> tuple[list[str], list[list[str]]]:
        """All differences in words: the head of a table and its lines."""
        pairs = zip(self.contrasts(alpha), self.contrasts(alpha, simultaneous=True), strict=True)
        lines = [
            [
                str(one.arm),
                str(one.against),
                f"{one.effect:.3g}",
                *(f"{row.low:.3g} to {row.high:.3g}" for row in (one, both)),
            ]
            for one, both in pairs
        ]
        return ["arm", "against", "effect", f"{_percent(alpha)} interval", "all at once"], lines

    def display(self, alpha: float = 0.05) -> Display:
        """What a terminal shows: all differences, the arms' means, and what is promised."""
        head, lines = self.shown(alpha)
        promised = self.guarantee
        below = [f"Mean outcomes: {listed(self._means_words(alpha))}."]
        below += [f"Records: {self.records}. Privacy: {promised.budget} ({promised.neighbours}, {promised.status})"]
        below += [f"- {note}" for note in self.notes]
        return Display(head=tuple(head), lines=tuple(map(tuple, lines)), below=tuple(below))

    def _means_words(self, alpha: float) -> list[str]:
        means = self.means(alpha).items()
        return [f"{arm} {mean:.3g} ({low:.3g} to {high:.3g})" for arm, (mean, low, high) in means]

    def summary(self) -> str:
        """A table in plain text."""
        lines = [self.title, "", "Mean outcome of each arm (95 % intervals)"]
        rows = [(str(arm), f"{mean:.4g} ({low:.4g} to {high:.4g})") for arm, (mean, low, high) in self.means().items()]
        lines += [*columns(rows), "", "Differences (95 % intervals, each for itself; in brackets all at once)"]
        pairs = zip(self.contrasts(), self.contrasts(simultaneous=True), strict=True)
        lines += columns(
            [
                (
                    f"{one.arm} against {one.against}",
                    f"{one.effect:.4g} ({one.low:.4g} to {one.high:.4g}) [{both.low:.4g} to {both.high:.4g}]",
                )
                for one, both in pairs
            ]
        )
        lines += ["", *columns([("records", self.records), ("design", self.design)])]
        lines += ["", "Privacy", *(f"  {line}" for line in str(self.guarantee).splitlines())]
        if self.notes:
            lines += ["", "Notes", *(f"  - {note}" for note in self.notes)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def rounds(self) -> tuple[tuple[str, int, float | None], ...]:
        """What was released, in order: name, how many numbers, share of the budget (None where there is none)."""
        return tuple(rounds(self.guarantee.events))

    def methods(self) -> str:
        """A paragraph for a paper's methods section, numbers filled in."""
        names = self.adjustment.get("covariates") or ()
        capped = "" if self.cap is None else f" on the outcome capped at {self.cap:g}"
        basis = self.adjustment.get("basis", "none")
        known = "known by design" if self.design == "known propensity" else "not known by design"
        sentences = [
            f"Mean outcomes{capped} of {len(self.arms)} arms ({listed(map(str, self.arms))}) were estimated by "
            f"{_METHOD[self.kind]} from {self.records} records under differential privacy with "
            f"{guarantee_words(self.guarantee)}",
            f"{clipping_words(self.bounds, names, self.cap)}; probabilities of the arms were {known}"
            + (f"; the adjustment used {basis}." if basis != "none" else "."),
            mechanism_words(self.guarantee.events),
            f"Estimated means are {listed(self._means_words(0.05))} (95 % intervals).",
            "Intervals of differences combine sampling error, the noise that was added and what noise in the "
            "adjustment may have caused, allow for clipping by the critical value of a folded normal distribution, and "
            "cover all at once by Bonferroni's inequality where that is said.",
        ]
        return " ".join(sentences)

    def plot(self, ax: Axes | None = None, alpha: float = 0.05, simultaneous: bool = False) -> Axes:
        """Draw all differences with their intervals (needs matplotlib)."""
        from discreet.releases.plots import plot_segments

        words = f"effect ({_percent(alpha)} intervals{', all at once' * simultaneous})"
        return plot_segments(*self.forest(alpha, simultaneous), words, ax)

    def forest(self, alpha: float = 0.05, simultaneous: bool = False) -> tuple[list[str], Float, tuple[Float, Float]]:
        """What a forest plot shows: labels, differences and the ends of their intervals."""
        rows = self.contrasts(alpha, simultaneous)
        ends = np.array([row.low for row in rows]), np.array([row.high for row in rows])
        return [f"{row.arm} against {row.against}" for row in rows], np.array([row.effect for row in rows]), ends

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        made = {name: plain[name].to_dict() for name in ("guarantee", "bounds")}
        made |= {"estimates": list(self.estimates), "notes": list(self.notes)}
        done = io.head(FORMAT) | plain | made
        return {name: value for name, value in done.items() if name not in _OPTIONAL or value is not None}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> ArmsRelease:
        """Read a release back; its guarantee is checked against its events again."""
        rest = io.fields_of(plain, FORMAT, {part.name for part in fields(cls)}, optional=_OPTIONAL)
        with io.wrong_types_named():
            made = {
                "estimates": tuple(float(each) for each in rest["estimates"]),
                "covariances": {str(name): _plain(part) for name, part in rest["covariances"].items()},
                "guarantee": Guarantee.from_dict(rest["guarantee"]),
                "bounds": Bounds.from_dict(rest["bounds"]),
                "notes": tuple(rest["notes"]),
            }
            return cls(**(rest | made))

    def save(self, path: str | Path) -> None:
        """Write a release file."""
        io.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> ArmsRelease:
        """Read a release file."""
        return cls.from_dict(io.read_json(path))


def _plain(matrix: Any) -> list[list[float]]:
    return [[float(each) for each in row] for row in matrix]


def _level(alpha: float) -> float:
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise InvalidInput("alpha must lie between 0 and 1; 0.05 asks for a 95 % interval.")
    return float(alpha)


def _percent(alpha: float) -> str:
    # Unit: a percentage.
    return f"{100 * (1 - alpha):g} %"
