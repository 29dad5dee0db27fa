"""Published methods by the names that the command line calls them: what each calibration sets."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from discreet.exceptions import InvalidInput
from discreet.papers.common.claims import Calibration

# Not to be set by name: they have options of their own, or hold what no command line can say.
_OWN = {"epsilon", "delta", "bounds", "calibration", "model_regression", "model_propensity", "state"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A published method.

    Parameters
    ----------
    name
        Its class in `discreet.papers`.
    proved, published
        Parameters that a calibration sets unless they are given; ``published`` is None where a file could not hold what
        is published so.
    """

    name: str
    proved: Mapping[str, Any] = field(default_factory=dict)
    published: Mapping[str, Any] | None = field(default_factory=dict)


_WORD = {"published": {"calibration": "published"}, "proved": {"calibration": "proved"}}
_EBM = {"published": {"base": "ebm"}}

METHODS = {
    "adum": Method(name="ADUM", **_WORD),
    "two-model": Method(name="TwoModel", **_WORD),
    "propensity-iptw": Method(name="PropensityIPTW", **_WORD),
    "private-ate": Method(
        name="PrivATE",
        proved={"calibration": "proved", "split": "private"},
        published={"calibration": "published"},
    ),
    "s-learner": Method(name="SLearner", **_EBM),
    "t-learner": Method(name="TLearner", **_EBM),
    "dr-learner": Method(name="DRLearner", **_EBM),
    "r-learner": Method(name="RLearner", **_EBM),
    "x-learner": Method(name="XLearner", **_EBM),
    "dp-cate-function": Method(name="DPCATEFunction", proved={"calibration": "proved"}, published=None),
}
"""`DPCATE` is missing: it answers queries, which no option could hold."""


def method_of(name: str, calibration: Calibration, given: Mapping[str, Any], **common: Any) -> Any:
    """The estimator of this name.

    Parameters
    ----------
    name, calibration
        Which method, and what its guarantee rests on.
    given
        Further parameters by name.
    common
        Budget and bounds; those that are None are left out.
    """
    if name not in METHODS:
        raise InvalidInput(f"there is no method {name!r}; choose from {', '.join(METHODS)}.")
    method = METHODS[name]
    usual = method.proved if calibration == "proved" else method.published
    if usual is None:
        raise InvalidInput(
            f"{name} as published keeps a secret to answer new queries with, which is no file to publish: use it from "
            "Python, or --calibration proved."
        )
    kind = getattr(import_module("discreet.papers"), method.name)
    known = [each for each in inspect.signature(kind).parameters if each not in _OWN]
    for each in given:
        if each not in known:
            raise InvalidInput(f"{name} has no parameter {each!r} to set; choose from {', '.join(known)}.")
    given_common = {key: value for key, value in common.items() if value is not None}
    if "delta" in given_common and "delta" not in inspect.signature(kind).parameters:
        raise InvalidInput(f"{name} is of pure epsilon: leave delta out.")
    return kind(**{**usual, **given, **given_common})
