"""What a fitted estimator answers, from its release alone."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Protocol, TypeVar

from discreet.exceptions import NotFitted
from discreet.privacy.guarantee import Guarantee
from discreet.releases.average import Release


class Published(Protocol):
    """What a release of any kind offers."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def notes(self) -> tuple[str, ...]: ...

    @property
    def guarantee(self) -> Guarantee: ...

    def summary(self) -> str: ...


ReleaseT = TypeVar("ReleaseT", bound=Published)


class Fitted(Generic[ReleaseT]):
    """What every fitted estimator answers, from its release alone."""

    release_: ReleaseT

    @property
    def guarantee_(self) -> Guarantee:
        """What the release promises."""
        return self._released().guarantee

    def summary(self) -> str:
        """The release as a readable table."""
        return self._released().summary()

    def _released(self) -> ReleaseT:
        try:
            return self.release_
        except AttributeError:
            raise NotFitted(f"this {type(self).__name__} has no release yet; call fit first.") from None


class Estimated(Published, Protocol):
    """A release of one number with an interval."""

    @property
    def estimate(self) -> float: ...

    def interval(self, alpha: float = 0.05) -> tuple[float, float]: ...


EstimatedT = TypeVar("EstimatedT", bound=Estimated)


class EffectResult(Fitted[EstimatedT]):
    """What a fitted estimator of one number answers."""

    @property
    def estimate_(self) -> float:
        """The released estimate."""
        return self._released().estimate

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Confidence interval at level ``1 - alpha``: sampling error and privacy noise together. Costs nothing."""
        return self._released().interval(alpha)


class WeightedResult(EffectResult[Release]):
    """What a fitted estimator of an average over all records, or over some, answers."""

    def plot(self, ax: Any = None) -> Any:
        """Draw the estimate, its interval and where the uncertainty comes from (needs matplotlib)."""
        from discreet.releases.plots import plot_release

        return plot_release(self._released(), ax=ax)


class AverageResult(WeightedResult):
    """What a fitted estimator of the average effect over all records answers."""

    @property
    def ate_(self) -> float:
        """The released estimate of the average effect."""
        return self._released().estimate

    def ate_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Confidence interval at level ``1 - alpha``: sampling error and privacy noise together. Costs nothing."""
        return self._released().interval(alpha)
