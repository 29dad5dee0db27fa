"""A release as a card: estimate, interval and guarantee, and its summary folded away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.data.notebooks.card import brief, card

if TYPE_CHECKING:
    from discreet.releases.explained.headline import Published


class ReleaseCard:
    """A release that notebooks show as a card, and whose description is one line."""

    __slots__ = ()

    def __repr__(self: Published) -> str:
        found = dict(card_rows(self))
        words = [found[name] for name in ("estimate", "95 % interval") if name in found]
        return brief(type(self).__name__, ", ".join([_title(self), *words, str(self.guarantee.budget)]))

    def __str__(self: Published) -> str:
        return self.summary()

    def _repr_html_(self: Published) -> str:
        return card(_title(self), card_rows(self), self.summary(), "summary")


def card_rows(release: Published) -> list[tuple[str, str]]:
    """Estimate, interval, records and guarantee, as far as a release has them."""
    # What puts releases into words knows all kinds of them, this one among them.
    from discreet.releases.explained.headline import headline

    found = headline(release)
    rows = [("estimate", found.estimate), ("95 % interval", found.interval), ("records", found.records)]
    stated = release.guarantee
    rows += [("privacy", f"{stated.budget}; {stated.neighbours}; {stated.unit}"), ("status", stated.status)]
    if stated.status == "test":
        rows[-1] = ("status", "test: drawn with seeded noise, not private")
    return [(name, value) for name, value in rows if value]


def _title(release: Published) -> str:
    from discreet.releases.explained.headline import headline

    return headline(release).name
