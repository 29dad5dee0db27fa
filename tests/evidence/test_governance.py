"""What the budget page says is left is what the ledger admits: a few histories of `evidence.service.governance`."""

from evidence.service.histories import compare


def test_what_is_left_is_admitted_and_one_per_cent_more_is_refused():
    found = compare(25, seed=1)
    assert found["questions"] > 30
    assert found["left_admitted"] == found["more_refused"] == found["questions"]
    assert found["what_if_right"] == found["what_ifs"] > 20
