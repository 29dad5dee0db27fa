"""What a release promises, in numbers that can be recomputed from its events and in words that anyone can read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from discreet.data.notebooks.card import Carded
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.privacy.accountant import Profile, profile_of
from discreet.privacy.budget import Budget, ClaimedEvent, Event, ParallelEvent, event_from_dict

AUDIT_VERSION = 1
"""Goes up when instruments, neighbours or the matrix change so that older results no longer say the same."""
# File of the proof, relation, noise.
COVERED = frozenset(
    {
        *(
            (proof, relation, noise)
            for proof, noises in {
                "ate.md": ("gaussian", "laplace"),
                "att.md": ("gaussian",),
                "arms.md": ("gaussian", "laplace"),
                "missing.md": ("gaussian", "laplace"),
                "weights.md": ("gaussian", "laplace"),
                "cate.md": ("gaussian",),
                "survival.md": ("gaussian",),
                "did.md": ("gaussian",),
                "late.md": ("gaussian",),
                "uplift.md": ("gaussian", "laplace"),
                "policy.md": ("gaussian", "laplace"),
                "adum.md": ("laplace",),
            }.items()
            for relation in ("replace-one", "add-remove")
            for noise in noises
        ),
        *(
            (proof, "replace-one", "gaussian")
            for proof in ("propensity.md", "learners.md", "private_ci.md", "dp_cate.md")
        ),
    }
)


def audit_of(proof: str, relation: str, *, pure: bool) -> int | None:
    """Version of the audit that covers releases with this proof, relation and noise; None if none does."""
    noise = "laplace" if pure else "gaussian"
    covered = all((name, relation, noise) in COVERED for name in proof.split(", "))
    return AUDIT_VERSION if covered else None


Neighbours = Literal["replace-one", "add-remove"]
Status = Literal["proved", "claimed", "test"]
# Stated numbers are good to twelve digits: adding 0.1 and 0.2 must not refuse a statement of 0.3.
_DIGITS = 1 + 1e-12
_CHANGE = {"replace-one": "replaced by any other", "add-remove": "left out (or one more been added)"}
_STATUS = {
    "proved": "proved for every data set and every number of records",
    "claimed": "claimed, not proved. It rests on a published claim that discreet has not been able to prove",
    "test": "test. It was drawn with seeded noise: not private. Do not publish it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee(Carded):
    """A stated (epsilon, delta), with everything needed to check it.

    A statement smaller than what the events give, a proved status without a proof, or a proved status on top of a mere
    claim is refused: there is no way to hold a guarantee that its own events contradict.

    Parameters
    ----------
    epsilon, delta
        The statement; a delta of None or 0 is pure epsilon, and is kept as 0.
    neighbours
        Which two data sets must be indistinguishable: one record replaced, or one record added or removed.
    unit
        Whose data one record is.
    status
        "proved", "claimed", or "test" for seeded noise.
    proof
        Name of the file below docs/proofs that holds the argument; several are joined by a comma.
    public
        What is not protected, one phrase each.
    events
        Everything that was released, in order, on the same records.
    audit
        Version of the audit that covers this configuration (docs/evidence/audit.md); None if none does.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trial = private_ci_rct(n=200, seed=1)
    >>> with dc.testing.seeded_noise(0):
    ...     means = dc.DifferenceInMeans(epsilon=1.0, delta=1e-6, bounds=trial.bounds).fit(trial.Y, trial.T, X=trial.X)
    >>> print(means.guarantee_.budget, means.guarantee_.status)
    epsilon = 1, delta = 1e-06 test
    >>> means.guarantee_.epsilon_at(1e-9) > 1.0
    True
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    unit: str = "one record"
    status: Status
    proof: str | None = None
    public: tuple[str, ...] = ()
    events: tuple[Event, ...]
    audit: int | None = None

    def __post_init__(self) -> None:
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        object.__setattr__(self, "epsilon", budget.epsilon)
        object.__setattr__(self, "delta", budget.delta or 0.0)
        object.__setattr__(self, "public", tuple(self.public))
        object.__setattr__(self, "events", tuple(self.events))
        if self.neighbours not in get_args(Neighbours):
            raise InvalidInput("neighbours must be 'replace-one' or 'add-remove'; say which data sets are compared.")
        if self.status not in get_args(Status):
            raise InvalidInput("status must be 'proved', 'claimed' or 'test'; there is nothing in between.")
        if not self.events:
            raise InvalidInput("events must hold at least one event; without them a guarantee cannot be checked.")
        audit: object = self.audit
        if audit is not None and (isinstance(audit, bool) or not isinstance(audit, int) or audit < 1):
            raise InvalidInput("audit must be the number of an audit's version, or None where no audit covers it.")
        if self.status == "proved" and not self.proof:
            raise InvalidInput(
                "a proved guarantee needs proof=, the name of a file in docs/proofs; else say 'claimed'."
            )
        if self.status == "proved" and _rests_on_claims(self.events):
            raise InvalidInput("status 'proved' cannot rest on a claimed event; say 'claimed'.")
        self._check_statement(budget)

    def _check_statement(self, stated: Budget) -> None:
        profile, epsilon, delta = self.profile, stated.epsilon * _DIGITS, stated.delta or 0.0
        if profile.delta_at(epsilon) > delta and profile.epsilon_at(delta) > epsilon:
            raise InvalidBudget(
                f"the events spend more than the stated {stated}: at this epsilon their delta is "
                f"{profile.delta_at(epsilon):.3g}; state what they spend, or draw more noise."
            )

    @property
    def counts_public(self) -> bool:
        """Whether the number of records is public: under replace-one, unless one unit may have several."""
        return self.neighbours == "replace-one" and "units.md" not in (self.proof or "").split(", ")

    @property
    def budget(self) -> Budget:
        """The stated numbers."""
        return Budget(epsilon=self.epsilon, delta=self.delta)

    @property
    def profile(self) -> Profile:
        """Delta as a function of epsilon, recomputed from the events."""
        return profile_of(self.events)

    def epsilon_at(self, delta: float) -> float:
        """Epsilon that the same events give at another delta; infinite when there is none."""
        return self.profile.epsilon_at(delta)

    def delta_at(self, epsilon: float) -> float:
        """Delta that the same events give at another epsilon."""
        return self.profile.delta_at(epsilon)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return plain | {"public": list(self.public), "events": [event.to_dict() for event in self.events]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Guarantee":
        """Read a guarantee back, checking it again."""
        known = {field.name for field in fields(cls)}
        # Files that were written before there was an audit name none.
        if plain.keys() | {"audit"} != known:
            raise InvalidInput(f"a guarantee must have exactly the fields {sorted(known)}; check the file's version.")
        words = [plain["unit"], plain["proof"] or "", *plain["public"]]
        if not all(isinstance(word, str) for word in words):
            raise InvalidInput("unit, proof and public of a guarantee must be text; check the file.")
        events = tuple(event_from_dict(event) for event in plain["events"])
        return cls(**{**plain, "public": tuple(plain["public"]), "events": events})

    def __str__(self) -> str:
        factor = f"{math.exp(self.epsilon):.3g}" if self.epsilon < 700 else "more than 1e+304"
        numbers = f"any result is at most {factor} times as likely as it would be then (e to the power epsilon)"
        if self.delta:
            numbers += f", apart from a chance of at most {self.delta:.3g} (delta)"
        status = _STATUS[self.status]
        if self.proof:
            status += "; see " + " and ".join(f"docs/proofs/{name}" for name in self.proof.split(", "))
        if self.audit is not None:
            status += f". Its configuration is covered by audit version {self.audit}; see docs/evidence/audit.md"
        return "\n".join(
            [
                f"Differential privacy with {self.budget}.",
                f"What is protected: {self.unit}. What was published would look almost the same had it been "
                f"{_CHANGE[self.neighbours]}.",
                "Against whom: anyone who sees what was published, whatever else they know, even all other records.",
                f"In numbers: {numbers}.",
                f"Public, not protected: {'; '.join(self.public) or 'nothing beyond the settings of the method'}.",
                f"Status: {status}.",
            ]
        )


def sequential(*guarantees: Guarantee) -> Guarantee:
    """Guarantee of several releases about the same records, each chosen freely after the ones before it.

    The deltas are added up, and the epsilon is what all events together give at that delta.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trial = private_ci_rct(n=200, seed=1)
    >>> with dc.testing.seeded_noise(0):
    ...     one = dc.DifferenceInMeans(epsilon=0.5, bounds=trial.bounds).fit(trial.Y, trial.T, X=trial.X).guarantee_
    >>> round(sequential(one, one).epsilon, 6)
    1.0
    """
    if len(guarantees) == 1:
        return guarantees[0]
    delta = math.fsum(guarantee.delta for guarantee in guarantees)
    if delta >= 1:
        raise InvalidBudget("the deltas add up to one or more, which promises nothing; compose fewer releases.")
    events = tuple(event for guarantee in guarantees for event in guarantee.events)
    return _joined(guarantees, profile_of(events).epsilon_at(delta), delta, events)


def parallel(*guarantees: Guarantee) -> Guarantee:
    """Guarantee of releases about disjoint parts of the records, one guarantee a part.

    Which part a record belongs to must depend neither on its content nor on other records: use a keyed hash of its unit
    or, under replace-one, its position (removing a record moves the positions of all that follow).

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trial = private_ci_rct(n=200, seed=1)
    >>> with dc.testing.seeded_noise(0):
    ...     one = dc.DifferenceInMeans(epsilon=0.5, bounds=trial.bounds).fit(trial.Y, trial.T, X=trial.X).guarantee_
    >>> parallel(one, one).epsilon
    0.5
    """
    if len(guarantees) == 1:
        return guarantees[0]
    parts = tuple(guarantee.events for guarantee in guarantees)
    events = (ParallelEvent(name="disjoint parts", parts=parts),)
    epsilon = max(guarantee.epsilon for guarantee in guarantees)
    delta = max(guarantee.delta for guarantee in guarantees)
    return _joined(guarantees, epsilon, delta, events)


def _joined(guarantees: tuple[Guarantee, ...], epsilon: float, delta: float, events: tuple[Event, ...]) -> Guarantee:
    if not guarantees:
        raise InvalidInput("there is nothing to compose; give at least one guarantee.")
    first = guarantees[0]
    if any((other.neighbours, other.unit) != (first.neighbours, first.unit) for other in guarantees):
        raise InvalidInput("neighbours and unit must agree to be composed; refit with the same neighbours=.")
    order = get_args(Status)
    audits = [guarantee.audit for guarantee in guarantees]
    proofs = [name for guarantee in guarantees if guarantee.proof for name in guarantee.proof.split(", ")]
    return Guarantee(
        epsilon=epsilon,
        delta=delta,
        neighbours=first.neighbours,
        unit=first.unit,
        status=max((guarantee.status for guarantee in guarantees), key=order.index),
        proof=", ".join(dict.fromkeys(proofs)) or None,
        public=tuple(dict.fromkeys(phrase for guarantee in guarantees for phrase in guarantee.public)),
        events=events,
        audit=None if None in audits else min(audit for audit in audits if audit is not None),
    )


def _rests_on_claims(events: tuple[Event, ...]) -> bool:
    return any(
        any(_rests_on_claims(part) for part in event.parts)
        if isinstance(event, ParallelEvent)
        else isinstance(event, ClaimedEvent)
        for event in events
    )
