"""Rows as tables: what every interval did, and shares and medians of groups of studies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

Row = dict[str, Any]
# An efficient interval's width in standard errors.
EFFICIENT = 2.0 * float(ndtri(0.975))
# Ends of bands, each up to and without the next.
BANDS: dict[str, tuple[float, ...]] = {
    "n": (1_000, 10_000, 100_000, 1_000_000),
    "p": (1, 4, 13),
    "epsilon": (0.3, 1.0, 3.0),
    "n mu": (1_000, 5_000, 50_000),
    "n mu of functions": (500, 1_500, 5_000),
}


def intervals(rows: Iterable[Row], method: str) -> pd.DataFrame:
    """A line for each study on which a method released an interval; what it was asked about, and whether it held."""
    lines = []
    for row in rows:
        found = row.get(method, {})
        if "low" not in found:
            continue
        efficiency = found.get("efficiency", row.get("efficiency", np.nan))
        facts = {name: value for name, value in row.items() if not isinstance(value, dict)}
        lines.append(facts | found | {"efficiency": efficiency})
    frame = pd.DataFrame(lines)
    if frame.empty:
        return frame
    frame["width"] = frame["high"] - frame["low"]
    frame["covered"] = (frame["low"] <= frame["truth"]) & (frame["truth"] <= frame["high"])
    frame["ratio"] = frame["width"] / (EFFICIENT * frame["efficiency"])
    frame["wrong sign"] = ((frame["low"] > 0) & (frame["truth"] < 0)) | ((frame["high"] < 0) & (frame["truth"] > 0))
    if "mu" in frame:
        frame["n mu"] = frame["n mu of functions"] = frame["n"] * frame["mu"]
    return frame


def refused(rows: Iterable[Row], method: str) -> list[str]:
    """Why there is no interval, for every study on which a method was asked and gave none."""
    return [row[method]["refused"] for row in rows if "refused" in row.get(method, {})]


def banded(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column as groups: its bands in words, or its own values as text."""
    if name not in BANDS:
        return frame[name].astype(str)
    ends = BANDS[name]
    words = bands(name)
    return pd.Series([words[int(np.searchsorted(ends, value, side="right"))] for value in frame[name]], frame.index)


def bands(name: str) -> list[str]:
    """The bands of a column in words, from the lowest to the highest."""
    ends = [f"{end:,g}" for end in BANDS[name]]
    inner = [f"{low} to {high}" for low, high in pairwise(ends)]
    return [f"below {ends[0]}", *inner, f"{ends[-1]} and more"]


def groups(frame: pd.DataFrame, name: str) -> list[str]:
    """Groups of a column in the order in which they are printed."""
    found = set(banded(frame, name))
    return [word for word in bands(name) if word in found] if name in BANDS else sorted(found)


def of_group(frame: pd.DataFrame, name: str, group: str) -> pd.DataFrame:
    """The lines of one group."""
    return frame if frame.empty else frame[banded(frame, name) == group]


def proportion(hits: Sequence[bool] | pd.Series) -> str:
    """A proportion; with its standard error where there are enough to say it."""
    count = len(hits)
    if not count:
        return ""
    share = float(np.mean(hits))
    return f"{share:.3f} ± {sqrt(share * (1 - share) / count):.3f}"


def shown(values: Sequence[float] | pd.Series, of: Callable[[Any], Any] = np.median) -> str:
    """A figure of some values, or nothing where there are none."""
    found = np.asarray(values, dtype=float)
    found = found[np.isfinite(found)]
    return f"{float(of(found)):.3g}" if len(found) else ""
