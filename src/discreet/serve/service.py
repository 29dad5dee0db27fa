"""What one server process holds."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import sqlalchemy as sa

from discreet.ledger import Ledger
from discreet.serve.domain.releases import Shelf
from discreet.serve.domain.users import OPERATOR
from discreet.serve.governance.anchoring import Anchoring
from discreet.serve.institution.provider import Provider, check_settings
from discreet.serve.proxies import Proxies
from discreet.serve.settings import Settings
from discreet.serve.storage.clock import Clock
from discreet.serve.storage.schema import connect


@dataclass(slots=True, kw_only=True)
class Service:
    """Database, clock, ledger, and the releases that are in memory."""

    settings: Settings
    engine: sa.Engine
    clock: Clock
    ledger: Ledger
    shelf: Shelf = field(default_factory=Shelf)
    name: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}")
    wake: threading.Event = field(default_factory=threading.Event)
    proxies: Proxies
    provider: Provider | None = None
    forget_identities: Callable[[], None] = lambda: None
    anchoring: Anchoring = field(default_factory=lambda: Anchoring("", freeze=False))

    @classmethod
    def of(cls, settings: Settings) -> Service:
        """Open the database that the settings name."""
        provider = None
        if settings.oidc_issuer:
            check_settings(settings)
            provider = Provider(settings)
        proxies = Proxies(settings.proxies)
        engine = connect(settings.database)
        made = cls(
            settings=settings,
            engine=engine,
            clock=Clock(engine),
            ledger=Ledger(settings.database),
            proxies=proxies,
            provider=provider,
        )
        # First of all: a line that is written to an older copy would contradict the anchor.
        made.anchoring = Anchoring(settings.anchor, freeze=settings.anchor_fails == "freeze")
        # A line of the log, whenever the configuration says something else than before.
        made.anchoring.begin(made.ledger, engine, lambda: made.ledger.govern(settings.curators, curator=OPERATOR))
        return made

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()
        self.ledger.close()
