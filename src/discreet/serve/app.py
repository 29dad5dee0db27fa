"""The application: routes behind their checks, refusals in fixed words, and a worker beside them."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anyio.to_thread import run_sync
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import DataError, OperationalError
from starlette.exceptions import HTTPException

from discreet import __version__
from discreet.exceptions import DiscreetError, LedgerUnavailable
from discreet.serve.api import analyst as api
from discreet.serve.api import curator as api_curator
from discreet.serve.domain.requests import field_named, first_problem
from discreet.serve.errors import Refusal
from discreet.serve.middleware import AccessChecks
from discreet.serve.operations import logs
from discreet.serve.operations.observing import Observed
from discreet.serve.operations.readiness import Readiness
from discreet.serve.pages import analyst as pages
from discreet.serve.pages import curator as pages_curator
from discreet.serve.pages import documents as pages_documents
from discreet.serve.pages import institution as pages_institution
from discreet.serve.pages import public as pages_public
from discreet.serve.pages import requests as pages_request
from discreet.serve.pages.rendering import error_page
from discreet.serve.service import Service
from discreet.serve.settings import Settings
from discreet.serve.warmup import warm
from discreet.serve.wizard import steps as wizard
from discreet.serve.worker import Worker

ROUTERS = (
    api.router,
    api_curator.router,
    pages.router,
    pages_request.router,
    pages_public.router,
    pages_documents.router,
    wizard.router,
    pages_curator.router,
    pages_institution.router,
)
_SWITCH = 0.0005
_ABOUT = """
Treatment effects from sensitive records, published under differential privacy.

Analysts plan for free, ask for releases, and read them; nothing here ever shows a record. Send a token as
`Authorization: Bearer ...`. What is refused is refused in fixed words that depend on nothing but the request.
"""


def create_app(settings: Settings) -> Any:
    """The service as an ASGI application.

    Parameters
    ----------
    settings : Settings
        How it is set up.
    """
    service = Service.of(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await run_sync(warm, app, service)
        worker = Worker(service) if settings.work else None
        if worker is not None:
            worker.start()
        yield
        if worker is not None:
            worker.end()
        service.close()

    app = FastAPI(
        title="discreet",
        version=__version__,
        description=_ABOUT,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        # Paths differ by a slash only where they differ.
        redirect_slashes=False,
    )
    app.state.service = service
    app.state.readiness = Readiness(service)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(DiscreetError, _invalid)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(DataError, _unstorable)
    app.add_exception_handler(OperationalError, _unavailable)
    app.add_exception_handler(LedgerUnavailable, _unavailable)
    app.add_middleware(AccessChecks, service=service)
    # The last one is the outermost.
    app.add_middleware(Observed, service=service)
    return app


def from_environment() -> Any:
    """The application with the settings that a parent process wrote down."""
    logs.begin()
    # Somebody's long computation gives way to others' short ones more often than Python's 5 ms.
    sys.setswitchinterval(_SWITCH)
    return create_app(Settings.from_environment())


def _answer(request: Request, refusal: Refusal, where: Sequence[str] = ()) -> Response:
    if request.url.path.startswith("/api"):
        return JSONResponse(refusal.plain(where), refusal.status)
    return error_page(request, refusal.status, refusal.text)


async def _refused(request: Request, error: Any) -> Response:
    return _answer(request, error)


async def _invalid(request: Request, error: Exception) -> Response:
    """Routes see public facts and requests only, so that what they refuse may be quoted."""
    return _answer(request, Refusal("invalid", str(error)))


async def _malformed(request: Request, error: Any) -> Response:
    problems = error.errors()
    text = f"The request cannot be read: {first_problem(problems)}"
    return _answer(request, Refusal("malformed", text), sorted(set(map(field_named, problems))))


async def _unstorable(request: Request, error: Any) -> Response:
    """What a database cannot even search for: PostgreSQL knows no text with a NUL in it."""
    return _answer(request, Refusal("malformed"))


async def _unavailable(request: Request, error: Any) -> Response:
    """A disk that is full, or a database that does not answer."""
    logs.failed("unavailable", error)
    # Until the log was compared with its anchor nothing is written to it.
    return _answer(request, Refusal("anchor" if request.app.state.service.ledger.held else "unavailable"))


async def _http(request: Request, error: Any) -> Response:
    return _answer(request, Refusal({404: "nothing-here", 405: "method"}.get(error.status_code, "malformed")))
