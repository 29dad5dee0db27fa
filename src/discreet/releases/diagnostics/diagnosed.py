"""What releases of average effects and of functions answer about their arms: post-processing, at no cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.data.bounds import Bounds
from discreet.exceptions import UnsupportedRelease
from discreet.releases.diagnostics.released import Overlap, Row, balance_words, checked_level, rows_of
from discreet.releases.diagnostics.sensitivity import Average, OutcomeFacts, Sensitivity, sensitivity_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NOT_KEPT = (
    "This release has no diagnostics: its file is of an earlier version of discreet, which did not keep them. Its "
    "estimate and interval stand; only another fit, at the cost of its budget, would have them."
)
_NO_COVARIATES = (
    "This release adjusts for no covariates, so that it knows nothing of how the arms differ in them: for balance and "
    "overlap fit ATE with bounds that declare covariates, and to more records or with a larger budget if these do."
)
_ALIKE = (
    "Treatment was assigned with known probabilities and nothing was asked about how it goes with a single covariate: "
    "the arms are balanced by design, so rely on it."
)
_KNOWN = (
    "Treatment was assigned with known probabilities, so that none were fitted: overlap() is about observational "
    "studies, so look at the probabilities themselves."
)
_NO_CONFOUNDER = (
    "Treatment was assigned with known probabilities, so that no covariate that was left out can bias the effect: "
    "sensitivity() is about observational studies."
)


class Diagnosed:
    """Balance, overlap and sensitivity of a release."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def diagnostics(self) -> dict[str, Any] | None: ...
        @property
        def adjustment(self) -> dict[str, Any]: ...
        @property
        def reference(self) -> dict[str, float]: ...
        @property
        def bounds(self) -> Bounds: ...
        @property
        def design(self) -> str: ...

    def _average(self) -> Average:
        """The average effect, its intervals and the standard deviation of its score."""
        raise NotImplementedError

    @property
    def _of_changes(self) -> bool:
        """Whether the outcome of which facts are kept is a change, whose mean is no risk."""
        return False

    def balance(self) -> list[Row]:
        """How the arms differ in each covariate, treated minus controls; a row for each range and level.

        ``before`` is the difference of the arms as they are and ``after`` that with weights by the fitted propensity
        (None where the design is known): of a range in its standard deviations over all records, of which ``scale`` is
        one, and of a level in shares. ``before_sd`` and ``after_sd`` are the standard deviations of the noise in them,
        with what the released moments do not cover.
        """
        return rows_of(self._part("balance", _ALIKE))

    def overlap(self) -> Overlap:
        """How fitted probabilities of treatment are distributed over the released population, in all and by arm."""
        return Overlap.of(self._part("overlap", _KNOWN))

    def sensitivity(self, treatment: float = 0.1, outcome: float = 0.1, alpha: float = 0.05) -> Sensitivity:
        """What a confounder that was left out could do to the estimate; print it to read it in words.

        Parameters
        ----------
        treatment, outcome : float
            The parts of what covariates leave of the variance of treatment and of outcome that it explains.
        alpha : float
            Level of the interval.
        """
        if self.design != "observational":
            raise UnsupportedRelease(_NO_CONFOUNDER)
        kept, facts = self.diagnostics, None
        if kept is not None and "treated_share" in self.reference:
            risks = self.bounds.binary and not self._of_changes
            facts = OutcomeFacts(**kept["outcome"], treated=self.reference["treated_share"], binary=risks)
        alpha = checked_level(alpha)
        return sensitivity_of(self._average(), facts, treatment=treatment, outcome=outcome, alpha=alpha)

    def plot_balance(self, ax: Axes | None = None) -> Axes:
        """Draw the differences of the arms before and after adjustment, with their noise (needs matplotlib)."""
        from discreet.releases.diagnostics.plots import plot_balance

        return plot_balance(self.balance(), ax=ax)

    def plot_overlap(self, ax: Axes | None = None) -> Axes:
        """Draw the fitted probabilities of treatment in either arm (needs matplotlib)."""
        from discreet.releases.diagnostics.plots import plot_overlap

        return plot_overlap(self.overlap(), ax=ax)

    def arms_in_words(self) -> list[tuple[str, str]]:
        """Balance and overlap in a line each, as far as they are there."""
        kept = self.diagnostics or {}
        lines = [("balance", balance_words(rows_of(kept["balance"])))] if "balance" in kept else []
        return lines + ([("overlap", str(Overlap.of(kept["overlap"])))] if "overlap" in kept else [])

    def _part(self, name: str, absent: str) -> Any:
        """A part of what was kept, or a sentence that says why it is not there."""
        # Old files of averages have no other word for whether covariates were adjusted for.
        if not self.adjustment.get("covariates", self.bounds.names):
            raise UnsupportedRelease(_NO_COVARIATES)
        if self.diagnostics is None:
            raise UnsupportedRelease(_NOT_KEPT)
        if name not in self.diagnostics:
            raise UnsupportedRelease(absent)
        return self.diagnostics[name]
