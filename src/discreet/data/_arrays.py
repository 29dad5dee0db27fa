"""Names of array types."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Float: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
Codes: TypeAlias = npt.NDArray[np.signedinteger[Any]]
Values: TypeAlias = Any
"""A column as it was handed over: a NumPy array, a PyArrow array or a PyArrow chunked array."""
Level: TypeAlias = str | int | float | bool
