"""Who gets which share of the budget where there are several arms; as `discreet.estimators._allocation`."""

from __future__ import annotations

from discreet.estimators._allocation import LOCATION, QUESTION, Allocation

_BY_HAND = (
    "As for two arms: what prepares has the share of any such question, tails have two, and the score has the rest."
)
# Laplace noise falls with a share and not with its root: as for two arms.
_PURE = 1.5
_TAILS = {"residual tails": 2.0, "clipped excess": 1.0}
_COUNTED = {"arm counts": 1.0, "arm means": 1.0}


def _of(questions: dict[str, float], question: float, parts: dict[str, dict[str, float]]) -> Allocation:
    shares = {name: question * times for name, times in questions.items()}
    return Allocation.of({**shares, "score of all arms": 1.0 - sum(shares.values())}, parts=parts, provenance=_BY_HAND)


_LOCATED = {"location": float(len(LOCATION))} | _COUNTED | _TAILS
_PARTS = {"location": dict(LOCATION)}
ARMS, ARMS_OF_PURE = _of(_LOCATED, QUESTION, _PARTS), _of(_LOCATED, _PURE * QUESTION, _PARTS)


def after_models(left: float, *, known: bool) -> Allocation:
    """Shares of what models of treatment and outcome leave of the budget."""
    questions = (_COUNTED if known else {}) | _TAILS | {"mean prognosis": 1.0}
    return _of(questions, QUESTION / left, {})


# What comes before the names of the rounds of a trial's models.
MODELS = "models: "
# Choice: part of the budget that a trial's models are given, of which they spend two fifths: they only narrow
# intervals, and where noise is most of the width they should not widen it. Of .4, .7 and 1, on two made-up trials of
# 20,000 records and after looking at Hillstrom's: it gave the narrowest intervals on all but one of them.
MODELS_PART = 0.4
