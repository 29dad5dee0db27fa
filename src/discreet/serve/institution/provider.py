"""An institution's identity provider, by OpenID Connect: what it is asked, and what of its answers is believed.

Signatures and claims are checked by joserfc. Second factors, passwords and lost devices are the provider's.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from discreet.exceptions import InvalidInput
from discreet.serve.errors import Refusal
from discreet.serve.settings import Settings

if TYPE_CHECKING:
    from httpx2 import Client as HttpClient
    from httpx2 import Response

# Signatures that need the provider's private key: a shared secret, or none at all, signs for nobody.
_SIGNATURES = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
# Seconds: how far clocks may be apart, how long what a provider says of itself is kept, and how long it may take.
_LEEWAY, _KEPT, _PATIENCE = 60, 3_600.0, 10.0
# Seconds between two questions for keys because a signature names one that is not known.
_NEW_KEYS = 30.0
_HERE = {"localhost", "127.0.0.1", "::1"}
_log = logging.getLogger("discreet.serve")


class Provider:
    """One identity provider.

    Parameters
    ----------
    settings : Settings
        Whose ``oidc_`` fields say which, and as what this service is known there.
    http : httpx2.Client, optional
        What asks it.
    """

    def __init__(self, settings: Settings, http: HttpClient | None = None) -> None:
        _check_reachable(settings.oidc_issuer, "oidc_issuer")
        self._settings, self._http, self._lock = settings, http, threading.Lock()
        self._facts: tuple[dict[str, Any], float] | None = None
        self._keys: tuple[Any, float] | None = None

    @property
    def callback(self) -> str:
        """Where the provider sends people back to: never by what a request's header says."""
        return f"{self._settings.address.rstrip('/')}/sign-in/callback"

    def address_for(self, state: str, nonce: str, verifier: str) -> str:
        """Where somebody signs in."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self._settings.oidc_client,
            "redirect_uri": self.callback,
            "scope": " ".join(self._settings.oidc_scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        address = str(self._metadata()["authorization_endpoint"])
        return address + ("&" if "?" in address else "?") + urlencode(query)

    def exchanged(self, code: str, verifier: str) -> dict[str, Any]:
        """The tokens for the code that somebody came back with."""
        return self._tokens(
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": self.callback,
                "code_verifier": verifier,
            }
        )

    def refreshed(self, token: str) -> dict[str, Any]:
        """New tokens, if the provider still stands by somebody."""
        return self._tokens({"grant_type": "refresh_token", "refresh_token": token})

    def claims(self, token: object, now: float, nonce: str | None) -> dict[str, Any]:
        """What an identity token says, if this provider made it, for this service and this sign-in, and lately."""
        from joserfc import jwt
        from joserfc.errors import ExpiredTokenError, JoseError

        mine, issuer = self._settings.oidc_client, self._metadata()["issuer"]
        if not isinstance(token, str) or len(token) > 100_000:
            raise _refused("no identity token")
        try:
            found = self._decoded(token).claims
            expected: dict[str, Any] = {
                "iss": {"essential": True, "value": issuer},
                "aud": {"essential": True, "value": mine},
                "sub": {"essential": True},
                "exp": {"essential": True},
                "iat": {"essential": True},
            }
            jwt.JWTClaimsRegistry(now=int(now), leeway=_LEEWAY, **expected).validate(found)
        except ExpiredTokenError:
            raise _refused("an expired identity token") from None
        except (JoseError, ValueError, TypeError) as error:
            raise _refused(f"an identity token that does not verify ({type(error).__name__})") from None
        # Whoever else it is meant for could have got it first.
        if found.get("azp", mine) != mine or (isinstance(found["aud"], list) and found["aud"] != [mine]):
            raise _refused("an identity token for another audience")
        if nonce is not None and not hmac.compare_digest(str(found.get("nonce", "")).encode(), nonce.encode()):
            raise _refused("an identity token with another nonce")
        return dict(found)

    def profile(self, access: object) -> dict[str, Any]:
        """What the provider says of somebody now; nothing, where it offers no such place."""
        address = self._metadata().get("userinfo_endpoint")
        if not isinstance(access, str) or address is None:
            return {}
        found = _plain(self._asked("GET", str(address), headers={"Authorization": f"Bearer {access}"}))
        return found

    def _tokens(self, form: dict[str, str]) -> dict[str, Any]:
        settings = self._settings
        auth = (settings.oidc_client, settings.oidc_secret)
        return _plain(self._asked("POST", str(self._metadata()["token_endpoint"]), data=form, auth=auth))

    def _decoded(self, token: str) -> Any:
        """A token whose signature is right; keys are fetched again if it names one that is not known."""
        from joserfc import jwt
        from joserfc.errors import BadSignatureError, InvalidKeyIdError

        stated = self._metadata().get("id_token_signing_alg_values_supported") or ["RS256"]
        admitted = [name for name in stated if name in _SIGNATURES]
        try:
            return jwt.decode(token, self._key_set(0.0), algorithms=admitted)
        except (InvalidKeyIdError, BadSignatureError, ValueError):
            return jwt.decode(token, self._key_set(time.monotonic() - _NEW_KEYS), algorithms=admitted)

    def _key_set(self, since: float) -> Any:
        """The provider's keys, fetched since then."""
        from joserfc.jwk import KeySet

        with self._lock:
            known = self._keys
        if known is not None and known[1] > max(since, time.monotonic() - _KEPT):
            return known[0]
        found = KeySet.import_key_set(_plain(self._asked("GET", str(self._metadata()["jwks_uri"]))))  # type: ignore[arg-type]
        with self._lock:
            self._keys = (found, time.monotonic())
        return found

    def _metadata(self) -> dict[str, Any]:
        """What the provider says of itself; remembered for a while."""
        with self._lock:
            known = self._facts
        if known is not None and known[1] > time.monotonic() - _KEPT:
            return known[0]
        issuer = self._settings.oidc_issuer
        found = _plain(self._asked("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration"))
        places = [found.get(name) for name in _ENDPOINTS] + [found.get("userinfo_endpoint", issuer)]
        if found.get("issuer") != issuer or not all(isinstance(each, str) and _is_reachable(each) for each in places):
            _log.error("sign-in: the provider's description is not that of oidc_issuer, or is without https")
            raise Refusal("provider-away")
        with self._lock:
            self._facts = (found, time.monotonic())
        return found

    def _asked(self, method: str, address: str, **what: Any) -> Response:
        import httpx2

        # No redirections: they would take codes and secrets elsewhere.
        send = httpx2.request if self._http is None else self._http.request
        try:
            answer = send(method, address, timeout=_PATIENCE, follow_redirects=False, **what)
        except httpx2.HTTPError as error:
            _log.error("sign-in: the provider cannot be reached (%s)", type(error).__name__)
            raise Refusal("provider-away") from None
        if answer.status_code >= 500 or answer.status_code == 429:
            _log.error("sign-in: the provider answers with %s", answer.status_code)
            raise Refusal("provider-away")
        if not answer.is_success:
            raise _refused(f"the provider's refusal ({answer.status_code})")
        return answer


def role_in(claims: Mapping[str, Any], settings: Settings) -> str | None:
    """The role of somebody's groups; None where they have none, and refused where they have two."""
    stated = claims.get(settings.oidc_groups)
    groups = {stated} if isinstance(stated, str) else set(filter(_is_text, stated if isinstance(stated, list) else []))
    roles = [
        role
        for role, named in (("curator", settings.oidc_curators), ("analyst", settings.oidc_analysts))
        if groups & set(named)
    ]
    if len(roles) > 1:
        raise Refusal("two-roles")
    return roles[0] if roles else None


def check_settings(settings: Settings) -> None:
    """Refuse a half of what signing in by an institution needs."""
    needed = {
        "oidc_client": settings.oidc_client,
        "oidc_secret": settings.oidc_secret,
        "address": settings.address,
        "oidc_curators or oidc_analysts": settings.oidc_curators or settings.oidc_analysts,
    }
    missing = [name for name, value in needed.items() if not value]
    if missing:
        raise InvalidInput(f"oidc_issuer needs {', '.join(missing)} as well: say how the provider knows this service.")
    if "openid" not in settings.oidc_scopes:
        raise InvalidInput("oidc_scopes must have openid among them: without it no identity token is made.")
    if set(settings.oidc_curators) & set(settings.oidc_analysts):
        raise InvalidInput("oidc_curators and oidc_analysts have a group in common: nobody can be both, so choose.")
    _check_reachable(settings.oidc_issuer, "oidc_issuer")
    _check_reachable(settings.address, "address")


def _check_reachable(address: str, name: str) -> None:
    """Refuse an address to which codes and secrets would travel in the clear."""
    if not _is_reachable(address):
        raise InvalidInput(f"{name} must begin with https://, except on this machine: change it.")


def _is_reachable(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _HERE))


def _plain(answer: Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        _log.error("sign-in: the provider's answer is no JSON object")
        raise Refusal("provider-away")
    return found


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _refused(why: str) -> Refusal:
    """A refusal whose reason is for the log; people read the same sentence whatever was wrong."""
    _log.warning("sign-in refused: %s", why)
    return Refusal("bad-identity")
