"""What is published: an estimate, its uncertainty and its guarantee, as JSON on disk and as words for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidInput
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io, wording
from discreet.releases.diagnostics.diagnosed import Diagnosed
from discreet.releases.diagnostics.released import checked
from discreet.releases.diagnostics.sensitivity import Average
from discreet.releases.notebooks.card import ReleaseCard
from discreet.releases.parts import labels
from discreet.releases.parts.arm_means import ArmMeans, Ratios, check_alpha
from discreet.releases.parts.uncertainty import Uncertainty as Uncertainty
from discreet.releases.parts.uncertainty import folded_critical as folded_critical
from discreet.releases.protocol import Display
from discreet.releases.wording import SUMS, clipping_words, columns, guarantee_words, listed, mechanism_words, rounds

Kind = Literal["ate", "difference-in-means", "att", "atc", "ato", "difference-in-differences"]
StudyDesign = Literal["observational", "known propensity"]
FORMAT = "discreet-release"
# Fields that not every file has.
_OPTIONAL = frozenset({"arms", "cap", "diagnostics"})
SOURCES = {
    "sampling": "sampling",
    "privacy": "privacy noise",
    "nuisance": "adjustment",
    "clipping": "clipping",
}
"""Sources of uncertainty: names of fields, and what people call them."""
_TITLE = {
    "ate": "Average treatment effect",
    "difference-in-means": "Difference in mean outcomes",
    "att": "Average effect on the treated",
    "atc": "Average effect on the untreated",
    "ato": "Average effect in the overlap",
    "difference-in-differences": "Difference in differences",
}
_LABELLED = {
    "ate": "Average {effect}",
    "difference-in-means": "Average {effect}, as a difference in means",
    "att": "Average {effect}, on the treated",
    "atc": "Average {effect}, on the untreated",
    "ato": "Average {effect}, in the overlap",
    "difference-in-differences": "Average {effect}, on the treated, by difference in differences",
}
_NAME = _TITLE | {"difference-in-means": _TITLE["ate"], "difference-in-differences": _TITLE["att"]}
_NAME = {kind: title[0].lower() + title[1:] for kind, title in _NAME.items()}
_METHOD = {
    "ate": "augmented inverse probability weighting",
    "difference-in-means": "the difference in mean outcomes",
    "att": "augmented inverse probability weighting towards the treated",
    "atc": "augmented inverse probability weighting towards the untreated",
    "ato": "augmented overlap weighting",
    "difference-in-differences": "augmented inverse probability weighting of changes, towards the treated,",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Release(Diagnosed, Ratios, ReleaseCard):
    """An average effect as it may be published.

    Parameters
    ----------
    kind
        "ate" or "difference-in-means"; "att", "atc" or "ato" where some records count for more than others;
        "difference-in-differences".
    estimate
        The effect, in the outcome's unit.
    uncertainty
        Where its error comes from.
    n
        Number of records: exact where it is public, noisy where it is not.
    guarantee
        What is promised to the people in the records.
    bounds
        The public facts that were declared.
    design
        "observational", or "known propensity" where the chance of treatment was known.
    adjustment
        Public description of the adjustment, plain JSON.
    notes
        Assumptions and warnings, one sentence each.
    reference
        Further released numbers by name.
    cap
        What larger outcomes counted as, where the effect is that on a capped outcome.
    arms
        The level of the outcome, from which and the effect both arms' means follow; None in files of version 1.
    diagnostics
        What is behind ``balance`` and ``overlap``, plain JSON; None in older files.

    Privacy
    -------
    Everything here is covered by ``guarantee``: intervals at any level, tables, pages and files cost nothing more.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trial = private_ci_rct(n=1_000, seed=1)
    >>> with dc.testing.seeded_noise(0):
    ...     means = dc.DifferenceInMeans(epsilon=1.0, bounds=trial.bounds).fit(trial.Y, trial.T, X=trial.X)
    >>> means.release_.kind, means.release_.n
    ('difference-in-means', 1000.0)
    >>> dc.Release.from_dict(means.release_.to_dict()) == means.release_
    True
    """

    format: ClassVar[str] = FORMAT

    kind: Kind
    estimate: float
    uncertainty: Uncertainty
    n: float
    guarantee: Guarantee
    bounds: Bounds
    design: StudyDesign
    adjustment: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    reference: dict[str, float] = field(default_factory=dict)
    cap: float | None = None
    arms: ArmMeans | None = None
    diagnostics: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InvalidInput(f"kind must be one of {', '.join(get_args(Kind))}; say what was estimated.")
        if self.design not in get_args(StudyDesign):
            raise InvalidInput(
                f"design must be one of {', '.join(get_args(StudyDesign))}; say how treatment came about."
            )
        parts = self.uncertainty.to_dict()
        for name, value in [("estimate", self.estimate), ("n", self.n), *parts.items(), *self.reference.items()]:
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InvalidInput(f"{name} must be a finite number to be released; check how it was computed.")
        if self.n <= 0 or min(parts.values()) < 0:
            raise InvalidInput("n must be positive and no part of the uncertainty negative; check how they are made.")
        notes: object = self.notes
        if not isinstance(notes, tuple | list) or not all(isinstance(note, str) for note in notes):
            raise InvalidInput("notes must be sentences in a tuple; put a single one in a tuple too.")
        low, high = self.bounds.outcome
        if self.cap is not None and (isinstance(self.cap, bool) or not low < self.cap <= high):
            raise InvalidInput("cap must be a number above the lower end of the outcome's range, and in it: check it.")
        object.__setattr__(self, "estimate", float(self.estimate))
        object.__setattr__(self, "n", float(self.n))
        object.__setattr__(self, "notes", tuple(notes))
        object.__setattr__(self, "reference", {name: float(value) for name, value in self.reference.items()})
        object.__setattr__(self, "adjustment", io.plain_copy(self.adjustment))
        if self.diagnostics is not None:
            object.__setattr__(self, "diagnostics", checked(io.plain_copy(self.diagnostics)))

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval that covers the effect with probability ``1 - alpha``, privacy noise included."""
        check_alpha(alpha)
        low, high = self.uncertainty.interval(self.estimate, alpha)
        # No effect can exceed the outcome's range.
        most = self.outcomes[1] - self.outcomes[0]
        return min(max(low, -most), self.estimate), max(min(high, most), self.estimate)

    def _average(self) -> Average:
        return Average(self.estimate, self.interval, self.uncertainty.sampling * math.sqrt(self.n))

    @property
    def _of_changes(self) -> bool:
        return self.kind == "difference-in-differences"

    @property
    def title(self) -> str:
        """What was estimated, for people."""
        found = labels.titled(self.bounds, _TITLE[self.kind], _LABELLED[self.kind])
        return found + ("" if self.cap is None else f" (outcome capped at {self.cap:g})")

    @property
    def records(self) -> str:
        """The number of records in words: exact, or about so many where it is private."""
        return f"{self.n:,.0f}" if self.guarantee.counts_public else f"about {self.n:,.0f}"

    def text(self, value: float) -> str:
        """A number in the outcome's unit, with as many decimals as the standard error gives meaning to."""
        return wording.with_decimals(value, self.uncertainty.se)

    def interval_text(self, alpha: float = 0.05) -> str:
        """An interval in words."""
        low, high = self.interval(alpha)
        return f"{self.text(low)} to {self.text(high)}"

    def shares(self) -> dict[str, float]:
        """Share of each source in the uncertainty, under the names that people use; clipping only if it matters."""
        shares = {SOURCES[name]: share for name, share in self.uncertainty.share().items()}
        return {name: share for name, share in shares.items() if name != SOURCES["clipping"] or share >= 0.005}

    def rounds(self) -> tuple[tuple[str, int, float | None], ...]:
        """What was released, in order: name, how many numbers, share of the budget (None where there is none).

        Disjoint parts of the records have a budget each, and shares are of that one.
        """
        return tuple(rounds(self.guarantee.events))

    def display(self, alpha: float = 0.05) -> Display:
        """What a terminal shows: the estimate with its interval, and what is promised."""
        promised, level = self.guarantee, f"{100 * (1 - alpha):g} % interval"
        rows = [("estimate", self.text(self.estimate)), (level, self.interval_text(alpha)), *self.arm_rows(alpha)]
        rows += [("records", self.records)]
        rows += [("uncertainty from", ", ".join(f"{name} {100 * part:.0f} %" for name, part in self.shares().items()))]
        rows += [("privacy", f"{promised.budget} ({promised.neighbours}, {promised.status})")]
        return Display(lines=tuple(rows), below=tuple(f"- {note}" for note in self.notes))

    def summary(self) -> str:
        """A table in plain text."""
        rows = [("estimate", self.text(self.estimate)), ("95 % interval", self.interval_text())]
        rows += [("80 % interval", self.interval_text(0.2)), *self.arm_rows()]
        rows += [("records", self.records), ("design", self.design)]
        rows += [(name.replace("_", " "), f"{value:.4g}") for name, value in self.reference.items()]
        rows += self.arms_in_words()
        lines = [self.title, *columns(rows)]
        lines += ["", "Where the uncertainty comes from (shares of the variance)"]
        lines += columns([(name, f"{share:.0%}".replace("%", " %")) for name, share in self.shares().items()])
        lines += ["", "Privacy", *(f"  {line}" for line in str(self.guarantee).splitlines())]
        if self.notes:
            lines += ["", "Notes", *(f"  - {note}" for note in self.notes)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def methods(self) -> str:
        """A paragraph for a paper's methods section, numbers filled in."""
        g, u, names = self.guarantee, self.uncertainty, () if self.kind == "difference-in-means" else self.bounds.names
        sentences = [
            f"The {self._name}{self._cap_words()} was estimated by {_METHOD[self.kind]} from "
            f"{self.records} records under differential privacy with {guarantee_words(g)}",
            f"{clipping_words(self.bounds, names, self.cap)}{self._adjustment_words()}.",
            self._mechanism_words(),
            f"The estimate is {self.text(self.estimate)} (95 % interval {self.interval_text()}).{self.arm_words()}",
            f"The interval combines {listed(wording.error_words(u.to_dict()))}"
            + (
                f", and allows for a bias of up to {u.clipping:.3g} that clipping is taken to have caused, by the "
                "critical value of a folded normal distribution."
                if u.clipping
                else "."
            ),
        ]
        return " ".join(sentences)

    def _mechanism_words(self) -> str:
        return mechanism_words(self.guarantee.events, self._sums_words())

    def _sums_words(self) -> str:
        """What was summed: records, unless the adjustment says what was computed before (``before``, ``sums_over``)."""
        before, over = (self.adjustment.get(name) for name in ("before", "sums_over"))
        if not isinstance(before, str) or not isinstance(over, str):
            return SUMS
        return f"{before}. All that was released are sums over {over}: each contribution was clipped to a fixed set"

    @property
    def _name(self) -> str:
        whose = _NAME[self.kind].removeprefix("average effect").removeprefix("average treatment effect")
        return labels.titled(self.bounds, _NAME[self.kind], "average {effect}" + (f",{whose}" if whose else ""))

    def _cap_words(self) -> str:
        return "" if self.cap is None else f" on the outcome capped at {self.cap:g}"

    def _adjustment_words(self) -> str:
        if self.kind == "difference-in-means" or not self.bounds.p:
            return ""
        low, high = wording.pair(self.adjustment.get("trim")) or self.bounds.propensity
        known = "known by design and " if self.design == "known propensity" else ""
        basis = self.adjustment.get("basis", "none")
        return f"; probabilities of treatment were {known}kept between {low:.3g} and {high:.3g}" + (
            f"; the adjustment used {basis}" if basis != "none" else ""
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        made = {name: plain[name].to_dict() for name in ("uncertainty", "guarantee", "bounds")}
        made["arms"] = None if self.arms is None else self.arms.to_dict()
        done = io.head(FORMAT) | plain | made | {"notes": list(self.notes)}
        return {name: value for name, value in done.items() if name not in _OPTIONAL or value is not None}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Release:
        """Read a release back; its guarantee is checked against its events again."""
        rest = io.fields_of(plain, FORMAT, {part.name for part in fields(cls)}, optional=_OPTIONAL)
        with io.wrong_types_named():
            made = {
                "uncertainty": Uncertainty.from_dict(rest["uncertainty"]),
                "guarantee": Guarantee.from_dict(rest["guarantee"]),
                "bounds": Bounds.from_dict(rest["bounds"]),
                "notes": tuple(rest["notes"]),
                "arms": None if rest.get("arms") is None else ArmMeans.from_dict(rest["arms"]),
            }
            return cls(**(rest | made))

    def save(self, path: str | Path) -> None:
        """Write a release file."""
        io.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a release file."""
        return cls.from_dict(io.read_json(path))

    def _repr_html_(self) -> str:
        rows = {"estimate": self.text(self.estimate), "95 % interval": self.interval_text(), "records": self.records}
        rows |= dict(self.arm_rows())
        rows |= {f"uncertainty from {name}": f"{share:.0%}" for name, share in self.shares().items()}
        rows |= {"privacy": f"{self.guarantee.budget}; {self.guarantee.neighbours}; {self.guarantee.status}"}
        cells = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(value)}</td></tr>'
            for name, value in rows.items()
        )
        return f"<table><caption>{escape(self.title)}</caption>{cells}</table>"
