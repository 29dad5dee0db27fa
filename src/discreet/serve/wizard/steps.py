"""Registering a data set step by step: source, columns, bounds, budget, a look at what analysts will see, approval.

Nothing is kept between the steps but what the form carries, so that a step can be repeated, and a session may end.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from discreet.data.bounds import Bounds
from discreet.datasets._placeholder import dummy
from discreet.exceptions import DiscreetError
from discreet.serve.domain import administration as curating
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain.datasets import NewDataset
from discreet.serve.errors import Refusal
from discreet.serve.governance import whereabouts
from discreet.serve.pages.curator import _form, _model
from discreet.serve.pages.rendering import may_curate, page, service_of
from discreet.serve.pages.requests import _in_thread
from discreet.serve.wizard import forms
from discreet.serve.wizard.columns import Column, columns_of, files_below

router = APIRouter(prefix="/curator/register", include_in_schema=False)
STEPS = ("source", "columns", "bounds", "budget", "preview")
_NAMES = ("Source", "Columns", "Bounds", "Budget", "Preview")
# Made-up rows that the last step shows.
_ROWS = 5


@router.get("")
def begin(request: Request) -> Response:
    """Where the records are."""
    may_curate(request)
    return _show(request, "source", {}, [])


@router.post("/{step}")
async def go(request: Request, step: str) -> Response:
    """Check a step and go on to the next; what is wrong comes back with all that was typed."""
    return await _in_thread(_go, request, step, await _form(request))


def _go(request: Request, step: str, given: dict[str, str]) -> Response:
    may_curate(request)
    if step not in STEPS:
        raise Refusal("nothing-here")
    if given.pop("back", None):
        return _show(request, step, given, _columns(request, given) if step != "source" else [])
    columns: list[Column] = []
    try:
        columns = _columns(request, given)
        if step == "preview":
            return _send(request, given, columns)
        following = STEPS[STEPS.index(step) + 1]
        if step == "columns":
            forms.check_columns(given, columns)
        if step == "bounds":
            forms.bounds_from(given, columns)
            given.setdefault("id", forms.short_name(given["source"]))
        if step == "budget":
            _model(NewDataset, forms.new_dataset(given, columns))
    except DiscreetError as error:
        return _show(request, step, given, columns, str(error))
    return _show(request, following, given, columns)


def _columns(request: Request, given: dict[str, str]) -> list[Column]:
    source = given.get("address", "").strip() or given.get("source", "").strip()
    found = columns_of(whereabouts.located(source, service_of(request).settings))
    given["source"] = source
    return found


def _send(request: Request, given: dict[str, str], columns: list[Column]) -> Response:
    """Check the records, and have the data set approved."""
    service, identity = service_of(request), may_curate(request)
    new: NewDataset = _model(NewDataset, forms.new_dataset(given, columns))
    curating.register(service, identity, new)
    # Where another curator has to approve it, it is not there yet.
    there = catalogue.by_id(service.engine, new.id) is not None
    return RedirectResponse(f"/curator/datasets/{new.id}" if there else "/curator", status_code=303)


def _show(
    request: Request, step: str, given: dict[str, str], columns: list[Column], problem: str | None = None
) -> Response:
    service = service_of(request)
    context: dict[str, Any] = {"step": step, "given": given, "columns": columns, "problem": problem}
    context |= {"steps": list(zip(STEPS, _NAMES, strict=True)), "number": STEPS.index(step) + 1}
    context |= {"templates": forms.TEMPLATES, "roles": forms.ROLES}
    context["used"] = forms.covariates(given, columns) if step == "bounds" else []
    context["kinds"] = {column.name: column.kind for column in columns}
    context["files"] = files_below(service.settings.data) if step == "source" else []
    if step == "preview":
        context |= _preview(forms.bounds_from(given, columns), given)
    return page(request, "wizard.html", 422 if problem else 200, **context)


def _preview(bounds: Bounds, given: dict[str, str]) -> dict[str, Any]:
    made = dummy(bounds, _ROWS, outcome=given["outcome"], treatment=given["treatment"])
    return {"bounds": bounds, "head": list(made), "rows": list(zip(*made.values(), strict=True))}
