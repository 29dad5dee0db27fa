"""What an analyst may know when something is refused: fixed texts that depend on the request and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.exceptions import DiscreetError

TEXTS: dict[str, tuple[int, str]] = {
    "sign-in": (401, "Sign in first: this address needs a token that is in force."),
    "bad-token": (401, "This token is not in force: check that it is complete, or ask a curator for a new one."),
    "forbidden": (403, "Your token does not allow this: ask a curator for one with the scope that it needs."),
    "forged": (403, "This form is out of date or came from elsewhere: load the page again and repeat."),
    "nothing-here": (404, "There is nothing here that you may see: check the address."),
    "no-dataset": (404, "There is no data set of this name that you may use: choose one from the list."),
    "no-release": (404, "There is no release of this name that you may see: choose one from the list."),
    "not-public": (
        404,
        "Nothing is shown to the public behind this link: ask whom you have it from for the present one.",
    ),
    "no-job": (404, "There is no request of this name that you may see: choose one from the list."),
    "method": (405, "This address does not take such a request: see the description of the interface."),
    "too-slow": (408, "The request took too long to arrive: repeat it, and send less at a time."),
    "too-large": (413, "The request is larger than the service accepts: send less at a time."),
    "too-many": (429, "Too many requests in a short time: wait a moment and repeat."),
    "malformed": (422, "The request cannot be read: send what the description of the interface asks for."),
    "budget": (409, "This would spend more than is left for you or for the data set: ask for less, or see a curator."),
    "frozen": (409, "This data set is frozen: nothing is released from it until a curator lifts that."),
    "anchor": (
        503,
        "Nothing can be charged now, because the place that follows the log cannot be reached or contradicts it: "
        "curators see why.",
    ),
    "finished": (409, "This request has ended already: there is nothing left to stop."),
    "no-function": (409, "This release is no function of covariates: only such releases can be asked about people."),
    "other-request": (
        422,
        "This Idempotency-Key belongs to another request of yours: give every request a key of its own.",
    ),
    "under-way": (409, "A request with this Idempotency-Key is under way: wait a moment and repeat it."),
    "claimed": (409, "This method's privacy is claimed and not proved, and this data set does not admit such methods."),
    "twice": (409, "This takes two curators: the one who proposed it cannot approve it."),
    "not-now": (409, "This cannot be approved now."),
    "again": (
        409,
        "These records are registered already, and a second registration has a cap of its own: approve it as that, or "
        "reject it.",
    ),
    "again-since": (
        409,
        "These records were registered by another proposal in the meantime, which this one does not say: reject it.",
    ),
    "changed-proposal": (409, "This proposal is not what was proposed any more: reject it, and verify the log."),
    "other-curator": (
        403,
        "Curators make accounts and tokens for analysts, and tokens for themselves: whoever runs the service makes "
        "those of other curators, with discreet serve --curator.",
    ),
    "unavailable": (
        503,
        "The service cannot write anything down just now, so that nothing was charged: repeat later, or see whoever "
        "runs it.",
    ),
    "bad-state": (
        403,
        "This sign-in is out of date, was used already, or began in another browser: sign in again.",
    ),
    "bad-identity": (
        403,
        "Your institution's answer does not sign you in here: sign in again, or ask whoever runs the service.",
    ),
    "no-role": (
        403,
        "Your institution gives you no role here: ask it to add you to a group whose members may use this service.",
    ),
    "two-roles": (
        403,
        "Your institution lists you as curator and as analyst: nobody can be both here, so ask it to choose one.",
    ),
    "provider-away": (
        503,
        "Your institution cannot be asked who you are now: wait a moment and sign in again, or use a token.",
    ),
    "invalid": (422, "The request cannot be answered: check what it asks for."),
    "unexpected": (500, "Something went wrong that should not have: nothing more is shown, and it has been noted."),
}

# What became of a job, in the same words whatever the records are.
FAILURES = {
    "source": "The source of this data set is not what a curator registered, or is out of reach. Nothing was charged.",
    "budget": "A cap was lowered after the request came, and it does not fit any more. Nothing was charged.",
    "frozen": "The data set was frozen before the request was begun. Nothing was charged.",
    "access": "Access to the data set was withdrawn before the request was begun. Nothing was charged.",
    "stopped": "The request was stopped before anything was computed. Nothing was charged.",
    "stopped-charged": "The request was stopped after its budget had been charged. It stays charged.",
    "failed-charged": "The request failed after its budget had been charged. It stays charged, so that failures tell "
    "nothing for free.",
    "limits-charged": "The request needed more time or memory than the service allows, after its budget had been "
    "charged. It stays charged.",
    "limits": "The process that worked on the request ended before anything was computed. Nothing was charged.",
    "lost-charged": "The server stopped after the budget had been charged. It stays charged, because noise may have "
    "been drawn.",
}


class Refusal(DiscreetError):
    """A request that is refused, with a text of the list above, or one that depends on the request alone."""

    def __init__(self, code: str, text: str | None = None) -> None:
        self.code = code
        self.status, fixed = TEXTS[code]
        self.text = text or fixed
        super().__init__(self.text)

    def plain(self, where: Sequence[str] = ()) -> dict[str, Any]:
        """The same for programs: the shape of every refusal."""
        return {"error": self.code, "text": self.text, "where": list(where)}
