"""What may be chosen about estimators: on the command line in words, and in requests to a service as JSON holds it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from discreet.exceptions import InvalidInput

if TYPE_CHECKING:
    from discreet.data.bounds import Bounds

Neighbours = Literal["replace-one", "add-remove"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A parameter of some estimators, as a command, a request or a form offers it.

    Parameters
    ----------
    name
        Its name; on the command line with hyphens.
    type
        What it holds.
    help
        One sentence for people.
    default
        Its value where it is left out.
    label
        A few words beside the field of a form; its name where there are none.
    needed
        Whether a request may not leave it out.
    least, most
        Smallest and largest value of a number in a request.
    written
        Whether requests are written down with it even at its default, as those of the first version were.
    """

    name: str
    type: Any
    help: str
    default: Any = None
    label: str = ""
    needed: bool = False
    least: float | None = None
    most: float | None = None
    written: bool = False


DELTA = Option(name="delta", type=float | None, help="Chance that the budget may be missed, far below 1/n.")
COVARIATES = Option(
    name="covariates", type=str | None, help="Columns to adjust for: a,b,c. Default: all in the bounds."
)
PROPENSITY = Option(
    name="propensity",
    type=str | None,
    help="Probability of treatment if known by design: a number, or its column; of several arms label=.5,other=.5.",
)
RELATION = Option(
    name="neighbours", type=Neighbours, help="Which data sets must be indistinguishable.", default="replace-one"
)
CAP = Option(
    name="cap",
    type=str | None,
    help="Count larger outcomes as this number, which narrows the noise: a number, or auto to have one chosen.",
)
MISSING = Option(
    name="missing_outcome",
    type=Literal["refuse", "adjust"],
    help="What to do about missing outcomes: refuse them, or take them to be missing at random.",
    default="refuse",
)
CORRECTION = Option(
    name="correction",
    type=Literal["R", "DR"],
    help="Moments that correct the effect: the R-learner's, or those of the doubly robust score.",
    default="R",
    label="Correct the effect by",
)
BY = Option(
    name="by",
    type=list[str] | None,
    help="Segments: age=8, age=auto, age=18,40,65 or sex=levels; repeat to cross.",
)
CLUSTERS = Option(
    name="clusters", type=int | None, help="In place of --by: find so many segments, with half of the budget."
)
HORIZON = Option(
    name="horizon", type=float | None, help="Up to when: later events do not count.", label="Up to time", least=0.0
)
MEASURE = Option(
    name="measure",
    type=Literal["rmst", "risk"],
    help="Compare the restricted mean time without the event, or the probability of the event.",
    default="rmst",
    label="Compare",
)
TIMES = Option(
    name="times", type=str | None, help="Times at which curves are known: 30,90,365. Default: an even grid by a rule."
)
POLICY = Option(name="policy", type=str | None, help="File of 'discreet policy': whom to treat, at which cost.")

# Columns besides outcome, treatment and covariates: the estimator's `roles` say what each has to hold.
SAMPLE_WEIGHT = Option(
    name="weight",
    type=str | None,
    help="Column of survey weights, where the bounds declare weight = (0, most).",
    label="Survey weight",
)
EVENT = Option(
    name="event",
    type=str,
    help="Column that holds 1 where the outcome is the time of the event, and 0.",
    label="Whether the time is that of the event",
    needed=True,
)
INSTRUMENT = Option(
    name="instrument", type=str, help="Column of the instrument, 0 or 1.", label="Instrument", needed=True
)
BEFORE = Option(
    name="before",
    type=str,
    help="Column of the outcome before the treatment.",
    label="Outcome before the treatment",
    needed=True,
)

# The same in requests, where JSON holds more than words do.
ASKED_CAP = replace(
    CAP,
    type=float | Literal["auto"] | None,
    help="Count larger outcomes as this number, which narrows the noise; 'auto' has one chosen.",
    label="Count larger outcomes as",
)
ASKED_BY = replace(
    BY,
    type=dict[str, int | Literal["auto", "levels"] | list[float] | list[list[str | float]]] | None,
    help="Segments: for each covariate a number of cuts, 'auto', 'levels', edges, or groups of levels.",
    label="Segments",
)
ASKED_CLUSTERS = replace(
    CLUSTERS,
    help="In place of declared segments: find so many, with half of the budget.",
    label="Or find so many segments",
    least=2,
    # Time: places of first centres are searched before any record is read.
    most=64,
)
ASKED_HORIZON = replace(HORIZON, type=float, needed=True)
ASKED_TIMES = replace(
    TIMES,
    type=list[float] | None,
    help="Times at which curves are known; an even grid by a rule if left out.",
    label="Times of the curves",
)
ASKED_POLICY = replace(
    POLICY,
    type=dict[str, Any],
    help="Whom to treat, at which cost: what a file of a policy holds.",
    label="Policy",
    needed=True,
)
CALIBRATION = Option(
    name="calibration",
    type=Literal["proved", "claimed"],
    help="Noise that is proved, or as the authors claim, where the data set admits that.",
    default="proved",
    label="Noise",
    written=True,
)


def times_in_words(chosen: dict[str, Any]) -> dict[str, Any]:
    """A grid of times in words."""
    words = chosen["times"]
    if words is None:
        return chosen
    try:
        return chosen | {"times": [float(word) for word in words.split(",")]}
    except ValueError:
        raise InvalidInput("--times takes numbers, such as 30,90,365: check it.") from None


def policy_in_file(chosen: dict[str, Any]) -> dict[str, Any]:
    """A policy that a file holds."""
    if chosen["policy"] is None:
        raise InvalidInput("--policy is needed: name a file that 'discreet policy' wrote.")
    from discreet.releases import load

    return chosen | {"policy": load(chosen["policy"])}


def segments_by_words(chosen: dict[str, Any]) -> dict[str, Any]:
    """Segments that are declared by words, or found by clustering."""
    from discreet.estimators.uplift import segments_in_words

    rest = dict(chosen)
    by, clusters = rest.pop("by"), rest.pop("clusters")
    if bool(by) == (clusters is not None):
        raise InvalidInput("segments are declared with --by or found with --clusters: give one of the two.")
    return rest | {"by": segments_in_words(by or []) if clusters is None else _clusters(clusters)}


def asked_policy(chosen: dict[str, Any], bounds: Bounds) -> dict[str, Any]:
    """A policy as JSON holds it."""
    del bounds
    from discreet.releases import io
    from discreet.releases.policies.policy import Policy

    made = io.read(chosen["policy"])
    if not isinstance(made, Policy):
        raise InvalidInput("policy must be a policy, not a release: send what a policy's to_dict gives.")
    return chosen | {"policy": made}


def asked_segments(chosen: dict[str, Any], bounds: Bounds) -> dict[str, Any]:
    """Segments that are declared, or found by clustering."""
    del bounds
    by, clusters = chosen.pop("by", None), chosen.pop("clusters", None)
    if bool(by) == (clusters is not None):
        raise InvalidInput(
            "by must declare segments, for example {'age': 8}, or clusters say how many to find: give one of the two."
        )
    return chosen | {"by": by if clusters is None else _clusters(clusters)}


def asked_function(chosen: dict[str, Any], bounds: Bounds) -> dict[str, Any]:
    """DP-CATE's function with the loss and the penalty of a public rule."""
    # Public rules: the published penalty pulls every effect to zero on a kernel that is divided by so large a number.
    rules: dict[str, Any] = {"loss": "huber", "knee": bounds.outcome_width / 8.0, "lam": 0.01, "scaling": "unit"}
    proved = chosen.pop("calibration", "proved") == "proved"
    rules |= {"calibration": "proved", "split": "private"} if proved else {"calibration": "published"}
    return chosen | rules | {"random_state": 0}


def _clusters(count: int) -> Any:
    from discreet.estimators.clustering import PrivateKMeans

    return PrivateKMeans(clusters=count)


# What plans may be told of records that nobody has seen.
COMPLIANCE = Option(
    name="compliance",
    type=float | None,
    help="Expected share of people whom the instrument moves to treatment. Default: 0.5.",
)
CORRELATION = Option(
    name="correlation",
    type=float | None,
    help="Expected correlation of the outcome in both periods. Default: 0.5.",
)
EVENTS = Option(
    name="events", type=float | None, help="Expected share of people with the event up to the horizon. Default: 0.5."
)
LOST = Option(
    name="lost", type=float | None, help="Expected share of people who are lost before the horizon. Default: 0.2."
)
SHARE = Option(name="share", type=float | None, help="Expected share of people whom the policy treats. Default: 0.5.")
