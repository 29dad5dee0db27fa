"""The first instrument: replay every round on adversarial neighbours. Deterministic, and run on every commit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.audit._neighbours import KINDS, PLACE, Record, Table, base, extremes, random_record, unwelcome
from discreet.audit._search import Pool
from discreet.audit._tape import Tape, Unlike, ratio, repeated, too_quiet
from discreet.audit.mechanism import (
    as_asked,
    bounds_of,
    claimed_budget,
    fitted,
    name_of,
    propensity_of,
    relation_of,
    with_fixed_parts,
)
from discreet.audit.result import AuditResult, Moved
from discreet.data._arrays import IntArray
from discreet.exceptions import DiscreetError, InvalidInput
from discreet.privacy.accountant import gdp_epsilon, profile_of
from discreet.privacy.budget import Budget, Event, GaussianEvent, LaplaceEvent, ParallelEvent
from discreet.privacy.public_draws import public_draws
from discreet.privacy.query import Round
from discreet.releases.wording import leaves

Progress = Callable[[str, int, int], None]

# Fits whose noise is compared with what is stated.
_NOISE_FITS = 3
# Records that are replayed in full for the sake of some round, at most.
_MOST = 14
# Places that are tried to meet every part of the records.
_PROBES = 20
# Refused neighbours that are named.
_NAMED = 8


@dataclass
class Study:
    """One made-up study, its tape, and what moved."""

    tape: Tape
    best: dict[str, tuple[float, str]] = field(default_factory=dict)
    reach: dict[str, float] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    mu: float = 0.0
    worst: tuple[Table, Table, str] | None = None
    fits: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """The made-up studies of a replay, and how hard it searches them.

    Parameters
    ----------
    n, kinds
        Size and kinds of the studies.
    generations
        Length of the search.
    slow
        Records that are tried by fitting again, where a round sees parts of the records or a statistic of all of them.
    noise
        Whether the noise itself is checked too, which takes a few fits more.
    binary
        Whether outcomes are the ends of their range; found out where an estimator takes nothing else.
    """

    n: int = 240
    kinds: tuple[str, ...] = KINDS
    generations: int = 4
    slow: int = 30
    noise: bool = True
    binary: bool = False


def replay(
    estimator: Any,
    settings: ReplaySettings | None = None,
    *,
    random_state: int = 0,
    progress: Progress | None = None,
) -> tuple[AuditResult, tuple[Table, Table, str] | None]:
    """Replay an estimator; also returns the neighbours that were furthest apart, all rounds together.

    Parameters
    ----------
    estimator
        With ``fit``, ``bounds`` and a budget; what it releases must go through the gate.
    settings
        Which studies, and how much of everything.
    random_state
        Seeds studies and search; the noise has seeds of its own.
    progress
        Called with (what, done, all).
    """
    settings = settings or ReplaySettings()
    bounds, claimed = bounds_of(estimator), claimed_budget(estimator)
    relation, binary = relation_of(estimator), settings.binary
    estimator = with_fixed_parts(estimator)
    studies: list[Study] = []
    for number, kind in enumerate(settings.kinds):
        if progress is not None:
            progress(f"replay, {kind} study", number, len(settings.kinds))
        rng = _rng(random_state + number)
        try:
            tape, binary = _tape(estimator, bounds, settings.n, kind, random_state + number, binary)
        except InvalidInput:
            # Parts of a study with a single treated record may have none, which is refused.
            if kind != "tiny arm" or not studies:
                raise
            continue
        study = Study(tape, fits=1)
        if not tape.rounds:
            raise InvalidInput(
                f"{name_of(estimator)} asks the gate nothing, so that there is nothing to replay: audit it as a black "
                "box, or name an attack."
            )
        studies.append(study)
        study.found += statements(tape, claimed)
        _search(study, estimator, rng, settings, binary)
        if settings.noise:
            study.found += _noise(study, estimator)
    return _result(estimator, claimed, relation, studies), max(studies, key=lambda s: s.mu).worst


def is_proved(estimator: Any) -> bool:
    """Whether an estimator's guarantee names a proof: a small study is fitted to see."""
    try:
        tape, _ = _tape(estimator, bounds_of(estimator), 60, "ordinary", 0)
    except DiscreetError:
        return False
    return tape.guarantee is not None and tape.guarantee.proof is not None and bool(tape.rounds)


def study_of(seed: int) -> Any:
    """A generator for made-up studies."""
    return _rng(seed)


def _tape(estimator: Any, bounds: Any, n: int, kind: str, seed: int, binary: bool = False) -> tuple[Tape, bool]:
    """A first fit; with outcomes of 0 and 1 where an estimator takes nothing else."""
    table = base(bounds, n, kind, _rng(seed), binary=binary)
    try:
        return Tape(lambda data: fitted(estimator, data), table, seed=seed + 5), binary
    except InvalidInput:
        if binary:
            raise
        return _tape(estimator, bounds, n, kind, seed, True)


def _search(study: Study, estimator: Any, rng: Any, settings: ReplaySettings, binary: bool) -> None:
    """Search records that move each round far, and replay those in full."""
    tape, bounds, relation = study.tape, bounds_of(estimator), relation_of(estimator)
    pool = Pool(tape, bounds, relation, propensity_of(estimator), as_asked(estimator))
    if any(tape.sums_records):
        pool.search(rng, settings.generations, binary)
    for number, name in enumerate(tape.names):
        if pool.parts[number]:
            study.reach[name] = max(study.reach.get(name, 0.0), pool.reach(number))
    records = _chosen(pool, relation)
    places = _places(study, relation, bounds)
    if not all(tape.sums_records):
        # Statistics of whole data sets, and sums of what was computed from records, can only be computed again.
        more = [*extremes(bounds, binary=binary), *(random_record(bounds, rng, binary=binary) for _ in range(4))]
        records = [*records, *more[: settings.slow]]
    for place in places:
        _compare(study, relation, place, [*unwelcome(bounds, tape.table, place), *records])
    if relation == "add-remove":
        _compare(study, relation, PLACE, [], removed=True)


def _places(study: Study, relation: Any, bounds: Any) -> list[int]:
    """Places of records to replace: one in each part, where parts of the records have rounds of their own."""
    tape = study.tape
    start, gates = tape.table, set(tape.gates)
    n = start.n
    if len(gates) == 1:
        return [PLACE]
    places: list[int] = []
    met: set[int] = set()
    # A record is known by the rounds that it moves; parts are met within a few fits, wherever their records lie.
    for place in dict.fromkeys([0, n // 2, n - 1, *range(PLACE, n, max(1, n // _PROBES))]):
        study.fits += 1
        moved = _gates_moved(tape, start.neighbour(relation, place, extremes(bounds, binary=True)[-1]))
        if moved - met:
            places.append(place)
            met |= moved
        if met == gates:
            break
    return places


def _gates_moved(tape: Tape, table: Table) -> set[int]:
    try:
        sums = tape.replay(table) or [each.exact for each in tape.rounds]
    except Unlike:
        # It will be reported when neighbours are compared, at this place.
        return set(tape.gates)
    pairs = zip(tape.gates, tape.rounds, sums, strict=True)
    return {number for number, each, own in pairs if np.any(own != each.exact)}


def _chosen(pool: Pool, relation: Any) -> list[Record]:
    """Few records among which every round comes close to the furthest that was found."""
    chosen: list[int] = []
    for place in range(len(pool.tape.rounds)):
        if not pool.parts[place]:
            continue
        best, *pair = pool.ratios(place)
        reached = 0.0
        if chosen:
            within = Pool(pool.tape, pool.bounds, relation, pool.propensity)
            within.parts[place] = [pool.parts[place][k] for k in chosen]
            reached = within.ratios(place)[0]
        if reached < 0.98 * best and len(chosen) < _MOST:
            chosen += [k for k in dict.fromkeys(pair) if k not in chosen]
    return [pool.records[k] for k in chosen]


def _compare(study: Study, relation: Any, place: int, records: list[Record], removed: bool = False) -> None:
    """Replay neighbours in full, and keep the furthest pair of every round and of all together."""
    tape = study.tape
    start = tape.table
    tables = [(start, "the record as it was" if relation == "replace-one" else "no record more")]
    tables += [(start.neighbour(relation, place, record), record.label) for record in records]
    if removed:
        tables.append((start.without(place), "one record less"))
    sums: list[list[IntArray]] = []
    kept: list[tuple[Table, str]] = []
    for table, label in tables:
        try:
            study.fits += 1
            replayed = tape.replay(table)
        except Unlike as unlike:
            study.found.append(f"{label}: {unlike}")
            continue
        if replayed is None:
            study.refused.append(label)
        else:
            sums.append(replayed)
            kept.append((table, label))
    for first in range(len(sums)):
        # Under add-remove neighbours of one data set are not neighbours of each other.
        for second in range(first + 1, len(sums)) if relation == "replace-one" or first == 0 else ():
            _judge(study, sums[first], sums[second], kept[first], kept[second])


def _judge(
    study: Study, one: list[IntArray], two: list[IntArray], first: tuple[Table, str], second: tuple[Table, str]
) -> None:
    words = f"{first[1]} / {second[1]}"
    spent = 0.0
    for name, each, a, b in zip(study.tape.names, study.tape.rounds, one, two, strict=True):
        moved = _quick_ratio(each, a, b)
        if moved > study.best.get(name, (-1.0, ""))[0] or moved > 1 - 1e-9:
            exact = ratio(each, a, b)
            if exact > study.best.get(name, (-1.0, ""))[0]:
                study.best[name] = exact, words
        cost = moved * each.diameter / each.scale
        spent += cost if each.pure else cost**2
    total = spent if study.tape.pure else math.sqrt(spent)
    if total > study.mu:
        study.mu, study.worst = total, (first[0], second[0], words)


def _quick_ratio(each: Round, a: IntArray, b: IntArray) -> float:
    steps = (a - b).astype(np.float64)
    if each.pure:
        return float(np.abs(steps).sum() / each.diameter)
    steps[each.grid.full :] *= math.sqrt(2.0)
    return float(math.sqrt(steps @ steps) / each.diameter)


def statements(tape: Tape, claimed: Budget) -> list[str]:
    """Whether the rounds that were asked, with the noise that they had, spend more than was stated."""
    guarantee = tape.guarantee
    assert guarantee is not None
    found = []
    stated = [_numbers(event) for event in leaves(guarantee.events)]
    for each in tape.rounds:
        own = _numbers(_event(each))
        if own in stated:
            stated.remove(own)
        else:
            found.append(f"round {each.query.name!r} is not in the guarantee as it was drawn.")
    apart = any(isinstance(event, ParallelEvent) for event in guarantee.events)
    groups: dict[int, list[Event]] = {}
    for number, each in zip(tape.gates, tape.rounds, strict=True):
        groups.setdefault(number if apart else 0, []).append(_event(each))
    for events in groups.values():
        delta = profile_of(tuple(events)).delta_at(claimed.epsilon * (1 + 1e-12))
        if delta > (claimed.delta or 0.0):
            found.append(f"the rounds together spend more than claimed: their delta is {delta:.3g} at that epsilon.")
    if (guarantee.epsilon, guarantee.delta) != (claimed.epsilon, claimed.delta or 0.0):
        found.append("the guarantee states another budget than was asked for.")
    return found


def _event(each: Round) -> GaussianEvent | LaplaceEvent:
    name, diameter, numbers = each.query.name, each.diameter, each.grid.numbers
    if each.pure:
        return LaplaceEvent(name=name, diameter=diameter, scale=each.scale, dimension=numbers)
    return GaussianEvent(name=name, diameter=diameter, sigma=each.scale, dimension=numbers)


def _numbers(event: Event) -> tuple[Any, ...]:
    plain = event.to_dict()
    return plain["kind"], plain["name"], plain.get("diameter"), plain.get("sigma", plain.get("scale"))


def _noise(study: Study, estimator: Any) -> list[str]:
    """Whether noise is as large as stated, and drawn anew for every round."""
    rounds, found = [], []
    for number in range(_NOISE_FITS):
        tape = study.tape if number == 0 else Tape(study.tape.fit, study.tape.table, seed=1_000 + number)
        study.fits += number > 0
        rounds += tape.rounds
        pairs = repeated(tape.rounds)
        if pairs and number == 0:
            found.append(f"rounds {pairs[0][0]!r} and {pairs[0][1]!r} drew the same noise.")
    found += [f"the noise of round {name!r} is smaller than stated." for name in too_quiet(rounds)]
    return found


def _result(estimator: Any, claimed: Budget, relation: Any, studies: list[Study]) -> AuditResult:
    best: dict[str, tuple[float, str]] = {}
    for study in studies:
        for name, (value, words) in study.best.items():
            if value > best.get(name, (-1.0, ""))[0]:
                best[name] = value, words
    reach = {name: max(s.reach.get(name, 0.0) for s in studies) or None for name in best}
    geometry = {
        name: type(each.query.geometry).__name__
        for s in studies
        for name, each in zip(s.tape.names, s.tape.rounds, strict=True)
    }
    rounds = tuple(
        Moved(name=name, ratio=value, neighbours=words, reach=reach[name], geometry=geometry[name])
        for name, (value, words) in best.items()
    )
    over = [f"round {moved.name!r} moves {moved.ratio:.6g} times its diameter." for moved in rounds if moved.ratio > 1]
    found = tuple(dict.fromkeys([*over, *(sentence for study in studies for sentence in study.found)]))
    worst = max(studies, key=lambda study: study.mu)
    pure = worst.tape.pure
    shown = worst.mu if pure else gdp_epsilon(worst.mu, claimed.delta or 0.0) if worst.mu > 0 else 0.0
    refused = list(dict.fromkeys(label for study in studies for label in study.refused))
    notes = ["epsilon is that of the worst neighbours at the answers of the tape."]
    if refused:
        others = f", and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
        notes.append(f"refused as input: {', '.join(refused[:_NAMED])}{others}.")
    return AuditResult(
        mechanism=name_of(estimator),
        attack="adversarial neighbours and search",
        claimed=claimed,
        status="proved" if worst.tape.guarantee is not None and worst.tape.guarantee.proof else "claimed",
        epsilon_lower=shown,
        delta_lower=0.0,
        confidence=1.0,
        violated=bool(found),
        instrument="replay",
        neighbours=relation,
        trials=sum(study.fits for study in studies),
        worst="" if worst.worst is None else worst.worst[2],
        rounds=rounds,
        found=found,
        notes=tuple(notes),
        picture={"kind": "ratios", "names": [m.name for m in rounds], "ratios": [m.ratio for m in rounds]},
    )


def _rng(seed: int) -> Any:
    return public_draws(seed)
