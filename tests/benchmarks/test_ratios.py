"""The benchmark of ratios, on a few records."""

from benchmarks import ratios
from discreet.estimators.measurements import coded_features
from discreet.privacy.compiled import products


def test_every_fit_is_printed_with_its_peer(capsys, monkeypatch):
    monkeypatch.setattr(ratios, "SIZES", ((2_000, 3),))
    ratios.main(["--quick", "--compiled"])
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("ATE", "CATE", "NumPy", "AIPW", "decode"))


def test_loops_are_put_aside_for_one_job_alone():
    kept, seen = products.trusted, []
    ratios.without_loops(lambda: seen.append((products.trusted(), coded_features.trusted())))()
    assert seen == [(None, None)]
    assert products.trusted is coded_features.trusted is kept
