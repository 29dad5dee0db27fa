"""The source stays small in its parts: see `tests/house.py`, which prints the figures."""

import pytest

from tests.house import FIGURES, Figure


@pytest.mark.parametrize("measure", FIGURES, ids=lambda measure: measure.__name__)
def test_no_figure_is_beyond_its_limit(measure):
    figure: Figure = measure()
    assert figure.value <= figure.limit, f"{figure.name}: {figure.where}"
