"""The estimators of the library as data: what commands, plans, forms, pages and audits need to know about each.

A new estimator is one entry. Classes are named and not imported, so that reading this table costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal

from discreet.estimators.options import COMPLIANCE, CORRELATION, EVENTS, LOST, SHARE, Option
from discreet.exceptions import InvalidInput

Neighbours = Literal["replace-one", "add-remove"]
Planned = Literal[
    "ate",
    "difference-in-means",
    "cate",
    "uplift",
    "late",
    "difference-in-differences",
    "survival",
    "policy-value",
]

# Registry: what an audit gives where nothing else is given, a delta to whatever cannot do without one.
_GAUSSIAN = MappingProxyType({"delta": 1e-6})
_FOUR_SEGMENTS = MappingProxyType({"by": {0: 4}})
_LINEAR = MappingProxyType({"delta": 1e-6, "base": "linear"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An estimator.

    Parameters
    ----------
    name
        What commands, plans and audits call it.
    path
        Its class, as "module:name".
    help
        One sentence for people.
    options
        What may be chosen besides epsilon and bounds, in the order in which it is offered.
    columns
        Columns of the table that it takes besides outcome, treatment and covariates; they have to be given.
    arguments
        Turns the values of the options into arguments of the class.
    page_title
        Title of a page about its release.
    command
        Whether the command line has a command for it.
    level
        Whether the command takes the level of intervals.
    simultaneous
        Whether the command can ask for intervals that cover all at once.
    samples
        Whether models of long tables can be fitted to a sample.
    title
        A few words for choices and headings; empty where nobody is offered a choice.
    planned_as
        What `discreet.plan` calls the estimator whose plan holds for this one; None where it cannot be planned.
    plan_note
        What has to be said about a plan that is another's.
    planner, planning
        Where a plan of its own is computed, as "module:function", and what it may be told besides what all plans take.
    pure
        Whether it can do without a delta.
    answers
        Whether its release can be asked for effects.
    one_gate
        Whether the whole budget is spent in one gate, so that Gaussian rounds compose exactly.
    request_kind
        What requests to the service call it, where that is not its name.
    audited
        Arguments that an audit gives unless it is given others; None where no audit knows it by name.
    audited_outcome
        Range of the outcome on bounds that an audit makes up.
    """

    name: str
    path: str
    help: str
    options: tuple[Option, ...] = ()
    columns: tuple[Option, ...] = ()
    arguments: Callable[[dict[str, Any]], dict[str, Any]] = dict
    page_title: str = "Effect of {treatment} on {outcome}"
    command: bool = False
    level: bool = True
    simultaneous: bool = False
    samples: bool = False
    title: str = ""
    planned_as: Planned | None = None
    plan_note: str = ""
    planner: str = ""
    planning: tuple[Option, ...] = ()
    pure: bool = False
    answers: bool = False
    one_gate: bool = False
    request_kind: str = ""
    audited: Mapping[str, Any] | None = None
    # Registry: as in the configurations that every run of the tests replays.
    audited_outcome: tuple[float, float] = (-4.0, 10.0)

    def load(self) -> Any:
        """The class."""
        module, _, name = self.path.partition(":")
        return getattr(import_module(module), name)


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
SAMPLE_WEIGHT = Option(
    name="weight", type=str | None, help="Column of survey weights, where the bounds declare weight = (0, most)."
)
CORRECTION = Option(
    name="correction",
    type=Literal["R", "DR"],
    help="Moments that correct the effect: the R-learner's, or those of the doubly robust score.",
    default="R",
)
BY = Option(
    name="by",
    type=list[str] | None,
    help="Segments: age=8, age=auto, age=18,40,65 or sex=levels; repeat to cross.",
)
CLUSTERS = Option(
    name="clusters", type=int | None, help="In place of --by: find so many segments, with half of the budget."
)
EVENT = Option(name="event", type=str, help="Column that holds 1 where the outcome is the time of the event, and 0.")
HORIZON = Option(name="horizon", type=float | None, help="Up to when: later events do not count.")
MEASURE = Option(
    name="measure",
    type=Literal["rmst", "risk"],
    help="Compare the restricted mean time without the event, or the probability of the event.",
    default="rmst",
)
TIMES = Option(
    name="times", type=str | None, help="Times at which curves are known: 30,90,365. Default: an even grid by a rule."
)


def _times(chosen: dict[str, Any]) -> dict[str, Any]:
    """A grid of times in words."""
    words = chosen["times"]
    if words is None:
        return chosen
    try:
        return chosen | {"times": [float(word) for word in words.split(",")]}
    except ValueError:
        raise InvalidInput("--times takes numbers, such as 30,90,365: check it.") from None


POLICY = Option(name="policy", type=str | None, help="File of 'discreet policy': whom to treat, at which cost.")


def _policy(chosen: dict[str, Any]) -> dict[str, Any]:
    """A policy that a file holds."""
    if chosen["policy"] is None:
        raise InvalidInput("--policy is needed: name a file that 'discreet policy' wrote.")
    from discreet.releases import load

    return chosen | {"policy": load(chosen["policy"])}


def _segments(chosen: dict[str, Any]) -> dict[str, Any]:
    """Segments that are declared by words, or found by clustering."""
    rest = dict(chosen)
    by, clusters = rest.pop("by"), rest.pop("clusters")
    if bool(by) == (clusters is not None):
        raise InvalidInput("segments are declared with --by or found with --clusters: give one of the two.")
    from discreet.estimators.clustering import PrivateKMeans
    from discreet.estimators.uplift import segments_in_words

    return rest | {"by": segments_in_words(by or []) if clusters is None else PrivateKMeans(clusters=clusters)}


_ENTRIES = (
    Entry(
        name="ate",
        path="discreet.estimators.ate:ATE",
        help="Estimate an average treatment effect and publish it.",
        options=(DELTA, COVARIATES, PROPENSITY, RELATION, CAP, MISSING),
        columns=(SAMPLE_WEIGHT,),
        command=True,
        samples=True,
        title="Average effect",
        planned_as="ate",
        one_gate=True,
        audited=_GAUSSIAN,
    ),
    *(
        Entry(
            name=name,
            path=f"discreet.estimators.weighted.{name}:{name.upper()}",
            help=f"Estimate the average effect {of_whom} and publish it.",
            options=(DELTA, COVARIATES, PROPENSITY, RELATION, CAP),
            command=True,
            samples=True,
            title=f"Average effect {of_whom}",
            planned_as="ate",
            plan_note=f"The width is that of the average over everyone. Of the effect {of_whom} it {may}.",
            one_gate=True,
            audited=_GAUSSIAN,
        )
        for name, of_whom, may in (
            ("att", "on the treated", "is wider where few are treated"),
            ("atc", "on the untreated", "is wider where most are treated"),
            ("ato", "in the overlap", "is narrower where overlap is poor"),
        )
    ),
    Entry(
        name="cate",
        path="discreet.estimators.cate:CATE",
        help="Estimate the effect as a function of covariates and publish it.",
        options=(
            DELTA,
            replace(COVARIATES, help="Columns that the effect may vary with: a,b,c. Default: all in the bounds."),
            PROPENSITY,
            CORRECTION,
            RELATION,
        ),
        command=True,
        level=False,
        samples=True,
        title="Effect as a function",
        planned_as="cate",
        plan_note="The width is that of the average effect. At a single point a function is wider.",
        answers=True,
        one_gate=True,
        audited=_GAUSSIAN,
    ),
    Entry(
        name="difference-in-means",
        path="discreet.estimators.difference_in_means:DifferenceInMeans",
        help="Compare the mean outcomes of a trial and publish their difference.",
        options=(
            replace(DELTA, help="Leave it out for pure epsilon."),
            PROPENSITY,
            RELATION,
            CAP,
            MISSING,
        ),
        columns=(SAMPLE_WEIGHT,),
        title="Difference of means",
        pure=True,
        planned_as="difference-in-means",
        one_gate=True,
        audited=MappingProxyType({}),
    ),
    Entry(
        name="uplift",
        path="discreet.estimators.uplift:Uplift",
        help="Estimate effects by segment and publish them.",
        options=(BY, CLUSTERS, replace(DELTA, help="Leave it out for pure epsilon."), PROPENSITY, RELATION),
        arguments=_segments,
        page_title="Effect of {treatment} on {outcome}, by segment",
        command=True,
        simultaneous=True,
        title="Effects by segment",
        pure=True,
        planned_as="uplift",
        plan_note="The width is that of one segment if all are equally large; the others narrow it a little.",
        answers=True,
        one_gate=True,
        audited=_FOUR_SEGMENTS,
    ),
    Entry(
        name="policy-value",
        path="discreet.estimators.policies.value:PolicyValue",
        help="Estimate what a policy gains among records that it was not chosen from.",
        options=(POLICY, replace(DELTA, help="Leave it out for pure epsilon."), COVARIATES, PROPENSITY, RELATION),
        arguments=_policy,
        page_title="What a policy gains in {outcome}",
        planned_as="policy-value",
        planner="discreet.estimators.policies.planned:plan_policy_value",
        planning=(SHARE,),
        pure=True,
        command=True,
        one_gate=True,
    ),
    Entry(
        name="survival",
        path="discreet.estimators.survival.effect:SurvivalEffect",
        help="Estimate an effect on a time to event that may be censored, with a survival curve per arm.",
        options=(HORIZON, MEASURE, TIMES, DELTA, COVARIATES, PROPENSITY, RELATION),
        columns=(EVENT,),
        arguments=_times,
        page_title="Effect of {treatment} on the time to {outcome}",
        planned_as="survival",
        planner="discreet.estimators.survival.planned:plan_survival",
        planning=(HORIZON, MEASURE, TIMES, EVENTS, LOST),
        command=True,
        samples=True,
        one_gate=True,
        # Registry: in the middle of the range of times.
        audited=_GAUSSIAN | {"horizon": 0.5},
        # Registry: from time zero on.
        audited_outcome=(0.0, 1.0),
    ),
    Entry(
        name="late",
        path="discreet.estimators.natural_experiments.late:LATE",
        help="Estimate the effect on those whom an instrument moves to treatment, and publish it.",
        options=(
            DELTA,
            COVARIATES,
            replace(PROPENSITY, help="Probability of the instrument if known by design: a number, or its column."),
            RELATION,
        ),
        columns=(Option(name="instrument", type=str, help="Column of the instrument, 0 or 1."),),
        page_title="Effect of {treatment} on {outcome}, on compliers",
        planned_as="late",
        planner="discreet.estimators.natural_experiments.planned:plan_late",
        planning=(COMPLIANCE,),
        command=True,
        samples=True,
        one_gate=True,
        audited=_GAUSSIAN,
    ),
    Entry(
        name="difference-in-differences",
        path="discreet.estimators.natural_experiments.did:DifferenceInDifferences",
        help="Estimate an effect by how outcomes changed between two periods, and publish it.",
        options=(DELTA, COVARIATES, PROPENSITY, RELATION),
        columns=(Option(name="before", type=str, help="Column of the outcome before the treatment."),),
        planned_as="difference-in-differences",
        planner="discreet.estimators.natural_experiments.planned:plan_difference_in_differences",
        planning=(CORRELATION,),
        command=True,
        samples=True,
        one_gate=True,
        audited=_GAUSSIAN,
    ),
    Entry(
        name="papers.DPCATEFunction",
        path="discreet.papers:DPCATEFunction",
        help="The effect as a noisy function.",
        title="Effect function, one query at a time (DP-CATE)",
        planned_as="ate",
        plan_note="The width is that of the average effect. This function has no interval of its own.",
        request_kind="dp-cate",
        audited=_GAUSSIAN,
    ),
    *(
        Entry(name=f"papers.{name}", path=f"discreet.papers:{name}", help=words, audited=given)
        for name, words, given in (
            ("ADUM", "Effects by cell from noisy sums and counts.", _FOUR_SEGMENTS),
            ("DPCATE", "Effects at queries.", _GAUSSIAN),
            ("DRLearner", "A doubly robust learner that splits the sample.", _LINEAR),
            ("PrivATE", "An average effect with a private interval.", _GAUSSIAN),
            # Registry: what the audit gives.
            ("PropensityIPTW", "Weighting by private propensity scores.", _GAUSSIAN | {"xi": 0.1}),
            ("RLearner", "An R-learner that splits the sample.", _LINEAR),
            ("SLearner", "A single model that splits the sample.", _GAUSSIAN),
            ("TLearner", "A model for each arm that splits the sample.", _LINEAR),
            ("TwoModel", "A private model for each arm.", MappingProxyType({})),
        )
    ),
)

REGISTRY: Mapping[str, Entry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
"""Estimators by their names."""


def planned(estimator: object) -> str:
    """What `discreet.plan` calls the estimator whose plan holds for one of this name; the name itself, if nobody's."""
    name = str(estimator).replace("_", "-").lower()
    entry = REGISTRY.get(name)
    return entry.planned_as or name if entry is not None else name
