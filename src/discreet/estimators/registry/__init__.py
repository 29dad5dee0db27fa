"""The estimators of the library as data: what commands, plans, forms, pages and audits need to know about each.

A new estimator is one entry. Classes are named and not imported, so that reading this table costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from discreet.estimators.registry import options as given
from discreet.estimators.registry.options import (
    BY,
    CAP,
    CLUSTERS,
    CORRECTION,
    COVARIATES,
    DELTA,
    HORIZON,
    MEASURE,
    MISSING,
    POLICY,
    PROPENSITY,
    RELATION,
    SAMPLE_WEIGHT,
    TIMES,
    Neighbours,
    Option,
)

if TYPE_CHECKING:
    from discreet.data.bounds import Bounds

__all__ = ["BY", "COVARIATES", "REGISTRY", "Entry", "Neighbours", "Option", "Planned", "planned"]

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
    asks
        What a request to the service may choose besides epsilon, delta, covariates and ``columns``, as JSON holds it:
        a new estimator is in the interface, in the client and in forms by these.
    asked_arguments
        Turns what a request chose, and the bounds, into arguments of the class.
    needs_covariates
        Whether there is nothing to estimate without a covariate.
    relations
        Relations under which it can be asked for; of all others a request is refused.
    by_record
        Whether it takes a probability of treatment that differs from record to record.
    claims
        Whether what a request chose is claimed and not proved, so that a data set has to admit it.
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
    asks: tuple[Option, ...] = ()
    asked_arguments: Callable[[dict[str, Any], Bounds], dict[str, Any]] = lambda chosen, _: chosen
    needs_covariates: bool = False
    relations: tuple[Neighbours, ...] = get_args(Neighbours)
    by_record: bool = True
    claims: Callable[[Mapping[str, Any]], bool] = lambda _: False
    audited: Mapping[str, Any] | None = None
    # Registry: as in the configurations that every run of the tests replays.
    audited_outcome: tuple[float, float] = (-4.0, 10.0)

    def load(self) -> Any:
        """The class."""
        module, _, name = self.path.partition(":")
        return getattr(import_module(module), name)


_ENTRIES = (
    Entry(
        name="ate",
        path="discreet.estimators.ate:ATE",
        help="Estimate an average treatment effect and publish it.",
        options=(DELTA, COVARIATES, PROPENSITY, RELATION, CAP, MISSING),
        columns=(SAMPLE_WEIGHT,),
        asks=(given.ASKED_CAP,),
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
            asks=(given.ASKED_CAP,),
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
        asks=(CORRECTION,),
        needs_covariates=True,
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
        asks=(given.ASKED_CAP,),
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
        arguments=given.segments_by_words,
        asks=(given.ASKED_BY, given.ASKED_CLUSTERS),
        asked_arguments=given.asked_segments,
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
        arguments=given.policy_in_file,
        asks=(given.ASKED_POLICY,),
        asked_arguments=given.asked_policy,
        page_title="What a policy gains in {outcome}",
        planned_as="policy-value",
        planner="discreet.estimators.policies.planned:plan_policy_value",
        planning=(given.SHARE,),
        pure=True,
        command=True,
        title="Gain of a policy",
        one_gate=True,
    ),
    Entry(
        name="survival",
        path="discreet.estimators.survival.effect:SurvivalEffect",
        help="Estimate an effect on a time to event that may be censored, with a survival curve per arm.",
        options=(HORIZON, MEASURE, TIMES, DELTA, COVARIATES, PROPENSITY, RELATION),
        columns=(given.EVENT,),
        arguments=given.times_in_words,
        asks=(given.ASKED_HORIZON, MEASURE, given.ASKED_TIMES),
        page_title="Effect of {treatment} on the time to {outcome}",
        planned_as="survival",
        planner="discreet.estimators.survival.planned:plan_survival",
        planning=(HORIZON, MEASURE, TIMES, given.EVENTS, given.LOST),
        command=True,
        title="Effect on a time to event",
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
        columns=(given.INSTRUMENT,),
        page_title="Effect of {treatment} on {outcome}, on compliers",
        planned_as="late",
        planner="discreet.estimators.natural_experiments.planned:plan_late",
        planning=(given.COMPLIANCE,),
        command=True,
        title="Effect on compliers",
        samples=True,
        one_gate=True,
        audited=_GAUSSIAN,
    ),
    Entry(
        name="difference-in-differences",
        path="discreet.estimators.natural_experiments.did:DifferenceInDifferences",
        help="Estimate an effect by how outcomes changed between two periods, and publish it.",
        options=(DELTA, COVARIATES, PROPENSITY, RELATION),
        columns=(given.BEFORE,),
        planned_as="difference-in-differences",
        planner="discreet.estimators.natural_experiments.planned:plan_difference_in_differences",
        planning=(given.CORRELATION,),
        command=True,
        title="Effect by difference in differences",
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
        asks=(given.CALIBRATION,),
        asked_arguments=given.asked_function,
        needs_covariates=True,
        relations=("replace-one",),
        by_record=False,
        claims=lambda chosen: chosen.get("calibration") == "claimed",
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
