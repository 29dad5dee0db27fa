"""Edges of guarantees that mutants showed to be unprotected."""

from typing import Any

import pytest

from discreet.exceptions import InvalidInput
from discreet.privacy import guarantee as module
from discreet.privacy.budget import LaplaceEvent
from discreet.privacy.guarantee import Guarantee, audit_of, parallel, sequential


def made(**more: Any) -> Guarantee:
    event = LaplaceEvent(name="sum", diameter=1.0, scale=2.0, dimension=1, lattice=False)
    facts: dict[str, Any] = {
        "epsilon": 0.5,
        "delta": 0.0,
        "neighbours": "replace-one",
        "status": "proved",
        "proof": "gate.md",
    }
    return Guarantee(**{**facts, "events": (event,), **more})


def test_whoever_is_protected_stays_protected_in_a_joint_guarantee():
    one = made(unit="one patient")
    assert sequential(one, one).unit == parallel(one, one).unit == "one patient"


@pytest.mark.parametrize(
    ("proof", "neighbours", "public"),
    [
        ("gate.md", "replace-one", True),
        ("gate.md, units.md", "replace-one", False),
        ("gate.md", "add-remove", False),
    ],
)
def test_the_number_of_records_is_public_for_single_records_under_replace_one(proof, neighbours, public):
    assert made(proof=proof, neighbours=neighbours).counts_public is public


def test_an_audit_covers_a_proof_with_its_relation_and_its_noise(monkeypatch):
    monkeypatch.setattr(module, "COVERED", frozenset({("gate.md", "replace-one", "gaussian")}))
    assert audit_of("gate.md", "replace-one", pure=False) == module.AUDIT_VERSION
    assert audit_of("gate.md", "replace-one", pure=True) is None
    assert audit_of("gate.md", "add-remove", pure=False) is None
    assert audit_of("gate.md, other.md", "replace-one", pure=False) is None


def test_one_guarantee_alone_is_composed_to_itself():
    for join in (sequential, parallel):
        alone = join(made(unit="one patient", neighbours="add-remove"))
        assert (alone.epsilon, alone.delta, alone.unit, alone.neighbours) == (0.5, 0.0, "one patient", "add-remove")


def test_the_largest_of_disjoint_parts_is_stated_and_no_parts_are_refused():
    larger = made(epsilon=0.75, delta=1e-6)
    assert (parallel(made(), larger, made()).epsilon, parallel(made(), larger).delta) == (0.75, 1e-6)
    for join in (sequential, parallel):
        with pytest.raises(InvalidInput):
            join()
