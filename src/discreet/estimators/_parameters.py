"""Parameters of estimators, by scikit-learn's rules and without importing scikit-learn; columns that few of them take.

``sklearn.base`` loads statistics, pandas and threads of its own: more time than a plan takes. scikit-learn asks an
estimator for methods, not for a parent, so that ``sklearn.base.clone`` and whatever rests on it works.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, isclass, signature
from typing import Any, Self, TypedDict, cast

import numpy as np

from discreet.data.bounds import Bounds
from discreet.data.columns import Levels, Range, is_data
from discreet.data.notebooks.card import card
from discreet.data.records import Further
from discreet.exceptions import InvalidInput
from discreet.ledger.charging import Payment

# How much of itself an estimator shows, in characters: as much as one of scikit-learn.
_SHOWN = 700
# Longer lists may be columns.
_LISTED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A column that an estimator takes besides outcome, treatment and covariates.

    Parameters
    ----------
    name
        What ``fit_table`` calls it, and `Chunk.more`.
    argument
        What ``fit`` calls it.
    help
        What it is, for people.
    declared
        What it holds, by the bounds.
    needed
        Whether it may not be left out.
    """

    name: str
    argument: str
    help: str
    declared: Callable[[Bounds], Range | Levels]
    needed: bool = True

    def column(self, bounds: Bounds) -> Further:
        """The column as records hold it."""
        return Further(self.name, self.declared(bounds))

    def named_in(self, method: str) -> str:
        """What ``fit`` or ``fit_table`` calls it."""
        return self.argument if method == "fit" else self.name


NO_COLUMNS: Mapping[Role, Any] = {}


class FurtherColumns(TypedDict, total=False):
    """Columns that some estimators take besides outcome, treatment and covariates: `Role` says which one means what."""

    before: str
    event: str
    instrument: str
    weight: str


class FitOptions(Payment, total=False):
    """Keyword arguments of ``fit`` besides outcome, treatment and covariates; the first are for those with a `Role`."""

    before: Any
    event: Any
    Z: Any
    sample_weight: Any


class TableOptions(FurtherColumns, Payment, total=False):
    """Keyword arguments of ``fit_table`` besides the names of columns; `TableFits.fit_table` says what they mean."""

    where: Mapping[str, Any] | None
    unit: str | None
    max_rows: int | None
    sample_by: str | None
    relation: str | None
    query: str | None
    workers: int | None
    na: Sequence[str | float] | str | float | None
    delimiter: str | None
    decimal: str | None
    encoding: str | None


# Those that all estimators take.
TABLE_OPTIONS = TableOptions.__optional_keys__ - FurtherColumns.__optional_keys__


def further_columns(estimator: object, roles: Iterable[Role], method: str, given: Mapping[str, Any]) -> dict[Role, Any]:
    """What was given for each role; a column that is needed and missing is refused."""
    found = {role: given.get(role.named_in(method)) for role in roles}
    for role, value in found.items():
        if value is None and role.needed:
            raise InvalidInput(
                f"{type(estimator).__name__} needs {role.named_in(method)}=, {role.help}: {method} takes it beside the "
                "outcome and the treatment."
            )
    return {role: value for role, value in found.items() if value is not None}


def payment_of(options: Mapping[str, Any]) -> Payment:
    """Those of the keyword arguments that belong to a ledger."""
    return cast(Payment, {name: value for name, value in options.items() if name in Payment.__optional_keys__})


def refuse_unknown(method: str, given: Mapping[str, object], known: Collection[str]) -> None:
    """Refuse keyword arguments that a method does not take."""
    for name in given:
        if name not in known:
            allowed = ", ".join(sorted(known))
            raise InvalidInput(f"{method} does not take {name}=: besides its own arguments it takes {allowed}.")


class Parameters:
    """An estimator whose parameters are the arguments of its constructor, which stores them and does nothing else."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Names of the parameters, in alphabetical order; scikit-learn's name for it."""
        return sorted(cls._declared())

    @classmethod
    def _declared(cls) -> dict[str, Parameter]:
        """The constructor's arguments."""
        return {name: each for name, each in signature(cls.__init__).parameters.items() if name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by their names.

        Parameters
        ----------
        deep : bool, default True
            Whether parameters of models that are parameters are listed as well, as "model__parameter".
        """
        found: dict[str, Any] = {}
        for name in self._get_param_names():
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isclass(value):
                found |= {f"{name}__{inner}": each for inner, each in value.get_params().items()}
            found[name] = value
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters by their names; "model__parameter" sets one of a model that is a parameter."""
        known = self._get_param_names()
        inner: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for key in params:
            name = key.partition("__")[0]
            if name not in known:
                raise InvalidInput(f"{type(self).__name__} has no parameter {name}: it takes {', '.join(known)}.")
        for key, value in params.items():
            name, nested, rest = key.partition("__")
            if nested:
                inner[name][rest] = value
            else:
                setattr(self, name, value)
        for name, given in inner.items():
            getattr(self, name).set_params(**given)
        return self

    def __repr__(self) -> str:
        """The parameters that are not at their defaults."""
        given = ", ".join(f"{name}={value}" for name, value in self._given())
        text = f"{type(self).__name__}({given})"
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}...{text[-_SHOWN // 2 :]}"

    def _repr_html_(self) -> str:
        """What notebooks show: parameters, and of a fitted estimator estimate, interval and guarantee above them."""
        from discreet.releases.notebooks.card import card_rows

        name, release = type(self).__name__, vars(self).get("release_")
        if release is None:
            return card(f"{name}, not fitted", self._given())
        given = "\n".join(f"{name}={value}" for name, value in self._given())
        return card(name, card_rows(release), given, "parameters")

    def _given(self) -> list[tuple[str, str]]:
        """Parameters that are not at their defaults, as text; of arrays, which hold records, the kind alone."""
        return [
            (name, f"<{type(value).__name__}>" if _holds_records(value) else repr(value))
            for name, value in self.get_params(deep=False).items()
            if not _same(value, self._declared()[name].default)
        ]

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of every estimator; it is there when it asks."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))


def _holds_records(value: object) -> bool:
    long = isinstance(value, list | tuple) and len(value) > _LISTED
    return long or (is_data(value) and not isinstance(value, np.generic))


def _same(value: Any, default: Any) -> bool:
    """Whether a parameter is at its default; never asked of arrays, which compare by element."""
    return value is default or (type(value) is type(default) and repr(value) == repr(default))
