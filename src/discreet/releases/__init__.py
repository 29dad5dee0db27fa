"""What is published: averages, functions and segments, as files, words, plots and pages."""

from discreet.releases.io import load

__all__ = ["load"]
