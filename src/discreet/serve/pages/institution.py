"""Pages: sign in by an institution, and come back from it."""

from __future__ import annotations

import re

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from discreet.serve.domain import users as people
from discreet.serve.errors import Refusal
from discreet.serve.institution import sign_in
from discreet.serve.institution.provider import Provider
from discreet.serve.middleware import COOKIE, SECURE_COOKIE
from discreet.serve.pages.analyst import local
from discreet.serve.pages.rendering import page, service_of

router = APIRouter(include_in_schema=False)
BEGUN = "discreet_sign_in"
_BACK = ("state", "code")
_TEXT = re.compile(r"[\x21-\x7e]{1,2000}")


@router.get("/sign-in")
async def begin(request: Request) -> Response:
    """Lead somebody to their institution."""
    service, provider = service_of(request), _provider(request)
    target = local(request.query_params.get("next", "/"))
    address, cookie = await run_sync(sign_in.begin, service, provider, target)
    answer = RedirectResponse(address, status_code=303)
    # The institution's answer comes from another site: a strict cookie would stay behind.
    answer.set_cookie(
        BEGUN,
        cookie,
        max_age=600,
        path="/sign-in/callback",
        httponly=True,
        samesite="lax",
        secure=service.settings.https,
    )
    return answer


@router.get("/sign-in/callback")
async def callback(request: Request) -> Response:
    """Open a session for whom the institution signed in."""
    service, provider = service_of(request), _provider(request)
    cookie, state, code = request.cookies.get(BEGUN, ""), *(request.query_params.get(name, "") for name in _BACK)
    if not all(map(_TEXT.fullmatch, (cookie, state, code))):
        # Nobody came back, or the institution did not sign them in.
        raise Refusal("bad-identity" if "error" in request.query_params else "bad-state")
    secret, target, _ = await run_sync(sign_in.finish, service, provider, cookie, state, code)
    # This request was led here by another site, and so would one be that it redirects: browsers hold strict cookies
    # back from it, but not from a page that leads on by itself.
    answer = page(request, "signed_in.html", target=target)
    https = service.settings.https
    answer.set_cookie(
        SECURE_COOKIE if https else COOKIE,
        secret,
        max_age=int(people.SESSION),
        httponly=True,
        samesite="strict",
        secure=https,
    )
    answer.delete_cookie(BEGUN, path="/sign-in/callback")
    return answer


def _provider(request: Request) -> Provider:
    provider = service_of(request).provider
    if provider is None:
        raise Refusal("nothing-here")
    return provider
