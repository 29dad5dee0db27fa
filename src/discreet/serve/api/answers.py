"""What the programming interface answers, typed: every field is in the description, and no other field leaves."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import WithJsonSchema

from discreet.privacy.guarantee import Neighbours
from discreet.releases.io import REGISTRY
from discreet.serve.errors import TEXTS

T = TypeVar("T")

_SPEC: dict[str, Any] = {
    "type": "object",
    "description": "A range (low, high) or a list of levels, and what stands for missing values (fill).",
    "properties": {
        "low": {"type": ["number", "string"]},
        "high": {"type": ["number", "string"]},
        "levels": {"type": "array", "items": {"type": ["string", "number"]}},
        "other": {"type": ["string", "number"]},
        "fill": {"type": ["string", "number"]},
    },
}
_PAIR: dict[str, Any] = {
    "type": "object",
    "required": ["low", "high"],
    "properties": {"low": {"type": "number"}, "high": {"type": "number"}},
}
# As Bounds.to_dict writes them, key by key: what is not there must not be filled in.
BoundsFacts = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "title": "Bounds",
            "description": "Public facts that were declared and never computed from records: Bounds.from_dict reads "
            "them, and Bounds.to_dict writes them.",
            "required": ["outcome"],
            "properties": {
                "outcome": _SPEC,
                "propensity": _PAIR,
                "weight": _PAIR,
                "treatment": {"type": "object"},
                "covariates": {"type": "object", "additionalProperties": _SPEC},
            },
        }
    ),
]


class Answer(BaseModel):
    """Whatever is answered: what is not declared does not leave."""

    model_config = ConfigDict(extra="ignore")


class Problem(Answer):
    """Why something was refused: the shape of every refusal."""

    error: str = Field(description="A code that does not change: what programs go by.")
    text: str = Field(description="One sentence for people, in fixed words that depend on nothing but the request.")
    where: list[str] = Field(default_factory=list, description="Fields of the request that it is about, if any.")


class PageOf(Answer, Generic[T]):
    """A part of a list; all lists are like this."""

    items: list[T]
    next: str | None = Field(description="To send as `after` for the next page; null if this is the last one.")


class Me(Answer):
    """Who one is, and what one's token allows."""

    person: str
    name: str
    role: str
    scopes: list[str]


class CapFacts(Answer):
    """A cap on what is spent."""

    epsilon: float
    delta: float | None


class DatasetFacts(Answer):
    """A data set's public schema."""

    id: str
    title: str
    about: str
    outcome: str
    treatment: str
    bounds: BoundsFacts
    known_propensity: float | str | None = Field(description="Probability of treatment by design, or its column.")
    columns: dict[str, str] = Field(description="Further columns by what they are, such as an instrument.")
    records: int | None = Field(description="Number of records, or what was declared about it where it is private.")
    records_are: Literal["public", "private"]
    neighbours: Neighbours
    admits_claimed: bool
    version: int
    kinds: list[str] = Field(description="What can be asked of it.")


class Bar(Answer):
    """Spent, reserved and left of one cap."""

    name: str | None
    cap: CapFacts
    spent: float = Field(description="Share of the cap.")
    reserved: float = Field(description="Share of the cap.")
    left: float = Field(description="Share of the cap.")
    left_epsilon: float | None = Field(default=None, description="Largest epsilon that a request may still have.")
    left_delta: float | None = Field(default=None, description="At this delta.")
    epsilon_spent: float | None = None
    epsilon_reserved: float | None = None
    epsilon_left: float | None = None
    delta_spent: float | None = None
    delta_left: float | None = None


class Budgets(Answer):
    """Budgets of a data set, as one may see them."""

    whole: Bar
    analysts: list[Bar]
    frozen: bool
    composition: str
    requests: dict[str, int] = Field(description="For curators: how many requests ended how.")
    claimed: int = Field(description="For curators: how many were of claimed methods.")
    composed: float = Field(description="Epsilon of all that counts, composed.")
    plain: float = Field(description="Epsilon of all that counts, added up.")


class DatasetAnswer(DatasetFacts):
    """A data set's public schema and its budgets."""

    budget: Budgets


class UncertaintyFacts(Answer):
    """Where the expected uncertainty comes from, in the outcome's unit."""

    sampling: float
    privacy: float
    nuisance: float
    clipping: float


class PlanAnswer(Answer):
    """What a request would cost and bring."""

    estimator: str = Field(description="Whose plan it is.")
    epsilon: float
    delta: float | None
    n: int
    alpha: float
    width: float
    plus_minus: float
    noise_sd: float
    detectable_effect: float
    width_without_privacy: float = Field(description="Width that the same assumptions give without any noise.")
    uncertainty: UncertaintyFacts
    assumptions: list[str]
    notes: list[str]


class Submitted(Answer):
    """What became of a request for a release: it waits, or a stored release answers it."""

    release: str | None = Field(description="The release, where an identical request was answered before: for free.")
    job: str | None = Field(description="The request to wait for, where there is no release yet.")
    charged: bool = Field(description="Whether it will spend its budget.")


class Job(Answer):
    """How a request goes."""

    id: str
    dataset: str
    person: str
    kind: str
    title: str
    request: dict[str, Any] = Field(description="As it was asked.")
    state: Literal["queued", "running", "done", "failed", "stopped"]
    progress: int = Field(ge=0, le=100, description="Per cent, by a public schedule.")
    created: float = Field(description="Seconds since 1970.")
    stopping: bool
    failure: str | None = Field(description="A code, where it ended without a release.")
    text: str = Field(description="The same for people.")
    charged: bool
    release: str | None


class ReleaseFacts(Answer):
    """What is known of a release besides its content."""

    id: str
    job: str
    dataset: str
    person: str
    kind: str
    title: str
    published: bool
    created: float = Field(description="Seconds since 1970.")


class ReleaseFile(BaseModel):
    """A release as its file holds it: `discreet.load` reads it, and so does `from_dict` of its class."""

    model_config = ConfigDict(extra="allow")

    format: Annotated[str, WithJsonSchema({"type": "string", "enum": sorted(REGISTRY)})]
    version: int


class ReleaseAnswer(ReleaseFacts):
    """A release, with its guarantee."""

    release: ReleaseFile


class Effect(Answer):
    """An effect for one person, with an interval where the release has any."""

    effect: float
    low: float | None = None
    high: float | None = None


class Effects(Answer):
    """Effects in the order of the rows."""

    effects: list[Effect]
    warnings: list[str] = Field(
        default_factory=list, description="Values outside of what is declared, and what they count as."
    )


class Refuted(Answer):
    """A published claim that attacks refuted."""

    mechanism: str
    attack: str
    epsilon: float
    delta: float
    epsilon_lower: float
    delta_lower: float
    instruments: list[str]


class NotRefuted(Answer):
    """Proved configurations of one mechanism, in which no violation was found."""

    mechanism: str
    configurations: int
    runs: int
    ratio: float
    share: float
    violated: bool


class AuditAnswer(Answer):
    """What the audit found."""

    version: int
    refuted: list[Refuted]
    proved: list[NotRefuted]


def refusals(*codes: str) -> dict[int | str, dict[str, Any]]:
    """How the description documents refusals."""
    out: dict[int | str, dict[str, Any]] = {}
    for code in ("sign-in", "forbidden", "too-slow", "too-large", "malformed", "too-many", *codes):
        status, text = TEXTS[code]
        known = out.get(status)
        out[status] = {"model": Problem, "description": f"{known['description']} Or: {text}" if known else text}
    return out
