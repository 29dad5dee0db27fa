"""Policies and what they gain, as they may be published."""
