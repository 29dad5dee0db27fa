"""What pages share: templates, the present identity, and numbers as people read them."""

from __future__ import annotations

import math
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

from discreet.releases.page import bounds_rows, with_minus
from discreet.serve.domain.users import Identity
from discreet.serve.errors import Refusal
from discreet.serve.service import Service


@lru_cache(maxsize=1)
def templates() -> jinja2.Environment:
    """All templates; everything is escaped but the figures that this package drew."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["minus"] = with_minus
    made.filters["number"] = number
    made.filters["down"] = down
    made.filters["day"] = lambda seconds: time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))
    made.filters["figure"] = Markup
    made.filters["shown"] = lambda value: with_minus(f"{value:.4g}") if isinstance(value, float) else value
    made.globals["bounds_rows"] = bounds_rows
    return made


def number(value: float | None, digits: int = 3) -> str:
    """A number as people read it."""
    if value is None:
        return "\N{EN DASH}"
    if value == int(value) and abs(value) < 1e15:
        return with_minus(f"{int(value):,}")
    return with_minus(f"{value:,.{digits}g}" if abs(value) < 1e4 else f"{value:,.0f}")


def down(value: float, digits: int = 3) -> str:
    """The same, rounded down: what is left must not look like more."""
    if value <= 0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    # A number that was rounded before is not rounded down again.
    return number(math.floor(value / step + 1e-9) * step, digits)


def page(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """A page, or a part of one."""
    identity: Identity | None = request.state.identity
    shared = {"me": identity, "path": request.url.path, "csrf": identity.csrf if identity else None}
    return HTMLResponse(templates().get_template(template).render(shared | context), status)


def error_page(request: Request, status: int, text: str) -> Response:
    """A refusal as a page, or as a sentence where a part of a page was asked for."""
    if "hx-request" in request.headers:
        return page(request, "problem.html", text=text)
    return page(request, "error.html", status, text=text)


def service_of(request: Request) -> Service:
    """The service that a request came to."""
    service: Service = request.app.state.service
    return service


def me(request: Request) -> Identity:
    """Who asks; the access checks let nobody through without."""
    identity: Identity = request.state.identity
    return identity


def may_request(request: Request) -> Identity:
    """Who asks, if they may spend budget."""
    identity = me(request)
    if "request" not in identity.scopes:
        raise Refusal("forbidden")
    return identity


def may_read(request: Request) -> Identity:
    """Who asks, if they may read."""
    identity = me(request)
    if "read" not in identity.scopes:
        raise Refusal("forbidden")
    return identity


def may_curate(request: Request) -> Identity:
    """Who asks, if it is a curator."""
    identity = me(request)
    if not identity.curator:
        raise Refusal("forbidden")
    return identity
