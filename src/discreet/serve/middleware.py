"""What every request passes before any route sees it: identity, frequency, size, forgery, time and headers.

No byte of a body is read before it is known who sends it; only the form to sign in is read for anybody, and is small.
Nothing is let through by a route's own doing: a path is closed unless it stands in ``OPEN``.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from anyio.to_thread import run_sync
from sqlalchemy.exc import OperationalError
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from discreet.exceptions import LedgerUnavailable
from discreet.serve.domain.users import Identity, by_session, by_token, touch
from discreet.serve.errors import Refusal
from discreet.serve.governance import notes
from discreet.serve.institution import sign_in
from discreet.serve.operations import logs
from discreet.serve.pages.rendering import error_page
from discreet.serve.rate_limits import Buckets, Turns, cost_of
from discreet.serve.service import Service

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

ALIVE = ("/health", "/ready")
OPEN = (*ALIVE, "/login", "/sign-in", "/sign-in/callback")
STATIC = "/static/"
# Read by anybody, and nothing else: what a curator shows to the public, and what the package itself says.
PUBLIC = re.compile(r"/public/[^/]+(/release\.(json|png))?|/(proofs|evidence)(/[^/]+)?")
# How many seconds' worth of public pages an address may read at once.
_AT_ONCE = 12
COOKIE, SECURE_COOKIE = "discreet", "__Host-discreet"
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_SAFE = {"GET", "HEAD", "OPTIONS"}
# A revoked token is refused by other server processes after this many seconds at most.
_REMEMBER = 2.0
_MOST = 5_000
# What a token or the value of a cookie may be as long as; longer ones are neither looked up nor remembered.
_LONGEST = 200
# Answered from public numbers and releases alone, as fast as possible.
_FREE = re.compile(r"/api/v1/(releases/[^/]+/effects|datasets/[^/]+/plan)|/releases/[^/]+/(upload|explore)")
# Brings a file.
_UPLOAD = re.compile(r"/releases/[^/]+/upload")


class AccessChecks:
    """The application behind its checks."""

    def __init__(self, app: App, service: Service) -> None:
        settings = service.settings
        self._app, self._service = app, service
        self._logins = Buckets(settings.logins / 60.0, settings.logins)
        self._spends = Buckets(settings.spends / 60.0, settings.spends)
        self._asks = Buckets(settings.asks, settings.asks)
        self._readers = Buckets(settings.readers, _AT_ONCE * settings.readers)
        self._turns = Turns(settings.at_once)
        self._known: dict[tuple[str, str], tuple[Identity | None, float]] = {}
        service.forget_identities = self._known.clear

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Nobody, until somebody is recognised: pages ask in either case.
        scope.setdefault("state", {})["identity"] = None
        send = self._timed(scope, _with_headers(scope, send, self._service.settings.https))
        try:
            await self._enter(scope, receive, send)
        except Refusal as refusal:
            answer = refused(scope, refusal)
            if scope["method"] not in _SAFE:
                # What is left of its body is not waited for.
                answer.headers["connection"] = "close"
            await answer(scope, receive, send)
        except Exception as error:
            # The message may quote records, so that only its kind is noted.
            logs.failed(f"{scope['method']} {_route(scope)}", error)
            code = "unavailable" if isinstance(error, OperationalError | LedgerUnavailable) else "unexpected"
            if isinstance(error, LedgerUnavailable):
                with suppress(LedgerUnavailable):
                    code = "anchor" if self._service.ledger.held else code
            await refused(scope, Refusal(code))(scope, receive, send)

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, unsafe = scope["path"], scope["method"] not in _SAFE
        headers = Headers(scope=scope)
        if unsafe and headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            raise Refusal("forged")
        if path.startswith(STATIC) or path in ALIVE:
            await self._app(scope, receive, send)
            return
        if path in OPEN:
            signs_in = unsafe or path != "/login"
            if signs_in and not self._logins.take(self._service.proxies.client_of(scope, headers)):
                raise Refusal("too-many")
            receive = await self._whole(path, headers, receive) if unsafe else receive
            await self._app(scope, receive, send)
            return
        identity = await self._identity(headers)
        if identity is None and not unsafe and PUBLIC.fullmatch(path):
            if not self._readers.take(self._service.proxies.client_of(scope, headers)):
                raise Refusal("too-many")
            await self._app(scope, receive, send)
            return
        if identity is None:
            raise Refusal("bad-token" if "authorization" in headers else "sign-in")
        if not self._affords(scope, headers, identity, unsafe):
            raise Refusal("too-many")
        if unsafe:
            receive = await self._whole(path, headers, receive)
        if unsafe and identity.csrf is not None:
            receive = await _unforged(scope, receive, identity.csrf)
        scope["state"]["identity"] = identity
        async with self._turns.one(identity.person):
            await self._app(scope, receive, send)

    def _affords(self, scope: Scope, headers: Headers, identity: Identity, unsafe: bool) -> bool:
        """Whether somebody may send this now; what costs more takes more."""
        if unsafe and not _FREE.fullmatch(scope["path"]):
            return self._spends.take(identity.person)
        return self._asks.take(identity.person, cost_of(scope["path"], headers.get("content-length", "")))

    async def _identity(self, headers: Headers) -> Identity | None:
        """By a bearer token, or by a session's cookie; remembered for a moment."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if "authorization" in headers:
            if scheme.lower() != "bearer":
                return None
            key = ("token", given.strip())
        else:
            name = SECURE_COOKIE if self._service.settings.https else COOKIE
            key = ("session", Request({"type": "http", "headers": headers.raw}).cookies.get(name, ""))
        if not 0 < len(key[1]) <= _LONGEST:
            return None
        known, until = self._known.get(key, (None, 0.0))
        if until > time.monotonic():
            return known
        find = self._of_token if key[0] == "token" else self._of_session
        found = await run_sync(find, key[1])
        if found is not None:
            await run_sync(self._noted, found, key[0] == "token")
        if len(self._known) > _MOST:
            self._known.clear()
        self._known[key] = (found, time.monotonic() + _REMEMBER)
        return found

    def _noted(self, identity: Identity, program: bool) -> None:
        """Let people see when a token was last used; what a program does with one begins with a line of the log."""
        touch(self._service.engine, self._service.clock, identity.token)
        if program:
            notes.note(self._service, "signed in", identity, daily=True, token=identity.token, by="a program")

    def _of_token(self, given: str) -> Identity | None:
        return by_token(self._service.engine, self._service.clock, given)

    def _of_session(self, secret: str) -> Identity | None:
        """By a session that a token opened, or an institution, which is asked from time to time whether it stands."""
        found = by_session(self._service.engine, self._service.clock, secret)
        provider = self._service.provider
        if found is not None or provider is None:
            return found
        visit = sign_in.by_visit(self._service, secret)
        if visit is None:
            return None
        identity, due = visit
        return identity if not due or sign_in.still_stands(self._service, provider, secret) else None

    async def _whole(self, path: str, headers: Headers, receive: Receive) -> Receive:
        """The body, read at once up to its limits of size and time."""
        settings = self._service.settings
        limit = settings.upload_limit if _UPLOAD.fullmatch(path) else settings.body_limit
        stated = headers.get("content-length", "0")
        if not stated.isdecimal() or len(stated) > 12 or int(stated) > limit:
            raise Refusal("too-large")
        try:
            async with asyncio.timeout(settings.body_seconds):
                return _replay(await _read(receive, limit), receive)
        except TimeoutError:
            raise Refusal("too-slow") from None

    def _timed(self, scope: Scope, send: Send) -> Send:
        """Hold answers back until the next point of a public grid, where what is asked may be refused."""
        grid = self._service.settings.grid
        if scope["method"] in _SAFE or _FREE.fullmatch(scope["path"]) or grid <= 0:
            return send
        started = time.monotonic()

        async def held(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                elapsed = time.monotonic() - started
                await asyncio.sleep(math.ceil(elapsed / grid) * grid - elapsed)
            await send(message)

        return held


async def _unforged(scope: Scope, receive: Receive, csrf: str) -> Receive:
    """Whether a form came from a page of this service: it carries what only such a page knows."""
    headers = Headers(scope=scope)
    given = headers.get("x-csrf-token")
    if given is None and headers.get("content-type", "").startswith(
        ("application/x-www-form-urlencoded", "multipart/form-data")
    ):
        body = (await receive())["body"]
        try:
            async with Request(scope, _replay(body, receive)).form(max_files=1, max_fields=1000) as form:
                given = str(form.get("csrf", ""))
        except Exception:
            raise Refusal("malformed") from None
        receive = _replay(body, receive)
    if given is None or not hmac.compare_digest(given.encode(), csrf.encode()):
        raise Refusal("forged")
    return receive


def refused(scope: Scope, refusal: Refusal) -> Response:
    """The answer to a request that got no further than these checks."""
    page = not scope["path"].startswith("/api")
    if page and refusal.code in {"sign-in", "bad-token"}:
        headers = Headers(scope=scope)
        if "hx-request" in headers:
            return Response(status_code=401, headers={"hx-redirect": "/login"})
        target = urlencode({"next": scope["path"]}) if scope["method"] == "GET" and scope["path"] != "/" else ""
        return RedirectResponse("/login" + (f"?{target}" if target else ""), status_code=303)
    if page:
        return error_page(Request(scope), refusal.status, refusal.text)
    headers_ = {401: {"www-authenticate": "Bearer"}, 429: {"retry-after": "1"}}.get(refusal.status)
    return JSONResponse(refusal.plain(), refusal.status, headers_)


async def _read(receive: Receive, limit: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            # What was cut off may still read as something else that makes sense.
            raise Refusal("malformed")
        body += message.get("body", b"")
        if len(body) > limit:
            raise Refusal("too-large")
        if not message.get("more_body"):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _with_headers(scope: Scope, send: Send, https: bool) -> Send:
    extra = HEADERS | ({"strict-transport-security": "max-age=31536000"} if https else {})
    extra["cache-control"] = "public, max-age=3600" if scope["path"].startswith(STATIC) else "no-store"
    raw = [(name.encode(), value.encode()) for name, value in extra.items()]

    async def headed(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = message.get("headers", [])
            named = {name for name, _ in own}
            message["headers"] = [*own, *(header for header in raw if header[0] not in named)]
        await send(message)

    return headed


def _route(scope: Scope) -> str:
    route = scope.get("route")
    return getattr(route, "path", "(no route)")
