"""Pages: sign in, data sets, plans."""

from __future__ import annotations

import csv
import hmac
import io
import json
import math
import re
from typing import Any

import sqlalchemy as sa
from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from discreet.datasets._placeholder import dummy
from discreet.exceptions import DiscreetError
from discreet.serve.audit_summary import summary
from discreet.serve.domain import budgets, plans
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import users as people
from discreet.serve.domain.requests import OFFERED, TITLES, Asked, kinds_for
from discreet.serve.governance import notes
from discreet.serve.institution import sign_in
from discreet.serve.middleware import COOKIE, SECURE_COOKIE
from discreet.serve.operations import readiness
from discreet.serve.pages import forms
from discreet.serve.pages.asks import fields_for
from discreet.serve.pages.figures import plan_view
from discreet.serve.pages.rendering import may_read, me, page, service_of
from discreet.serve.service import Service
from discreet.serve.storage.schema import reading

router = APIRouter(include_in_schema=False)
_LOGIN = "discreet_login"
# Somewhere on this service: no second slash that would name another host, nothing that could end a header.
_LOCAL = re.compile(r"/(?!/)[A-Za-z0-9/_.-]*")
ROWS = 200


@router.get("/health")
def health(request: Request) -> Response:
    """Whether the service and its database answer."""
    with reading(service_of(request).engine).begin() as connection:
        connection.execute(sa.select(1))
    return JSONResponse({"status": "ok"})


@router.get("/ready")
def ready(request: Request) -> Response:
    """Whether requests can be taken and worked on, by name of what that needs."""
    found = request.app.state.readiness.found()
    return JSONResponse({"ready": readiness.ready(found), **found}, 200 if readiness.ready(found) else 503)


@router.get("/login")
def login_form(request: Request) -> Response:
    """The form that a token goes into."""
    return _login_page(request, request.query_params.get("next", "/"))


@router.post("/login")
async def login(request: Request) -> Response:
    """Open a session for the holder of a token."""
    service = service_of(request)
    form = await request.form()
    given, expected = str(form.get("csrf", "")), request.cookies.get(_LOGIN, "")
    if not expected or not hmac.compare_digest(given.encode(), expected.encode()):
        return _login_page(request, str(form.get("next", "/")), "The page was out of date. Please repeat.", 403)
    identity = await run_sync(people.by_token, service.engine, service.clock, str(form.get("token", "")).strip())
    if identity is None:
        words = "This token is not in force: check that it is complete, or ask a curator for a new one."
        return _login_page(request, str(form.get("next", "/")), words, 401)
    secret, _ = await run_sync(_enter, service, identity)
    answer = RedirectResponse(local(str(form.get("next", "/"))), status_code=303)
    https = service.settings.https
    answer.set_cookie(
        SECURE_COOKIE if https else COOKIE,
        secret,
        max_age=int(people.SESSION),
        httponly=True,
        samesite="strict",
        secure=https,
    )
    answer.delete_cookie(_LOGIN)
    return answer


def _enter(service: Service, identity: people.Identity) -> tuple[str, str]:
    notes.note(service, "signed in", identity, token=identity.token)
    return people.open_session(service.engine, service.clock, identity)


@router.post("/logout")
def logout(request: Request) -> Response:
    """Forget the session."""
    service = service_of(request)
    name = SECURE_COOKIE if service.settings.https else COOKIE
    people.close_session(service.engine, request.cookies.get(name, ""))
    sign_in.close(service, request.cookies.get(name, ""))
    service.forget_identities()
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(name, secure=service.settings.https, httponly=True, samesite="strict")
    return answer


@router.get("/")
def home() -> Response:
    """Where everybody begins."""
    return RedirectResponse("/datasets", status_code=303)


@router.get("/datasets")
def datasets(request: Request) -> Response:
    """All data sets that one may use, with their budgets."""
    service, identity = service_of(request), may_read(request)
    found = catalogue.listed(service.engine, identity)
    rows = [(dataset, budgets.bars(service, dataset, identity)) for dataset in found]
    return page(request, "datasets.html", rows=rows)


@router.get("/datasets/{dataset}")
def dataset_page(request: Request, dataset: str) -> Response:
    """One data set: schema, budgets, and what to do with it."""
    service, identity = service_of(request), may_read(request)
    found = catalogue.find(service.engine, identity, dataset)
    return page(request, "dataset.html", dataset=found, bars=budgets.bars(service, found, identity), rows=ROWS)


@router.get("/datasets/{dataset}/dummy.csv")
def dummy_csv(request: Request, dataset: str) -> Response:
    """Made-up rows of the same schema."""
    service, identity = service_of(request), may_read(request)
    found = catalogue.find(service.engine, identity, dataset)
    columns = dummy(found.bounds, ROWS, outcome=found.outcome, treatment=found.treatment)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([harmless(name) for name in columns])
    writer.writerows([harmless(value) for value in row] for row in zip(*columns.values(), strict=True))
    return download(out.getvalue(), f"{found.id}-dummy.csv", "text/csv")


@router.get("/datasets/{dataset}/plan")
def plan_page(request: Request, dataset: str) -> Response:
    """What a request would cost and bring; the figure follows the form."""
    service, identity = service_of(request), may_read(request)
    found = catalogue.find(service.engine, identity, dataset)
    given = dict(request.query_params)
    given.setdefault("kind", "ate")
    given.setdefault("epsilon", "1")
    given.setdefault("delta", "1e-6")
    part = _planned(request, found, given)
    part["slide"] = f"{math.log10(_float(given['epsilon'], 100.0) or 1.0):.2f}"
    kinds = {kind: TITLES[kind] for kind in kinds_for(found)}
    context: dict[str, Any] = {"dataset": found, "given": given, "kinds": kinds}
    context |= {"unit": forms.unit_of(found.bounds)[1], "asks": fields_for(kinds, claimed=found.claimed)}
    if "hx-request" in request.headers:
        return page(request, "planned.html", **context, **part)
    return page(request, "plan.html", **context, **part)


def _planned(request: Request, dataset: catalogue.Dataset, given: dict[str, str]) -> dict[str, Any]:
    service, identity = service_of(request), me(request)
    problem = answer = drawn = between = leaves = None
    unplanned = given["kind"] in OFFERED and OFFERED[given["kind"]].planned_as is None
    try:
        if not unplanned:
            asked = forms.planned(given, dataset.bounds)
            answer = plans.answer(dataset, asked)
            between = plans.expected_range(dataset, asked, answer.plan)
            unit = forms.unit_of(dataset.bounds)[1]
            drawn = plan_view(plans.curve(dataset, asked), answer.plan, unit)
            given["epsilon"] = f"{answer.plan.epsilon:.3g}"
            wanted = Asked(kind=asked.kind, epsilon=answer.plan.epsilon, delta=asked.delta)
            leaves = budgets.what_if(service, dataset, identity, wanted)
    except DiscreetError as error:
        problem = str(error)
    delta = given.get("delta", "")
    most = budgets.largest(service, dataset, identity, _float(delta)) if identity.role == "analyst" else None
    found = {"answer": answer, "figure": drawn, "problem": problem, "most": most, "leaves": leaves}
    return found | {"between": between, "unplanned": unplanned}


@router.get("/audit")
def audit_page(request: Request) -> Response:
    """What the audit found, of proved and of published mechanisms."""
    may_read(request)
    return page(request, "audit.html", **summary())


@router.get("/interface")
def interface(request: Request) -> Response:
    """The programming interface, documented from its own schema."""
    may_read(request)
    return page(request, "interface.html", schema=request.app.openapi())


def download(body: str | bytes, name: str, kind: str) -> Response:
    """A file; its name is made of letters, digits and hyphens only."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "-", name)
    return Response(body, media_type=kind, headers={"content-disposition": f'attachment; filename="{safe}"'})


def harmless(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula gets a quote before it."""
    risky = ("=", "+", "-", "@", "\t", "\r", "\n")
    return f"'{value}" if isinstance(value, str) and value.lstrip(" ").startswith(risky) else value


def plain_json(plain: Any) -> str:
    """As release files are written."""
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _login_page(request: Request, target: str, problem: str | None = None, status: int = 200) -> Response:
    csrf = people.random_text(18)
    service = service_of(request)
    context = {"next": local(target), "problem": problem, "institution": service.provider is not None}
    answer = page(request, "login.html", status, login_csrf=csrf, **context)
    https = service.settings.https
    answer.set_cookie(_LOGIN, csrf, max_age=3600, httponly=True, samesite="strict", secure=https)
    return answer


def local(target: str) -> str:
    """An address on this service; its first page in place of any other."""
    return target if _LOCAL.fullmatch(target) else "/"


def _float(text: str, most: float = 1.0) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < most else None
