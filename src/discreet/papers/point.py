"""What a method without an interval publishes: a number, what was released on the way to it, and its guarantee."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from discreet.bounds import Bounds
from discreet.errors import InvalidInput
from discreet.files import checked_fields, read_plain, write_plain
from discreet.guarantee import Guarantee

FORMAT = "discreet-paper-release"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRelease:
    """An average effect without an interval, because its authors give none.

    Parameters
    ----------
    method
        Which published method, for people.
    estimate
        The effect, in the outcome's unit.
    noise_sd
        Standard deviation of the noise that was added to the estimate itself; 0 if there was none.
    weights
        The released weights of the propensity score.
    guarantee
        What is promised, and to whom.
    bounds
        The public facts that were declared.
    settings
        Public settings by name, plain JSON.
    notes
        Assumptions and warnings, one sentence each.
    """

    method: str
    estimate: float
    noise_sd: float
    weights: tuple[float, ...]
    guarantee: Guarantee
    bounds: Bounds
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", tuple(float(weight) for weight in self.weights))
        for value in (self.estimate, self.noise_sd, *self.weights):
            if not math.isfinite(value):
                raise InvalidInput("a released number is not finite: the noise made the weights explode, so set xi.")

    def summary(self) -> str:
        """A table in plain text."""
        rows = {"estimate": f"{self.estimate:.6g}", "noise (sd)": f"{self.noise_sd:.3g}"}
        rows |= {name: str(value) for name, value in self.settings.items()}
        width = max(map(len, rows))
        lines = [self.method, *(f"  {name:<{width}}  {value}" for name, value in rows.items())]
        lines += ["", "Privacy", *(f"  {line}" for line in str(self.guarantee).splitlines())]
        return "\n".join([*lines, "", "Notes", *(f"  - {note}" for note in self.notes)])

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        plain |= {"guarantee": self.guarantee.to_dict(), "bounds": self.bounds.to_dict()}
        return (
            {"format": FORMAT, "version": VERSION} | plain | {"weights": list(self.weights), "notes": list(self.notes)}
        )

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> PointRelease:
        """Read a release back; its guarantee is checked against its events again."""
        rest = checked_fields(plain, {part.name for part in fields(cls)}, FORMAT, VERSION)
        made = {"guarantee": Guarantee.from_dict(rest["guarantee"]), "bounds": Bounds.from_dict(rest["bounds"])}
        return cls(**(rest | made | {"notes": tuple(rest["notes"])}))

    def save(self, path: str | Path) -> None:
        """Write a release file."""
        write_plain(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> PointRelease:
        """Read a release file."""
        return cls.from_dict(read_plain(path))
