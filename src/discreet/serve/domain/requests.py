"""What may be asked of a data set, and the estimator that answers it: both by the registry of estimators.

Every kind of request has a model of its own, made from what its entry declares: options as JSON holds them. Columns
besides outcome, treatment and covariates are the data set's; no request names one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import WithJsonSchema

from discreet.data.bounds import Bounds
from discreet.estimators.registry import REGISTRY, Entry, Option
from discreet.exceptions import InvalidInput
from discreet.serve.domain.datasets import Dataset
from discreet.serve.errors import Refusal

# Estimators that people are offered, by the names that requests have for them.
OFFERED: dict[str, Entry] = {entry.request_kind or entry.name: entry for entry in REGISTRY.values() if entry.title}
TITLES: dict[str, str] = {kind: entry.title for kind, entry in OFFERED.items()}
# Where in a request something stands, as problems begin to name it.
_PLACES = ("body", "header", "path", "query")
_OPTIONS = {option.name for entry in OFFERED.values() for option in entry.asks}


def _offered(kind: str) -> str:
    if kind not in OFFERED:
        raise ValueError(f"kind must be one of {', '.join(OFFERED)}: choose one of them.")
    return kind


Kind = Annotated[str, AfterValidator(_offered), WithJsonSchema({"type": "string", "enum": list(OFFERED)})]

# Budgets outside these reveal nothing, or everything; and noise outside them does not fit into 64-bit integers.
LEAST, MOST = 1e-3, 100.0
_LEAST_DELTA = 1e-30


class Asked(BaseModel):
    """A request for a release: what all kinds have in common."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    kind: Kind = Field(description="What to estimate.")
    epsilon: float = Field(ge=LEAST, le=MOST, description="Privacy budget that the release spends.")
    delta: float | None = Field(default=None, ge=0, le=0.5, description="Chance that the budget may be missed.")
    covariates: list[str] | None = Field(
        default=None, max_length=200, description="Covariates to use; all declared ones if left out."
    )

    @property
    def entry(self) -> Entry:
        """What the registry says of it."""
        return OFFERED[self.kind]

    @property
    def options(self) -> dict[str, Any]:
        """What it chooses besides budget and covariates."""
        return options_of(self)

    def plain(self) -> dict[str, Any]:
        """As plain JSON, what was left out left out."""
        plain = self.model_dump(exclude_none=True)
        for option in self.entry.asks:
            if not option.written and plain.get(option.name) == option.default:
                plain.pop(option.name, None)
        return plain


def options_of(asked: BaseModel) -> dict[str, Any]:
    """Those fields of a request or a plan that its kind declares."""
    found = asked.model_dump(exclude_none=True)
    return {option.name: found[option.name] for option in OFFERED[found["kind"]].asks if option.name in found}


def field_of(option: Option, *, needed: bool = False) -> tuple[Any, Any]:
    """An option as a field of a model."""
    limits: dict[str, Any] = {"ge": option.least, "le": option.most}
    default = ... if needed and option.needed else option.default
    kind = option.type if default is ... or option.default is not None else option.type | None
    return kind, Field(default, description=option.help, **{k: v for k, v in limits.items() if v is not None})


def models(base: type[BaseModel], *, needed: bool) -> dict[str, type[BaseModel]]:
    """A model for each kind: what all have in common, and the options that the kind's entry declares."""
    made: dict[str, type[BaseModel]] = {}
    for kind, entry in OFFERED.items():
        fields: dict[str, Any] = {option.name: field_of(option, needed=needed) for option in entry.asks}
        named = base.__name__ + kind.title().replace("-", "")
        default = base.model_fields["kind"].default
        about: Any = Field(default if kind == default else ..., description=entry.help)
        fields["kind"] = (Literal[kind], about)
        made[kind] = create_model(named, __base__=base, __doc__=entry.help, **fields)
    return made


if TYPE_CHECKING:
    AnyAsked = Asked
else:
    AnyAsked = Annotated[Union[tuple(models(Asked, needed=True).values())], Field(discriminator="kind")]  # noqa: UP007
_ANY: TypeAdapter[Asked] = TypeAdapter(AnyAsked)


def asked_of(plain: Mapping[str, Any]) -> Asked:
    """A request from plain JSON; what cannot be one is refused by the name of its first field that does not fit."""
    try:
        return _ANY.validate_python(dict(plain))
    except ValidationError as error:
        raise InvalidInput(first_problem(error.errors())) from None


def first_problem(problems: Any) -> str:
    """What is wrong with a model's first field that does not fit; nothing of the value itself."""
    first = problems[0]
    if first["type"].startswith("union_tag"):
        return f"kind must be one of {', '.join(OFFERED)}: choose one of them."
    name = field_named(first)
    if first["type"] == "extra_forbidden" and name in _OPTIONS:
        return f"{name} belongs to another kind of request: leave it out, or ask for that kind."
    return f"{name}: {first['msg'][:1].lower()}{first['msg'][1:]}."


def field_named(problem: Any) -> str:
    """The field that a problem is about."""
    names = [str(part) for part in problem["loc"] if part not in OFFERED and part not in _PLACES]
    return ".".join(names)[:80] or "the body"


def kinds_for(dataset: Dataset) -> list[str]:
    """Kinds of requests that a data set can answer, by public facts: which columns it declares, and what is private."""
    return [
        kind
        for kind, entry in OFFERED.items()
        if all(column.name in dataset.columns or not column.needed for column in entry.columns)
        and dataset.neighbours in entry.relations
        and (entry.by_record or not isinstance(dataset.propensity, str))
        and (dataset.bounds.p or not entry.needs_covariates)
    ]


def columns_for(dataset: Dataset, entry: Entry) -> dict[str, str]:
    """Columns of a data set that an estimator takes besides outcome, treatment and covariates, by their roles."""
    return {column.name: dataset.columns[column.name] for column in entry.columns if column.name in dataset.columns}


def key_of(dataset: Dataset, asked: Asked) -> str:
    """The same for identical requests on unchanged data, and for no others."""
    text = json.dumps([dataset.id, dataset.version, dataset.fingerprint, asked.plain()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def chosen(bounds: Bounds, covariates: list[str] | None) -> Bounds:
    """The bounds of the chosen covariates."""
    if covariates is None:
        return bounds
    for name in covariates:
        if name not in bounds.declared:
            raise InvalidInput("covariates must name columns of the public schema: choose from those.")
    declared = bounds.declared
    return bounds.declaring({name: spec for name, spec in declared.items() if name in set(covariates)})


def estimator_for(dataset: Dataset, asked: Asked) -> Any:
    """The estimator of a request, after everything about it was checked that public facts decide."""
    entry, bounds, options = asked.entry, chosen(dataset.bounds, asked.covariates), asked.options
    if asked.delta and asked.delta < _LEAST_DELTA:
        raise InvalidInput(f"delta must be 0 or at least {_LEAST_DELTA:g}: leave it out for a pure epsilon.")
    _check(dataset, asked, bounds)
    arguments: dict[str, Any] = {"epsilon": asked.epsilon, "delta": asked.delta, "bounds": bounds}
    arguments["propensity"] = dataset.propensity
    if len(entry.relations) > 1:
        arguments["neighbours"] = dataset.neighbours
    made = entry.load()(**arguments, **entry.asked_arguments(options, bounds))
    made.check()
    return made


def _check(dataset: Dataset, asked: Asked, bounds: Bounds) -> None:
    entry = asked.entry
    if entry.claims(asked.options) and not dataset.claimed:
        raise Refusal("claimed")
    for column in entry.columns:
        if column.needed and column.name not in dataset.columns:
            raise InvalidInput(
                f"kind {asked.kind!r} needs a data set whose curator has declared a column as its {column.name}: "
                "choose another kind, or ask a curator."
            )
    if dataset.neighbours not in entry.relations:
        raise InvalidInput(
            f"kind {asked.kind!r} needs a data set whose number of records is public: choose another kind."
        )
    if not entry.by_record and isinstance(dataset.propensity, str):
        raise InvalidInput(f"kind {asked.kind!r} knows no probability of treatment by record: choose another kind.")
    if entry.needs_covariates and not bounds.p:
        raise InvalidInput("covariates must name at least one column: an effect function needs something to go with.")


def title_of(dataset: Dataset, asked: Asked) -> str:
    """What a release is called."""
    return f"{TITLES[asked.kind]} of {dataset.treatment} on {dataset.outcome}"
