"""Pages of the private propensity score paper."""

from __future__ import annotations

from discreet.reproduce.targets import Target

TARGETS: tuple[Target, ...] = ()
