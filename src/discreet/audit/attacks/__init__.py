"""Known failures of published mechanisms, by name."""

from __future__ import annotations

from discreet.audit.attacks import adum, dp_cate, ebm, floats, functional, norms, private_ci, propensity
from discreet.audit.attacks.base import Attack, Run
from discreet.exceptions import InvalidInput

ATTACKS: dict[str, Attack] = {
    attack.name: attack
    for module in (dp_cate, private_ci, ebm, adum, propensity, functional, floats, norms)
    for attack in module.ATTACKS
}


def find_attack(name: str) -> Attack:
    """An attack by its name."""
    if name not in ATTACKS:
        raise InvalidInput(f"there is no attack {name!r}: 'discreet audit list' names {len(ATTACKS)} of them.")
    return ATTACKS[name]


__all__ = ["ATTACKS", "Attack", "Run", "find_attack"]
