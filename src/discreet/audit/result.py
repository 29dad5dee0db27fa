"""What an audit found: a lower bound on what a mechanism really spends, and how it was proved."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import floor, isfinite, log10
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet.data.notebooks.card import Summarised, brief
from discreet.exceptions import InvalidInput
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Neighbours, Status
from discreet.releases.plots import BLUE, FAINT, INK, MUTED, ORANGE, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Instrument = Literal["replay", "closed form", "black box"]

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """How far one round moved between the worst neighbours that were found.

    Parameters
    ----------
    name
        The round's.
    ratio
        Distance of its exact sums over the stated diameter: 1 is tight, more is a bug.
    neighbours
        The worst pair, in words.
    reach
        Largest contribution of one record over half of the diameter (over all of it under add-remove), where it could
        be computed: below 1 the set that is declared is larger than what the map fills at these answers.
    geometry
        The kind of set that contributions are forced into.

    Examples
    --------
    >>> Moved(name="score", ratio=0.98, neighbours="an outcome at its end / the other end").ratio <= 1
    True
    """

    name: str
    ratio: float
    neighbours: str
    reach: float | None = None
    geometry: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AuditResult(Summarised):
    """What one instrument, or the strongest of several, found about one mechanism.

    Parameters
    ----------
    mechanism, attack
        What was audited, and how.
    claimed
        The budget that the mechanism states.
    status
        "proved" or "claimed": what the mechanism says about its own statement.
    epsilon_lower
        An epsilon that the mechanism spends at least, at its claimed delta; 0 if nothing was found.
    delta_lower
        A delta that it spends at least, at its claimed epsilon.
    confidence
        With which both bounds hold together; 1 for what was computed and not simulated.
    violated
        Whether the claim is refuted: a bound exceeds it, or a replay found something that no noise covers.
    instrument
        "replay", "closed form" or "black box".
    neighbours
        The relation under which the data sets are neighbours.
    trials
        How often the mechanism ran.
    worst
        The neighbours that were distinguished best, in words.
    rounds
        Replay: each round's ratio.
    found
        What is wrong, one sentence each.
    notes
        What was assumed, and what was not found.
    picture
        What `plot` draws, as plain JSON.
    parts
        Results of the single instruments, where several were used.

    Privacy
    -------
    Audits run on data of their own making, and hold nothing of any records.

    Examples
    --------
    >>> import discreet as dc
    >>> leaky = dc.audit.Mechanism(run=sum, epsilon=1.0, pair=([0, 1], [1, 1]))
    >>> result = dc.audit(leaky, trials=200)
    >>> result.violated, result.epsilon_lower > result.claimed.epsilon
    (True, True)
    >>> AuditResult.from_dict(result.to_dict()) == result
    True
    """

    mechanism: str
    attack: str
    claimed: Budget
    status: Status
    epsilon_lower: float
    delta_lower: float
    confidence: float
    violated: bool
    instrument: Instrument
    neighbours: Neighbours
    trials: int
    worst: str = ""
    rounds: tuple[Moved, ...] = ()
    found: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    picture: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[AuditResult, ...] = ()

    @property
    def verdict(self) -> str:
        """The finding in a few words."""
        if self.violated:
            return "the claim is refuted"
        return "no violation found"

    def __repr__(self) -> str:
        return brief(type(self).__name__, f"{self.mechanism}, {self.attack}, {self.verdict}")

    def summary(self) -> str:
        """A table in plain text."""
        rows = [
            ("claimed", f"{self.claimed} ({self.neighbours}, {self.status})"),
            ("attack", f"{self.attack} ({self.instrument})"),
            ("shown", self.shown()),
            ("confidence", "exact" if self.confidence == 1 else f"{100 * self.confidence:g} %"),
            ("runs", f"{self.trials:,}"),
            ("verdict", self.verdict),
        ]
        if self.worst:
            rows.append(("worst neighbours", self.worst))
        if self.rounds:
            least, most = (pick(self.rounds, key=lambda moved: moved.ratio) for pick in (min, max))
            rows.append(("rounds", f"{len(self.rounds)}; ratio at most {most.ratio:.3f}, least {least.ratio:.3f}"))
        width = max(len(name) for name, _ in rows)
        lines = [self.mechanism, *(f"  {name:{width}}  {value}" for name, value in rows)]
        lines += [f"  ! {sentence}" for sentence in self.found]
        lines += [f"  - {sentence}" for sentence in self.notes]
        for part in self.parts:
            lines.append(f"  {part.instrument}: {part.shown()}; {part.verdict}")
        return "\n".join(lines)

    def shown(self) -> str:
        """The bounds in words, rounded down."""
        words = [f"ε ≥ {rounded_down(self.epsilon_lower)}"] if self.epsilon_lower > 0 else []
        if self.delta_lower > (self.claimed.delta or 0.0):
            words.append(f"δ ≥ {rounded_down(self.delta_lower)}")
        return ", ".join(words) or "nothing"

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON; an epsilon beyond all numbers is null."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        epsilon = self.epsilon_lower if math.isfinite(self.epsilon_lower) else None
        return (
            {"format": "discreet-audit", "version": VERSION}
            | plain
            | {
                "claimed": {"epsilon": self.claimed.epsilon, "delta": self.claimed.delta or 0.0},
                "epsilon_lower": epsilon,
                "rounds": [{one.name: getattr(moved, one.name) for one in fields(moved)} for moved in self.rounds],
                "found": list(self.found),
                "notes": list(self.notes),
                "picture": dict(self.picture),
                "parts": [part.to_dict() for part in self.parts],
            }
        )

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> AuditResult:
        """Read a result back."""
        rest = {name: value for name, value in plain.items() if name not in {"format", "version"}}
        made = {
            "claimed": Budget(epsilon=rest["claimed"]["epsilon"], delta=rest["claimed"]["delta"] or None),
            "epsilon_lower": math.inf if rest["epsilon_lower"] is None else rest["epsilon_lower"],
            "rounds": tuple(Moved(**moved) for moved in rest["rounds"]),
            "found": tuple(rest["found"]),
            "notes": tuple(rest["notes"]),
            "parts": tuple(cls.from_dict(part) for part in rest["parts"]),
        }
        return cls(**(rest | made))

    def to_json(self, path: str | Path | None = None) -> str:
        """As JSON text, written to a file where one is named."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        if path is not None:
            Path(path).write_bytes(f"{text}\n".encode())
        return text

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what was found (needs matplotlib)."""
        shown = "nothing was distinguished" if self.shown() == "nothing" else self.shown()
        return _draw(dict(self.picture), f"{self.mechanism}: {shown}", ax)

    def __str__(self) -> str:
        return self.summary()


def refuted(claimed: Budget, epsilon_lower: float, delta_lower: float) -> bool:
    """Whether lower bounds exceed a claim; a millionth is left for rounding."""
    return epsilon_lower > claimed.epsilon * (1 + 1e-6) or delta_lower > (claimed.delta or 0.0) * (1 + 1e-6) + 1e-15


def rounded_down(bound: float) -> str:
    """A lower bound in two digits, that are one still; nothing if it says nothing."""
    if not (isfinite(bound) and bound > 0):
        return "any number" if bound == math.inf else "nothing"
    step = 10.0 ** (floor(log10(bound)) - 1)
    return f"{floor(bound / step * (1 + 1e-12)) * step:.2g}"


def check_confidence(confidence: Any) -> float:
    """A level between one half and one."""
    if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0.5 <= float(confidence) < 1:
        raise InvalidInput("confidence must lie between 0.5 and 1: 0.95 is usual, 0.999 for what has a proof.")
    return float(confidence)


def render(result: AuditResult) -> str:
    """The page as text: HTML with its style and figures inside."""
    require()
    from matplotlib.figure import Figure

    from discreet.releases.page import inline_figure, page

    figures = []
    for part in result.parts or (result,):
        rows = len(part.picture.get("names", ()))
        figure = Figure(figsize=(8.2, max(3.0, 0.8 + 0.22 * rows)))
        part.plot(figure.subplots())
        figure.tight_layout()
        caption = f"{part.instrument}: {part.shown()}. Neighbours: {part.worst}."
        figures.append((caption, inline_figure(figure, caption)))
    facts = [
        ("Claimed", f"{result.claimed} ({result.neighbours}, {result.status})"),
        ("Attack", f"{result.attack} ({result.instrument})"),
        ("Shown", result.shown()),
        ("Confidence", "exact" if result.confidence == 1 else f"{100 * result.confidence:g} %"),
        ("Runs", f"{result.trials:,}"),
        ("Worst neighbours", result.worst),
    ]
    return page(
        "audit.html",
        title=f"Audit of {result.mechanism}",
        result=result,
        finding=f"{result.mechanism}: {result.verdict}.",
        facts=facts,
        figures=figures,
        notes=[(part.instrument, note) for part in result.parts or (result,) for note in part.notes],
        rounds=[(moved.name, f"{moved.ratio:.3f}", moved.neighbours) for moved in result.rounds],
        json=result.to_json(),
    )


def save_page(result: AuditResult, path: str | Path) -> None:
    """Write the page of `render` to a file."""
    Path(path).write_bytes(render(result).encode())


def _draw(picture: dict[str, Any], title: str, ax: Axes | None) -> Axes:
    """What the attacker sees on either data set, or how far rounds move."""
    require()
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(7.2, 3.2))[1]
    draws = {
        "histograms": _histograms,
        "normals": _normals,
        "laplace": _laplace,
        "shares": _shares,
        "bars": _bars,
        "ratios": _ratios,
    }
    kind = picture.get("kind")
    if kind in draws:
        draws[kind](picture, ax)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        ax.spines[side].set_color(FAINT)
    ax.tick_params(colors=MUTED, labelcolor=INK, color=FAINT)
    ax.set_title(title, loc="left", fontsize=10, color=INK)
    return ax


def _histograms(picture: dict[str, Any], ax: Axes) -> None:
    edges = np.array(picture["edges"])
    for counts, colour, label in ((picture["one"], BLUE, "one data set"), (picture["other"], ORANGE, "its neighbour")):
        total = max(1, sum(counts))
        ax.stairs(np.array(counts) / total, edges, color=colour, fill=True, alpha=0.55, label=label)
    ax.set(xlabel="what the attacker computes from a release", ylabel="share of runs")
    ax.legend(frameon=False, fontsize=9)


def _normals(picture: dict[str, Any], ax: Axes) -> None:
    shift, sds = min(picture["shift"], 1e3), picture["sds"]
    x = np.linspace(-4 * sds[0], shift + 4 * sds[1], 600)
    for mean, sd, colour, label in ((0.0, sds[0], BLUE, "one data set"), (shift, sds[1], ORANGE, "its neighbour")):
        ax.fill_between(x, np.exp(-(((x - mean) / sd) ** 2) / 2) / sd, color=colour, alpha=0.55, label=label)
    ax.set(xlabel="release, in units of its noise", yticks=[])
    ax.legend(frameon=False, fontsize=9)


def _laplace(picture: dict[str, Any], ax: Axes) -> None:
    shift = picture["shift"]
    x = np.linspace(-5.0, shift + 5.0, 600)
    for mean, colour, label in ((0.0, BLUE, "one data set"), (shift, ORANGE, "its neighbour")):
        ax.fill_between(x, np.exp(-np.abs(x - mean)), color=colour, alpha=0.55, label=label)
    ax.set(xlabel="noisy sum, in scales of its noise", yticks=[])
    ax.legend(frameon=False, fontsize=9)


def _shares(picture: dict[str, Any], ax: Axes) -> None:
    for name, colour, label in (("one", BLUE, "one data set"), ("other", ORANGE, "its neighbour")):
        ax.plot(picture["levels"], picture[name], color=colour, label=label)
    ax.set(xlabel="published width over its critical value", ylabel="share of runs at most so wide", ylim=(0, 1.02))
    ax.legend(frameon=False, fontsize=9)


def _bars(picture: dict[str, Any], ax: Axes) -> None:
    places = range(len(picture["labels"]))
    ax.barh(places, picture["values"], color=ORANGE, height=0.5)
    ax.set_yticks(places, picture["labels"])
    ax.set(xlabel=f"share of outputs ({picture['unit']})", xlim=(0, 100))


def _ratios(picture: dict[str, Any], ax: Axes) -> None:
    names, ratios = picture["names"], picture["ratios"]
    places = np.arange(len(names))
    ax.barh(places, np.minimum(ratios, 3.0), color=[ORANGE if value > 1 else BLUE for value in ratios], height=0.6)
    ax.axvline(1.0, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
    ax.set_yticks(places, names, fontsize=max(5, 9 - len(names) // 8))
    ax.invert_yaxis()
    end = max(1.05, min(3.0, max(ratios, default=1.0)))
    ax.set(xlabel="largest move found, over the stated diameter", xlim=(0, end))
