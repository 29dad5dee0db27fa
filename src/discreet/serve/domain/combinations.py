"""Several releases as one: post-processing of what somebody may see anyway."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from discreet.exceptions import InvalidInput
from discreet.releases.combined.combining import combine
from discreet.releases.combined.weighing import Model, People
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import queries, releases
from discreet.serve.domain.users import Identity
from discreet.serve.service import Service


class Combination(BaseModel):
    """Releases of one average effect, and how to put them together."""

    model_config = ConfigDict(extra="forbid")

    releases: list[str] = Field(min_length=2, max_length=50, description="Names of releases that you may see.")
    model: Model = Field(
        description="'fixed': one effect everywhere. 'random': effects differ, and their mean is meant."
    )
    people: People = Field(
        default="overlapping",
        description="'disjoint' if nobody is in two of the data sets, which cannot be checked and is yours to state.",
    )
    names: list[str] | None = Field(default=None, min_length=2, max_length=50, description="What sites are called.")


def combined(service: Service, identity: Identity, asked: Combination) -> Any:
    """One estimate and interval from several releases."""
    facts = [releases.find(service.engine, service.clock, identity, name) for name in asked.releases]
    if asked.people == "disjoint" and not _apart(service, [each["dataset"] for each in facts]):
        raise InvalidInput(
            "people cannot be 'disjoint': two of the releases are about the same records. Say 'overlapping'."
        )
    made = [queries.published(service, name) for name in asked.releases]
    names = asked.names or [f"{each['dataset']} ({each['id']})" for each in facts]
    return combine(made, model=asked.model, people=asked.people, names=names)


def _apart(service: Service, datasets: list[str]) -> bool:
    """Whether no two of the data sets are known to have the same records."""
    if len(set(datasets)) < len(datasets):
        return False
    known = [catalogue.by_id(service.engine, name) for name in datasets]
    return not any(other in datasets for each in known if each is not None for other in catalogue.beside(service, each))
