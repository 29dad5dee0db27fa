"""A part of a gate's budget, for an estimator inside of another: to its rounds it is a gate with a smaller budget."""

import math
from dataclasses import replace

from discreet.data.bounds import Bounds
from discreet.data.records import CodeMap
from discreet.data.views.viewed import View
from discreet.exceptions import BudgetExceeded, InvalidInput
from discreet.privacy.budget import Event
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.query import Query, Released
from discreet.privacy.sensitivity.fixed_point import ROUNDING, SensitivitySet


class GatePart(Gate):
    """Asks a gate under names of its own, with shares that are parts of a part of its budget.

    Parameters
    ----------
    whole
        The gate; where the number of records is private, it has been counted.
    part
        Part of the whole budget that may be spent here.
    prefix
        Comes before the name of every question, so that events of two estimators have different names.

    Privacy
    -------
    Everything is asked of the whole gate, which enforces and charges as always: nothing new is to be proved.
    """

    def __init__(self, whole: Gate, part: float, prefix: str = "") -> None:
        if not 0.0 < part <= 1.0:
            raise InvalidInput("part must lie above 0 and be at most 1; say how much of the budget may be spent.")
        self._whole = whole
        self._part = part
        self._prefix = prefix
        self._spent: dict[str, float] = {}
        self._own: dict[Query, Query] = {}
        self.counts_rows = whole.counts_rows
        self.budget = whole.budget
        self.neighbours = whole.neighbours

    def sampled(self, part: float, share: float) -> Gate | None:
        """A gate on about so large a part of the records, which spends from the same part of the budget."""
        sample = self._whole.sampled(part, share * self._part)
        if sample is None:
            return None
        self._add("number of records", share)
        gate = GatePart(sample, self._part, self._prefix)
        gate._spent = self._spent
        return gate

    def viewed(self, view: View) -> Gate:
        """The same part of the budget on records that are seen through a map of single records."""
        gate = GatePart(self._whole.viewed(view), self._part, self._prefix)
        gate._spent = self._spent
        return gate

    def coded(self, codes: CodeMap) -> Gate:
        """The same part of the budget on records that may be kept as codes."""
        gate = GatePart(self._whole.coded(codes), self._part, self._prefix)
        gate._spent, gate._own = self._spent, self._own
        return gate

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that the whole gate has released."""
        return self._whole.events

    @property
    def bounds(self) -> Bounds:
        """What was declared about the records."""
        return self._whole.bounds

    @property
    def most_rows(self) -> int:
        """Most rows of one unit."""
        return self._whole.most_rows

    @property
    def joins_rows(self) -> bool:
        """Whether rows of one unit can be added up before a set is enforced."""
        return self._whole.joins_rows

    @property
    def mu(self) -> float:
        """What all Gaussian releases of this part together may add up to."""
        return self._whole.mu * math.sqrt(self._part)

    @property
    def n(self) -> float:
        """Number of records, as the whole gate knows it."""
        return self._whole.n

    @property
    def spent(self) -> float:
        """Share of this part that is spent."""
        return math.fsum(self._spent.values())

    @property
    def spent_on(self) -> dict[str, float]:
        """Shares of this part that are spent, by the names of questions."""
        return dict(self._spent)

    def noise_sd(self, geometry: SensitivitySet, share: float) -> float:
        """Noise that a release would have."""
        return self._whole.noise_sd(geometry, share * self._part)

    def count(self, share: float) -> float:
        """Number of records; where it is private it was counted before."""
        return self.n

    def prepare(self, *queries: Query) -> None:
        """Take the sums of questions that may be asked later."""
        self._whole.prepare(*map(self._named, queries))

    def ask(self, *queries: Query) -> tuple[Released, ...]:
        """Release noisy sums through the whole gate."""
        asked, left = math.fsum(query.share for query in queries), self.left
        if asked > left + ROUNDING:
            raise BudgetExceeded(
                f"{', '.join(query.name for query in queries)}: asked for {asked:.6g} of a part of the budget, "
                f"{left:.6g} is left of it; lower the shares."
            )
        released = self._whole.ask(*map(self._named, queries))
        for query in queries:
            self._add(query.name, query.share)
        return released

    def guarantee(self, proof: str, public: tuple[str, ...] = (), unit: str = "one record") -> Guarantee:
        """What everything that the whole gate has released so far promises."""
        return self._whole.guarantee(proof, public, unit)

    def _add(self, name: str, share: float) -> None:
        self._spent[name] = self._spent.get(name, 0.0) + share

    def _named(self, query: Query) -> Query:
        """The same question to the whole gate, one object for each, so that what was prepared is recognised."""
        if query not in self._own:
            own = replace(query, name=self._prefix + query.name, share=query.share * self._part)
            self._own[query] = own
        return self._own[query]
