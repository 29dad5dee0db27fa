"""What a combined release holds of each site, and what it says of how far they differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, get_args

from discreet.exceptions import InvalidInput
from discreet.releases.average import StudyDesign, Uncertainty


class Heterogeneity(NamedTuple):
    """How far sites differ: the standard deviation between them and its square, I squared, and Cochran's Q."""

    tau: float
    tau2: float
    i2: float
    q: float
    degrees: int
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What one site's own release says, and what weight it has.

    Parameters
    ----------
    name
        What it is called.
    weight
        Its part in the estimate; all parts add up to one.
    estimate, uncertainty, n, design
        As in its release.
    """

    name: str
    weight: float
    estimate: float
    uncertainty: Uncertainty
    n: float
    design: StudyDesign

    def __post_init__(self) -> None:
        words: tuple[object, ...] = (self.name, self.design)
        if not all(isinstance(word, str) and word for word in words) or self.design not in get_args(StudyDesign):
            raise InvalidInput("a site needs a name and the design of its study; check the file.")
        numbers = [self.weight, self.estimate, self.n, *self.uncertainty.to_dict().values()]
        if not all(map(math.isfinite, numbers)) or min(self.weight, self.n, *numbers[3:]) < 0.0 or self.n == 0.0:
            raise InvalidInput("numbers of a site must be finite, and only its effect may be negative; check the file.")

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        return plain | {"uncertainty": self.uncertainty.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Site:
        """Inverse of ``to_dict``."""
        numbers = {name: float(plain[name]) for name in ("weight", "estimate", "n")}
        return cls(**(dict(plain) | numbers | {"uncertainty": Uncertainty.from_dict(plain["uncertainty"])}))
