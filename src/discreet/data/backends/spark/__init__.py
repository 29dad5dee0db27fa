"""Frames of a Spark cluster."""
