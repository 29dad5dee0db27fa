"""Who asks, where a proxy stands between: what it says is believed if it is one of those that were configured."""

from __future__ import annotations

import ipaddress
from collections.abc import MutableMapping, Sequence
from typing import Any, TypeAlias

from starlette.datastructures import Headers

from discreet.exceptions import InvalidInput

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
# Addresses that a header may name; more are made up.
_MOST = 20


class Proxies:
    """Proxies that are trusted to say for whom they ask.

    Parameters
    ----------
    trusted : sequence of str
        Their addresses or networks.
    """

    def __init__(self, trusted: Sequence[str]) -> None:
        self._trusted = tuple(map(_network, trusted))

    def client_of(self, scope: MutableMapping[str, Any], headers: Headers) -> str:
        """The address for which a request is made.

        Each proxy adds to the end of ``X-Forwarded-For`` the address that asked it. So the list is read from its end,
        as long as whoever added an address is trusted; what stands before that, anybody may have written. A header
        of several lines is one list.
        """
        client = scope.get("client")
        here = str(client[0]) if client else "unknown"
        named = ",".join(headers.getlist("x-forwarded-for")).split(",")[-_MOST:]
        while named and self._trusts(here):
            found = _address(named.pop())
            if found is None:
                break
            here = found
        return here

    def _trusts(self, address: str) -> bool:
        try:
            known = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(known.version == network.version and known in network for network in self._trusted)


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise InvalidInput(f"proxies must be addresses or networks, such as 10.0.0.2: {text!r} is none.") from None


def _address(text: str) -> str | None:
    """An address as a header names it, without a port; None if it is none."""
    plain = text.strip()
    if plain.startswith("["):
        plain = plain[1:].partition("]")[0]
    elif plain.count(":") == 1:
        plain = plain.partition(":")[0]
    try:
        return str(ipaddress.ip_address(plain))
    except ValueError:
        return None
