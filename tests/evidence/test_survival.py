"""The evidence on times to an event: its comparison without privacy, and its page."""

import numpy as np
import pytest

from evidence.survival import DESIGNS, Line, difference, page, product_limit, run


def test_the_comparison_is_the_product_limit_with_greenwoods_variance():
    # At 1 one of four has the event, at 3 one of two; one is lost between: survival 3/4 and 3/8.
    found = product_limit(np.array([1.0, 2.0, 3.0, 5.0]), np.array([1.0, 0.0, 1.0, 0.0]), 4.0)
    assert found.risk == pytest.approx(1 - 3 / 8)
    assert found.rmst == pytest.approx(1 + 2 * 3 / 4 + 3 / 8)
    assert found.risk_se == pytest.approx(3 / 8 * np.sqrt(1 / (4 * 3) + 1 / (2 * 1)))
    assert found.rmst_se == pytest.approx(np.sqrt((2 * 3 / 4 + 3 / 8) ** 2 / 12 + (3 / 8) ** 2 / 2))
    time, event, arm = np.array([1.0, 2.0, 3.0, 5.0] * 2), np.array([1.0, 0.0, 1.0, 0.0] * 2), np.repeat([0.0, 1.0], 4)
    assert difference(time, event, arm, 4.0, "rmst") == pytest.approx((0.0, np.sqrt(2) * found.rmst_se))


def test_a_study_gives_a_line_and_lines_give_a_page():
    line = run(DESIGNS[0], 10_000)
    assert isinstance(line, Line)
    assert line.width > line.plain_width > 0
    lines = {design: [line, line._replace(error=-1.0, covered=False)] for design in DESIGNS[:2]}
    trial = [(["rmst", "known", "no", "1 ± 1", "1 ± 1", "0.960", "1.30", "0.1, 0.1"], 0.96, 1.3)]
    text = page(lines, trial, 10, 1.0)
    assert "| intervals cover, all designs | ≥ .94 | 0.500 | **missed** |" in text
    assert "1.30 | reached |" in text
    assert "ACTG 175" not in page(lines, [], 10, 1.0)
