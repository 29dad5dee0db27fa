"""What identical requests have in common, in words that outlive modules, class names and new parameters.

A class says who it is by ``method_id`` in its own body: moved or renamed, it keeps its id; a subclass that does not
define one is somebody else, known by its name and everything that its constructor sets. Other keys hold the parameters
that differ from the constructor's defaults, so that a new parameter changes no key; for the same reason a default may
only change together with the id.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from discreet.data.bounds import Bounds
from discreet.ledger._legacy_keys import ESTIMATORS, VALUES, LegacyName
from discreet.ledger.hash_chain import canonical


class NotPlain(Exception):
    """A parameter that cannot be compared by its value."""


def method_words(estimator: Any) -> dict[str, Any]:
    """Method and parameters of an estimator, as keys hold them."""
    kind, given = type(estimator), estimator.get_params(deep=False)
    if _own_id(kind) is None:
        # Nobody promises that such a class keeps its defaults, so that all of them are part of the key.
        hidden = _hidden(estimator)
        return _named_words(estimator) | ({"attributes": hidden} if hidden else {})
    return {"method": _own_id(kind), "parameters": _changed(given, _defaults(kind), legacy=False)}


def legacy_method_words(estimator: Any) -> dict[str, Any]:
    """The same as in keys from before there were ids; raises `NotPlain` where none can be this one's."""
    if _own_id(type(estimator)) is None and _hidden(estimator):
        # Old keys did not hold them, so that requests which differ had the same key.
        raise NotPlain
    return _named_words(estimator)


def _named_words(estimator: Any) -> dict[str, Any]:
    kind, given = type(estimator), estimator.get_params(deep=False)
    today = LegacyName(f"{kind.__module__}.{kind.__qualname__}", tuple(given))
    name, held = ESTIMATORS.get(_own_id(kind) or "", today)
    return {"method": name, "parameters": _held(given, held, _defaults(kind))}


def declared_names(estimator: Any) -> tuple[str, ...]:
    """Names of the covariates in the order of an estimator's bounds; none where they have no names."""
    bounds = vars(estimator).get("bounds")
    return tuple(bounds.declared) if isinstance(bounds, Bounds) and bounds.named else ()


def as_declared(release: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any] | None:
    """A stored release with its covariates in the order of a request; None where it is known to have had another.

    Ledgers used to sort names, while coefficients, cells and marginals kept the declared order.
    """
    adjusted = release.get("adjustment", {}).get("covariates", ())
    if set(adjusted) == set(names) and tuple(adjusted) != names:
        return None
    bounds = release.get("bounds")
    if bounds is None:
        # Nothing was declared: columns stand in the order of the request.
        return release
    ordered = {name: _ordered(value, names) for name, value in release.items()}
    return ordered | {"bounds": {name: _ordered(value, names) for name, value in bounds.items()}}


def _ordered(value: Any, names: tuple[str, ...]) -> Any:
    """Fields by covariate in the order of these names; anything else as it is."""
    by_name = isinstance(value, dict) and value.keys() == set(names)
    return {name: value[name] for name in names} if by_name else value


def _hidden(estimator: Any) -> dict[str, Any]:
    """What a constructor of somebody's own sets besides its parameters, such as a budget or bounds."""
    given = estimator.get_params(deep=False)
    kept = {name: value for name, value in vars(estimator).items() if name not in given and not name.endswith("_")}
    return {name: plain(value) for name, value in kept.items()}


def plain(value: Any, *, legacy: bool = False) -> Any:
    """A parameter as JSON."""
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, Bounds):
        # What people call columns changes nothing that is computed: a better label costs no budget.
        return {key: fact for key, fact in value.to_dict().items() if key not in ("labels", "units")}
    if isinstance(value, list | tuple):
        return [plain(each, legacy=legacy) for each in value]
    if isinstance(value, Mapping):
        return [[plain(key, legacy=legacy), plain(each, legacy=legacy)] for key, each in value.items()]
    if is_dataclass(value) and not isinstance(value, type):
        return _dataclass_words(value, legacy=legacy)
    raise NotPlain


def _dataclass_words(value: Any, *, legacy: bool) -> dict[str, Any]:
    kind = type(value)
    given = {part.name: getattr(value, part.name) for part in fields(value)}
    known = _own_id(kind)
    if legacy or known is None:
        name, held = VALUES.get(known or "", LegacyName(kind.__name__, tuple(given)))
        return {"is": name} | _held(given, held, _field_defaults(kind))
    return {"is": known} | _changed(given, _field_defaults(kind), legacy=False)


def _own_id(kind: type) -> str | None:
    """The id that a class gives itself; one that it inherits is its parent's."""
    found = vars(kind).get("method_id")
    return found if isinstance(found, str) else None


def _defaults(kind: type) -> dict[str, Any]:
    parameters = inspect.signature(kind).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}


def _field_defaults(kind: Any) -> dict[str, Any]:
    return {part.name: part.default for part in fields(kind) if part.default is not MISSING}


def _changed(given: Mapping[str, Any], defaults: Mapping[str, Any], *, legacy: bool) -> dict[str, Any]:
    """What differs from its default."""
    words = {name: plain(value, legacy=legacy) for name, value in given.items()}
    usual = {name: canonical(plain(value, legacy=legacy)) for name, value in defaults.items()}
    return {name: value for name, value in words.items() if usual.get(name) != canonical(value)}


def _held(given: Mapping[str, Any], held: tuple[str, ...], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that an old key held, if all others are as if they did not exist."""
    if not set(held) <= set(given):
        raise NotPlain
    newer = {name: value for name, value in given.items() if name not in held}
    if _changed(newer, defaults, legacy=True):
        raise NotPlain
    return {name: plain(given[name], legacy=True) for name in held}
