"""Every proved estimator in the configurations that are replayed on every commit: the audit's positive control."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from discreet.audit._neighbours import KINDS, STEEP
from discreet.audit._replay import ReplaySettings
from discreet.audit.mechanism import RELATIONS, in_last_columns
from discreet.data.bounds import Bounds, Levels, Range

DESIGNS = {"observational": None, "trial": 0.4}
OUTCOMES: dict[str, tuple[float, float]] = {"continuous": (-4.0, 10.0), "binary": (0.0, 1.0)}
DELTA = 1e-6
# Where nothing but fitting again shows what a record moves, all extreme records are tried.
_ALL = 60


@dataclass(frozen=True, slots=True)
class Configuration:
    """One estimator with its parameters, and the made-up study that it is replayed on."""

    family: str
    words: str
    make: Callable[[], Any]
    kind: str = "ordinary"
    n: int = 200
    binary: bool = False
    generations: int = 3
    slow: int = 10

    @property
    def settings(self) -> ReplaySettings:
        """How it is replayed."""
        return ReplaySettings(
            n=self.n, kinds=(self.kind,), generations=self.generations, slow=self.slow, binary=self.binary
        )

    @property
    def name(self) -> str:
        """Family and configuration, for people and for tests."""
        return f"{self.family}: {self.words}"


def public_facts(p: int, outcome: tuple[float, float] = (-4.0, 10.0), *, ranges: bool = False) -> Bounds:
    """Ranges and levels in turn, or ranges only."""
    in_turn: list[Any] = [Range(-3.0, 3.0), Range(0.0, 1.0), Levels(("a", "b", "c"))][: 2 if ranges else 3]
    columns = [in_turn[j % len(in_turn)] for j in range(p)]
    return Bounds(outcome=outcome, covariates=columns, propensity=(0.1, 0.9))


def matrix() -> list[Configuration]:
    """All configurations: design, outcome, 1 to 30 covariates, pure or not, both relations."""
    return [
        *_averages(),
        *_arms(),
        *_times_to_event(),
        *_functions(),
        *_segments(),
        *_policies(),
        *_natural_experiments(),
        *_papers(),
    ]


def _averages() -> list[Configuration]:
    from discreet.estimators.ate import ATE
    from discreet.estimators.difference_in_means import DifferenceInMeans

    found = []
    for number, (design, outcome, p, relation) in enumerate(product(DESIGNS, OUTCOMES, (1, 3, 30), RELATIONS)):
        given: dict[str, Any] = {"propensity": DESIGNS[design], "neighbours": relation, "delta": DELTA}
        # Large budgets have the richest models, so that all kinds of rounds occur and both models are corrected twice;
        # small ones are what people use. Thirty covariates are screened.
        epsilon = 20.0 if p == 3 else 1.0
        found.append(
            Configuration(
                "ATE",
                f"{design}, {outcome}, p = {p}, {relation}, ε = {epsilon:g}",
                _made(ATE, epsilon, public_facts(p, OUTCOMES[outcome]), given),
                kind=KINDS[number // 2 % len(KINDS)],
                n=400 if p == 3 else 200,
                binary=outcome == "binary",
            )
        )
    for relation, cap in product(RELATIONS, (3.0, "auto")):
        given = {"neighbours": relation, "cap": cap, "delta": DELTA}
        words = f"cap = {cap}, {relation}"
        found.append(Configuration("ATE", words, _made(ATE, 20.0, public_facts(1), given), n=400))
        given = {"neighbours": relation, "cap": cap}
        pure = _made(DifferenceInMeans, 20.0, public_facts(0), given)
        found.append(Configuration("DifferenceInMeans", f"pure, {words}", pure, n=1_000))
    cases = enumerate(product(DESIGNS, OUTCOMES, (None, DELTA), RELATIONS))
    for number, (design, outcome, delta, relation) in cases:
        given = {"propensity": DESIGNS[design], "neighbours": relation, "delta": delta}
        found.append(
            Configuration(
                "DifferenceInMeans",
                f"{design}, {outcome}, {'pure' if delta is None else 'approximate'}, {relation}",
                _made(DifferenceInMeans, 1.0, public_facts(0, OUTCOMES[outcome]), given),
                kind=KINDS[(number // 2 + number // 4) % len(KINDS)],
                n=1_000,
                binary=outcome == "binary",
            )
        )
    return [*found, *_weighted(), *_missing(), *_surveyed()]


def _weighted() -> list[Configuration]:
    from discreet.estimators.weighted.atc import ATC
    from discreet.estimators.weighted.ato import ATO
    from discreet.estimators.weighted.att import ATT

    found = []
    cases = enumerate(product((ATT, ATC, ATO), DESIGNS, OUTCOMES, RELATIONS))
    for number, (method, design, outcome, relation) in cases:
        given: dict[str, Any] = {"propensity": DESIGNS[design], "neighbours": relation, "delta": DELTA}
        # Rich models and poor ones in turn.
        p, epsilon = ((3, 20.0), (1, 1.0))[number // 2 % 2]
        made = _made(method, epsilon, public_facts(p, OUTCOMES[outcome]), given)
        words = f"{design}, {outcome}, p = {p}, {relation}, ε = {epsilon:g}"
        kind = KINDS[number // 2 % len(KINDS)]
        found.append(Configuration(method.__name__, words, made, kind=kind, n=400, binary=outcome == "binary"))
    return found


def _times_to_event() -> list[Configuration]:
    from discreet.estimators.survival.effect import SurvivalEffect

    found = []
    for number, (design, measure, p, relation) in enumerate(product(DESIGNS, ("rmst", "risk"), (0, 3), RELATIONS)):
        given: dict[str, Any] = {"propensity": DESIGNS[design], "neighbours": relation, "delta": DELTA}
        given |= {"measure": measure, "horizon": 6.0, "times": (1.0, 3.0, 8.0) if number % 2 else None}
        # In a trial a large budget makes models pay.
        epsilon = 20.0 if p else 1.0
        found.append(
            Configuration(
                "SurvivalEffect",
                f"{design}, {measure}, p = {p}, {relation}, ε = {epsilon:g}",
                partial(_in_last_columns, _made(SurvivalEffect, epsilon, public_facts(p, (0.0, 10.0)), given)),
                kind=KINDS[number // 2 % len(KINDS)],
                n=700 if p else 1_000,
            )
        )
    return found


def _arms() -> list[Configuration]:
    from discreet.estimators.ate import ATE
    from discreet.estimators.difference_in_means import DifferenceInMeans

    found = []
    designs: dict[str, list[float] | None] = {"observational": None, "trial": [0.5, 0.25, 0.25]}
    for number, (design, outcome, relation) in enumerate(product(designs, OUTCOMES, RELATIONS)):
        bounds = replace(public_facts(3, OUTCOMES[outcome]), treatment=("none", "some", "much"))
        given: dict[str, Any] = {"propensity": designs[design], "neighbours": relation}
        # A single record in an arm, and so none in another, is refused: not that kind of study.
        how: dict[str, Any] = {"kind": KINDS[number // 2 % 3], "binary": outcome == "binary"}
        words = f"three arms, {design}, {outcome}, {relation}"
        made = _made(ATE, 20.0, bounds, given | {"delta": DELTA})
        found.append(Configuration("ATE", words, made, n=400, **how))
        for delta in (None, DELTA):
            noise = "pure" if delta is None else "approximate"
            made = _made(DifferenceInMeans, 1.0, bounds, given | {"delta": delta})
            found.append(Configuration("DifferenceInMeans", f"{words}, {noise}", made, n=1_000, **how))
    return found


def _missing() -> list[Configuration]:
    from discreet.estimators.ate import ATE
    from discreet.estimators.difference_in_means import DifferenceInMeans

    found = []
    for number, (outcome, relation) in enumerate(product(OUTCOMES, RELATIONS)):
        given: dict[str, Any] = {"neighbours": relation, "missing_outcome": "adjust"}
        binary, words = outcome == "binary", f"missing outcomes, {outcome}, {relation}"
        p, epsilon = ((3, 20.0), (1, 5.0))[number // 2 % 2]
        made = _made(_losing(ATE), epsilon, public_facts(p, OUTCOMES[outcome]), given | {"delta": DELTA})
        found.append(Configuration("ATE", words, made, kind=KINDS[number % 3], n=400, binary=binary))
        for delta in (None, DELTA):
            means = _made(_losing(DifferenceInMeans), 5.0, public_facts(1, OUTCOMES[outcome]), given | {"delta": delta})
            pure = "pure" if delta is None else "approximate"
            found.append(Configuration("DifferenceInMeans", f"{pure}, {words}", means, n=1_000, binary=binary))
    return found


def _surveyed() -> list[Configuration]:
    from discreet.estimators.ate import ATE
    from discreet.estimators.difference_in_means import DifferenceInMeans

    found = []
    for number, (outcome, relation) in enumerate(product(OUTCOMES, RELATIONS)):
        given: dict[str, Any] = {"neighbours": relation}
        binary, words = outcome == "binary", f"survey weights, {outcome}, {relation}"
        bounds = replace(public_facts(3, OUTCOMES[outcome]), weight=(0.0, 5.0))
        made = _made(_surveying(ATE), 20.0, bounds, given | {"delta": DELTA})
        found.append(Configuration("ATE", words, made, kind=KINDS[number % 3], n=400, binary=binary))
        bounds = replace(public_facts(1, OUTCOMES[outcome]), weight=(0.0, 5.0))
        for delta in (None, DELTA):
            means = _made(_surveying(DifferenceInMeans), 5.0, bounds, given | {"delta": delta})
            pure = "pure" if delta is None else "approximate"
            found.append(Configuration("DifferenceInMeans", f"{pure}, {words}", means, n=1_000, binary=binary))
    return found


def _surveying(method: Any) -> Any:
    """The same, where records have weights by their first covariate: neighbours come with weights of their own."""

    class Surveying(method):  # type: ignore[misc]
        def fit(self, Y: Any, T: Any, *, X: Any = None, **options: Any) -> Any:
            first = np.asarray(X, dtype=object)[:, 0].astype(np.float64)
            weight = np.clip(2.5 + np.nan_to_num(first), 0.0, 5.0)
            return super().fit(Y, T, X=X, sample_weight=weight, **options)

    Surveying.__name__, Surveying.__module__ = method.__name__, method.__module__
    return Surveying


def _losing(method: Any) -> Any:
    """The same, where records whose first covariate is above one lose their outcome: neighbours come and go."""

    class Losing(method):  # type: ignore[misc]
        def fit(self, Y: Any, T: Any, *, X: Any = None, **options: Any) -> Any:
            first = np.asarray(X, dtype=object)[:, 0].astype(np.float64)
            return super().fit(np.where(first > 1.0, np.nan, np.asarray(Y, dtype=np.float64)), T, X=X, **options)

    Losing.__name__, Losing.__module__ = method.__name__, method.__module__
    return Losing


def _functions() -> list[Configuration]:
    from discreet.estimators.cate import CATE

    found = []
    for number, (design, outcome, p, relation) in enumerate(product(DESIGNS, OUTCOMES, (1, 3, 30), RELATIONS)):
        epsilon = 20.0 if p == 1 else 10.0 if p == 3 else 1.0
        given = {"propensity": DESIGNS[design], "neighbours": relation, "delta": DELTA}
        found.append(
            Configuration(
                "CATE",
                f"{design}, {outcome}, p = {p}, {relation}, ε = {epsilon:g}",
                _made(CATE, epsilon, public_facts(p, OUTCOMES[outcome]), given),
                kind=KINDS[number // 2 % len(KINDS)],
                n=300 if p < 30 else 200,
                binary=outcome == "binary",
            )
        )
    return found


def _segments() -> list[Configuration]:
    from discreet.estimators.clustering import PrivateKMeans
    from discreet.estimators.uplift import Uplift

    found = []
    for design, outcome, delta, relation in product(DESIGNS, OUTCOMES, (None, DELTA), RELATIONS):
        given = {"propensity": DESIGNS[design], "neighbours": relation, "delta": delta, "by": {0: 4, 2: "levels"}}
        found.append(
            Configuration(
                "Uplift",
                f"{design}, {outcome}, {'pure' if delta is None else 'approximate'}, {relation}",
                _made(Uplift, 1.0, public_facts(5, OUTCOMES[outcome]), given),
                binary=outcome == "binary",
            )
        )
    for relation in RELATIONS:
        small = {"propensity": 0.4, "neighbours": relation, "by": {0: 4}}
        found.append(
            Configuration("Uplift", f"arms share a sum, {relation}", _made(Uplift, 0.01, public_facts(1), small))
        )
        clusters = {"neighbours": relation, "by": PrivateKMeans(clusters=3, rounds=1)}
        found.append(Configuration("Uplift", f"clusters, {relation}", _made(Uplift, 1.0, public_facts(3), clusters)))
        arms, kind = replace(public_facts(3), treatment=("none", "some", "much")), KINDS[RELATIONS.index(relation)]
        for delta, known in ((None, [0.5, 0.25, 0.25]), (DELTA, None)):
            several = {"propensity": known, "neighbours": relation, "delta": delta, "by": {0: 3, 2: "levels"}}
            words = f"three arms, {'pure' if delta is None else 'approximate'}, {relation}"
            found.append(Configuration("Uplift", words, _made(Uplift, 1.0, arms, several), n=400, kind=kind))
    return found


def _policies() -> list[Configuration]:
    from discreet.estimators.policies.value import PolicyValue
    from discreet.releases.policies.policy import Policy

    found = []
    cases = product(DESIGNS, OUTCOMES, (None, DELTA), RELATIONS)
    for design, outcome, delta, relation in cases:
        if delta is None and DESIGNS[design] is None:
            # Without a delta there are no models.
            continue
        bounds = public_facts(3, OUTCOMES[outcome])
        policy = Policy.declare(bounds=bounds, by={0: 2, 2: "levels"}, treated=[1, 0, 0, 1, 1, 0], cost=0.1)
        given = {"policy": policy, "propensity": DESIGNS[design], "neighbours": relation, "delta": delta}
        words = f"{design}, {outcome}, {'pure' if delta is None else 'approximate'}, {relation}"
        made = _made(PolicyValue, 20.0, bounds, given)
        found.append(Configuration("PolicyValue", words, made, n=400, binary=outcome == "binary"))
    return found


def _natural_experiments() -> list[Configuration]:
    from discreet.estimators.natural_experiments.did import DifferenceInDifferences
    from discreet.estimators.natural_experiments.late import LATE

    found = []
    cases = product((LATE, DifferenceInDifferences), DESIGNS, OUTCOMES, RELATIONS)
    for number, (method, design, outcome, relation) in enumerate(cases):
        given = {"propensity": DESIGNS[design], "neighbours": relation, "delta": DELTA}
        # What is seen of records is no record: only fitting again shows what one moves.
        found.append(
            Configuration(
                method.__name__,
                f"{design}, {outcome}, {relation}",
                partial(_in_last_columns, _made(method, 20.0, public_facts(1, OUTCOMES[outcome]), given)),
                kind=KINDS[number // 2 % len(KINDS)],
                slow=20,
                binary=outcome == "binary",
            )
        )
    return found


def _in_last_columns(make: Callable[[], Any]) -> Any:
    return in_last_columns(make())


def _papers() -> list[Configuration]:
    from discreet import papers
    from discreet.estimators.clustering import PrivateKMeans

    def some(
        method: Any,
        words: str,
        given: dict[str, Any],
        p: int = 3,
        outcome: str = "continuous",
        ranges: bool = False,
        **how: Any,
    ) -> None:
        epsilon = given.pop("epsilon", 1.0)
        made = _made(method, epsilon, public_facts(p, OUTCOMES[outcome], ranges=ranges), given)
        found.append(Configuration(f"papers.{method.__name__}", words, made, binary=outcome == "binary", **how))

    found: list[Configuration] = []
    for relation in RELATIONS:
        some(papers.ADUM, f"cells, {relation}", {"by": {0: 4, 2: "levels"}, "neighbours": relation})
        clusters = PrivateKMeans(clusters=3, rounds=1)
        some(papers.ADUM, f"clusters, {relation}", {"by": clusters, "neighbours": relation})
        some(papers.TwoModel, f"polynomial, {relation}", {"degree": 2, "neighbours": relation}, n=60)
        # Of a column's indicators one at most is not zero, while the bound counts features: ranges alone fill it.
        some(papers.TwoModel, f"polynomial, ranges only, {relation}", {"neighbours": relation}, p=2, ranges=True, n=60)
    some(papers.TwoModel, "logistic", {"model": "logistic", "lam": 0.1}, outcome="binary", n=60)
    given: dict[str, Any] = {"delta": DELTA, "xi": 0.1, "random_state": 0}
    some(papers.PropensityIPTW, "everyone", dict(given), n=60, slow=30)
    # Half of few records at a small budget would be all noise, and no round would come near its diameter.
    given = {"epsilon": 20.0, "delta": DELTA, "calibration": "proved", "split": "private"}
    some(papers.PrivATE, "split in private", dict(given), n=200)
    some(papers.DPCATEFunction, "split in private", given | {"basis": 12}, n=200)
    for kind in ("concentrated", "lopsided", STEEP):
        some(papers.PrivATE, f"split in private, {kind}", dict(given), kind=kind, n=2_000)
        some(papers.DPCATEFunction, f"split in private, {kind}", given | {"basis": 12}, kind=kind, n=1_000)
    learner = {"epsilon": 20.0, "delta": DELTA, "random_state": 0, "base": "linear"}
    for method in (papers.DRLearner, papers.RLearner, papers.TLearner, papers.XLearner):
        some(method, "linear", dict(learner), n=3_000, slow=_ALL)
    for method in (papers.DRLearner, papers.RLearner):
        # Residuals of a treatment have one sign where they are clipped: only opposite features make them opposite.
        words = "linear, ranges only"
        some(method, words, dict(learner), p=12, ranges=True, kind="lopsided", n=3_000, slow=_ALL)
    # With quotients clipped at the range, and models that reach its ends, the largest weight meets the largest target.
    clipped = learner | {"clip": OUTCOMES["continuous"][1] - OUTCOMES["continuous"][0]}
    some(papers.RLearner, "linear, clip at the range", clipped, kind=STEEP, n=3_000, slow=_ALL)
    some(papers.DRLearner, "logistic", learner | {"base": "logistic"}, n=60)
    additive = {"epsilon": 20.0, "delta": DELTA, "base": "additive"}
    some(papers.SLearner, "additive", additive, p=1, kind="concentrated", n=1_200, slow=_ALL)
    return found


def _made(kind: Any, epsilon: float, bounds: Bounds, given: dict[str, Any]) -> Callable[[], Any]:
    return lambda: kind(epsilon=epsilon, bounds=bounds, **given)
