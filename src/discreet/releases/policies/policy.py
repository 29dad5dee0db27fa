"""Whom to treat, by released effects: a small file that assigns anybody, as often as you like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from math import hypot, isfinite, sqrt
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from discreet.data._arrays import IntArray
from discreet.data.bounds import Bounds
from discreet.data.frames import encoded
from discreet.data.notebooks.card import Summarised
from discreet.data.partition import By, Partition
from discreet.exceptions import InvalidInput
from discreet.postprocessing.coded_terms import CodedTerms
from discreet.postprocessing.policies.choice import (
    ExpectedGain,
    chosen_segments,
    luck_of_choosing,
    segment_gain,
)
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io
from discreet.releases.function import EffectRelease
from discreet.releases.function_parts import checked_level, some_rows
from discreet.releases.policies.rules import SegmentRule, ThresholdRule, blocks_of, rule_from
from discreet.releases.segments import _ESTIMATED, UpliftRelease
from discreet.releases.wording import columns

FORMAT = "discreet-policy"
# Unit: segments that a summary lists.
_SHOWN = 24


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Policy(Summarised):
    """Who is treated: a function of a person's covariates that treats or does not.

    `Uplift.policy` and `CATE.policy` choose one, `Policy.of` does so from a release that was read, and
    `Policy.declare` takes one that somebody thought of. `PolicyValue` measures what it gains among other records.

    Parameters
    ----------
    rule
        Who is treated.
    bounds
        The covariates that the rule looks at, as they were declared.
    cost
        What treating one person costs, in the outcome's unit.
    capacity
        Largest share of the people that may be treated; None where it was not limited.
    share
        About which share of the people it treats, by released numbers; None where nothing says so.
    gain
        What it is expected to gain per person of all; None where nothing says so.
    guarantee
        What the release promises that it was chosen from; None where it was declared.
    notes
        Assumptions and warnings, one sentence each.

    Privacy
    -------
    A policy is computed from a release and public numbers: it is covered by ``guarantee``, and costs nothing more.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> trial = adum(n=4_000, seed=1)
    >>> uplift = dc.Uplift(epsilon=2.0, bounds=trial.bounds, by={0: 4}, propensity=0.5)
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     _ = uplift.fit(trial.Y, trial.T, X=trial.X)
    >>> policy = uplift.policy(cost=0.1)
    >>> policy.treats
    ('x0 [0, 0.5)', 'x0 [0.5, 1]')
    >>> policy.assign([[-0.9], [0.9]])
    array([0, 1])
    """

    format: ClassVar[str] = FORMAT
    method_id: ClassVar[str] = "discreet/policy"

    rule: SegmentRule | ThresholdRule
    bounds: Bounds
    cost: float = 0.0
    capacity: float | None = None
    share: float | None = None
    gain: ExpectedGain | None = None
    guarantee: Guarantee | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", checked_cost(self.cost, self.bounds))
        object.__setattr__(self, "capacity", None if self.capacity is None else checked_capacity(self.capacity))
        numbers = [] if self.gain is None else list(self.gain)
        if not all(map(isfinite, [self.share or 0.0, *numbers])):
            raise InvalidInput("every number of a policy must be finite; check the file.")

    @classmethod
    def of(
        cls,
        release: UpliftRelease | EffectRelease,
        *,
        cost: float = 0.0,
        capacity: float | None = None,
        X: Any = None,
    ) -> Policy:
        """The policy that gains most by a release of `Uplift` or `CATE`.

        Parameters
        ----------
        release : UpliftRelease or EffectRelease
            Effects by segment, or as a function of covariates.
        cost : float
            What treating one person costs, in the outcome's unit: whoever gains less is not treated.
        capacity : float, optional
            Largest share of the people that may be treated. Shares of segments are in the release. A function needs
            people to count, ``X``.
        X : array-like or frame, optional
            For functions only: covariates of public or made-up people, over whom shares and gains are taken. Those of
            the records would leak, as the policy depends on them.
        """
        make = _MAKERS.get(type(release))
        if make is None:
            raise InvalidInput("a policy is chosen from a release of Uplift or CATE: give one of these.")
        return make(release, checked_cost(cost, release.bounds), capacity, X)

    @classmethod
    def declare(cls, *, bounds: Bounds, by: By, treated: Any, cost: float = 0.0) -> Policy:
        """A policy that somebody thought of, without looking at records.

        Parameters
        ----------
        bounds : Bounds
            Public facts: the covariates that it looks at.
        by : mapping
            Segments, as `Uplift` takes them.
        treated : sequence of bool
            Whether each segment is treated, in their order.
        cost : float
            What treating one person costs, in the outcome's unit.

        Examples
        --------
        >>> import discreet as dc
        >>> bounds = dc.Bounds(outcome=(0, 1), covariates={"age": (18, 90)})
        >>> old = dc.Policy.declare(bounds=bounds, by={"age": [18, 65, 90]}, treated=[False, True])
        >>> old.assign([[30.0], [70.0]])
        array([0, 1])
        """
        partition = Partition.of(by, bounds)
        flags = np.asarray(treated)
        if flags.ndim != 1 or not np.isin(flags, (0, 1)).all():
            raise InvalidInput("treated must hold True or False for each segment: list them in their order.")
        return cls(rule=SegmentRule(partition=partition, treated=tuple(map(bool, flags))), bounds=bounds, cost=cost)

    @property
    def treats(self) -> tuple[str, ...]:
        """Who is treated, in words."""
        return self.rule.words

    def assign(self, X: Any) -> IntArray:
        """1 for each row of X that is treated, 0 for the others; X has exactly the declared covariates."""
        return self.rule.treats(encoded(X, self.bounds)).astype(np.int64)

    def gain_lower(self, alpha: float = 0.05) -> float:
        """What the policy gains at least per person of all, with probability ``1 - alpha``.

        It allows for the choice: no policy that the same release could have led to would break it more often. That
        costs width; `PolicyValue` on other records need not pay for it.
        """
        if self.gain is None:
            raise InvalidInput(
                "nothing says what this policy gains: give Policy.of people to average over, X=, or fit PolicyValue."
            )
        return self.gain.lower(checked_level(alpha))

    def summary(self) -> str:
        """A table in plain text."""
        rows = [("cost of treating one person", f"{self.cost:.4g}")]
        rows += [] if self.capacity is None else [("largest share to be treated", f"{self.capacity:.4g}")]
        rows += [] if self.share is None else [("share treated, about", f"{self.share:.3g}")]
        if self.gain is not None:
            rows += [("expected gain per person", f"{self.gain.value:.4g}")]
            rows += [("at least, with 95 %", f"{self.gain_lower():.4g}")]
        lines = ["Whom to treat", *columns(rows), "", "Treated"]
        lines += [f"  {name}" for name in self.treats[:_SHOWN]] or ["  nobody"]
        lines += ["  ... and more: see treats"] * (len(self.treats) > _SHOWN)
        if self.guarantee is not None:
            lines += ["", "Privacy", *(f"  {line}" for line in str(self.guarantee).splitlines())]
        if self.notes:
            lines += ["", "Notes", *(f"  - {note}" for note in self.notes)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        plain |= {"rule": self.rule.to_dict(), "bounds": self.bounds.to_dict(), "notes": list(self.notes)}
        plain["gain"] = None if self.gain is None else self.gain._asdict()
        plain["guarantee"] = None if self.guarantee is None else self.guarantee.to_dict()
        return io.head(FORMAT) | plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Policy:
        """Read a policy back; its guarantee is checked against its events again."""
        rest = io.fields_of(plain, FORMAT, {part.name for part in fields(cls)})
        with io.wrong_types_named():
            bounds = Bounds.from_dict(rest["bounds"])
            gain, promised = rest["gain"], rest["guarantee"]
            made = {
                "rule": rule_from(rest["rule"], bounds),
                "bounds": bounds,
                "share": None if rest["share"] is None else float(rest["share"]),
                "gain": None if gain is None else ExpectedGain(**{name: float(gain[name]) for name in gain}),
                "guarantee": None if promised is None else Guarantee.from_dict(promised),
                "notes": tuple(map(str, rest["notes"])),
            }
            return cls(**(rest | made))

    def save(self, path: str | Path) -> None:
        """Write a policy file."""
        io.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file."""
        return cls.from_dict(io.read_json(path))


def checked_cost(cost: object, bounds: Bounds) -> float:
    """A cost that treating somebody could be worth."""
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0.0 <= cost <= bounds.outcome_width:
        raise InvalidInput(
            f"cost must be a number from 0 to {bounds.outcome_width:g}, the width of the outcome's range: no effect is "
            "larger, so say it in the outcome's unit."
        )
    return float(cost)


def checked_capacity(capacity: object) -> float:
    """A share of the people."""
    if isinstance(capacity, bool) or not isinstance(capacity, int | float) or not 0.0 < capacity <= 1.0:
        raise InvalidInput("capacity must lie above 0 and be at most 1: it is the share of people that may be treated.")
    return float(capacity)


_LARGER = "A larger outcome counts as better: of one that should fall, the policy of its negative is meant."
_CHOSEN = "Expected gains are computed from the release that chose the policy: measure it with PolicyValue elsewhere."


def _of_segments(release: UpliftRelease, cost: float, capacity: float | None, X: Any) -> Policy:
    """Segments with the largest effects."""
    if X is not None:
        raise InvalidInput("X belongs to policies of CATE: a release of Uplift says how large its segments are.")
    most = 1.0 if capacity is None else checked_capacity(capacity)
    unit, own, n = release.bounds.outcome_width / 2.0, release._means.own, float(release.counts.sum())
    shares, effects = release.counts / n, release.effects
    chosen = chosen_segments(effects, shares, cost, most)
    net = unit * own.value - cost
    sd = unit * _ESTIMATED * np.sqrt(own.variance + own.unseen)
    # The people of the records are a sample themselves, and they were counted with noise.
    noise = sqrt(release.noisy.counts.shape[1]) * release.noisy.count_sd / n * float(np.linalg.norm(net[chosen]))
    rows = release.outcome_moments.rows
    sampling = sqrt(rows * max(float((shares * net**2)[chosen].sum() - (shares * net)[chosen].sum() ** 2), 0.0) / n)
    return Policy(
        rule=SegmentRule(partition=release.partition, treated=tuple(map(bool, chosen))),
        bounds=release.bounds,
        cost=cost,
        capacity=capacity,
        share=min(float(shares[chosen].sum()), 1.0),
        gain=segment_gain(chosen, shares, effects - cost, (net, sd), hypot(noise, sampling)),
        guarantee=release.guarantee,
        notes=(_LARGER, _CHOSEN),
    )


def _of_function(release: EffectRelease, cost: float, capacity: float | None, X: Any) -> Policy:
    """People whose effect by a released function is largest."""
    if not isinstance(release.terms, CodedTerms):
        raise InvalidInput(
            "this effect function is of an earlier version, from which no policy is made: fit CATE anew."
        )
    if capacity is not None and X is None:
        raise InvalidInput("capacity needs people to count: give X=, covariates of public or made-up people.")
    rule = ThresholdRule(terms=release.terms, coefficients=release.coefficients, limits=release.limits, threshold=cost)
    share, gain = None, None
    notes: tuple[str, ...] = (_LARGER, _CHOSEN)
    if X is not None:
        x = encoded(some_rows(X), release.bounds)
        effects, most = rule.effects(x), 1.0 if capacity is None else checked_capacity(capacity)
        places = int(np.floor(most * len(x) + 1e-9))
        if places < np.sum(effects > cost):
            # Whoever has the very effect at which the capacity is used up is not treated.
            rule = replace(rule, threshold=float(np.sort(effects)[::-1][places]))
        chosen = effects > rule.threshold
        share, gain = float(chosen.mean()), ExpectedGain(0.0, 0.0, 0.0, 0.0)
        if chosen.any():
            value = float(np.where(chosen, effects - cost, 0.0).mean())
            # Errors of a function are those of its few coefficients.
            errors = (release.terms.features(block) @ release.factor / len(x) for block in blocks_of(x))
            gain = ExpectedGain(value, value, *luck_of_choosing(errors))
        notes += ("Shares and gains are those of the people that X holds.",)
    return Policy(
        rule=rule,
        bounds=release.bounds,
        cost=cost,
        capacity=capacity,
        share=share,
        gain=gain,
        guarantee=release.guarantee,
        notes=notes,
    )


_MAKERS: Mapping[type[Any], Callable[[Any, float, float | None, Any], Policy]] = {
    UpliftRelease: _of_segments,
    EffectRelease: _of_function,
}
