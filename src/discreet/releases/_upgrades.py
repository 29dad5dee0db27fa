"""Steps by which files of older versions become those of the current one: plain JSON in, plain JSON out.

Steps neither drop a field that they do not know nor add one that is missing without a reason, so that an edited file is
refused whatever its version. They are never changed once a later version has been written.
"""

from __future__ import annotations

import math
from typing import Any

# Bits below the largest number of a factor that was written in decimals (5 digits) and is kept in whole steps.
_BITS = 40


def average_1(plain: dict[str, Any]) -> dict[str, Any]:
    """Averages of version 1, which had no means of the arms: nothing takes their place."""
    if "arms" in plain:
        raise ValueError("files of version 1 have no arms")
    return dict(plain)


def effect_function_1(plain: dict[str, Any]) -> dict[str, Any]:
    """Effect functions of version 1, in its three shapes.

    The first wrote the factor in decimals, row by row, and the first two divided every range as a whole (no windows).
    All have intervals about a ``centre`` that is shrunk less than the estimate. It is kept: what was published stays.
    """
    done = dict(plain) | {"centre": list(plain["centre"])}
    if isinstance(done["factor"], list):
        done["factor"] = _in_steps(done["factor"])
    done.setdefault("windows", [])
    return done


def effect_function_2(plain: dict[str, Any]) -> dict[str, Any]:
    """Effect functions of version 2, which were all made of polynomials and contrasts."""
    own = ("size", "marginals", "windows")
    if "terms" in plain:
        raise ValueError("files of version 2 have no terms")
    done = {name: value for name, value in plain.items() if name not in own}
    return done | {"terms": {"kind": "polynomials", **{name: plain[name] for name in own}}}


def segments_1(plain: dict[str, Any]) -> dict[str, Any]:
    """Effects by segment of version 1, in its two shapes; ``look`` was the name of ``outcome_moments``.

    The first wrote pairs whose sum is a count and whose difference is a sum of outcomes.
    """
    done = {"outcome_moments" if name == "look" else name: value for name, value in plain.items()}
    if "pairs" not in done:
        return done
    pairs, sd = done.pop("pairs"), math.sqrt(2.0) * done.pop("noise_sd")
    done["noisy"] = {
        "counts": [[up + down for up, down in arms] for arms in pairs],
        "sums": [[up - down for up, down in arms] for arms in pairs],
        "count_sd": sd,
        "sum_sd": sd,
    }
    return done


def _in_steps(rows: list[list[float]]) -> dict[str, Any]:
    """Rows of decimals as whole numbers of one step: how many zeros come next (none), and a number, in turn."""
    largest = max((abs(value) for row in rows for value in row), default=0.0)
    step = 2.0 ** (math.floor(math.log2(largest)) - _BITS) if largest else 1.0
    return {"step": step, "rows": [[part for value in row for part in (0, round(value / step))] for row in rows]}
