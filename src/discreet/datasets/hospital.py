"""A hospital's admissions as they come: rare deaths, values that nobody measured, empty forms, people who return."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from discreet.data.bounds import Bounds, Levels, Range
from discreet.datasets.study import Float
from discreet.exceptions import InvalidInput

HospitalOutcome = Literal["died", "days", "wellbeing"]
WARDS = ("medicine", "surgery", "heart", "lungs")
# The most admissions of one patient.
MOST_ADMISSIONS = 4
# What a lactate counts as that nobody measured: the middle of what is normal, in mmol/l.
_USUAL_LACTATE = 1.2
_OUTCOMES: dict[str, tuple[float, float] | list[float]] = {"died": [0, 1], "days": (0, 60), "wellbeing": (0, 100)}
# Records that the average effects are worked out from, once.
_MANY = 400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hospital:
    """Admissions of one hospital, and what the treatment does on average.

    Parameters
    ----------
    admissions : pyarrow.Table
        A row for each admission: ``patient``, ``admitted`` (a date of 2024), ``age``, ``sex``, ``ward``, ``emergency``,
        ``illnesses`` (how many chronic ones), ``lactate`` (missing where nobody measured it), ``treated`` (early
        physiotherapy), and the outcomes ``died`` (within 30 days), ``days`` (in hospital) and ``wellbeing`` (a score
        after three months, missing where no form came back).
    effects : dict
        The average effect on each outcome over all people that the hospital could admit.

    Examples
    --------
    >>> from discreet.datasets import hospital
    >>> records = hospital(n=2_000, seed=1)
    >>> records.admissions.num_rows, records.effects["died"] < 0
    (2000, True)
    >>> records.bounds("days").outcome
    (0.0, 60.0)
    """

    admissions: pa.Table
    effects: dict[str, float]

    def bounds(self, outcome: HospitalOutcome) -> Bounds:
        """What anybody may know about the records who knows hospitals, for one of the outcomes."""
        if outcome not in get_args(HospitalOutcome):
            raise InvalidInput(f"outcome must be one of {', '.join(get_args(HospitalOutcome))}: choose one.")
        return Bounds(
            outcome=_OUTCOMES[outcome],
            covariates={
                "age": (18, 100),
                "sex": Levels(("f", "m")),
                "ward": Levels(WARDS),
                "emergency": Levels(("no", "yes")),
                "illnesses": (0, 10),
                "lactate": Range(0.2, 15.0, fill=_USUAL_LACTATE),
            },
            propensity=(0.05, 0.95),
        )


@dataclass(frozen=True, slots=True)
class _Patients:
    """What is there before anything is done; ``lactate`` as the ward reads it."""

    age: Float
    male: Float
    ward: Float
    emergency: Float
    illnesses: Float
    lactate: Float
    measured: Float

    def illness(self) -> Float:
        """How ill they are: what decides about treatment and about outcomes."""
        return np.asarray(
            0.03 * (self.age - 65.0) + 0.35 * (self.illnesses - 2.0) + 0.35 * (self.lactate - _USUAL_LACTATE)
            + 0.5 * self.emergency + 0.2 * (self.ward == 3.0)
        )  # fmt: skip

    def propensity(self) -> Float:
        """The weakest are left in bed."""
        return np.asarray(np.clip(_expit(0.5 - 0.5 * self.illness() + 0.3 * (self.ward == 1.0)), 0.05, 0.95))

    def risk(self, treated: Float | float) -> Float:
        return _expit(-4.6 + 0.65 * self.illness() - 0.45 * treated)

    def stay(self, treated: Float | float) -> Float:
        """The logarithm of the typical stay."""
        return np.asarray(1.5 + 0.28 * self.illness() - 0.15 * treated)

    def score(self, treated: Float | float) -> Float:
        return np.asarray(68.0 - 8.0 * self.illness() + 5.0 * treated)


def hospital(n: int, seed: int) -> Hospital:
    """Admissions to one hospital, some of which treat with early physiotherapy, and mostly those who are less ill.

    Little more than one in a hundred die. Two lactates in five were never measured, mostly of those who did not look
    ill; whoever decided about treatment did not know them either. A fifth of the forms about wellbeing did not come
    back, by age and by how ill people were. A fifth of the patients come again. Everything that decides about treatment
    or about who answers is in the table.

    Parameters
    ----------
    n : int
        Number of admissions.
    seed : int
        The same seed makes the same table.

    Examples
    --------
    >>> from discreet.datasets import hospital
    >>> records = hospital(n=5_000, seed=1)
    >>> records.admissions["lactate"].null_count > 1_000
    True
    >>> bool(0.008 < records.admissions["died"].to_numpy().mean() < 0.02)
    True
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InvalidInput("n must be a whole number of at least 1: it is the number of admissions.")
    rng = np.random.default_rng(seed)
    patient, first = _visits(n, rng)
    people = _patients(n, rng)
    # Who comes again is the same person.
    people = _Patients(
        people.age[first], people.male[first], people.ward, people.emergency, people.illnesses[first],
        people.lactate, people.measured,
    )  # fmt: skip
    t = (rng.random(n) < people.propensity()).astype(np.float64)
    died, days, wellbeing = _drawn(people, t, rng)
    answered = rng.random(n) < _expit(1.9 - 0.02 * (people.age - 65.0) - 0.5 * people.illness())
    date = np.datetime64("2024-01-01") + np.sort(rng.integers(0, 366, n))
    return Hospital(
        admissions=pa.table(
            {
                "patient": patient,
                "admitted": date,
                "age": people.age.astype(np.int64),
                "sex": np.where(people.male > 0, "m", "f"),
                "ward": np.array(WARDS)[people.ward.astype(np.intp)],
                "emergency": np.where(people.emergency > 0, "yes", "no"),
                "illnesses": people.illnesses.astype(np.int64),
                "lactate": pa.array(np.round(people.lactate, 1), mask=people.measured < 1),
                "treated": t.astype(np.int64),
                "died": died.astype(np.int64),
                "days": np.round(days, 1),
                "wellbeing": pa.array(np.round(wellbeing), mask=~answered | (died > 0)),
            }
        ),
        effects=dict(_effects()),
    )


def _visits(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Whose admission each is, and the first of the same patient."""
    patient = np.repeat(np.arange(n), 1 + np.minimum(rng.poisson(0.25, n), MOST_ADMISSIONS - 1))[:n]
    first = np.searchsorted(patient, patient)
    mixed = rng.permutation(n)
    # Numbers that say nothing about when somebody came.
    return rng.permutation(n)[patient][mixed] + 100_000, first[mixed]


def _patients(n: int, rng: np.random.Generator) -> _Patients:
    age = np.clip(np.round(18.0 + 82.0 * rng.beta(3.2, 2.2, n)), 18, 100)
    illnesses = np.minimum(rng.poisson(0.6 + 0.03 * (age - 18.0)), 10).astype(np.float64)
    emergency = (rng.random(n) < 0.45).astype(np.float64)
    lactate = np.clip(rng.lognormal(0.25 + 0.2 * emergency + 0.04 * illnesses, 0.45), 0.2, 15.0)
    measured = (rng.random(n) < _expit(-0.6 + 1.6 * emergency + 0.6 * (lactate - _USUAL_LACTATE))).astype(np.float64)
    return _Patients(
        age=age,
        male=(rng.random(n) < 0.52).astype(np.float64),
        ward=rng.choice(len(WARDS), n, p=[0.4, 0.3, 0.17, 0.13]).astype(np.float64),
        emergency=emergency,
        illnesses=illnesses,
        lactate=np.where(measured > 0, np.round(lactate, 1), _USUAL_LACTATE),
        measured=measured,
    )


def _drawn(people: _Patients, t: Float | float, rng: np.random.Generator) -> tuple[Float, Float, Float]:
    n = people.age.size
    died = (rng.random(n) < people.risk(t)).astype(np.float64)
    days = np.clip(np.exp(people.stay(t) + 0.7 * rng.standard_normal(n)), 0.0, 60.0)
    return died, days, np.clip(people.score(t) + 14.0 * rng.standard_normal(n), 0.0, 100.0)


@cache
def _effects() -> tuple[tuple[str, float], ...]:
    people = _patients(_MANY, np.random.default_rng(977))
    # The same draws in both arms, so that the error is that of the effect alone.
    control, treated = (_drawn(people, arm, np.random.default_rng(978)) for arm in (0.0, 1.0))
    found = [float(np.mean(people.risk(1.0) - people.risk(0.0)))]
    found += [float(np.mean(one - other)) for one, other in zip(treated[1:], control[1:], strict=True)]
    return tuple(zip(_OUTCOMES, found, strict=True))


def _expit(v: Float) -> Float:
    return np.asarray(1.0 / (1.0 + np.exp(-v)))
