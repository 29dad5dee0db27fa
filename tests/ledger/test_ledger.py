"""The ledger as curators and analysts see it, in SQLite and in PostgreSQL."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from sqlalchemy import create_engine, text

import discreet
from discreet import Budget, BudgetExceeded, InvalidInput, Ledger, LedgerCorrupt, LedgerRefused, LedgerUnavailable
from discreet.ledger import Cost, _journal

ONE = Cost(epsilon=1)
HALF = Cost(epsilon=0.5)


def spend(ledger, dataset, cost, **who):
    """A request from its beginning to its end."""
    number = ledger.reserve(dataset, cost, **who)
    ledger.charge(number)
    ledger.settle(number)
    return number


def test_what_is_spent_survives_the_process(ledger, url):
    ledger.open("icu", epsilon=2)
    spend(ledger, "icu", ONE)
    with closing(Ledger(url)) as again:
        assert again.account("icu").spent.epsilon == 1
        assert again.head == ledger.head == again.verify()


def test_a_request_that_does_not_fit_is_refused_in_public_numbers_and_leaves_no_line(ledger):
    ledger.open("icu", epsilon=1.5)
    spend(ledger, "icu", ONE)
    head = ledger.head
    with pytest.raises(
        BudgetExceeded, match=r"'icu' has a cap of epsilon = 1.5; .* add up to epsilon = 1, and epsilon = 1 more"
    ):
        ledger.reserve("icu", ONE)
    assert ledger.head == head
    spend(ledger, "icu", HALF)
    assert ledger.account("icu").left == (0.0, 0.0)


def test_a_reservation_counts_until_it_is_cancelled_and_a_charge_counts_for_ever(ledger):
    ledger.open("icu", epsilon=1)
    first = ledger.reserve("icu", ONE)
    with pytest.raises(BudgetExceeded):
        ledger.reserve("icu", ONE)
    ledger.cancel(first)
    second = ledger.reserve("icu", ONE)
    ledger.charge(second)
    with pytest.raises(LedgerRefused, match="is charged, not reserved"):
        ledger.cancel(second)
    ledger.fail(second)
    for wrong in (ledger.cancel, ledger.charge, ledger.settle, ledger.fail):
        with pytest.raises(LedgerRefused, match="is failed"):
            wrong(second)
    with pytest.raises(BudgetExceeded):
        ledger.reserve("icu", ONE)
    assert ledger.account("icu").requests == {"cancelled": 1, "failed": 1}


def test_a_cancelled_reservation_cannot_be_charged_by_a_process_that_turns_out_to_be_alive(ledger, url):
    ledger.open("icu", epsilon=1)
    number = ledger.reserve("icu", ONE)
    with closing(Ledger(url)) as curator:
        curator.cancel(number, actor="curator")
    with pytest.raises(LedgerRefused, match="is cancelled, not reserved"):
        ledger.charge(number)


def test_a_first_request_may_take_the_whole_cap_and_then_nothing_is_left(ledger):
    ledger.open("icu", epsilon=2, delta=1e-5)
    whole = Cost.of(Budget(epsilon=2, delta=1e-5), one_gate=True)
    assert ledger.account("icu").fits(whole)
    number = ledger.reserve("icu", whole)
    assert ledger.account("icu").composition == "plain"
    with pytest.raises(BudgetExceeded):
        ledger.reserve("icu", Cost(epsilon=1e-6))
    ledger.cancel(number)
    assert ledger.account("icu").composition == "either"
    spend(ledger, "icu", Cost(epsilon=0.1))
    with pytest.raises(BudgetExceeded):
        ledger.reserve("icu", whole)


def test_plain_sums_stay_when_one_of_several_requests_under_them_is_cancelled(quick):
    quick.open("icu", epsilon=2, delta=1e-5)
    first = quick.reserve("icu", Cost(epsilon=1.9, delta=9e-6))
    spend(quick, "icu", Cost(epsilon=0.05, delta=1e-7))
    quick.cancel(first)
    assert quick.account("icu").composition == "plain"


def test_analysts_share_the_cap_of_the_data_set_and_have_their_own_below_it(ledger):
    ledger.open("icu", epsilon=2, analysts={"ada": Budget(epsilon=1), "bo": Budget(epsilon=1.5)}, curator="cy")
    spend(ledger, "icu", ONE, analyst="ada")
    with pytest.raises(BudgetExceeded, match="the analyst's part of 'icu' has a cap of epsilon = 1"):
        ledger.reserve("icu", HALF, analyst="ada")
    spend(ledger, "icu", ONE, analyst="bo")
    with pytest.raises(BudgetExceeded, match="data set 'icu' has a cap of epsilon = 2"):
        ledger.reserve("icu", HALF, analyst="bo")
    for nobody in ("eve", None):
        with pytest.raises(LedgerRefused, match="no budget for this analyst"):
            ledger.reserve("icu", HALF, analyst=nobody)
    assert ledger.account("icu").quotas["bo"].spent.epsilon == 1


def test_disjoint_strata_count_side_by_side_and_the_largest_counts(ledger):
    ledger.open("icu", epsilon=2, strata=["north", "south"])
    spend(ledger, "icu", ONE, stratum="north")
    spend(ledger, "icu", ONE, stratum="south")
    assert ledger.account("icu").spent.epsilon == 1
    spend(ledger, "icu", HALF)
    spend(ledger, "icu", HALF, stratum="north")
    account = ledger.account("icu")
    assert {name: total.epsilon for name, total in account.strata.items()} == {"north": 2, "south": 1.5}
    assert account.fits(HALF, stratum="south")
    assert not account.fits(HALF, stratum="north")
    assert not account.fits(HALF)
    for stratum in ("north", None):
        with pytest.raises(BudgetExceeded):
            ledger.reserve("icu", HALF, stratum=stratum)
    spend(ledger, "icu", HALF, stratum="south")
    with pytest.raises(InvalidInput, match="no stratum 'west'"):
        ledger.reserve("icu", HALF, stratum="west")


def test_a_frozen_data_set_stops_new_requests_and_those_that_were_not_charged(ledger):
    ledger.open("icu", epsilon=2)
    number = ledger.reserve("icu", ONE)
    ledger.freeze("icu", curator="cy", reason="under review")
    for attempt in (lambda: ledger.reserve("icu", HALF), lambda: ledger.charge(number)):
        with pytest.raises(LedgerRefused, match="is frozen"):
            attempt()
    ledger.unfreeze("icu", curator="cy")
    ledger.charge(number)


def test_a_lowered_cap_stops_what_was_reserved_before_and_not_charged(ledger):
    ledger.open("icu", epsilon=3, strata=("north", "south"), analysts={"ada": Budget(epsilon=3)}, curator="cy")
    done, waits, small = (ledger.reserve("icu", cost, analyst="ada") for cost in (ONE, ONE, HALF))
    ledger.charge(done)
    for analyst in (None, "ada"):
        ledger.allow("icu", analyst, epsilon=1.5, curator="cy")
        with pytest.raises(BudgetExceeded, match=r"cap of epsilon = 1\.5"):
            ledger.charge(waits)
        assert ledger.request(waits).state == "reserved"
        number = ledger.propose("icu", epsilon=3, analyst=analyst, curator="cy")
        ledger.approve(number, curator="di")
    ledger.allow("icu", None, epsilon=1.5, curator="cy")
    # What waits beside it does not count against a request that fits with all that was charged.
    ledger.charge(small)
    ledger.cancel(waits)
    assert ledger.account("icu").spent.epsilon == 1.5
    ledger.verify()


def test_raising_a_cap_takes_two_different_curators_and_lowering_it_one(ledger):
    ledger.open("icu", epsilon=1, analysts={"ada": Budget(epsilon=0.5)}, curator="cy")
    for analyst in (None, "ada"):
        with pytest.raises(LedgerRefused, match="raised by two curators"):
            ledger.allow("icu", analyst, epsilon=3, curator="cy")
        number = ledger.propose("icu", epsilon=3, analyst=analyst, curator="cy")
        assert [each.id for each in ledger.account("icu").proposals] == [number]
        with pytest.raises(LedgerRefused, match="two different curators"):
            ledger.approve(number, curator="cy")
        ledger.approve(number, curator="di")
        with pytest.raises(InvalidInput, match="no open proposal"):
            ledger.approve(number, curator="ed")
    account = ledger.account("icu")
    assert account.cap.epsilon == account.quotas["ada"].cap.epsilon == 3
    with pytest.raises(InvalidInput, match="a proposal raises a cap"):
        ledger.propose("icu", epsilon=2, curator="cy")
    ledger.allow("icu", None, epsilon=0.5, curator="cy")
    assert ledger.account("icu").cap.epsilon == 0.5


def test_opening_again_in_the_same_words_changes_nothing_and_in_others_is_refused(ledger):
    for _ in range(2):
        ledger.open("icu", epsilon=1, analysts={"ada": Budget(epsilon=0.5)})
    assert ledger.head.seq == 2
    with pytest.raises(InvalidInput, match="is open already"):
        ledger.open("icu", epsilon=2)


def test_a_data_set_is_not_opened_with_terms_that_nobody_knows(ledger):
    with pytest.raises(InvalidInput, match="open takes no epsilons, stratum: besides epsilon"):
        ledger.open("icu", epsilon=2, stratum="a", epsilons=3)
    assert ledger.datasets() == ()


def test_a_clock_that_goes_backwards_changes_nothing(ledger, monkeypatch):
    class Clock:
        year = 2020

        @classmethod
        def now(cls, zone):
            cls.year -= 1
            return real(cls.year, 1, 1, tzinfo=zone)

    real = _journal.datetime  # type: ignore[attr-defined]
    monkeypatch.setattr(_journal, "datetime", Clock)
    ledger.open("icu", epsilon=2)
    spend(ledger, "icu", ONE)
    times = [entry.time for entry in ledger.log()]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == 4
    assert ledger.verify() == ledger.head
    assert ledger.account("icu").spent.epsilon == 1


def test_a_database_of_a_newer_version_is_refused(ledger, url):
    address = url.replace("postgresql://", "postgresql+psycopg://")
    engine = create_engine(address)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO ledger_schema VALUES (99)"))
    engine.dispose()
    with pytest.raises(
        LedgerCorrupt, match="this ledger has version 99, and this discreet knows versions up to 1: update"
    ):
        Ledger(url)


def test_the_tables_refuse_to_be_changed(ledger, url):
    ledger.open("icu", epsilon=2)
    spend(ledger, "icu", ONE)
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    statements = ["UPDATE ledger_log SET actor = 'x'", "DELETE FROM ledger_log", "UPDATE ledger_release SET text = 'x'"]
    statements += ["TRUNCATE ledger_log"] if url.startswith("postgresql") else []
    for statement in statements:
        if "release" in statement and url.startswith("sqlite"):
            # A trigger of SQLite is for rows, and there is none in this table.
            continue
        with pytest.raises(Exception, match="the ledger only grows"), engine.begin() as connection:
            connection.execute(text(statement))
    engine.dispose()
    assert ledger.verify() == ledger.head


def test_two_processes_and_a_fork_see_one_ledger(ledger, url):
    ledger.open("icu", epsilon=3)
    script = "import sys; from discreet.ledger import Cost, Ledger; Ledger(sys.argv[1]).reserve('icu', Cost(epsilon=1))"
    subprocess.run([sys.executable, "-c", script, url], check=True)
    child = os.fork()
    if not child:
        ledger.reserve("icu", ONE)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.account("icu").spent.epsilon == 2


def test_accounts_are_shown_in_words_bars_and_plain_json(quick):
    assert str(quick) == "No data set is open."
    quick.open("icu", epsilon=2, delta=1e-5, strata=["north"], analysts={"ada": Budget(epsilon=1, delta=1e-6)})
    small = Cost.of(Budget(epsilon=0.5, delta=1e-6), one_gate=True)
    spend(quick, "icu", small, analyst="ada")
    quick.reserve("icu", Cost.of(Budget(epsilon=0.1, delta=1e-8), one_gate=True), analyst="ada", stratum="north")
    quick.propose("icu", epsilon=3, delta=1e-5, curator="cy")
    quick.freeze("icu", curator="cy")
    words = str(quick)
    for part in ("[FROZEN]", "█", "plain sum: epsilon = 0.6", "analyst ada", "stratum north", "proposal 7 by cy"):
        assert part in words
    account = quick.account("icu")
    spent, reserved, left = account.shares
    assert spent > reserved > 0
    assert spent + reserved + left == pytest.approx(1)
    # Composed at the cap's larger delta, two requests cost less than their sum.
    assert account.composed < 0.6 == pytest.approx(account.spent.epsilon)
    assert account.to_dict()["shares"]["left"] == left
    assert repr(quick) == "<Ledger with 1 data sets>"


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_largest_request_that_is_said_to_fit_fits_and_a_larger_one_does_not(quick, delta):
    quick.open("icu", epsilon=2, delta=1e-5)
    spend(quick, "icu", Cost.of(Budget(epsilon=1, delta=1e-6), one_gate=True))
    largest = quick.account("icu").largest(delta)
    assert 0.9 < largest < 2
    with pytest.raises(BudgetExceeded):
        quick.reserve("icu", Cost.of(Budget(epsilon=largest * 1.001, delta=delta), one_gate=True))
    quick.reserve("icu", Cost.of(Budget(epsilon=largest, delta=delta), one_gate=True))
    assert quick.account("icu").largest(delta) < 0.01


def test_a_data_set_in_which_nothing_fits_says_so(quick):
    quick.open("icu", epsilon=1)
    spend(quick, "icu", ONE)
    assert quick.account("icu").largest() == 0


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"epsilon": 1, "delta": 2}, "delta must lie between"),
        ({"epsilon": 1, "neighbours": "all"}, "neighbours must be"),
        ({"epsilon": 1, "composition": "best"}, "composition must be one of"),
        ({"epsilon": 1, "composition": "gaussian"}, "composition='gaussian' needs a delta"),
        ({"epsilon": 1, "strata": ["a", "a"]}, "strata names a part twice"),
        ({"epsilon": 1, "strata": [""]}, "strata must be a printable text"),
        ({"epsilon": 1, "version": "x" * 300}, "version must be a printable text"),
        ({"epsilon": 1, "curator": ""}, "curator must be a printable text"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(quick, bad, said):
    with pytest.raises(InvalidInput, match=said):
        quick.open("icu", **bad)
    assert quick.datasets() == ()


def test_unknown_names_and_numbers_are_refused(quick):
    quick.open("icu", epsilon=1)
    for attempt in (
        lambda: quick.account("icy"),
        lambda: quick.reserve("icy", ONE),
        lambda: quick.freeze("icy", curator="cy"),
        lambda: quick.charge(7),
        lambda: quick.release(7),
        lambda: quick.approve(7, curator="cy"),
        lambda: quick.open("a\nb", epsilon=1),
        lambda: quick.propose("icu", epsilon=1, analyst="ada", curator="cy"),
        lambda: quick.propose("icu", epsilon=2, delta=1e-6, curator="cy"),
        lambda: quick.reserve("icu", ONE, neighbours="add-remove"),
    ):
        with pytest.raises(InvalidInput):
            attempt()
    assert quick.head.seq == 1


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("budget.db", "not the address of a database"),
        ("mysql://host/db", "kept in SQLite or PostgreSQL"),
        ("sqlite://", "would forget what was spent"),
        (7, "not the address of a database"),
    ],
)
def test_a_ledger_needs_a_database_that_remembers(address, said):
    with pytest.raises(InvalidInput, match=said):
        Ledger(address)


def test_a_database_that_cannot_be_reached_is_one_sentence_without_its_address(tmp_path):
    with pytest.raises(LedgerUnavailable, match="does not answer") as caught:
        Ledger(f"sqlite:///{tmp_path}/missing/secret.db")
    assert "secret" not in str(caught.value)


def test_a_new_file_is_for_its_owner_alone_and_an_old_one_keeps_its_mode(tmp_path):
    before = os.umask(0o022)
    try:
        for name, mode in (("new.db", 0o600), ("shared.db", 0o640)):
            path = tmp_path / name
            if mode != 0o600:
                path.touch()
                path.chmod(mode)
            with closing(Ledger(f"sqlite:///{path}")) as ledger:
                ledger.open("a", epsilon=1)
            assert path.stat().st_mode & 0o777 == mode
    finally:
        os.umask(before)


def test_a_release_that_is_given_again_and_again_is_one_line_in_the_log(ledger):
    ledger.open("a", epsilon=3, analysts={"ada": Budget(epsilon=2), "bob": Budget(epsilon=1)})
    number = ledger.reserve("a", ONE, analyst="ada")
    ledger.charge(number)
    release = discreet.DifferenceInMeans(epsilon=1, bounds=discreet.Bounds(outcome=(0, 1)))
    release.fit([0, 1] * 10, [0, 0, 1, 1] * 5)
    ledger.settle(number, release.release_)
    lines = ledger.head.seq
    for analyst in ("ada", "bob", "ada", "ada", "bob"):
        assert ledger.answer(number, analyst=analyst) == ledger.release(number)
    assert [entry.actor for entry in ledger.log(lines)] == ["ada", "bob"]
    with pytest.raises(LedgerRefused, match="no budget"):
        ledger.answer(number, analyst="eve")
    ledger.verify()


def test_importing_estimators_does_not_load_the_database_library():
    script = "import sys, discreet.estimators.ate; print('sqlalchemy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert discreet.Ledger.__name__ == "Ledger"


def test_a_server_that_isolates_by_default_has_writers_take_turns_all_the_same(postgres):
    server = create_engine(postgres.replace("postgresql://", "postgresql+psycopg://", 1), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        base = connection.scalar(text("SELECT current_database()"))
        tables = "ledger_log, ledger_release, ledger_secret, ledger_schema"
        connection.execute(text(f"DROP TABLE IF EXISTS {tables} CASCADE"))
        connection.execute(text(f"ALTER DATABASE \"{base}\" SET default_transaction_isolation TO 'serializable'"))
    try:
        with closing(Ledger(postgres)) as ledger:
            ledger.open("icu", epsilon=3)

            def ask(_):
                with closing(Ledger(postgres)) as mine:
                    try:
                        mine.charge(mine.reserve("icu", ONE))
                    except BudgetExceeded:
                        return False
                return True

            with ThreadPoolExecutor(8) as pool:
                assert sum(pool.map(ask, range(8))) == 3
            assert ledger.account("icu").spent.epsilon == 3
    finally:
        with server.connect() as connection:
            connection.execute(text(f'ALTER DATABASE "{base}" RESET default_transaction_isolation'))
        server.dispose()
