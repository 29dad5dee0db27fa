"""What can be audited: estimators with `fit` and a guarantee, and foreign mechanisms behind a small adapter."""

from __future__ import annotations

import copy
import json
import math
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Complex, Real
from typing import Any

import numpy as np

from discreet.audit._neighbours import Table, labelled
from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.records import Chunk
from discreet.data.views.weight import WEIGHT
from discreet.exceptions import InvalidInput
from discreet.papers.common.claims import UnprovedClaim
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Neighbours

RELATIONS: tuple[Neighbours, ...] = ("replace-one", "add-remove")
# Parts of a release file that are public, or follow from public numbers.
_PUBLIC = {"format", "version", "guarantee", "bounds"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """A mechanism that is not of this library.

    Parameters
    ----------
    run
        From a data set to what is published: numbers, arrays, lists or dictionaries of them. It must draw fresh noise
        in every call.
    epsilon, delta
        What it claims.
    pair
        Two neighbouring data sets, of whatever type ``run`` takes.
    neighbours
        The relation that it claims, and under which the pair is one.
    name
        For people.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet as dc
    >>> rng = np.random.default_rng(0)
    >>> noisy = dc.audit.Mechanism(run=lambda rows: sum(rows) + rng.laplace(), epsilon=1.0, pair=([0, 1], [1, 1]))
    >>> dc.audit(noisy, trials=200).verdict
    'no violation found'
    """

    run: Callable[[Any], Any]
    epsilon: float
    pair: tuple[Any, Any]
    delta: float | None = None
    neighbours: Neighbours = "replace-one"
    name: str = "a foreign mechanism"

    def __post_init__(self) -> None:
        Budget(epsilon=self.epsilon, delta=self.delta)
        if not callable(self.run):
            raise InvalidInput("run must be callable: give a function from a data set to what is published.")
        if not isinstance(self.pair, tuple) or len(self.pair) != 2:
            raise InvalidInput("pair must hold two neighbouring data sets: give (one, other).")
        if self.neighbours not in RELATIONS:
            raise InvalidInput(f"neighbours must be {' or '.join(map(repr, RELATIONS))}: say how the pair differs.")


def stated(estimator: Any, name: str, otherwise: Any) -> Any:
    """A parameter of an estimator, or ``otherwise`` where it has none of that name.

    The one place where a parameter may be missing: estimators of others are audited as they are, and a paper's method
    has the parameters that its paper knows.
    """
    return getattr(estimator, name, otherwise)


def relation_of(estimator: Any) -> Neighbours:
    """The relation under which an estimator promises privacy; replacing a record, where it does not say."""
    relation: Neighbours = stated(estimator, "neighbours", "replace-one")
    return relation


def propensity_of(estimator: Any) -> float | None:
    """The known probability of treatment, if there is one."""
    known = stated(estimator, "propensity", None)
    # Those of several arms do not come with the records.
    return None if known is None or not isinstance(known, Real) else float(known)


def with_fixed_parts(estimator: Any) -> Any:
    """An estimator that puts the same records into the same parts in every fit: which are where is public."""
    # Of learners that share code, some take no random_state and have none to fix.
    parameters = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    return fresh(estimator, random_state=0) if parameters.get("random_state", 0) is None else estimator


def claimed_budget(estimator: Any) -> Budget:
    """What an estimator is asked to keep to."""
    if not hasattr(estimator, "epsilon"):
        raise InvalidInput("estimator states no epsilon, so that there is no claim to audit: give it one.")
    return Budget(epsilon=estimator.epsilon, delta=stated(estimator, "delta", None))


def bounds_of(estimator: Any) -> Bounds:
    """The public facts that an estimator holds."""
    bounds = stated(estimator, "bounds", None)
    if not isinstance(bounds, Bounds) or not hasattr(estimator, "fit"):
        raise InvalidInput(
            "estimator must have fit and bounds=Bounds(...), or be an audit.Mechanism with a pair of data sets."
        )
    if len(bounds.sources) > len(bounds.declared):
        raise InvalidInput(
            'an audit makes up records, of which none is missing: declare bounds without missing="indicator", which '
            "puts one covariate more beside others."
        )
    propensity = stated(estimator, "propensity", None)
    single = isinstance(propensity, Real) and not isinstance(propensity, bool)
    # Of several arms the estimator keeps the probabilities, and checks them.
    if propensity is not None and not single and not bounds.several_arms:
        raise InvalidInput("an audit brings its own records: give propensity as one number, or leave it out.")
    return bounds


class LastColumns:
    """An estimator with further columns, fitted to records that hold these as their last covariates.

    So that whoever makes up, changes and exchanges records need not know of them.
    """

    def __init__(self, estimator: Any) -> None:
        self.roles = _wanted(estimator)
        declared = [role.declared(estimator.bounds) for role in self.roles]
        self.estimator = estimator
        self.bounds = estimator.bounds.declaring([*estimator.bounds.columns, *declared])
        self.epsilon, self.delta = estimator.epsilon, estimator.delta
        self.propensity, self.neighbours = estimator.propensity, estimator.neighbours

    def fit(self, Y: Any, T: Any, X: Any, **paid: Any) -> Any:
        """The estimator itself, fitted."""
        p = self.estimator.bounds.p
        further = {role.argument: np.array(X[:, p + k].tolist()) for k, role in enumerate(self.roles)}
        return fresh(self.estimator).fit(Y, T, X=X[:, :p] if p else None, **further, **paid)

    def split(self, chunk: Chunk) -> Chunk:
        """Encoded records as the estimator's questions see them: further columns for themselves."""
        p = self.estimator.bounds.p
        more = {role.name: chunk.x[:, p + k] for k, role in enumerate(self.roles)}
        return chunk._replace(x=chunk.x[:, :p], more=more)


def as_asked(estimator: Any) -> Callable[[Chunk], Chunk]:
    """From encoded records as an audit makes them up to those that the estimator's questions see."""
    return estimator.split if isinstance(estimator, LastColumns) else _unchanged


def _unchanged(chunk: Chunk) -> Chunk:
    return chunk


def in_last_columns(estimator: Any) -> Any:
    """The same, if it states a budget, but that further columns are among the covariates."""
    claimed_budget(estimator)
    return LastColumns(estimator) if _wanted(estimator) else estimator


def _wanted(estimator: Any) -> list[Any]:
    """Further columns that it cannot do without; weights are such a one where bounds declare them."""
    roles = stated(estimator, "roles", ())
    return [role for role in roles if role.needed or (role.name == WEIGHT and estimator.bounds.weight is not None)]


def fresh(estimator: Any, **given: Any) -> Any:
    """An estimator of the same parameters that has not been fitted."""
    if isinstance(estimator, LastColumns):
        return LastColumns(fresh(estimator.estimator, **given))
    if not hasattr(estimator, "get_params"):
        made = copy.deepcopy(estimator)
        for name, value in given.items():
            setattr(made, name, value)
        return made
    made = _unfitted(estimator)
    return made.set_params(**given) if given else made


def _unfitted(value: Any) -> Any:
    """What scikit-learn's ``clone`` makes of an estimator or of a parameter, without scikit-learn."""
    if isinstance(value, type) or not hasattr(value, "get_params"):
        return copy.deepcopy(value)
    return type(value)(**{name: _unfitted(own) for name, own in value.get_params(deep=False).items()})


def fitted(estimator: Any, table: Table, **extra: Any) -> Any:
    """A fresh estimator, fitted; that claims are no proofs is known here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedClaim)
        x = table.x if table.x.shape[1] else None
        return fresh(estimator).fit(labelled(table.y, estimator.bounds), table.t, X=x, **extra)


def name_of(estimator: Any) -> str:
    """What people call an estimator."""
    if isinstance(estimator, Mechanism):
        return estimator.name
    kind = type(estimator.estimator if isinstance(estimator, LastColumns) else estimator)
    return f"papers.{kind.__name__}" if ".papers." in kind.__module__ else kind.__name__


def numbers_of(output: Any) -> dict[str, float]:
    """Every number of an output, by where it stands; texts count as numbers that say whether they are the same.

    A fitted estimator publishes its ``release_`` and whatever else it keeps in attributes that end in "_".
    """
    found: dict[str, float] = {}
    if hasattr(output, "fit"):
        own = vars(output).items() if hasattr(output, "__dict__") else ()
        kept = {name: value for name, value in own if name.endswith("_") and not name.startswith("_")}
        _walk({name: value for name, value in kept.items() if name != "release_"}, "", found)
        output = stated(output, "release_", None)
    if hasattr(output, "to_dict"):
        output = {key: value for key, value in output.to_dict().items() if key not in _PUBLIC}
    if output is not None:
        _walk(output, "", found)
    if not found:
        raise InvalidInput(
            "the mechanism publishes no numbers that an audit could compare: return numbers, arrays, lists or "
            "dictionaries of them, or keep them in attributes that end in '_'."
        )
    return found


def _walk(value: Any, path: str, found: dict[str, float]) -> None:
    if isinstance(value, Mapping):
        for key, part in value.items():
            _walk(part, f"{path}.{key}", found)
    elif isinstance(value, bool | str) or value is None:
        found[path] = float(zlib.crc32(json.dumps(value).encode()))
    elif isinstance(value, Real):
        found[path] = float(value)
    elif isinstance(value, Complex):
        found[f"{path}.real"], found[f"{path}.imag"] = float(value.real), float(value.imag)
    elif isinstance(value, np.ndarray):
        _walk(value.ravel().tolist(), path, found)
    elif isinstance(value, list | tuple):
        for place, part in enumerate(value):
            _walk(part, f"{path}[{place}]", found)


def names_of(outputs: list[dict[str, float]]) -> list[str]:
    """What the columns of `rows_of` are."""
    paths = dict.fromkeys(path for output in outputs for path in output)
    return [*(path.removeprefix(".") or "the number" for path in paths), "how many numbers there are"]


def rows_of(outputs: list[dict[str, float]]) -> Float:
    """Outputs as rows of one matrix; where a number is missing there is a zero, and how many there are is a column."""
    columns = list(dict.fromkeys(path for output in outputs for path in output))
    rows = np.zeros((len(outputs), len(columns) + 1))
    for row, output in zip(rows, outputs, strict=True):
        row[:-1] = [_finite(output.get(path, 0.0)) for path in columns]
        row[-1] = len(output)
    return rows


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.copysign(1e300, value) if value == value else -1e299
