"""Which part of a split a unit is in: a keyed hash of its name, the same everywhere, whatever the records hold."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.columns import IntArray, Values, arrow
from discreet.errors import InvalidInput


def part_numbers(units: Values, name: str, *, key: int, parts: int) -> IntArray:
    """The part of each unit, from 0 on: BLAKE2b of its name under a key, so that nothing else matters.

    Whole numbers are hashed as they are written, so that 7, 7.0 and "7" are one unit.
    """
    found = arrow(units, name)
    found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    if found.null_count:
        raise InvalidInput(f"{name} has missing values, but says which part a record is in: leave out those rows.")
    coded = found.dictionary_encode()
    of = np.array([_part(_written(value, name), key, parts) for value in coded.dictionary.to_pylist()], dtype=np.int64)
    return of[coded.indices.to_numpy(zero_copy_only=False)] if len(of) else np.empty(0, dtype=np.int64)


def _written(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not value.is_integer():
        raise InvalidInput(f"{name} must hold whole numbers or text, as it says which part a record is in: convert it.")
    return str(int(value))


def _part(name: str, key: int, parts: int) -> int:
    keyed = key.to_bytes(16, "little", signed=True)
    digest = hashlib.blake2b(name.encode(), digest_size=8, key=keyed, person=b"discreet split").digest()
    # 64 bits for a handful of parts: they are even to within one in 2**60.
    return int.from_bytes(digest, "little") % parts
