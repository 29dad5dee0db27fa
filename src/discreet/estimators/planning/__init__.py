"""What a budget buys, before anything is spent."""

from discreet.estimators.planning.plan import Estimator, Plan, plan

__all__ = ["Estimator", "Plan", "plan"]
