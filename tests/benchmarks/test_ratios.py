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
    modules, seen = (products, coded_features), []
    kept = [vars(module)["trusted"] for module in modules]
    ratios.without_loops(lambda: seen.extend(vars(module)["trusted"]() for module in modules))()
    assert seen == [None, None]
    assert [vars(module)["trusted"] for module in modules] == kept
