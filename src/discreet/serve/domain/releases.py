"""Releases: stored once, kept in memory while they are asked, and shown to whom they belong or to all."""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from dataclasses import asdict, dataclass
from html import escape
from io import BytesIO
from typing import Any

import sqlalchemy as sa

from discreet.exceptions import InvalidInput
from discreet.releases import io
from discreet.releases.plots import svg
from discreet.releases.report import kind_of
from discreet.serve.domain.users import Identity
from discreet.serve.errors import Refusal
from discreet.serve.storage.clock import Clock
from discreet.serve.storage.paging import Page, select_page
from discreet.serve.storage.schema import grants, reading, releases

# Releases that are kept in memory: an effect function takes a few hundred kilobytes.
_MOST = 64
_OWNERS = 10_000
# Later than any clock.
_NEVER = 1e11
# Matplotlib shares caches between figures that are not made for threads.
_figure_lock = threading.Lock()
_STYLE = re.compile(r' style="([^"]*)"')
_MOST_FIGURES = 12
_FACTS = ("id", "job", "dataset", "person", "kind", "title", "published", "created")


class Shelf:
    """Loaded releases by id, the latest used last."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[str, Any] = OrderedDict()
        self._owners: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def get(self, engine: sa.Engine, name: str) -> Any:
        """A release; what is stored never changes, so that it is read once."""
        with self._lock:
            if name in self._loaded:
                self._loaded.move_to_end(name)
                return self._loaded[name]
        with reading(engine).begin() as connection:
            plain = connection.scalar(sa.select(releases.c.plain).where(releases.c.id == name))
        if plain is None:
            raise Refusal("no-release")
        loaded = io.read(json.loads(plain))
        with self._lock:
            self._loaded[name] = loaded
            if len(self._loaded) > _MOST:
                self._loaded.popitem(last=False)
        return loaded

    def peek(self, name: str) -> Any:
        """A release that is in memory, or None."""
        return self._loaded.get(name)

    def remember(self, person: str, name: str) -> None:
        """Somebody owns a release: that never ends, and need not be looked up again."""
        with self._lock:
            if len(self._owners) > _OWNERS:
                self._owners.clear()
            self._owners.add((person, name))

    def knows(self, person: str, name: str) -> bool:
        """Whether somebody is known to own a release that is in memory."""
        return (person, name) in self._owners and name in self._loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRelease:
    """What is noted about a release besides its content; ``created`` is when it may be seen."""

    id: str
    job: str
    dataset: str
    person: str
    kind: str
    key: str
    title: str
    created: float


def store(connection: sa.Connection, new: NewRelease, made: Any, figures: list[tuple[str, str]]) -> None:
    """Keep a release."""
    row = asdict(new) | {
        "plain": json.dumps(made.to_dict(), allow_nan=False),
        "figures": json.dumps(figures),
        "png": None,
        "published": False,
    }
    connection.execute(sa.insert(releases).values(row))


def title_of(made: Any, plain: str) -> str:
    """What a release is called: by its own title where labels were declared, else by names of columns."""
    return str(made.title) if hasattr(made, "title") and (made.bounds.labels or {}) else plain


def listed(engine: sa.Engine, clock: Clock, identity: Identity) -> list[dict[str, Any]]:
    """Releases that somebody may see, the newest first."""
    return paged(engine, clock, identity, Page(limit=500))[0]


def paged(engine: sa.Engine, clock: Clock, identity: Identity, page: Page) -> tuple[list[dict[str, Any]], str | None]:
    """A page of the releases that somebody may see, the newest first; and where the next one begins."""
    wanted = sa.select(*(releases.c[name] for name in _FACTS))
    if not identity.curator:
        wanted = wanted.where(_visible(clock, identity))
    with reading(engine).begin() as connection:
        return select_page(connection, wanted, ((releases.c.created, True), (releases.c.id, False)), page)


def find(engine: sa.Engine, clock: Clock, identity: Identity, name: str) -> dict[str, Any]:
    """What is known of a release that somebody may see; others are refused as if they did not exist."""
    wanted = sa.select(*(releases.c[fact] for fact in _FACTS)).where(releases.c.id == name)
    if not identity.curator:
        wanted = wanted.where(_visible(clock, identity))
    with reading(engine).begin() as connection:
        row = connection.execute(wanted).mappings().first()
    if row is None:
        raise Refusal("no-release")
    return dict(row)


def figures_of(engine: sa.Engine, name: str) -> list[tuple[str, str]]:
    """Captions and SVG figures that were kept with a release."""
    with reading(engine).begin() as connection:
        found = connection.scalar(sa.select(releases.c.figures).where(releases.c.id == name))
    return [(caption, figure) for caption, figure in json.loads(found or "[]")]


def png_of(engine: sa.Engine, shelf: Shelf, name: str) -> bytes:
    """The figure to download, drawn when it is first wanted."""
    with reading(engine).begin() as connection:
        found = connection.scalar(sa.select(releases.c.png).where(releases.c.id == name))
    if found is None:
        found = _png(shelf.get(engine, name))
        if found is None:
            raise Refusal("no-release", "This release has no figure: download its JSON file instead.")
        with engine.begin() as connection:
            connection.execute(sa.update(releases).where(releases.c.id == name).values(png=found))
    return bytes(found)


def identical(engine: sa.Engine, clock: Clock, identity: Identity, key: str) -> str | None:
    """A release that answers the same request on unchanged data, among those that somebody may see anyway."""
    alike = (releases.c.key == key) & _visible(clock, identity)
    with reading(engine).begin() as connection:
        return connection.scalar(sa.select(releases.c.id).where(alike).order_by(releases.c.created).limit(1))


def withhold(connection: sa.Connection, job: str) -> None:
    """Keep a release from analysts for ever: its request was stopped before it could be seen."""
    connection.execute(sa.update(releases).where(releases.c.job == job).values(created=_NEVER, published=False))


def publish(engine: sa.Engine, clock: Clock, identity: Identity, name: str) -> None:
    """Show a release to everybody who may use its data set. It cannot be taken back: others may have read it."""
    facts = find(engine, clock, identity, name)
    if facts["person"] != identity.person and not identity.curator:
        raise Refusal("forbidden")
    with engine.begin() as connection:
        connection.execute(sa.update(releases).where(releases.c.id == name).values(published=True))


def rows_of(given: list[dict[str, Any]], bounds: Any) -> Any:
    """People as an Arrow table with exactly the declared covariates."""
    import pyarrow as pa

    names = tuple(bounds.declared)
    for row in given:
        if row.keys() != set(names):
            raise InvalidInput(f"every row must name exactly the covariates {', '.join(names)}: check the rows.")
    try:
        return pa.table({name: pa.array([row[name] for row in given]) for name in names})
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        raise InvalidInput("every column must hold one kind of value, numbers or text: check the rows.") from None


def drawn_figures(release: Any) -> list[tuple[str, str]]:
    """Captions and SVG figures of a release; none for releases without a figure."""
    figures = _figures(release)
    with _figure_lock:
        return [(caption, _without_styles(svg(figure, caption))) for caption, figure in figures]


def svg_of(release: Any, number: int) -> bytes:
    """A figure of a release as a file for papers, its text as shapes so that it looks the same everywhere."""
    figures = _figures(release)
    if not 1 <= number <= len(figures):
        raise Refusal("nothing-here")
    out = BytesIO()
    with _figure_lock:
        figures[number - 1][1].savefig(
            out, format="svg", facecolor="white", bbox_inches="tight", metadata={"Date": None, "Creator": None}
        )
    return out.getvalue()


def _png(release: Any) -> bytes | None:
    """The first figure of a release, to download."""
    figures = _figures(release, most=1)
    if not figures:
        return None
    out = BytesIO()
    with _figure_lock:
        figures[0][1].savefig(
            out, format="png", dpi=180, facecolor="white", bbox_inches="tight", metadata={"Software": None}
        )
    return out.getvalue()


def _figures(release: Any, most: int = _MOST_FIGURES) -> list[tuple[str, Any]]:
    kind = kind_of(release)
    return [] if kind is None else kind.figures(release, most)


def _without_styles(text: str) -> str:
    """Attributes in place of styles: the pages' security policy admits no style that stands in a page."""

    def attributes(match: re.Match[str]) -> str:
        parts = (part.partition(":") for part in match.group(1).split(";"))
        return "".join(f' {name.strip()}="{escape(value.strip())}"' for name, colon, value in parts if colon)

    return _STYLE.sub(attributes, text)


def _visible(clock: Clock, identity: Identity) -> Any:
    """Own releases, and published ones of data sets that are open to this person, once the public schedule shows them.

    A release is dated by the moment at which its request may be seen to have ended: how long it took is nobody's.
    """
    granted = sa.select(grants.c.dataset).where(grants.c.person == identity.person)
    mine = (releases.c.person == identity.person) | (releases.c.published & releases.c.dataset.in_(granted))
    return mine & (releases.c.created <= clock.now())
