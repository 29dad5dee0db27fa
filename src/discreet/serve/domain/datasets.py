"""Data sets: registered by curators by reference, used by analysts by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field

from discreet.data.backends import TableSpec
from discreet.data.bounds import Bounds
from discreet.data.records import MIN_ROWS, Further
from discreet.estimators.registry import REGISTRY
from discreet.exceptions import InvalidInput
from discreet.privacy.guarantee import Neighbours
from discreet.serve.domain import sources
from discreet.serve.domain.users import Identity, slug
from discreet.serve.errors import Refusal
from discreet.serve.governance import whereabouts
from discreet.serve.service import Service
from discreet.serve.storage.paging import Page, select_page
from discreet.serve.storage.schema import datasets, grants, people, reading

# More data sets than any service has.
_ALL = 1_000_000


class NewDataset(BaseModel):
    """A data set by reference, and what is public about it."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    id: str = Field(max_length=40, description="Short name: lower-case letters, digits, hyphens.")
    title: str = Field(max_length=120, description="What people call it.")
    about: str = Field(default="", max_length=2_000, description="A sentence or two for analysts.")
    source: str = Field(
        max_length=1_000, description="CSV or Parquet files below the data directory, or postgresql://...#table."
    )
    outcome: str = Field(max_length=200, description="Column of the outcome.")
    treatment: str = Field(max_length=200, description="Column of the treatment.")
    bounds: dict[str, Any] = Field(description="As Bounds.to_dict writes them: declared, never computed from records.")
    propensity: float | str | None = Field(default=None, description="Probability of treatment by design, or a column.")
    columns: dict[str, str] = Field(
        default_factory=dict,
        max_length=10,
        description="Further columns by what they are: instrument, before, event, weight.",
    )
    epsilon: float = Field(gt=0, le=1_000, description="Cap on all that is ever released about it.")
    delta: float | None = Field(default=None, ge=0, lt=1, description="The cap's delta.")
    records_are_public: bool = Field(default=True, description="Whether the number of records is public.")
    records_about: int | None = Field(default=None, ge=10, description="What analysts plan with, where it is not.")
    admits_claimed: bool = Field(default=False, description="Whether methods may be used that are claimed, not proved.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A data set as the service knows it; ``source`` and ``n`` are not for analysts unless ``n`` is public."""

    id: str
    title: str
    about: str
    source: str
    outcome: str
    treatment: str
    bounds: Bounds
    propensity: float | str | None
    columns: dict[str, str]
    n: int
    n_public: bool
    n_about: int | None
    claimed: bool
    fingerprint: str
    version: int
    curator: str
    created: float
    places: str

    @property
    def neighbours(self) -> Neighbours:
        """Where the number of records is private, a release must hide whether a record is there at all."""
        return "replace-one" if self.n_public else "add-remove"

    @property
    def public_n(self) -> int | None:
        """The number of records as far as it is public: exact, or what the curator declared about it."""
        return self.n if self.n_public else self.n_about

    def public(self) -> dict[str, Any]:
        """What analysts may know."""
        return {
            "id": self.id,
            "title": self.title,
            "about": self.about,
            "outcome": self.outcome,
            "treatment": self.treatment,
            "bounds": self.bounds.to_dict(),
            "known_propensity": self.propensity,
            "columns": self.columns,
            "records": self.public_n,
            "records_are": "public" if self.n_public else "private",
            "neighbours": self.neighbours,
            "admits_claimed": self.claimed,
            "version": self.version,
        }


def checked(service: Service, identity: Identity, new: NewDataset) -> dict[str, Any]:
    """Check every record once, before anyone can ask; returns the facts to list the data set by.

    From then on a request cannot be refused because of a record, unless the source changes.
    """
    bounds = Bounds.from_dict(new.bounds)
    slug(new.id, "id")
    if not new.title.strip() or len(new.title) > 120 or len(new.about) > 2_000:
        raise InvalidInput("title must have between 1 and 120 characters, and about at most 2,000: shorten them.")
    if not bounds.named:
        raise InvalidInput("bounds must name their covariates: declare each column under its name.")
    if new.records_about is not None and new.records_about < MIN_ROWS:
        raise InvalidInput(f"n_about must be at least {MIN_ROWS}: it is what analysts plan with.")
    if by_id(service.engine, new.id) is not None:
        raise InvalidInput("id is the name of another data set already: choose another.")
    path = whereabouts.located(new.source, service.settings)
    facts: Any = {"outcome": new.outcome, "treatment": new.treatment, "bounds": bounds, "propensity": new.propensity}
    n, fingerprint = _read(path, TableSpec(**facts, further=_further(new.columns, bounds)))
    return {
        "id": new.id,
        "title": new.title.strip(),
        "about": new.about.strip(),
        "source": path,
        "outcome": new.outcome,
        "treatment": new.treatment,
        "bounds": json.dumps(bounds.to_dict()),
        "propensity": None if new.propensity is None else json.dumps(new.propensity),
        "columns": json.dumps(new.columns),
        "n": n,
        "n_public": new.records_are_public,
        "n_about": new.records_about,
        "claimed": new.admits_claimed,
        "fingerprint": fingerprint,
        "version": 1,
        "curator": identity.person,
        "created": service.clock.now(),
        "places": json.dumps(whereabouts.places(path, service.ledger.seal)),
    }


def add(engine: sa.Engine, row: dict[str, Any]) -> None:
    """List a data set that was checked."""
    try:
        with engine.begin() as connection:
            connection.execute(sa.insert(datasets).values(row))
    except sa.exc.IntegrityError:
        raise InvalidInput("id is the name of another data set already: choose another.") from None


def recheck(service: Service, dataset: Dataset) -> None:
    """Check a source that has changed, so that it can be used again; earlier releases are no longer its own."""
    facts: Any = {"outcome": dataset.outcome, "treatment": dataset.treatment, "bounds": dataset.bounds}
    further = _further(dataset.columns, dataset.bounds)
    n, fingerprint = _read(dataset.source, TableSpec(propensity=dataset.propensity, further=further, **facts))
    places = whereabouts.places(dataset.source, service.ledger.seal)
    # What it was remains: records of earlier versions are registered as well.
    known = set(places) | set(json.loads(dataset.places))
    changed = {"n": n, "fingerprint": fingerprint, "version": dataset.version + 1, "places": json.dumps(sorted(known))}
    same = (datasets.c.id == dataset.id) & (datasets.c.version == dataset.version)
    with service.engine.begin() as connection:
        connection.execute(sa.update(datasets).where(same).values(changed))


def _further(columns: Mapping[str, str], bounds: Bounds) -> tuple[tuple[Further, str], ...]:
    """Columns that some estimators take besides outcome, treatment and covariates, as records hold them."""
    roles = {
        role.name: role for entry in REGISTRY.values() if entry.title and entry.columns for role in entry.load().roles
    }
    for name in columns:
        if name not in roles:
            raise InvalidInput(
                f"columns must be named by what they are, one of {', '.join(sorted(roles))}: check them."
            )
    return tuple((roles[name].column(bounds), column) for name, column in columns.items())


def specs_of(dataset: Dataset) -> dict[str, Any]:
    """What the further columns of a data set are declared to hold."""
    return {name: each.spec for each, name in _further(dataset.columns, dataset.bounds)}


def _read(source: str, spec: TableSpec) -> tuple[int, str]:
    """Number of records and fingerprint of a source that was the same before and after all of it was read."""
    before = sources.fingerprint(source)
    n = sources.records_in(source, spec)
    if sources.fingerprint(source) != before:
        raise InvalidInput("source was changed while it was read: wait until nobody writes to it, and repeat.")
    return n, before


def unchanged(dataset: Dataset) -> bool:
    """Whether the source is still what was checked."""
    return unchanged_row({"source": dataset.source, "fingerprint": dataset.fingerprint})


def unchanged_row(row: dict[str, Any]) -> bool:
    """The same of a data set that is not listed yet."""
    try:
        return bool(sources.fingerprint(row["source"]) == row["fingerprint"])
    except OSError:
        return False


def check_analyst(engine: sa.Engine, person: str) -> None:
    """Refuse somebody who is no analyst: nobody else uses data sets, or has a cap."""
    with reading(engine).begin() as connection:
        known = connection.scalar(sa.select(people.c.role).where(people.c.id == person))
    if known != "analyst":
        raise InvalidInput("person must be an analyst whom the service knows: add the person first.")


def grant(engine: sa.Engine, dataset: str, person: str, *, allowed: bool = True) -> None:
    """Let an analyst use a data set, or no longer."""
    here = (grants.c.dataset == dataset) & (grants.c.person == person)
    check_analyst(engine, person)
    with engine.begin() as connection:
        connection.execute(sa.delete(grants).where(here))
        if allowed:
            connection.execute(sa.insert(grants).values(dataset=dataset, person=person))


def may_use(engine: sa.Engine, dataset: str, person: str) -> bool:
    """Whether an analyst may use a data set now."""
    here = (grants.c.dataset == dataset) & (grants.c.person == person)
    with reading(engine).begin() as connection:
        return connection.scalar(sa.select(grants.c.person).where(here)) is not None


def granted(engine: sa.Engine, dataset: str) -> list[str]:
    """The analysts who may use a data set."""
    with reading(engine).begin() as connection:
        found = connection.scalars(sa.select(grants.c.person).where(grants.c.dataset == dataset))
        return sorted(found)


def listed(engine: sa.Engine, identity: Identity) -> list[Dataset]:
    """The data sets that somebody may use; all of them for a curator."""
    return paged(engine, identity, Page(limit=_ALL))[0]


def paged(engine: sa.Engine, identity: Identity, page: Page) -> tuple[list[Dataset], str | None]:
    """A page of the data sets that somebody may use, the oldest first; and where the next one begins."""
    wanted = sa.select(datasets)
    if not identity.curator:
        mine = sa.select(grants.c.dataset).where(grants.c.person == identity.person)
        wanted = wanted.where(datasets.c.id.in_(mine))
    with reading(engine).begin() as connection:
        rows, following = select_page(connection, wanted, ((datasets.c.created, False), (datasets.c.id, False)), page)
    return [_dataset(row) for row in rows], following


def find(engine: sa.Engine, identity: Identity, dataset: str) -> Dataset:
    """A data set that somebody may use; one that does not exist is refused in the same words as one that is closed."""
    wanted = sa.select(datasets, grants.c.person.label("mine")).select_from(
        datasets.outerjoin(grants, (grants.c.dataset == datasets.c.id) & (grants.c.person == identity.person))
    )
    with reading(engine).begin() as connection:
        row = connection.execute(wanted.where(datasets.c.id == dataset)).mappings().first()
    if row is None or not (identity.curator or row["mine"] is not None):
        raise Refusal("no-dataset")
    return _dataset({name: value for name, value in row.items() if name != "mine"})


def everything(engine: sa.Engine) -> list[Dataset]:
    """All data sets, for the service itself."""
    with reading(engine).begin() as connection:
        return [_dataset(row) for row in connection.execute(sa.select(datasets)).mappings()]


def beside(service: Service, dataset: Dataset) -> list[str]:
    """Other data sets that have records of this one: what they release is not counted under one cap."""
    return same_records(service, dataset.id, _places(service, dataset))


def same_records(service: Service, name: str, places: list[str]) -> list[str]:
    """Data sets, but for one name, that have records at these places, or copies of the same files."""
    others = [other for other in everything(service.engine) if other.id != name]
    return [other.id for other in others if whereabouts.in_common(places, _places(service, other))]


def _places(service: Service, dataset: Dataset) -> list[str]:
    """Where the records of a data set are; of one that an older version registered, found now and kept."""
    known: list[str] = json.loads(dataset.places)
    if known:
        return known
    try:
        found = whereabouts.places(dataset.source, service.ledger.seal)
    except (InvalidInput, OSError):
        return [f"path:{dataset.source}"]
    with service.engine.begin() as connection:
        here = datasets.c.id == dataset.id
        connection.execute(sa.update(datasets).where(here).values(places=json.dumps(found)))
    return found


def by_id(engine: sa.Engine, dataset: str) -> Dataset | None:
    """A data set, for the service itself."""
    with reading(engine).begin() as connection:
        row = connection.execute(sa.select(datasets).where(datasets.c.id == dataset)).mappings().first()
    return None if row is None else _dataset(row)


def _dataset(row: Any) -> Dataset:
    known = None if row["propensity"] is None else json.loads(row["propensity"])
    read = {"bounds": _bounds(row["bounds"]), "propensity": known, "columns": json.loads(row["columns"] or "{}")}
    return Dataset(**(dict(row) | read))


@lru_cache(maxsize=256)
def _bounds(text: str) -> Bounds:
    return Bounds.from_dict(json.loads(text))
