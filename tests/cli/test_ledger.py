"""The ledger from the command line."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.data.bounds import Bounds

ATE = ["ate", "study.csv", "--outcome", "died", "--treatment", "treated", "--bounds", "bounds.toml", "--delta", "1e-6"]
PAID = ["--ledger", "sqlite:///budget.db", "--dataset", "icu"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with a study and its bounds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_LEDGER", raising=False)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"died": rng.integers(0, 2, 300), "treated": np.arange(300) % 2, "age": rng.uniform(size=300)})
    frame.to_csv("study.csv", index=False)
    Bounds(outcome=(0, 1), covariates={"age": (0, 1)}, propensity=(0.1, 0.9)).save("bounds.toml")
    return tmp_path


def run(*words, code=0):
    """What a command prints, errors included."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done.output


def ledger(*words, code=0):
    return run("ledger", *words, code=code)


def test_a_budget_is_opened_spent_answered_again_and_refused(here):
    assert "0% spent" in ledger("open", "icu", "--epsilon", 1, "--delta", "1e-5")
    first = run(*ATE, "--epsilon", 0.5, *PAID)
    assert run(*ATE, "--epsilon", 0.5, *PAID) == first
    assert "plain sum: epsilon = 0.5," in ledger("show")
    refused = run(*ATE, "--epsilon", 0.99, *PAID, code=2)
    assert "has a cap of epsilon = 1, delta = 1e-05" in refused
    assert len(refused.strip().splitlines()) == 1
    for command, more in (("cate", []), ("uplift", ["--by", "age=2"])):
        assert "there is no data set 'nicu'" in run(
            command, *ATE[1:], "--epsilon", 0.1, *PAID[:2], "--dataset", "nicu", *more, code=2
        )
        run(command, *ATE[1:], "--epsilon", 0.1, *PAID, *more)
    assert "3 settled" in ledger("show", "icu")


def test_the_log_is_exported_verified_and_tampering_shows(here):
    ledger("open", "icu", "--epsilon", 1)
    shown = ledger("show")
    head = shown.split("Head: ")[1].split()[0]
    ledger("freeze", "icu", "--curator", "cora", "--reason", "review")
    assert "Log: log.jsonl" in ledger("export", "log.jsonl")
    assert "exists already" in ledger("export", "log.jsonl", code=2)
    assert "2 lines verify" in ledger("verify", "--head", head)
    assert "2 lines verify" in ledger("verify", "--head", head, "--file", "log.jsonl")
    assert "shows only with --head" in ledger("verify")
    text = (here / "log.jsonl").read_text()
    (here / "log.jsonl").write_text(text.replace("review", "reviww"))
    assert "line 2 of the log was changed" in ledger("verify", "--file", "log.jsonl", code=2)
    (here / "log.jsonl").write_text("")
    assert "does not contain the head" in ledger("verify", "--head", head, "--file", "log.jsonl", code=2)
    assert "NUMBER:HASH" in ledger("verify", "--head", "1:x", code=2)
    assert "cannot be read as a log" in ledger("verify", "--file", "none.jsonl", code=2)


def test_curators_freeze_raise_allow_renew_and_cancel(here):
    ledger("open", "icu", "--epsilon", 1, "--stratum", "north", "--stratum", "south", "--curator", "cora")
    assert "[FROZEN]" in ledger("freeze", "icu", "--curator", "cora")
    assert "[FROZEN]" not in ledger("unfreeze", "icu", "--curator", "cora")
    assert "Proposal 4" in ledger("raise", "icu", "--epsilon", 2, "--curator", "cora")
    assert "two different curators" in ledger("approve", 4, "--curator", "cora", code=2)
    assert "approved" in ledger("approve", 4, "--curator", "dan")
    assert "analyst ada: epsilon = 0, delta = 0 of epsilon = 1" in ledger(
        "allow", "icu", "ada", "--epsilon", 1, "--curator", "dan"
    )
    assert "stays spent" in ledger("renew", "icu", "2", "--curator", "dan")
    from discreet.ledger import Cost, Ledger

    made = Ledger("sqlite:///budget.db")
    number = made.reserve("icu", Cost(epsilon=0.5), analyst="ada", stratum="north")
    made.close()
    assert "1 reserved: if no process" in ledger("show")
    assert "cancelled" in ledger("cancel", number, "--curator", "dan")
    assert "1 cancelled" in ledger("show")


def test_a_ledger_that_is_missing_is_not_made_by_looking_at_it(here):
    assert "there is no ledger" in ledger("show", code=2)
    assert "there is no ledger" in run(*ATE, "--epsilon", 0.5, *PAID, code=2)
    assert not (here / "budget.db").exists()
    assert "belong to a ledger" in run(*ATE, "--epsilon", 0.5, "--dataset", "icu", code=2)
    assert "needs --dataset" in run(*ATE, "--epsilon", 0.5, *PAID[:2], code=2)


def test_a_picture_has_a_bar_for_every_data_set(here):
    from discreet.ledger import Ledger

    made = Ledger("sqlite:///budget.db")
    made.open("icu", epsilon=1)
    made.open("er", epsilon=2, delta=1e-5)
    made.freeze("er", curator="cora")
    ax = made.plot()
    made.close()
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert [label.split("\n")[0] for label in labels] == ["icu", "er (frozen)"]
    assert len(ax.patches) == 6
    from matplotlib import pyplot

    pyplot.close("all")
