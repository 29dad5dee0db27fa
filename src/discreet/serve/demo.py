"""A service to try: two generated data sets, two curators, two analysts, and tokens that work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from discreet.datasets import draw
from discreet.datasets._demo import DATA, HOME, OUTCOME, PUBLIC, TREATMENT, TRIAL, table
from discreet.privacy.budget import Budget
from discreet.serve.domain import administration as curating
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import users as people
from discreet.serve.domain.users import Identity
from discreet.serve.governance import approvals
from discreet.serve.service import Service
from discreet.serve.settings import Settings

PEOPLE = {
    "curator": ("A curator", "curator"),
    "second": ("Another curator", "curator"),
    "analyst": ("An analyst", "analyst"),
    "colleague": ("Another analyst", "analyst"),
}


def prepare(settings: Settings, *, n: int = 20_000) -> dict[str, str]:
    """Generate the data and register it, unless it is there; returns new tokens by person.

    Parameters
    ----------
    settings : Settings
        Of the service; files go below its data directory.
    n : int
        Records of each data set.
    """
    service = Service.of(settings)
    home = Path(settings.data)
    home.mkdir(parents=True, exist_ok=True)
    known = {person["id"] for person in people.everybody(service.engine)}
    for person, (name, role) in PEOPLE.items():
        if person not in known:
            people.add_person(service.engine, service.clock, person=person, name=name, role=role)
    curator, second = (
        Identity(
            person=person,
            name=PEOPLE[person][0],
            role="curator",
            scopes=people.ALLOWED["curator"],
            token="",
            expires=float("inf"),
        )
        for person in ("curator", "second")
    )

    def agreed(number: int | None) -> None:
        """What takes two curators, by two."""
        if number is not None:
            approvals.approve(service, second, number)

    there = {dataset.id for dataset in catalogue.listed(service.engine, curator)}
    for facts, design, file, outcome, seed in (
        (_CLINIC, "clinic", DATA, OUTCOME, 1),
        (_TRIAL, "clinic-trial", TRIAL, HOME, 2),
    ):
        if facts["id"] in there:
            continue
        study = draw(design, n, seed)
        pq.write_table(table(study.X, study.T, study.Y, outcome), home / file)
        shared: Any = {
            "source": file,
            "outcome": outcome,
            "treatment": TREATMENT,
            "bounds": PUBLIC.to_dict() | _words(outcome),
        }
        agreed(curating.register(service, curator, catalogue.NewDataset(**facts, **shared)))
        agreed(curating.allow(service, curator, facts["id"], "analyst", Budget(epsilon=4.0, delta=1e-5)))
    if "clinic-stays" not in there:
        agreed(curating.allow(service, curator, "clinic-stays", "colleague", Budget(epsilon=2.0, delta=1e-5)))
    made = {person: people.add_token(service.engine, service.clock, person=person, label="demo") for person in PEOPLE}
    service.close()
    return made


def _words(outcome: str) -> dict[str, dict[str, str]]:
    """What people call the columns."""
    called = {OUTCOME: "days in hospital", HOME: "days at home"}[outcome]
    labels = {"outcome": called, "treatment": "early mobilisation", "age": "age at admission"}
    return {"labels": labels, "units": {"outcome": "days", "age": "years"}}


_CLINIC: dict[str, Any] = {
    "id": "clinic-stays",
    "title": "Days in hospital",
    "about": "Generated records of a clinic where doctors decide who is treated: does treatment shorten the stay?",
    "epsilon": 6.0,
    "delta": 1e-5,
    "admits_claimed": True,
}
_TRIAL: dict[str, Any] = {
    "id": "home-trial",
    "title": "Days at home, a randomised trial",
    "about": "Generated records of a trial that draws lots. The number of patients is private here.",
    "epsilon": 6.0,
    "delta": 1e-5,
    "propensity": 0.5,
    "records_are_public": False,
    "records_about": 20_000,
}
