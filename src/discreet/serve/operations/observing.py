"""Around everything that the service answers: an id for each request, a line in the log, and counts for monitoring."""

from __future__ import annotations

import hmac
import logging
import os
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response

from discreet.serve.operations import logs, metrics
from discreet.serve.service import Service

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
PATH = "/metrics"
# Names of things in addresses, which say what a request was about; nothing else of an address is written down.
_NAMES = ("dataset", "release", "name", "person", "job")
# A client that has gone before it was answered.
_GONE = 499


class Observed:
    """The application, observed.

    Parameters
    ----------
    app : callable
        The application behind its checks.
    service : Service
        Whose queue is reported.
    """

    def __init__(self, app: Any, service: Service) -> None:
        self.app, self._service = app, service

    async def __call__(self, scope: Message, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        seen = _Seen()
        about = logs.request_id.set(seen.id)
        try:
            if scope["path"] == PATH:
                answer = await self._metrics(Headers(scope=scope))
                await answer(scope, receive, seen.through(send))
            else:
                await self.app(scope, receive, seen.through(send))
        finally:
            self._note(scope, seen)
            logs.request_id.reset(about)

    async def _metrics(self, headers: Headers) -> Response:
        """For whoever has the token of the configuration; for others there is nothing here."""
        expected = self._service.settings.metrics_token
        given = headers.get("authorization", "").removeprefix("Bearer ").strip()
        if not expected or not hmac.compare_digest(given.encode(), expected.encode()):
            return PlainTextResponse("There is nothing here that you may see: check the address.\n", 404)
        return Response(await run_sync(metrics.text, self._service), media_type=metrics.CONTENT)

    def _note(self, scope: Message, seen: _Seen) -> None:
        taken, method = time.perf_counter() - seen.began, _known_method(scope["method"])
        route, status = _route(scope), seen.status or _GONE
        metrics.answers.labels(method, route, str(status)).inc()
        metrics.seconds.labels(method, route).observe(taken)
        if self._service.settings.access_log:
            identity = scope.get("state", {}).get("identity")
            named = scope.get("path_params", {})
            facts = {key: str(named[key])[:80] for key in _NAMES if key in named}
            if identity is not None:
                facts["by"] = identity.person
            facts["from"] = self._service.proxies.client_of(scope, Headers(scope=scope))
            facts |= {"method": method, "route": route}
            logs.note(logging.INFO, "answer", **facts, status=status, seconds=round(taken, 4))


class _Seen:
    """One request: its id, and the status that it was answered with."""

    def __init__(self) -> None:
        self.id, self.began, self.status = os.urandom(8).hex(), time.perf_counter(), 0

    def through(self, send: Send) -> Send:
        """Pass messages on, with the id in the head of the answer."""

        async def passed(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                message["headers"] = [*message.get("headers", []), (b"x-request-id", self.id.encode())]
            await send(message)

        return passed


def _route(scope: Message) -> str:
    """The pattern of an address; addresses themselves are too many, and hold what people typed."""
    if scope["path"] == PATH:
        return PATH
    route = scope.get("route")
    return str(getattr(route, "path", "")) or "(none)"


def _known_method(method: str) -> str:
    return method if method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} else "(other)"
