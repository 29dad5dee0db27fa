"""Audit: find out what a mechanism really gives away.

``discreet.audit(estimator)`` is a call, and this is also the package that holds its parts: `AuditResult`, `Mechanism`
for what is not of this library, and the known attacks.
"""

import sys
from types import ModuleType
from typing import Any

from discreet.audit.api import audit
from discreet.audit.attacks import ATTACKS
from discreet.audit.attacks.base import Attack
from discreet.audit.mechanism import Mechanism
from discreet.audit.result import AuditResult, Moved

__all__ = ["ATTACKS", "Attack", "AuditResult", "Mechanism", "Moved", "audit"]


class _Callable(ModuleType):
    """A package that can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> AuditResult:
        return audit(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
