"""Releases of any kind in plain words, and several of them beside each other; nothing but what the files hold."""

from discreet.releases.explained.compare import Comparison, compare
from discreet.releases.explained.explain import explain

__all__ = ["Comparison", "compare", "explain"]
