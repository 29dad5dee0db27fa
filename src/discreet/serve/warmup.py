"""What a server computes before it answers, so that nobody waits for it."""

from __future__ import annotations

from fastapi import FastAPI

from discreet.exceptions import DiscreetError
from discreet.serve.audit_summary import summary
from discreet.serve.domain import budgets, plans
from discreet.serve.domain import datasets as catalogue
from discreet.serve.pages.rendering import templates
from discreet.serve.service import Service

# Of more data sets than these, the rest are computed when somebody first opens them.
_MOST = 20


def warm(app: FastAPI, service: Service) -> None:
    """Compile pages, and compute what the first pages about each data set show."""
    for name in templates().list_templates():
        templates().get_template(name)
    app.openapi()
    summary()
    for dataset in catalogue.everything(service.engine)[:_MOST]:
        try:
            budgets.composed(service, service.ledger.account(dataset.id), as_recorded=False)
            asked = plans.Planned(epsilon=1.0, delta=1e-6)
            plans.curve(dataset, asked)
        except DiscreetError:
            # Whatever cannot be computed now is reported on its page.
            continue
