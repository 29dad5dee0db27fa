"""Requests over HTTP: sent again where that is safe, and refused in the library's own exceptions."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from discreet.exceptions import (
    BudgetExceeded,
    DiscreetError,
    InvalidInput,
    LedgerRefused,
    LedgerUnavailable,
    MissingExtra,
    SourceFailed,
)

if TYPE_CHECKING:
    from httpx2 import Client as HttpClient
    from httpx2 import Response

VERSION = "/api/v1"
# Codes of refusals, as the service's description lists them; whatever is not here cannot be used as it was sent.
EXCEPTIONS: Mapping[str, type[DiscreetError]] = {
    "budget": BudgetExceeded,
    "forbidden": LedgerRefused,
    "frozen": LedgerRefused,
    "claimed": LedgerRefused,
    "other-curator": LedgerRefused,
    "twice": LedgerRefused,
    "anchor": LedgerUnavailable,
    "provider-away": LedgerUnavailable,
    "too-many": LedgerUnavailable,
    "too-slow": LedgerUnavailable,
    "under-way": LedgerUnavailable,
    "unavailable": LedgerUnavailable,
    "unexpected": LedgerUnavailable,
}
# What became of a job that released nothing.
FAILURES: Mapping[str, type[DiscreetError]] = {
    "source": SourceFailed,
    "budget": BudgetExceeded,
    "frozen": LedgerRefused,
    "access": LedgerRefused,
    "stopped": LedgerRefused,
    "stopped-charged": LedgerRefused,
    "failed-charged": SourceFailed,
    "lost-charged": SourceFailed,
    "limits": SourceFailed,
    "limits-charged": SourceFailed,
}
# Answers after which the same request may succeed.
_AGAIN = {408, 429, 502, 503, 504}
# Seconds before a request is sent again, and at most.
_FIRST, _LONGEST = 0.2, 5.0
_HERE = {"localhost", "127.0.0.1", "::1"}


class Transport:
    """A connection to one service.

    Parameters
    ----------
    address : str
        Where the service is.
    token : str
        What it knows the caller by.
    patience : float
        Seconds for which a request that may succeed later is sent again.
    http : httpx2.Client, optional
        What sends; one that follows no redirects, which would take the token elsewhere.
    """

    def __init__(self, address: str, token: str, patience: float, http: HttpClient | None = None) -> None:
        self.address = checked_address(address)
        self._patience = patience
        self._headers = {"Authorization": f"Bearer {checked_token(token)}"}
        self._http = http or _client()

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:
        """The answer to a question."""
        return self._send("GET", path, params=query).json()

    def pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Items of a list, page by page."""
        after: dict[str, Any] = {}
        while True:
            found = self.get(path, **after)
            yield from found["items"]
            if found["next"] is None:
                return
            after = {"after": found["next"]}

    def post(self, path: str, body: Any = None, key: str | None = None) -> Any:
        """The answer to a request that the service answers alike however often it comes."""
        headers = {} if key is None else {"Idempotency-Key": key}
        return self._send("POST", path, json=body, headers=headers).json()

    def _send(self, method: str, path: str, **what: Any) -> Response:
        headers = self._headers | what.pop("headers", {})
        started, pause = time.monotonic(), _FIRST
        while True:
            answer = self._once(method, self.address + VERSION + path, headers=headers, **what)
            if answer is not None and answer.is_success:
                return answer
            problem = _problem(answer, self.address)
            if not _may_succeed(answer, problem) or time.monotonic() - started + pause > self._patience:
                raise problem
            time.sleep(max(pause, _asked_for(answer)))
            pause = min(2.0 * pause, _LONGEST)

    def _once(self, method: str, url: str, **what: Any) -> Response | None:
        """An answer, or None where the service cannot be reached."""
        from httpx2 import TransportError

        try:
            return self._http.request(method, url, **what)
        except TransportError:
            return None


def checked_address(address: str) -> str:
    """An address to which a token may be sent."""
    parts = urlsplit(address) if isinstance(address, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidInput("address must be that of a service, such as https://discreet.example.org: write it in full.")
    if parts.username is not None:
        raise InvalidInput("address must hold no password: give token=, or DISCREET_TOKEN in the environment.")
    if parts.scheme == "http" and parts.hostname not in _HERE:
        raise InvalidInput("address must begin with https://: a token that travels in the clear is everybody's.")
    return address.rstrip("/")


def checked_token(token: str | None) -> str:
    """A token as it may stand in a header."""
    found = token or os.environ.get("DISCREET_TOKEN", "")
    if not isinstance(found, str) or not found.isascii() or not found.isprintable() or " " in found.strip():
        raise InvalidInput("token must be the text that a curator gave you: copy it as it is.")
    if not found.strip():
        raise InvalidInput("token is missing: give token=, or DISCREET_TOKEN in the environment.")
    return found.strip()


def failure(job: Mapping[str, Any]) -> DiscreetError:
    """Why a job released nothing, as the library says it."""
    return FAILURES.get(str(job["failure"]), SourceFailed)(job["text"] or "The request ended without a release.")


def _problem(answer: Response | None, address: str) -> DiscreetError:
    """A refusal as the library's own exception, in the service's words."""
    if answer is None:
        return LedgerUnavailable(
            f"{address} cannot be reached: check the address and the network. Requests are safe to send again."
        )
    try:
        plain = answer.json()
        code, text, where = str(plain["error"]), str(plain["text"]), plain.get("where") or []
    except (ValueError, KeyError, TypeError, AttributeError):
        if answer.status_code >= 500:
            return LedgerUnavailable(f"{address} does not answer now: wait a moment, and repeat.")
        return InvalidInput(f"{address} does not answer as a service of discreet does: check the address.")
    named = [name for name in where if name not in text]
    return EXCEPTIONS.get(code, InvalidInput)(text + (f" It is about {', '.join(map(str, named))}." if named else ""))


def _may_succeed(answer: Response | None, problem: DiscreetError) -> bool:
    if answer is None or answer.status_code in _AGAIN:
        return True
    # Another of our own requests under the same key has not been answered yet.
    return answer.status_code == 409 and isinstance(problem, LedgerUnavailable)


def _asked_for(answer: Response | None) -> float:
    """Seconds that the service asks to wait."""
    text = "" if answer is None else answer.headers.get("retry-after", "")
    return min(float(text), _LONGEST) if text.isdecimal() and len(text) < 6 else 0.0


def _client() -> HttpClient:
    try:
        import httpx2
    except ModuleNotFoundError:
        raise MissingExtra("discreet.client needs httpx2: install it with pip install 'discreet[client]'.") from None
    return httpx2.Client(timeout=30.0, follow_redirects=False)
