"""Outcomes that are missing: read as they are, and adjusted for."""
