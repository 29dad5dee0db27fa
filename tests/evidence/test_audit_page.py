"""The page of evidence: complete, in step with the library, and what warnings quote."""

import re
from pathlib import Path

import pytest

from discreet.audit._configurations import matrix
from discreet.audit.attacks import ATTACKS
from discreet.privacy.guarantee import AUDIT_VERSION
from evidence.audit.quotes import QUOTED, WARNINGS, stale
from evidence.planted import PLANTED

FOLDER = Path(__file__).parents[2] / "docs" / "evidence"
PAGE = (FOLDER / "audit.md").read_text()


# Replayed in every run of the tests, and newer than the page: their black boxes wait for it to be written again.
WAITING = {
    "ATC",
    "ATO",
    "ATT",
    "DifferenceInDifferences",
    "LATE",
    "PolicyValue",
    "SurvivalEffect",
    "norm_noise",
    "papers.XLearner",
}


def test_every_attack_and_every_proved_estimator_has_its_row_and_its_picture():
    assert not any(f"`{name}`" in PAGE or f"### {name}" in PAGE for name in WAITING), (
        "the page knows them: wait no more"
    )
    for name, attack in ATTACKS.items():
        if name in WAITING:
            continue
        assert f"### {name}" in PAGE
        assert f"`{attack.mechanism}`" in PAGE
        assert (FOLDER / "audit" / f"{name}.png").exists()
    for family in {configuration.family for configuration in matrix()} - WAITING:
        assert re.search(rf"^\| `{re.escape(family)}` \|.*\| proved \|.*no violation found \|$", PAGE, re.MULTILINE)
        assert (FOLDER / "audit" / f"{family.replace('.', '-').lower()}.png").exists()
    for bug in PLANTED:
        assert re.search(rf"^\| {bug} \| .* \| caught \|", PAGE, re.MULTILINE)


def test_the_page_is_of_the_audit_that_guarantees_name():
    assert f"Audit version {AUDIT_VERSION}, seed" in PAGE


@pytest.mark.parametrize(("file", "count"), [("dp_cate.py", 3), ("dp_cate_function.py", 1), ("learners_ebm.py", 1)])
def test_warnings_quote_what_the_page_prints_and_nothing_else(file, count):
    assert len(QUOTED.findall(WARNINGS[file])) == count
    assert "'python -m evidence.audit'" in WARNINGS[file]
    assert stale(PAGE) == []
    assert len(stale("an empty page")) == 5
