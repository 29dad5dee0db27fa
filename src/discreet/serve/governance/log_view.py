"""The log as people read it: who did what for whom, with which budget, in a sentence; filtered, paged, exported."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from discreet.exceptions import InvalidInput
from discreet.ledger import Entry
from discreet.ledger.governance.rules import EVERYTHING
from discreet.ledger.governance.search import LogFilter
from discreet.serve.governance.approvals import sentence
from discreet.serve.service import Service

PAGE = 100
# Lines that are read at once for an export.
_BATCH = 2_000
COLUMNS = ("line", "time", "who", "what", "whom", "dataset", "kind", "epsilon", "delta", "text", "hash")

# What an action is called, and the sentence that explains it.
_WORDS = {
    "open": ("data set opened", "{who} opened {dataset} with a cap of {cap}."),
    "allow": ("cap set", "{who} set the cap of {whom_or_all} on {dataset} to {cap}."),
    "propose": ("proposed", "{who} proposed to {deed}."),
    "approve": ("approved", "{who} approved what {proposer} had proposed: to {deed}."),
    "reject": ("rejected", "{who} rejected what {proposer} had proposed: to {deed}."),
    "freeze": ("frozen", "{who} froze {dataset}{why}: nothing new is released from it."),
    "unfreeze": ("freeze lifted", "{who} lifted the freeze of {dataset}{why}."),
    "renew": ("records checked again", "{who} had changed records of {dataset} checked: they are version {version}."),
    "reserve": ("asked", "{who} asked for {kind_or_release} of {dataset}: {cap} was set aside."),
    "charge": ("charged", "The request of line {request} was charged for good, before a record was read."),
    "settle": ("released", "The request of line {request} released what it was charged for."),
    "fail": ("failed", "The request of line {request} ended without a release; it stays charged."),
    "cancel": ("given back", "The request of line {request} ended before it was charged: nothing was drawn."),
    "answer": ("answered again", "{who} got the release of line {request} again, for free."),
    "govern": ("rule set", "From here on it takes {curators} to loosen something."),
    "halt": ("everything halted", "Everything was halted{why}, until two curators resume."),
}
_NOTES = {
    "person added": "{who} added {whom} as {role}.",
    "token made": "{who} made a token for {whom}.",
    "token revoked": "{who} revoked a token of {whom}.",
    "signed in": "{who} signed in.",
    "access taken": "{who} took the access to {dataset} from {whom}.",
    "release read": "{who} read a release of {dataset}.",
    "release downloaded": "{who} downloaded a release of {dataset} as {form}.",
    "release published": "{who} published a release of {dataset}.",
    "release public": "{who} showed a release of {dataset} to the public.",
    "release withdrawn": "{who} took a release of {dataset} back from the public.",
    "log exported": "{who} exported the log.",
    "refused": "{who} was refused: {refusal}.",
}
# What the form offers, by what a filter calls it.
ALL_WORDS = [(action, words) for action, (words, _) in _WORDS.items()] + [(event, event) for event in _NOTES]


def lines(service: Service, wanted: LogFilter, *, after: int = 0, limit: int = 1_000) -> list[Entry]:
    """Lines in their order, at most so many."""
    return service.ledger.search(wanted, after=after, limit=limit, newest=False)


def page(service: Service, wanted: LogFilter) -> tuple[list[dict[str, Any]], int]:
    """A page of lines with their explanations, the newest first, and how many there are in all."""
    found = service.ledger.search(wanted, limit=PAGE)
    return [explained(service, entry) for entry in found], service.ledger.count(wanted)


def exported(service: Service, wanted: LogFilter) -> str:
    """All lines that match as CSV, in order, text that a spreadsheet would take for a formula made harmless."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_harmless(row[name]) for name in COLUMNS] for row in _all(service, wanted))
    return out.getvalue()


def explained(service: Service, entry: Entry) -> dict[str, Any]:
    """One line as people read it: facts, and a sentence."""
    facts = _facts(service, entry)
    if entry.action == "note":
        what = str(entry.body.get("event", ""))
        text = _NOTES.get(what, "{who}: {event}.")
        facts |= {name: value for name, value in entry.body.items() if name not in facts}
    else:
        what, text = _WORDS.get(entry.action, (entry.action, "{who}: {action}."))
    shown = {"line": entry.seq, "time": entry.time, "who": entry.actor, "what": what, "hash": entry.hash}
    shown |= {"dataset": "" if entry.dataset == EVERYTHING else entry.dataset}
    words = _Words(facts | {"action": entry.action})
    return (
        shown | {name: facts[name] for name in ("whom", "kind", "epsilon", "delta")} | {"text": text.format_map(words)}
    )


def _facts(service: Service, entry: Entry) -> dict[str, Any]:
    body = entry.body
    cost = body.get("cost", body)
    facts: dict[str, Any] = {"who": entry.actor, "dataset": entry.dataset, "kind": body.get("about", {}).get("kind")}
    facts |= {"whom": body.get("whom") or body.get("analyst"), "request": body.get("request")}
    facts |= {"epsilon": cost.get("epsilon"), "delta": cost.get("delta"), "version": body.get("version")}
    if "request" in body and entry.action != "note":
        request = service.ledger.request(body["request"])
        facts |= {"kind": request.about.get("kind"), "whom": request.analyst}
        facts |= {"epsilon": request.cost.epsilon, "delta": request.cost.delta}
    number = entry.seq if entry.action == "propose" else body.get("proposal")
    if number is not None:
        try:
            made = service.ledger.proposal(number)
            facts |= {"deed": sentence(made), "proposer": made.curator}
            facts["whom"] = facts["whom"] or made.analyst or made.facts.get("whom")
            if made.cap is not None:
                facts |= {"epsilon": made.cap.epsilon, "delta": made.cap.delta}
        except InvalidInput:
            facts |= {"deed": "something", "proposer": "somebody"}
    facts["cap"] = _budget(facts["epsilon"], facts["delta"])
    facts["why"] = f" ({body['reason']})" if body.get("reason") else ""
    facts["whom_or_all"] = facts["whom"] or "all analysts together"
    facts["kind_or_release"] = f"a release ({facts['kind']})" if facts["kind"] else "a release"
    facts["curators"] = "one curator" if body.get("curators") == 1 else "two curators"
    facts["refusal"] = body.get("what", "")
    return facts


def _budget(epsilon: float | None, delta: float | None) -> str:
    if epsilon is None:
        return ""
    return f"\N{GREEK SMALL LETTER EPSILON} = {epsilon:g}" + (
        f", \N{GREEK SMALL LETTER DELTA} = {delta:.3g}" if delta else ""
    )


def _all(service: Service, wanted: LogFilter) -> Iterator[dict[str, Any]]:
    after = 0
    while found := lines(service, wanted, after=after, limit=_BATCH):
        yield from (explained(service, entry) for entry in found)
        after = found[-1].seq


def _harmless(value: Any) -> Any:
    risky = ("=", "+", "-", "@", "\t", "\r", "\n")
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value.lstrip(" ").startswith(risky) else value


class _Words(dict[str, Any]):
    """What a sentence may say; a line of a later version may leave something out."""

    def __missing__(self, key: str) -> str:
        return "\N{EN DASH}"
