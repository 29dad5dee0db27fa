"""What analysts may ask for: checked against public facts alone, before anything is reserved."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from discreet.data.bounds import Bounds
from discreet.data.partition import Partition
from discreet.estimators._effect_allocation import MOST_SEGMENTS
from discreet.estimators.registry import REGISTRY, Entry
from discreet.exceptions import InvalidInput
from discreet.serve.domain.datasets import Dataset
from discreet.serve.errors import Refusal

# Estimators that people are offered, by the names that requests have for them.
OFFERED: dict[str, Entry] = {entry.request_kind or entry.name: entry for entry in REGISTRY.values() if entry.title}
TITLES: dict[str, str] = {kind: entry.title for kind, entry in OFFERED.items()}


def _offered(kind: str) -> str:
    if kind not in OFFERED:
        raise ValueError(f"kind must be one of {', '.join(OFFERED)}: choose one of them.")
    return kind


Kind = Annotated[str, AfterValidator(_offered), WithJsonSchema({"type": "string", "enum": list(OFFERED)})]
Cut = Annotated[int, Field(ge=2, le=64)] | Literal["auto", "levels"] | list[float] | list[list[str | float]]

# Budgets outside these reveal nothing, or everything; and noise outside them does not fit into 64-bit integers.
LEAST, MOST = 1e-3, 100.0
_LEAST_DELTA = 1e-30


class Asked(BaseModel):
    """A request for a release."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    kind: Kind = Field(description="What to estimate.")
    epsilon: float = Field(ge=LEAST, le=MOST, description="Privacy budget that the release spends.")
    delta: float | None = Field(default=None, ge=0, le=0.5, description="Chance that the budget may be missed.")
    covariates: list[str] | None = Field(
        default=None, max_length=200, description="Covariates to use; all declared ones if left out."
    )
    by: dict[str, Cut] | None = Field(
        default=None, max_length=6, description="Segments of 'uplift': a number of cuts, 'auto', 'levels' or edges."
    )
    calibration: Literal["proved", "claimed"] = Field(
        default="proved", description="Of 'dp-cate': proved, or as its authors claim, where the data set admits it."
    )

    def plain(self) -> dict[str, Any]:
        """As plain JSON, what was left out left out."""
        plain = self.model_dump(exclude_none=True)
        if self.kind != "dp-cate":
            del plain["calibration"]
        return plain


def key_of(dataset: Dataset, asked: Asked) -> str:
    """The same for identical requests on unchanged data, and for no others."""
    text = json.dumps([dataset.id, dataset.version, dataset.fingerprint, asked.plain()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def chosen(bounds: Bounds, covariates: list[str] | None) -> Bounds:
    """The bounds of the chosen covariates."""
    if covariates is None:
        return bounds
    for name in covariates:
        if name not in bounds.names:
            raise InvalidInput("covariates must name columns of the public schema: choose from those.")
    declared: Any = dict(zip(bounds.names, bounds.columns, strict=True))
    return bounds.declaring({name: spec for name, spec in declared.items() if name in set(covariates)})


def estimator_for(dataset: Dataset, asked: Asked) -> Any:
    """The estimator of a request, after everything about it was checked that public facts decide."""
    bounds = chosen(dataset.bounds, asked.covariates)
    if asked.delta and asked.delta < _LEAST_DELTA:
        raise InvalidInput(f"delta must be 0 or at least {_LEAST_DELTA:g}: leave it out for a pure epsilon.")
    common: dict[str, Any] = {"epsilon": asked.epsilon, "delta": asked.delta, "bounds": bounds}
    if asked.kind != "uplift" and asked.by is not None:
        raise InvalidInput("by belongs to effects by segment: leave it out, or ask for kind 'uplift'.")
    if asked.kind == "dp-cate":
        made = _dp_cate(dataset, asked, common)
    else:
        common |= {"propensity": dataset.propensity, "neighbours": dataset.neighbours}
        if asked.kind == "uplift":
            _check_segments(asked, bounds)
            common["by"] = asked.by or {}
        made = OFFERED[asked.kind].load()(**common)
    if asked.kind == "cate" and not bounds.p:
        raise InvalidInput("covariates must name at least one column: an effect function needs something to go with.")
    made.check()
    return made


def _check_segments(asked: Asked, bounds: Bounds) -> None:
    if not asked.by:
        raise InvalidInput("by must declare segments, for example {'age': 8}: name a covariate and its cuts.")
    # How many parts "auto" makes is a rule that no edges break; whatever else is declared is checked here.
    cuts = {name: 2 if cut == "auto" else cut for name, cut in asked.by.items()}
    if Partition.of(cuts, bounds).count > MOST_SEGMENTS:
        raise InvalidInput(f"by makes more than {MOST_SEGMENTS} segments: cut more coarsely.")


def _dp_cate(dataset: Dataset, asked: Asked, common: dict[str, Any]) -> Any:
    from discreet.papers import DPCATEFunction

    if asked.calibration == "claimed" and not dataset.claimed:
        raise Refusal("claimed")
    if not dataset.n_public:
        raise InvalidInput("kind 'dp-cate' needs a data set whose number of records is public: choose another kind.")
    if isinstance(dataset.propensity, str):
        raise InvalidInput("kind 'dp-cate' knows no probability of treatment by record: choose another kind.")
    if not common["bounds"].p:
        raise InvalidInput("covariates must name at least one column: an effect function needs something to go with.")
    # Public rules: the published penalty pulls every effect to zero on a kernel that is divided by so large a number.
    knee = common["bounds"].outcome_width / 8.0
    common |= {"propensity": dataset.propensity, "loss": "huber", "knee": knee, "lam": 0.01, "scaling": "unit"}
    split: Any = (
        {"calibration": "proved", "split": "private"} if asked.calibration == "proved" else {"calibration": "published"}
    )
    return DPCATEFunction(**common, **split, random_state=0)
