"""Data sets: registered by curators by reference, used by analysts by name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from discreet.data.bounds import Bounds
from discreet.data.records import MIN_ROWS
from discreet.exceptions import InvalidInput
from discreet.privacy.guarantee import Neighbours
from discreet.serve.domain import sources
from discreet.serve.domain.users import Identity, slug
from discreet.serve.errors import Refusal
from discreet.serve.storage.clock import Clock
from discreet.serve.storage.schema import datasets, grants, people, reading


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
    n: int
    n_public: bool
    n_about: int | None
    claimed: bool
    fingerprint: str
    version: int
    curator: str
    created: float

    @property
    def neighbours(self) -> Neighbours:
        """Where the number of records is private, a release must hide whether a record is there at all."""
        return "replace-one" if self.n_public else "add-remove"

    @property
    def public_n(self) -> int | None:
        """The number of records as far as it is public: exact, or what the curator said about it."""
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
            "records": self.public_n,
            "records_are": "public" if self.n_public else "private",
            "neighbours": self.neighbours,
            "admits_claimed": self.claimed,
            "version": self.version,
        }


def checked(
    engine: sa.Engine,
    clock: Clock,
    identity: Identity,
    *,
    root: str,
    dataset: str,
    title: str,
    about: str = "",
    source: str,
    outcome: str,
    treatment: str,
    bounds: Bounds,
    propensity: float | str | None = None,
    n_public: bool = True,
    n_about: int | None = None,
    claimed: bool = False,
) -> dict[str, Any]:
    """Check every record once, before anyone can ask; returns the facts to list the data set by.

    From then on a request cannot be refused because of a record, unless the source changes.
    """
    slug(dataset, "id")
    if not title.strip() or len(title) > 120 or len(about) > 2_000:
        raise InvalidInput("title must have between 1 and 120 characters, and about at most 2,000: shorten them.")
    if not bounds.named:
        raise InvalidInput("bounds must name their covariates: declare each column under its name.")
    if n_about is not None and n_about < MIN_ROWS:
        raise InvalidInput(f"n_about must be at least {MIN_ROWS}: it is what analysts plan with.")
    if by_id(engine, dataset) is not None:
        raise InvalidInput("id is the name of another data set already: choose another.")
    where = sources.located(source, root)
    facts: Any = {"outcome": outcome, "treatment": treatment, "bounds": bounds, "propensity": propensity}
    n, fingerprint = _read(where, **facts)
    row: dict[str, Any] = {
        "id": dataset,
        "title": title.strip(),
        "about": about.strip(),
        "source": where,
        "outcome": outcome,
        "treatment": treatment,
        "bounds": json.dumps(bounds.to_dict()),
        "propensity": None if propensity is None else json.dumps(propensity),
        "n": n,
        "n_public": n_public,
        "n_about": n_about,
        "claimed": claimed,
        "fingerprint": fingerprint,
        "version": 1,
        "curator": identity.person,
        "created": clock.now(),
    }
    return row


def add(engine: sa.Engine, row: dict[str, Any]) -> None:
    """List a data set that was checked."""
    try:
        with engine.begin() as connection:
            connection.execute(sa.insert(datasets).values(row))
    except sa.exc.IntegrityError:
        raise InvalidInput("id is the name of another data set already: choose another.") from None


def recheck(engine: sa.Engine, dataset: Dataset) -> None:
    """Check a source that has changed, so that it can be used again; earlier releases are no longer its own."""
    facts: Any = {"outcome": dataset.outcome, "treatment": dataset.treatment, "bounds": dataset.bounds}
    n, fingerprint = _read(dataset.source, propensity=dataset.propensity, **facts)
    changed = {"n": n, "fingerprint": fingerprint, "version": dataset.version + 1}
    same = (datasets.c.id == dataset.id) & (datasets.c.version == dataset.version)
    with engine.begin() as connection:
        connection.execute(sa.update(datasets).where(same).values(changed))


def _read(source: str, **facts: Any) -> tuple[int, str]:
    """Number of records and fingerprint of a source that was the same before and after all of it was read."""
    before = sources.fingerprint(source)
    n = sources.records_in(source, **facts)
    if sources.fingerprint(source) != before:
        raise InvalidInput("source was changed while it was read: wait until nobody writes to it, and repeat.")
    return n, before


def unchanged(dataset: Dataset) -> bool:
    """Whether the source is still what was checked."""
    try:
        return sources.fingerprint(dataset.source) == dataset.fingerprint
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
    wanted = sa.select(datasets).order_by(datasets.c.created, datasets.c.id)
    if not identity.curator:
        mine = sa.select(grants.c.dataset).where(grants.c.person == identity.person)
        wanted = wanted.where(datasets.c.id.in_(mine))
    with reading(engine).begin() as connection:
        return [_dataset(row) for row in connection.execute(wanted).mappings()]


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


def beside(engine: sa.Engine, dataset: Dataset) -> list[str]:
    """Other data sets of the same source, or of the same files: what they release is not counted under one cap."""
    return [
        other.id
        for other in everything(engine)
        if other.id != dataset.id
        and (
            other.source == dataset.source
            or (not sources.is_database(dataset.source) and other.fingerprint == dataset.fingerprint)
        )
    ]


def by_id(engine: sa.Engine, dataset: str) -> Dataset | None:
    """A data set, for the service itself."""
    with reading(engine).begin() as connection:
        row = connection.execute(sa.select(datasets).where(datasets.c.id == dataset)).mappings().first()
    return None if row is None else _dataset(row)


def _dataset(row: Any) -> Dataset:
    known = None if row["propensity"] is None else json.loads(row["propensity"])
    return Dataset(**(dict(row) | {"bounds": _bounds(row["bounds"]), "propensity": known}))


@lru_cache(maxsize=256)
def _bounds(text: str) -> Bounds:
    return Bounds.from_dict(json.loads(text))
