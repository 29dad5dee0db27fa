"""Writes a database of the service as its first version did: run by ``python -m evidence.service.migration`` with the
source of that version, and formerly for tests/golden/serve/version-1.sql.

    PYTHONPATH=<source of version 1> python evidence/service/version_one.py FOLDER --requests 3 --lines 40
"""

from __future__ import annotations

import argparse
import json
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from discreet.datasets import draw
from discreet.datasets._demo import PUBLIC, table
from discreet.ledger import Cost
from discreet.privacy.budget import Budget
from discreet.serve.domain import administration as curating
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import jobs, users
from discreet.serve.domain.datasets import NewDataset
from discreet.serve.domain.requests import Asked
from discreet.serve.domain.users import Identity
from discreet.serve.service import Service
from discreet.serve.settings import Settings
from discreet.serve.worker import work

PEOPLE = {"curator": "curator", "second": "curator", "analyst": "analyst", "colleague": "analyst"}


def asked(number: int) -> dict[str, Any]:
    """The request of a number: no two are the same."""
    return {"kind": "difference-in-means", "epsilon": round(0.01 + number / 1_000, 6), "delta": 1e-7}


def write(folder: Path, *, requests: int, lines: int) -> dict[str, str]:
    """A database with people, tokens, a data set, released requests, and a log of at least so many lines."""
    service = Service.of(Settings(database=f"sqlite:///{folder}/service.db", data=str(folder), first_tick=1e-3))
    for person, role in PEOPLE.items():
        users.add_person(service.engine, service.clock, person=person, name=f"The {person}", role=role)
    curator, analyst = _identity("curator", "curator"), _identity("analyst", "analyst")
    study = draw("clinic", 300, 1)
    pq.write_table(table(study.X, study.T, study.Y, "days"), folder / "clinic.parquet")
    facts: dict[str, Any] = {"id": "clinic", "title": "The clinic", "source": "clinic.parquet", "outcome": "days"}
    facts |= {"treatment": "treated", "bounds": PUBLIC.to_dict(), "epsilon": 1_000.0, "delta": 1e-2}
    curating.register(service, curator, NewDataset(**facts))
    for person in ("analyst", "colleague"):
        curating.allow(service, curator, "clinic", person, Budget(epsilon=900.0, delta=5e-3))
    service.ledger.propose("clinic", epsilon=950.0, delta=6e-3, analyst="colleague", curator="curator")
    for number in range(requests):
        dataset = catalogue.find(service.engine, analyst, "clinic")
        jobs.submit(service, analyst, dataset, Asked(**asked(number)))
        row = jobs.claim(service)
        assert row is not None
        work(service, row)
    # One waits, so that there is something to go on with.
    jobs.submit(service, analyst, catalogue.find(service.engine, analyst, "clinic"), Asked(**asked(requests)))
    while service.ledger.head.seq < lines:
        # As programs do that share the ledger: charged and failed, or cancelled.
        number = service.ledger.reserve(
            "clinic", Cost(epsilon=0.001), analyst="colleague", about={"program": "nightly"}
        )
        if service.ledger.head.seq % 2:
            service.ledger.charge(number)
            service.ledger.fail(number)
        else:
            service.ledger.cancel(number)
    tokens = {person: users.add_token(service.engine, service.clock, person=person) for person in PEOPLE}
    service.close()
    return tokens


def _identity(person: str, role: Any) -> Identity:
    scopes = users.ALLOWED[role]
    return Identity(person=person, name=person, role=role, scopes=scopes, token="", expires=float("inf"))


def main() -> None:
    """Write the database, its tokens, and the same as SQL if that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--requests", type=int, default=3)
    parser.add_argument("--lines", type=int, default=40)
    parser.add_argument("--sql", type=Path, help="write the database as SQL, too")
    given = parser.parse_args()
    tokens = write(given.folder, requests=given.requests, lines=given.lines)
    (given.folder / "tokens.json").write_text(json.dumps(tokens) + "\n")
    if given.sql:
        with sqlite3.connect(given.folder / "service.db") as connection:
            given.sql.write_text("\n".join(connection.iterdump()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
