"""Estimators of treatment effects."""
