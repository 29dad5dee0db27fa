"""Rules that say who is treated: functions of one person's covariates and of public numbers, and of nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.clusters import Clusters, partition_from
from discreet.data.partition import Partition
from discreet.exceptions import InvalidInput
from discreet.postprocessing.coded_terms import CodedTerms
from discreet.postprocessing.kernel_basis import combine
from discreet.releases.function_parts import checked_limits

# Memory: people whose features are made at once.
_ROWS = 16_384


def blocks_of(x: Float) -> Iterator[Float]:
    """A few thousand rows at a time."""
    return (x[start : start + _ROWS] for start in range(0, len(x), _ROWS))


class Rule(Protocol):
    """Who is treated."""

    kind: ClassVar[str]

    def treats(self, x: Float) -> npt.NDArray[np.bool_]:
        """Whether each row of encoded covariates is treated: elementwise, whatever rows stand beside it."""

    @property
    def words(self) -> tuple[str, ...]:
        """Who is treated, in words."""

    @property
    def varies(self) -> bool:
        """Whether it treats some people and not others, as far as it is known."""

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRule:
    """Treats whole segments.

    Parameters
    ----------
    partition
        Which segment a person is in.
    treated
        Whether each segment is treated.
    """

    kind: ClassVar[str] = "segments"

    partition: Partition | Clusters
    treated: tuple[bool, ...]

    def __post_init__(self) -> None:
        flags: object = self.treated
        if not isinstance(flags, tuple) or not all(isinstance(each, bool) for each in flags):
            raise InvalidInput("treated must say True or False of each segment; check the file.")
        if len(self.treated) != self.partition.count:
            raise InvalidInput(f"there are {self.partition.count} segments: say of each of them whether it is treated.")

    def treats(self, x: Float) -> npt.NDArray[np.bool_]:
        """Whether each row of encoded covariates is treated."""
        return np.array(self.treated)[self.partition.cells(x)]

    @property
    def words(self) -> tuple[str, ...]:
        """The segments that are treated."""
        return tuple(name for name, on in zip(self.partition.labels(), self.treated, strict=True) if on)

    @property
    def varies(self) -> bool:
        """Whether some segments are treated and others are not."""
        return len(set(self.treated)) > 1

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"kind": self.kind, "partition": self.partition.to_dict(), "treated": list(self.treated)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], bounds: Bounds) -> SegmentRule:
        """Read it back."""
        return cls(partition=partition_from(plain["partition"], bounds), treated=tuple(plain["treated"]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThresholdRule:
    """Treats whose released effect exceeds a number.

    Parameters
    ----------
    terms, coefficients
        The effect as a function of encoded covariates, in the outcome's unit.
    limits
        Where the function ends.
    threshold
        The number.
    """

    kind: ClassVar[str] = "threshold"

    terms: CodedTerms
    coefficients: Float
    limits: tuple[float, float] | None
    threshold: float

    def __post_init__(self) -> None:
        if self.coefficients.shape != (self.terms.m,) or not np.isfinite(self.coefficients).all():
            raise InvalidInput("a policy's function has a finite coefficient for each term; check the file.")
        if not isfinite(self.threshold):
            raise InvalidInput("threshold must be a finite number; check the file.")

    def treats(self, x: Float) -> npt.NDArray[np.bool_]:
        """Whether each row of encoded covariates is treated."""
        return self.effects(x) > self.threshold

    def effects(self, x: Float) -> Float:
        """Effect of each row of encoded covariates."""
        low, high = self.limits or (-np.inf, np.inf)
        # Added up in a fixed order: a matrix product may round a row differently in another place.
        parts = [
            np.clip(combine(features, self.coefficients), low, high)
            for features in map(self.terms.features, blocks_of(x))
        ]
        return np.concatenate(parts) if parts else np.empty(0)

    @property
    def words(self) -> tuple[str, ...]:
        """From which effect on people are treated."""
        return (f"people whose estimated effect exceeds {self.threshold:.4g}",)

    @property
    def varies(self) -> bool:
        """Whether the effect differs between people at all."""
        return bool(np.any(self.coefficients[1:]))

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        limits = None if self.limits is None else list(self.limits)
        plain = {"kind": self.kind, "terms": self.terms.to_dict(), "coefficients": self.coefficients.tolist()}
        return plain | {"limits": limits, "threshold": self.threshold}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], bounds: Bounds) -> ThresholdRule:
        """Read it back."""
        return cls(
            terms=CodedTerms.from_dict(plain["terms"], bounds.columns),
            coefficients=np.array(plain["coefficients"], dtype=np.float64),
            limits=None if plain["limits"] is None else checked_limits(plain["limits"]),
            threshold=float(plain["threshold"]),
        )


RULES: Mapping[str, Any] = {rule.kind: rule for rule in (SegmentRule, ThresholdRule)}
"""Rules by the kind that files name."""


def rule_from(plain: Mapping[str, Any], bounds: Bounds) -> SegmentRule | ThresholdRule:
    """A rule of any kind from its plain JSON."""
    if plain["kind"] not in RULES:
        raise InvalidInput("the policy has a rule of a kind that this version does not know: upgrade discreet.")
    found: SegmentRule | ThresholdRule = RULES[plain["kind"]].from_dict(plain, bounds)
    return found
