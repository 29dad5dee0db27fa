"""Rows of a ledger that somebody changed behind its back, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, create_engine, text

from discreet import Ledger, LedgerCorrupt
from discreet.ledger import Cost

FIELDS = ("seq", "time", "actor", "action", "dataset", "body", "previous", "hash")


@dataclass(slots=True)
class Tampering:
    """What came of all changes."""

    rows: int
    changed: int = 0
    removed: int = 0
    swapped: int = 0
    detected: int = 0
    refused_by_triggers: int = 0

    @property
    def tried(self) -> int:
        """All attempts that got past the triggers."""
        return self.changed + self.removed + self.swapped


def tamper(url: str, *, requests: int) -> Tampering:
    """Change every field of every row, remove every row but the last, swap neighbours; see whether it shows."""
    with closing(Ledger(url)) as ledger:
        ledger.open("changed", epsilon=float(requests))
        for _ in range(requests):
            number = ledger.reserve("changed", Cost(epsilon=1.0), analyst="ada")
            ledger.charge(number)
            ledger.settle(number)
        kept = ledger.head
        engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
        found = Tampering(rows=kept.seq)
        for seq in range(1, kept.seq + 1):
            for statement in ("UPDATE ledger_log SET actor = 'x'", "DELETE FROM ledger_log"):
                found.refused_by_triggers += _refuses(engine, f"{statement} WHERE seq = {seq}")
        _without_triggers(engine)
        for kind, there, back in _changes(engine, kept.seq):
            setattr(found, kind, getattr(found, kind) + 1)
            _run(engine, there)
            try:
                ledger.verify(kept)
            except LedgerCorrupt:
                found.detected += 1
            _run(engine, back)
        ledger.verify(kept)
        engine.dispose()
    return found


def _changes(engine: Engine, rows: int) -> Iterator[tuple[str, list[Any], list[Any]]]:
    with engine.connect() as connection:
        stored = [dict(row) for row in connection.execute(text("SELECT * FROM ledger_log ORDER BY seq")).mappings()]
    into = f"INSERT INTO ledger_log ({', '.join(FIELDS)}) VALUES ({', '.join(f':{name}' for name in FIELDS)})"
    for row in stored:
        for name in FIELDS:
            old, seq = row[name], row["seq"]
            new = seq + rows if name == "seq" else (old[:-1] + ("0" if old[-1:] != "0" else "1"))
            change = f"UPDATE ledger_log SET {name} = :new WHERE seq = :seq"
            at = new if name == "seq" else seq
            yield "changed", [(change, {"new": new, "seq": seq})], [(change, {"new": old, "seq": at})]
        gone = ("DELETE FROM ledger_log WHERE seq = :seq", {"seq": row["seq"]})
        yield "removed", [gone], [(into, row)]
        if row["seq"] < rows:
            move, first = "UPDATE ledger_log SET seq = :new WHERE seq = :seq", row["seq"]
            steps = [(first, -1), (first + 1, first), (-1, first + 1)]
            there = [(move, {"seq": a, "new": b}) for a, b in steps]
            yield "swapped", there, there


def _refuses(engine: Engine, statement: str) -> bool:
    try:
        _run(engine, [(statement, {})])
    except Exception as error:
        return "only grows" in str(error)
    return False


def _run(engine: Engine, statements: list[Any]) -> None:
    with engine.begin() as connection:
        for statement, values in statements:
            connection.execute(text(statement), values)


def _without_triggers(engine: Engine) -> None:
    if engine.dialect.name == "postgresql":
        _run(engine, [("ALTER TABLE ledger_log DISABLE TRIGGER USER", {})])
        return
    with engine.connect() as connection:
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars().all()
    _run(engine, [(f"DROP TRIGGER {name}", {}) for name in names])
