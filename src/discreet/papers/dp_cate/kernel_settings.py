"""Settings of DP-CATE's second stage: what was given, and the defaults of each calibration for what was not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np

from discreet.exceptions import InvalidInput
from discreet.papers.common.losses import Loss, check_loss, loss_of
from discreet.papers.common.nuisances import design
from discreet.papers.dp_cate.equations import Weight
from discreet.papers.dp_cate.pointwise import CommonParameters

Scaling = Literal["lemma 3", "theorem 2", "unit"]
Penalty = Literal["mean", "sum"]

_MOST_BASIS = 2_000
# Largest logarithm of a kernel's height, up or down, that leaves room for its products among floating-point numbers.
_HIGHEST = 650.0
# Choice: penalty, knee over the outcome's width and bandwidth over sqrt(q / 2) of the proved calibration, by the errors
# of `evidence.effect_functions` on studies 0 to 299.
_PROVED_LAM, _PROVED_KNEE, _PROVED_BANDWIDTH = 0.1, 0.1, 0.5


class KernelParameters(CommonParameters, Protocol):
    """Parameters of the second stage; what is None has the default of its calibration."""

    @property
    def calibration(self) -> str: ...

    @property
    def loss(self) -> str | Loss | None: ...

    @property
    def knee(self) -> float | None: ...

    @property
    def lam(self) -> float | None: ...

    @property
    def penalty(self) -> Penalty | None: ...

    @property
    def bandwidth(self) -> float | None: ...

    @property
    def scaling(self) -> Scaling: ...

    @property
    def basis(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSettings:
    """Settings of the second stage, all of them public.

    Parameters
    ----------
    learner, loss, knee, lam, penalty, bandwidth, scaling
        As in `DPCATEFunction`.
    proved
        Whether it is the calibration with a proof.
    """

    learner: str | Weight
    loss: str | Loss
    knee: float
    lam: float
    penalty: Penalty
    bandwidth: float
    scaling: Scaling
    proved: bool


def settings_of(given: KernelParameters) -> KernelSettings:
    """What a calibration takes for what was not given.

    Published: the settings of the figures, squares with lambda = 1 on the sum of losses, as in scikit-learn. Proved: a
    loss whose slope is bounded by a tenth of the outcome's width, and a penalty that its noise can bear.
    """
    proved, usual = given.calibration == "proved", math.sqrt(features_of(given) / 2.0)
    learner: str | Weight = "DR" if proved else "R"
    loss: str | Loss = "huber" if proved else "l2"
    penalty: Penalty = "mean" if proved else "sum"
    knee, lam = (_PROVED_KNEE * given.bounds.outcome_width, _PROVED_LAM) if proved else (1.0, 1.0)
    return KernelSettings(
        learner=learner if given.learner is None else given.learner,
        loss=loss if given.loss is None else given.loss,
        knee=knee if given.knee is None else float(given.knee),
        lam=lam if given.lam is None else float(given.lam),
        penalty=penalty if given.penalty is None else given.penalty,
        bandwidth=usual * (_PROVED_BANDWIDTH if proved else 1.0) if given.bandwidth is None else float(given.bandwidth),
        scaling=given.scaling,
        proved=proved,
    )


def features_of(given: CommonParameters) -> int:
    """How many features the covariates make, q."""
    return int(design(np.zeros((1, given.bounds.p)), given.bounds).shape[1])


def check_kernel(given: KernelParameters) -> None:
    """Refuse parameters of the second stage that make no sense."""
    positive = {"lam": given.lam, "bandwidth": given.bandwidth}
    for name, value in positive.items():
        number: object = value
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < math.inf:
            raise InvalidInput(f"{name} must be a positive number: choose it before looking.")
    check_loss("l2" if given.loss is None else given.loss, 1.0 if given.knee is None else given.knee)
    one_of("scaling", given.scaling, get_args(Scaling))
    one_of("penalty", given.penalty, (None, *get_args(Penalty)))
    settings = settings_of(given)
    loss_of(settings.loss, knee=1.0, reach=1.0, domain=1.0)
    _check_height(settings, features_of(given))
    basis: object = given.basis
    if isinstance(basis, bool) or not isinstance(basis, int) or not 1 <= basis <= _MOST_BASIS:
        raise InvalidInput(f"basis must be an integer between 1 and {_MOST_BASIS:,}; the paper takes 50.")


def power_of(scaling: Scaling, q: int) -> int:
    """The power of sqrt(2 pi) h that the kernel is divided by."""
    return {"lemma 3": q, "theorem 2": 1, "unit": 0}[scaling]


def _check_height(settings: KernelSettings, q: int) -> None:
    """Refuse, before anything is charged, what floating-point numbers cannot hold.

    The published noise (18) has (sqrt(2 pi) h)^-q with any kernel; the proved one only where the kernel has it.
    """
    power = power_of(settings.scaling, q) if settings.proved else q
    if power * abs(math.log(math.sqrt(2.0 * math.pi) * settings.bandwidth)) > _HIGHEST:
        raise InvalidInput(
            f"bounds: the height of a Gaussian kernel over {q} features, (sqrt(2 pi) h) to the power of minus {q}, is "
            "no number that a computer holds. Declare fewer covariates, or set bandwidth=0.4."
        )


def one_of(argument: str, value: object, allowed: tuple[object, ...]) -> None:
    """Refuse a parameter that is none of these."""
    if value not in allowed:
        raise InvalidInput(f"{argument} must be one of {', '.join(map(repr, allowed))}.")


def protected_unit(split: str | None) -> str:
    """Whose record is protected."""
    return "one record of the second half" if split == "public" else "one record"


def public_facts(given: CommonParameters, split: str | None) -> tuple[str, ...]:
    """What is not protected."""
    public = ["the declared bounds", "the number of records", "the queries", "the basis functions"]
    public += ["the probability of treatment"] if given.propensity is not None else []
    public += ["all records of the first half, which trained the models"] if split == "public" else []
    return tuple(public)
