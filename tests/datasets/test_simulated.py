"""Simulated designs: draws that evidence refers to."""

import pytest

from discreet.datasets import draw


def test_the_generators_that_were_there_before_have_not_changed():
    # Evidence refers to these draws.
    assert draw("private-ci-1", 100, 7).Y.sum() == pytest.approx(83.94526052849014, rel=1e-13)
    assert draw("clinic", 100, 7).Y.sum() == pytest.approx(999.9051075667354, rel=1e-13)
