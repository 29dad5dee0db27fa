"""What tests of data sets share."""

import numpy as np

from discreet.data.bounds import Levels


def inside(study):
    """Every value lies within its declared bounds."""
    low, high = study.bounds.outcome
    assert low <= study.Y.min() <= study.Y.max() <= high
    assert set(np.unique(study.T)) == {0.0, 1.0}
    for spec, column in zip(study.bounds.columns, study.X.T, strict=True):
        if isinstance(spec, Levels):
            assert set(column) <= set(spec.levels)
        else:
            assert spec.low <= column.min() <= column.max() <= spec.high
