"""Public facts about the records: declared by a person, never read off the data."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from discreet.data._arrays import Level
from discreet.data.binary import BinaryRange, arm_labels, binary_levels
from discreet.data.columns import Levels, Range, finite, is_data
from discreet.data.declared.absent import indicator_of, indicators
from discreet.data.declared.dates import DateRange, is_date
from discreet.data.declared.labels import words_for
from discreet.data.declared.specs import naming, outcome_from_dict, spec_from_dict, spec_to_dict, table_of
from discreet.data.declared.toml import toml_key, toml_value
from discreet.data.notebooks.card import Carded
from discreet.data.views.weight import weight_range
from discreet.exceptions import InvalidInput, MissingBounds

__all__ = ["Bounds", "Level", "Levels", "Range"]

Spec: TypeAlias = Range | Levels
_KEYS = {"outcome", "propensity", "treatment", "covariates", "weight", "labels", "units"}
Fact = TypeVar("Fact")
Declared: TypeAlias = Spec | tuple[float, float] | list[str] | list[int] | list[float] | list[bool] | list[Level]


@dataclass(frozen=True, slots=True)
class _Named(Mapping[str, Fact], Generic[Fact]):
    """A dictionary that cannot change, so that bounds stay facts."""

    items_: tuple[tuple[str, Fact], ...]

    def __getitem__(self, name: str) -> Fact:
        return dict(self.items_)[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.items_)

    def __len__(self) -> int:
        return len(self.items_)

    def __repr__(self) -> str:
        return repr(dict(self.items_))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds(Carded):
    """Outcome range, covariate ranges and levels, and overlap.

    Values outside a range are clipped to it, so a guess that is too narrow costs accuracy and never privacy.

    Parameters
    ----------
    outcome : (low, high) or [no event, event]
        A tuple is the range of the outcome. A list declares a binary outcome by its two labels, such as ``[0, 1]`` or
        ``["no", "yes"]``: the second is the event, and effects are differences of its probability. Records with
        any other outcome are refused.
    covariates : dict or list, optional
        By name or position: a pair ``(low, high)`` of numbers or dates (``"2020-01-31"``), or a list of levels.
    propensity : (low, high), default (0.05, 0.95)
        Smallest and largest probability of treatment.
    treatment : (control, treated) or list of labels, optional
        The labels of the treatment column, the control first, if they are not 0 and 1 or booleans. More than two
        declare several arms, which `ATE`, `DifferenceInMeans` and `Uplift` compare with each other.
    outcome_fill : float, or a label, optional
        What a missing outcome counts as. Without it, missing outcomes are refused.
    weight : (0, most), optional
        Range of the survey weights, where there are some: a record with a weight beyond it is refused.
    labels, units : dict, optional
        What people call columns and in what they are measured, for titles, tables and plots: by ``"outcome"``,
        ``"treatment"`` and the names of covariates (``x0``, ``x1``, ... by position; a covariate that is named
        outcome or treatment has none). Nothing is computed from them, and bounds that differ in nothing else are equal.

    Privacy
    -------
    Everything here is public and appears in releases. Bounds computed from the records would leak them.

    Examples
    --------
    >>> import discreet as dc
    >>> bounds = dc.Bounds(outcome=(0, 40), covariates={"age": (18, 95), "sex": ["f", "m"]})
    >>> bounds.names, bounds.outcome_width
    (('age', 'sex'), 40.0)
    >>> print(bounds.to_toml())
    outcome = {low = 0.0, high = 40.0}
    propensity = {low = 0.05, high = 0.95}
    <BLANKLINE>
    [covariates.age]
    low = 18.0
    high = 95.0
    <BLANKLINE>
    [covariates.sex]
    levels = ["f", "m"]

    A binary outcome is the range (0, 1) to everything that computes:

    >>> died = dc.Bounds(outcome=["no", "yes"])
    >>> died.binary, died.outcome_width, died.outcome == (0, 1)
    (True, 1.0, True)
    >>> died.outcome
    ['no', 'yes']
    """

    # The default exists so that a forgotten outcome is MissingBounds, which says what to do, and no TypeError.
    outcome: tuple[float, float] = None  # type: ignore[assignment]
    covariates: Mapping[str, Declared] | Sequence[Declared] | None = None
    propensity: tuple[float, float] = (0.05, 0.95)
    treatment: tuple[Level, ...] | None = None
    outcome_fill: Level | None = None
    weight: tuple[float, float] | None = None
    labels: Mapping[str, str] | None = field(default=None, repr=False, compare=False)
    units: Mapping[str, str] | None = field(default=None, repr=False, compare=False)
    # Follows from the outcome. It is a field so that [0, 1] and (0, 1), whose numbers are the same, are not equal.
    outcome_levels: Levels | None = field(default=None, init=False, repr=False)

    if TYPE_CHECKING:
        # An outcome may be declared as a list, and is always read as a pair of numbers.
        def __init__(
            self,
            *,
            outcome: tuple[float, float] | list[str] | list[int] | list[float] | list[bool] = ...,
            covariates: Mapping[str, Declared] | Sequence[Declared] | None = None,
            propensity: tuple[float, float] = (0.05, 0.95),
            treatment: tuple[Level, ...] | list[str] | list[int] | list[float] | None = None,
            outcome_fill: Level | None = None,
            weight: tuple[float, float] | None = None,
            labels: Mapping[str, str] | None = None,
            units: Mapping[str, str] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.outcome is None:
            raise MissingBounds(
                "Bounds needs outcome=(low, high), the outcome's range: declare it, do not compute it from the data."
            )
        with naming("outcome"):
            levels = binary_levels(self.outcome, self.outcome_fill)
            outcome = _range(self.outcome, self.outcome_fill) if levels is None else None
        with naming("propensity"):
            low, high = (finite(end, "each end") for end in _pair(self.propensity))
            if not 1e-6 <= low < high <= 1 - 1e-6:
                raise InvalidInput(
                    "It needs 0 < low < high < 1, a millionth from either end: use (0.05, 0.95) if you are not sure."
                )
        if self.weight is not None:
            with naming("weight"):
                object.__setattr__(self, "weight", weight_range(_pair(self.weight)))
        with naming("treatment"):
            object.__setattr__(self, "treatment", arm_labels(self.treatment))
        if outcome is not None:
            object.__setattr__(self, "outcome", (outcome.low, outcome.high))
            object.__setattr__(self, "outcome_fill", outcome.fill)
        if levels is not None:
            object.__setattr__(self, "outcome", BinaryRange(levels.levels))
            object.__setattr__(self, "outcome_fill", levels.fill)
        object.__setattr__(self, "outcome_levels", levels)
        object.__setattr__(self, "propensity", (low, high))
        object.__setattr__(self, "covariates", _covariates(self.covariates))
        self.names  # noqa: B018 - refuses indicators whose names are taken
        for key in ("labels", "units"):
            if (given := getattr(self, key)) is not None:
                object.__setattr__(self, key, _Named(words_for(key, given, tuple(self.declared))))

    @property
    def named(self) -> bool:
        """Whether covariates are declared by name rather than by position."""
        return isinstance(self.covariates, _Named)

    @property
    def declared(self) -> dict[str, Spec]:
        """What each column of covariates is declared to hold, by its name (``x0``, ... if declared by position)."""
        if isinstance(self.covariates, _Named):
            return dict(self.covariates)
        specs: Any = self.covariates
        return {f"x{j}": spec for j, spec in enumerate(specs)}

    @property
    def sources(self) -> tuple[int, ...]:
        """The column that each covariate is read from: indicators of missing values come last."""
        specs: Any = self.covariates.values() if isinstance(self.covariates, _Named) else self.covariates
        found = range(len(specs))
        return (*found, *(k for k, spec in enumerate(specs) if spec.missing is not None))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates, those of indicators last."""
        declared = self.declared
        return (*declared, *(name for name, _ in indicators(list(declared), list(declared.values()))))

    @property
    def columns(self) -> tuple[Spec, ...]:
        """What each covariate holds, in the order of ``names``."""
        specs = tuple(self.declared.values())
        return (*specs, *(indicator_of(spec) for spec in specs if spec.missing is not None))

    @property
    def p(self) -> int:
        """Number of covariates, indicators included."""
        return len(self.sources)

    @property
    def binary(self) -> bool:
        """Whether the outcome is declared by two labels."""
        return self.outcome_levels is not None

    @property
    def outcome_column(self) -> Spec:
        """The outcome as its column holds it: two labels, the event second, or numbers in a range."""
        return self.outcome_range if self.outcome_levels is None else self.outcome_levels

    @property
    def outcome_range(self) -> Range:
        """The outcome as a column of numbers, which of a binary one are 0 and 1."""
        fill: Any = self.outcome_fill
        if self.outcome_levels is not None and fill is not None:
            fill = self.outcome_levels.levels.index(fill)
        return Range(*self.outcome, fill=fill)

    @property
    def outcome_width(self) -> float:
        """Length of the outcome's range."""
        return self.outcome_range.width

    @property
    def outcome_middle(self) -> float:
        """Centre of the outcome's range."""
        return self.outcome_range.middle

    @property
    def arms(self) -> Levels:
        """The treatment as a column of levels, control first."""
        return Levels(self.treatment or (0, 1))

    @property
    def several_arms(self) -> bool:
        """Whether there are more than two arms."""
        return self.treatment is not None and len(self.treatment) > 2

    def label(self, name: str, default: str | None = None) -> str:
        """What people call ``"outcome"``, ``"treatment"`` or a covariate; the default, or its name, if nobody said."""
        return (self.labels or {}).get(name) or (name if default is None else default)

    def unit(self, name: str) -> str:
        """The unit of a column; empty if nobody said."""
        return (self.units or {}).get(name, "")

    def declaring(self, covariates: Any) -> "Bounds":
        """The same with other covariates, and the labels and units of those that are left."""
        rest = {"outcome", "treatment", *(covariates if isinstance(covariates, Mapping) else ())}
        kept = [
            {name: text for name, text in (words or {}).items() if name in rest} for words in (self.labels, self.units)
        ]
        return replace(self, covariates=covariates, labels=kept[0], units=kept[1])

    def capped(self, cap: float) -> "Bounds":
        """The same where larger outcomes count as ``cap``, and so does a larger fill."""
        fill: Any = self.outcome_fill
        return replace(self, outcome=(self.outcome[0], cap), outcome_fill=None if fill is None else min(fill, cap))

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        out: dict[str, Any] = {
            "outcome": spec_to_dict(self.outcome_column),
            "propensity": {"low": self.propensity[0], "high": self.propensity[1]},
        }
        if self.treatment is not None:
            labels = list(self.treatment)
            two = {"control": labels[0], "treated": labels[1]}
            out["treatment"] = {"arms": labels} if self.several_arms else two
        if self.weight is not None:
            out["weight"] = {"low": self.weight[0], "high": self.weight[1]}
        out |= {key: dict(words) for key, words in (("labels", self.labels), ("units", self.units)) if words}
        if not self.named:
            out["covariates"] = [spec_to_dict(spec) for spec in self.declared.values()]
        elif self.p:
            out["covariates"] = {name: spec_to_dict(spec) for name, spec in self.declared.items()}
        return out

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> "Bounds":
        """Bounds from what ``to_dict`` wrote; keys that it does not know are refused by name."""
        facts = table_of(
            "The bounds", facts, {"outcome", "propensity", "treatment", "covariates", "weight", "labels", "units"}
        )
        given: dict[str, Any] = {}
        if "outcome" in facts:
            given |= outcome_from_dict(facts["outcome"])
        for key in ("propensity", "weight"):
            if key in facts:
                pair = table_of(key, facts[key], {"low", "high"}, {"low", "high"})
                given[key] = (pair["low"], pair["high"])
        if "treatment" in facts:
            several = isinstance(facts["treatment"], Mapping) and "arms" in facts["treatment"]
            keys = ("arms",) if several else ("control", "treated")
            labels = table_of("treatment", facts["treatment"], set(keys), set(keys))
            given["treatment"] = labels["arms"] if several else tuple(labels[key] for key in keys)
        covariates = facts.get("covariates", {})
        if isinstance(covariates, list):
            given["covariates"] = [spec_from_dict(f"covariate {j}", spec) for j, spec in enumerate(covariates)]
        else:
            covariates = table_of("covariates", covariates)
            given["covariates"] = {
                name: spec_from_dict(f"covariate {name!r}", spec) for name, spec in covariates.items()
            }
        given |= {key: table_of(key, facts[key]) for key in ("labels", "units") if key in facts}
        return cls(**given)

    def to_toml(self) -> str:
        """The text of a bounds file."""
        facts = self.to_dict()
        covariates = facts.pop("covariates", {})
        lines = [f"{key} = {toml_value(value)}" for key, value in facts.items()]
        if covariates == []:
            lines.append("covariates = []")
        for name in covariates:
            head = f"[covariates.{toml_key(name)}]" if self.named else "[[covariates]]"
            spec = covariates[name] if self.named else name
            lines += ["", head, *(f"{key} = {toml_value(value)}" for key, value in spec.items())]
        return "\n".join(lines) + "\n"

    def card_text(self) -> str:
        """What notebooks show: the text of a bounds file."""
        return f"public facts, declared\n{self.to_toml()}"

    @classmethod
    def from_toml(cls, text: str) -> "Bounds":
        """Bounds from the text of a bounds file."""
        try:
            facts = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidInput(f"The bounds are not valid TOML: {error}.") from None
        return cls.from_dict(facts)

    def save(self, path: str | Path) -> None:
        """Write a bounds file."""
        Path(path).write_bytes(self.to_toml().encode())

    @classmethod
    def load(cls, path: str | Path) -> "Bounds":
        """Read a bounds file."""
        try:
            text = Path(path).read_bytes().decode()
        except FileNotFoundError:
            raise InvalidInput(f"There is no bounds file {str(path)!r}: check the path.") from None
        except UnicodeDecodeError:
            raise InvalidInput(f"The bounds file {str(path)!r} is not UTF-8 text: save it as TOML.") from None
        return cls.from_toml(text)


def _pair(value: object) -> tuple[Any, Any]:
    if is_data(value):
        raise InvalidInput("Bounds are two numbers, not data: declare them, do not compute them from the records.")
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidInput(
            "Bounds are a pair (low, high) of numbers: declare them, do not compute them from the records."
        )
    return value[0], value[1]


def _covariates(declared: object) -> _Named[Spec] | tuple[Spec, ...]:
    if declared is None:
        return _Named(())
    if isinstance(declared, Mapping):
        for name in declared:
            if not isinstance(name, str) or not name:
                raise InvalidInput("covariates must be named by text: name each column, or give a list of bounds.")
        return _Named(tuple((name, _spec(f"covariate {name!r}", spec)) for name, spec in declared.items()))
    if is_data(declared) or not isinstance(declared, list | tuple):
        raise InvalidInput(
            "covariates takes a dictionary from names to bounds, or a list of bounds, not data: "
            "declare them, do not compute them from the records."
        )
    return tuple(_spec(f"covariate {j}", spec) for j, spec in enumerate(declared))


def _spec(argument: str, declared: object) -> Spec:
    if isinstance(declared, Range | Levels):
        return declared
    with naming(argument):
        if isinstance(declared, list):
            return Levels(tuple(declared))
        return _range(declared)


def _range(declared: object, fill: Any = None) -> Range:
    if isinstance(declared, tuple) and len(declared) == 2 and all(map(is_date, declared)):
        return DateRange(*declared, fill=fill)
    if isinstance(declared, tuple) and any(isinstance(end, str) for end in declared):
        raise InvalidInput("A tuple is a range of numbers, or of dates like 2020-01-31: write levels as a list.")
    return Range(*_pair(declared), fill=fill)
