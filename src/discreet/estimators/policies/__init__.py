"""Estimators of what policies gain."""
