"""How a service is set up: frozen, and passed on to server processes through the environment."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Any

from discreet.exceptions import InvalidInput

VARIABLE = "DISCREET_SERVE"
# What an operator may choose.
RANGES = {
    "grid": (0.0, 10.0),
    "first_tick": (0.001, 3_600.0),
    "lease": (0.01, 3_600.0),
    "body_limit": (1_024, 1e9),
    "upload_limit": (1_024, 1e9),
    "body_seconds": (0.01, 3_600.0),
    "upload_rows": (1, 1e7),
    "at_once": (1, 1_000),
    "port": (0, 65_535),
    "workers": (0, 64),
    "processes": (0, 64),
    "fit_memory": (0, 1e7),
    "fit_seconds": (0.1, 1e7),
    "least_free": (0, 1e7),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What differs between one service and another.

    Parameters
    ----------
    database : str
        Where people, data sets, jobs, releases and the ledger are kept: ``sqlite:///file`` or ``postgresql://...``.
    https : bool
        Whether people reach the service by https; cookies are then sent no other way.
    grid : float
        Seconds. Answers to requests that may be refused leave at multiples of it, whatever they took.
    first_tick : float
        Seconds after its start at which a job may first be seen to have ended; then after 1.4 times that, and so on.
    lease : float
        Seconds after which a job whose server fell silent is taken up by another.
    body_limit, upload_limit : int
        Bytes of an ordinary request, and of one that brings a file.
    body_seconds : float
        Seconds within which all of a request has to arrive.
    upload_rows : int
        Rows of an uploaded file.
    logins, spends, asks : float
        Sign-ins by address a minute; requests that change something, a person a minute; all others, a person a second.
    readers : float
        Pages for the public, an address a second; twelve times as many at once.
    at_once : int
        Requests of one person that a server process works on at once; further ones wait, and not in the way of others.
    work : bool
        Whether this server works on jobs itself, in a thread: for tests, and for programs that hold a service.
    address : str
        Where people reach the service, as ``https://discreet.example.org``; needed to sign in by an institution.
    proxies : tuple of str
        Addresses or networks of proxies that say truly for whom they ask: others are not believed.
    oidc_issuer : str
        The institution's identity provider (OpenID Connect); empty where people sign in by tokens alone.
    oidc_client, oidc_secret : str
        As what it knows this service.
    oidc_scopes : tuple of str
        What it is asked for.
    oidc_groups : str
        The claim that lists somebody's groups.
    oidc_curators, oidc_analysts : tuple of str
        Groups whose members are curators, or analysts.
    oidc_check : float
        Seconds after which it is asked again whether somebody still has their role.
    data : str
        The directory below which all files of records lie, unless ``directories`` names others.
    directories, hosts : tuple of str
        Further directories of files, and servers of PostgreSQL that records may be on, as ``host``, ``host:port`` or
        ``host:port/database``: none, unless they are listed.
    curators : int
        How many curators it takes to loosen something: 2, or 1 in a house that has no second.
    anchor : str
        Where the ledger's log is followed from outside of it: ``file:PATH``, the address of a database, or
        ``command:PROGRAM``, which gets new lines on its standard input; nowhere, if empty.
    anchor_fails : str
        What happens while the anchor cannot be reached: "freeze", so that nothing is charged, or "warn".
    host, port : str, int
        Where `discreet serve` listens.
    workers : int
        Worker processes that `discreet serve` starts beside itself; 0 where `discreet worker` runs elsewhere.
    processes : int
        Server processes; 0 for as many as there are workers.
    fit_memory : int
        Megabytes that a fit may need; 0 for no limit.
    fit_seconds : float
        Seconds that a fit may take.
    least_free : int
        Megabytes that must be free beside the files of a SQLite database, or no work is begun.
    metrics_token : str
        What a monitoring program sends to read ``/metrics``; without one nobody reads them.
    access_log : bool
        Whether every answer has a line in the log.
    """

    database: str = "sqlite:///discreet.db"
    https: bool = False
    grid: float = 0.1
    first_tick: float = 1.0
    lease: float = 15.0
    body_limit: int = 262_144
    upload_limit: int = 5_000_000
    body_seconds: float = 30.0
    upload_rows: int = 100_000
    logins: float = 20.0
    spends: float = 120.0
    asks: float = 2_000.0
    readers: float = 5.0
    at_once: int = 2
    work: bool = True
    address: str = ""
    proxies: tuple[str, ...] = ()
    oidc_issuer: str = ""
    oidc_client: str = ""
    oidc_secret: str = ""
    oidc_scopes: tuple[str, ...] = ("openid", "profile")
    oidc_groups: str = "groups"
    oidc_curators: tuple[str, ...] = ()
    oidc_analysts: tuple[str, ...] = ()
    oidc_check: float = 300.0
    data: str = "."
    directories: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    curators: int = 2
    anchor: str = ""
    anchor_fails: str = "freeze"
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    processes: int = 0
    fit_memory: int = 4_096
    fit_seconds: float = 3_600.0
    least_free: int = 100
    metrics_token: str = ""
    access_log: bool = True

    def __post_init__(self) -> None:
        if not self.database.startswith(("sqlite:", "postgresql")):
            raise InvalidInput("--database must begin with sqlite:/// or postgresql://; name one of these databases.")
        if self.curators not in (1, 2):
            raise InvalidInput("curators must be 2, or 1 in a house that has no second curator: choose one of them.")
        if self.anchor_fails not in ("freeze", "warn"):
            raise InvalidInput("anchor_fails must be 'freeze' or 'warn': say what happens without the anchor.")
        for name, (low, high) in RANGES.items():
            if not low <= getattr(self, name) <= high:
                raise InvalidInput(f"{name} must be between {low:,g} and {high:,g}: choose a number in this range.")

    @property
    def servers(self) -> int:
        """Server processes."""
        return self.processes or max(1, self.workers)

    def to_environment(self) -> None:
        """Let processes that this one starts read the same settings."""
        os.environ |= self.environment()

    def environment(self) -> dict[str, str]:
        """The same as variables of the environment."""
        return {VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def from_environment(cls) -> Settings:
        """The settings that a parent process wrote down; defaults if there are none."""
        plain: dict[str, Any] = json.loads(os.environ.get(VARIABLE, "{}"))
        # JSON knows no tuples.
        found: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}
        return cls(**found)
