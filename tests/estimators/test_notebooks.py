"""What notebooks show: compact, escaped, and nothing about records but what was released."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.audit.result import AuditResult
from discreet.data.notebooks.card import Carded
from discreet.estimators.registry import REGISTRY

FILES = sorted(path for path in (Path(__file__).parents[1] / "golden" / "releases").glob("*.json") if "." in path.stem)
BOUNDS = dc.Bounds(outcome=(0, 1), covariates={"<script>": (0, 1)})
# An odd number that nothing but a record could bring into a page.
MARK = 0.7290183465


def study(n: int = 400) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    return np.full(n, MARK), np.arange(n) % 2, rng.random((n, 1))


@pytest.mark.parametrize("name", [name for name, entry in REGISTRY.items() if entry.command])
def test_an_estimator_that_is_not_fitted_shows_its_parameters(name: str) -> None:
    kind = REGISTRY[name].load()
    needed = {"by": {0: 2}} if name == "uplift" else {"horizon": 1} if name == "survival" else {}
    policy = {"policy": "nobody"} if "policy" in kind._get_param_names() else {}
    html = kind(epsilon=1.25, bounds=BOUNDS, **needed, **policy)._repr_html_()
    assert f"{kind.__name__}, not fitted" in html
    assert "1.25" in html
    assert "interval" not in html
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_a_fitted_estimator_shows_estimate_interval_and_guarantee() -> None:
    Y, T, X = study()
    with dc.testing.seeded_noise(0):
        made = dc.ATE(epsilon=1, delta=1e-6, bounds=BOUNDS).fit(Y, T, X=X)
    html = made._repr_html_()
    for words in (made.release_.text(made.ate_), "95 % interval", "epsilon = 1, delta = 1e-06", "not private"):
        assert words in html
    assert len(html) < 3_000
    assert len(repr(made.release_)) < 200


def test_no_record_shows() -> None:
    Y, T, X = study()
    known = np.full(len(Y), 0.5)
    known[7] = 0.4712345
    made = dc.ATE(epsilon=1, delta=1e-6, bounds=BOUNDS, propensity=known)
    listed = dc.ATE(epsilon=1, delta=1e-6, bounds=BOUNDS, propensity=known.tolist())
    with dc.testing.seeded_noise(0):
        shown: list[Any] = [made, listed, made.fit(Y, T, X=X), made.release_, made.guarantee_]
    for each in shown:
        for text in (each._repr_html_(), repr(each)):
            assert "0.4712345" not in text
            assert str(MARK)[:8] not in text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_kind_of_release_is_a_card(path: Path) -> None:
    release = dc.load(path)
    html = release._repr_html_()
    assert html.startswith("<table>")
    assert html.count("<pre>") <= 1
    assert len(repr(release)) < 250
    assert isinstance(release, Carded) or "epsilon" in html


def test_facts_plans_ledgers_and_guarantees_are_cards(tmp_path: Any) -> None:
    plan = dc.plan("ate", n=1_000, bounds=BOUNDS, epsilon=1, delta=1e-6)
    ledger = dc.Ledger(f"sqlite:///{tmp_path / 'budget.db'}")
    ledger.open("<b>icu", epsilon=2, delta=1e-5, unit="one <script>")
    shown: list[Any] = [BOUNDS, plan, ledger, ledger.account("<b>icu")]
    for each in shown:
        assert isinstance(each, Carded)
        html = each._repr_html_()
        assert "<script>" not in html
        assert "<b>" not in html
        assert len(html) < 2_000
    assert "expected width" in plan._repr_html_()
    assert repr(plan) == "<Plan: ate, 1,000 records, epsilon = 1, delta = 1e-06>"
    ledger.close()


def test_an_audit_is_a_card() -> None:
    assert issubclass(AuditResult, Carded)
