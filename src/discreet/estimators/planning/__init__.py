"""What a budget buys, before anything is spent."""

from discreet.estimators.planning.plan import Plan, plan

__all__ = ["Plan", "plan"]
