"""A picture of budgets: one bar a data set, spent, reserved and left."""

from collections.abc import Sequence
from typing import Any

from discreet.exceptions import MissingExtra
from discreet.ledger.account import Account

# Okabe and Ito's colours, which everyone can tell apart.
_COLOURS = {"spent": "#0072b2", "reserved": "#e69f00", "left": "#d5dade"}


def plot_accounts(accounts: Sequence[Account], ax: Any = None) -> Any:
    """Draw what is spent, reserved and left of every cap (needs matplotlib)."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtra("pictures need matplotlib: install it with pip install 'discreet[plots]'.") from None
    if ax is None:
        ax = pyplot.subplots(figsize=(7.2, 0.8 + 0.5 * max(1, len(accounts))), layout="constrained")[1]
    names = [f"{each.dataset}{' (frozen)' if each.frozen else ''}\n{each.cap}" for each in accounts]
    starts = [0.0] * len(accounts)
    for number, (part, colour) in enumerate(_COLOURS.items()):
        widths = [100 * each.shares[number] for each in accounts]
        ax.barh(names, widths, left=starts, color=colour, label=part, height=0.55)
        starts = [start + width for start, width in zip(starts, widths, strict=True)]
    ax.set_xlim(0, 100)
    ax.set_xlabel("% of the cap")
    ax.invert_yaxis()
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    return ax
