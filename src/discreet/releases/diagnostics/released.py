"""Balance and overlap as a release file holds them, and as people ask for them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from discreet.exceptions import InvalidInput

Row = dict[str, Any]
ARMS = ("all", "control", "treated")
_COLUMNS = ("covariate", "level", "scale", "before", "before_sd", "after", "after_sd")
_PARTS = {"outcome", "balance", "overlap"}
_BROKEN = "diagnostics must be as discreet writes them, finite numbers and all; check the file."
# Unit: standard deviations from which on a difference is called clear.
_DEVIATIONS = 2.0
# Unit: rounding of released shares.
_ROUNDING = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Fitted probabilities of treatment over the released population.

    Parameters
    ----------
    edges
        Ends of the histogram's bars, from 0 to 1.
    shares
        Share of "all", of the "control" and of the "treated" arm in each bar.
    quantiles
        Fitted probabilities below which these parts of all people are.
    effective
        For "control" and "treated": how many people of equal weight an arm is worth, as a part of those whom it has.
    trim
        Where fitted probabilities are held.
    trimmed
        Share of people at either end of these.
    logit_sd
        Usual error of a fitted logit. Noise is shrunk away, so that fitted probabilities differ less than true ones.

    Examples
    --------
    >>> flat = Overlap(
    ...     edges=(0.0, 0.5, 1.0),
    ...     shares={"all": (0.5, 0.5), "control": (0.7, 0.3), "treated": (0.3, 0.7)},
    ...     quantiles={0.05: 0.2, 0.95: 0.8},
    ...     effective={"control": 0.9, "treated": 0.9},
    ...     trim=(0.05, 0.95),
    ...     trimmed=(0.0, 0.0),
    ...     logit_sd=0.1,
    ... )
    >>> flat.table()[1]
    {'low': 0.5, 'high': 1.0, 'all': 0.5, 'control': 0.3, 'treated': 0.7}
    """

    edges: tuple[float, ...]
    shares: dict[str, tuple[float, ...]]
    quantiles: dict[float, float]
    effective: dict[str, float]
    trim: tuple[float, float]
    trimmed: tuple[float, float]
    logit_sd: float

    def table(self) -> list[Row]:
        """The histogram, a row for each bar."""
        ends = zip(self.edges[:-1], self.edges[1:], strict=True)
        return [
            {"low": low, "high": high} | {name: shares[k] for name, shares in self.shares.items()}
            for k, (low, high) in enumerate(ends)
        ]

    def to_dict(self) -> dict[str, Any]:
        """As plain Python."""
        return asdict(self)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Overlap:
        """From a release's field."""
        bars = len(plain["shares"]["all"])
        return cls(
            edges=tuple(k / bars for k in range(bars + 1)),
            shares={name: tuple(plain["shares"][name]) for name in ARMS},
            quantiles={float(part): float(value) for part, value in plain["quantiles"]},
            effective={name: float(plain["effective"][name]) for name in ARMS[1:]},
            trim=_two(plain["trim"]),
            trimmed=_two(plain["trimmed"]),
            logit_sd=float(plain["logit_sd"]),
        )

    def __str__(self) -> str:
        low, high = self.quantiles[0.05], self.quantiles[0.95]
        left = " and ".join(f"{100 * self.effective[name]:.0f} % of {words}" for name, words in _OF_ARM.items())
        return f"fitted probabilities {low:.2g} to {high:.2g} for nine in ten; weights are worth {left}"


_OF_ARM = {"treated": "the treated", "control": "controls"}


def rows_of(plain: Mapping[str, Any]) -> list[Row]:
    """The table of differences, a row for each range and level."""
    columns = [plain[name] for name in _COLUMNS]
    return [dict(zip(_COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]


def name_of(row: Row) -> str:
    """What a row of the table is about."""
    return str(row["covariate"]) if row["level"] is None else f"{row['covariate']} = {row['level']}"


def largest(rows: list[Row], when: str) -> Row:
    """The row whose difference is clearest of noise and large."""
    return max(rows, key=lambda row: abs(row[when]) - row[f"{when}_sd"])


def balance_words(rows: list[Row]) -> str:
    """The clearest differences, in one line."""
    words = []
    for when, name in (("before", "before adjustment"), ("after", "after")):
        if rows[0][when] is not None:
            row = largest(rows, when)
            size, sd = row[when], row[f"{when}_sd"]
            clear = abs(size) > _DEVIATIONS * sd
            words.append(f"{name} {f'{name_of(row)} {size:.2g} (sd {sd:.2g})' if clear else 'none beyond two sd'}")
    return f"clearest differences: {'; '.join(words)}"


def checked(plain: dict[str, Any]) -> dict[str, Any]:
    """A release's field, if it is whole."""
    try:
        whole = plain.keys() <= _PARTS and all(_finite(_numbers(part)) for part in plain.values())
        outcome = plain["outcome"]
        whole = whole and outcome.keys() == {"mean", "sd"} and outcome["sd"] >= 0.0
        if "balance" in plain:
            whole = whole and _is_table(plain["balance"])
        if "overlap" in plain:
            found = Overlap.of(plain["overlap"])
            totals = [sum(shares) for shares in found.shares.values()]
            whole = (
                whole
                and all(abs(total - 1.0) < _ROUNDING for total in totals)
                and {0.05, 0.95} <= found.quantiles.keys()
            )
    except (AttributeError, LookupError, TypeError, ValueError):
        whole = False
    if not whole:
        raise InvalidInput(_BROKEN)
    return plain


def _is_table(plain: Mapping[str, Any]) -> bool:
    rows = rows_of(plain)
    sds = [row[name] for row in rows for name in ("before_sd", "after_sd") if row[name] is not None]
    numbers = all(isinstance(row[name], int | float) for row in rows for name in ("scale", "before", "before_sd"))
    both = all((row["after"] is None) == (row["after_sd"] is None) for row in rows)
    return bool(rows) and plain.keys() == set(_COLUMNS) and numbers and both and min(sds) >= 0.0


def _numbers(plain: object) -> Iterator[float]:
    """All numbers in plain JSON."""
    if isinstance(plain, Mapping | list | tuple):
        for part in plain.values() if isinstance(plain, Mapping) else plain:
            yield from _numbers(part)
    elif isinstance(plain, int | float):
        yield plain


def _finite(numbers: Iterator[float]) -> bool:
    return all(map(math.isfinite, numbers))


def _two(ends: Any) -> tuple[float, float]:
    low, high = map(float, ends)
    return low, high


def checked_level(alpha: object) -> float:
    """A level of an interval."""
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise InvalidInput("alpha must lie between 0 and 1; 0.05 asks for a 95 % interval.")
    return alpha
