"""DP-CATE for whole effect functions (Schröder et al., Theorem 2), as published, and with a calibration that is proved.

Deviations from the text, which leaves these open or contradicts itself:

* Lemma 3 divides its kernel by (sqrt(2 pi) h)^q, Theorem 2 by sqrt(2 pi) h, and scikit-learn, with which such a fit
  would be made, by nothing, which is the default: ``scaling``. The noise is that of (18) with all of them.
* Lemma 3 penalises the norm, (15) its square: the square here. (57) lacks a bracket that (15) has.
* The experiments take lambda = 1 "by default". On the mean loss of (15) the fit then hardly moves from zero; as
  scikit-learn's alpha it weighs on the *sum* of losses, n times less than the noise assumes: ``penalty``.
* No bandwidth is given: that of scikit-learn, h = sqrt(q / 2), with covariates scaled to [0, 1]. The 50 basis functions
  are kernels at random points of the declared domain, so that they are public.
* "l2" on a bounded domain: L is taken "numerically as the upper bound of the domain", read here as the largest slope at
  the fitted function over the declared domain. "l1" is rounded off within a thousandth of its range around zero.
* Algorithm 2 as printed never evaluates g_D after the first query: ``as_printed=True``. Otherwise noise is drawn given
  the noise at earlier queries, so that answers one at a time are those of one batch.
* ``calibration="proved"`` is not in the paper: docs/proofs/dp_cate.md. It releases all coefficients of the function
  with noise, which is the same mechanism for all queries at once, and leaves nothing secret behind. The penalty pulls
  towards the average effect that the first stage released, instead of zero.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import MIN_ROWS, Chunk
from discreet.estimators._base import Checked, Progress
from discreet.estimators._parameters import Parameters
from discreet.exceptions import InvalidBudget, InvalidInput, NotFitted
from discreet.ledger.charging import on_ledger
from discreet.papers.common.arrays import OneVector, Part, gather, take
from discreet.papers.common.claims import Calibration, calibration_of, claimed_guarantee, warn_of_claim
from discreet.papers.common.losses import Loss
from discreet.papers.common.nuisances import Nuisances, check_finite, check_row_wise, design, private_models, train
from discreet.papers.common.queries import encode_queries
from discreet.papers.common.tables import FromTables
from discreet.papers.dp_cate import kernel_settings as kernel
from discreet.papers.dp_cate.equations import Weight, weight_of
from discreet.papers.dp_cate.interactive import SecretFunction
from discreet.papers.dp_cate.kernel_settings import Penalty, Scaling, one_of, settings_of
from discreet.papers.dp_cate.kernel_stage import noise_scale, published_slope, second_stage
from discreet.papers.dp_cate.pointwise import check_common, known_propensity, rng_of
from discreet.papers.dp_cate.presets import first_stage
from discreet.papers.dp_cate.release import AnswersRelease, FunctionRelease
from discreet.papers.plots import AlongCovariates
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Guarantee, Neighbours, parallel
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Statistic

Split = Literal["public", "private"]

# Numbers are those of docs/evidence/audit.md.
MEASURED = (
    "Its sensitivity has a power of -q where its own proof has -q/2 and a factor of 4 that nothing explains: with two "
    "covariates it adds too little noise for bandwidths above 1.6, with 30 above 0.44. The models of the first stage "
    "see the records without noise. Measured by 'python -m evidence.audit' with the 30 covariates of the paper's "
    "Dataset 2: a claimed epsilon of 1 is at least 8e+25. Use calibration='proved'."
)
_TITLE = "Conditional effects as a function (DP-CATE)"
_SECRET = (
    "The fitted object and its state file hold the effect function without noise: keep both secret, and publish "
    "answers only."
)
_PULLED = "The penalty pulls effects towards an average that came with the models, and there is no interval."


class DPCATEFunction(AlongCovariates, FromTables, Checked, Parameters):
    """Effects as a function of covariates, by kernel regression of pseudo-outcomes, with Gaussian process noise.

    Parameters
    ----------
    epsilon, delta : float
        The budget; a delta is needed.
    bounds : Bounds
        Public facts: outcome range, covariates, overlap. They are the domain of queries.
    learner : {"R", "DR"} or Weight, optional
        Weight function lambda(pi) of the loss; a `Weight` of your own cannot be proved. By default "R", and "DR" with
        the proved calibration.
    loss : {"l2", "huber", "truncated-l2", "l1"} or Loss, optional
        Of weighted residuals (15); a `Loss` of your own needs a Lipschitz constant and cannot be proved. By default
        "l2", and "huber" with the proved calibration.
    knee : float, optional
        Where "huber" and "truncated-l2" become linear, in the outcome's unit; by default 1, and a tenth of the
        outcome's width with the proved calibration.
    lam : float, optional
        The penalty lambda; by default 1, and 0.1 with the proved calibration.
    penalty : {"mean", "sum"}, optional
        Whether lambda weighs against the mean loss (15) or, as in scikit-learn, against the sum (claimed only, and its
        default).
    bandwidth : float, optional
        h, for covariates on [0, 1]; by default sqrt(q / 2), q the number of features, and half of it with the proved
        calibration.
    scaling : {"unit", "lemma 3", "theorem 2"}
        What the Gaussian kernel is divided by.
    basis : int
        Number of basis functions.
    calibration : {"published", "proved"}
        Theorem 2, which is claimed; or noise on all coefficients through the gate, which is proved.
    split : {"public", "private"}, optional
        Train the first stage on the first half of the records and the second stage on the other. "public" declares the
        first half public; "private", the proved calibration's default, takes linear models that went through the gate.
    as_printed : bool
        Algorithm 2 as it is printed, for the record.
    state : path, optional
        Claimed calibration: a new **secret** file that remembers every answer before it is given.
    model_regression, model_propensity : scikit-learn regressor and classifier, optional
        First stage; by default the paper's networks.
    propensity : float, optional
        Probability of treatment where it is known by design (a randomised trial).
    random_state : int, optional
        Seeds models and basis functions, never noise.

    Attributes
    ----------
    release_ : AnswersRelease or FunctionRelease
        What was answered so far (claimed), or the whole function (proved). **Only this may be published.**
    secret_ : SecretFunction
        Claimed calibration: the function without noise, which new answers are computed from. Secret.

    Privacy
    -------
    Claimed calibration: answers are claimed by the authors for replaced records, however many there are; fitting warns.
    The fitted object itself is **not private** and refuses to be pickled or copied. Proved calibration: protects every
    record of the second half, and with ``split="private"`` of the first half too; proof: docs/proofs/dp_cate.md. What
    it leaves behind may be published.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import dp_cate
    >>> study = dp_cate(1, n=400, seed=1)
    >>> function = dc.papers.DPCATEFunction(epsilon=1.0, delta=1e-5, bounds=study.bounds, calibration="proved")
    >>> with dc.testing.seeded_noise(0):
    ...     _ = function.fit(study.Y, study.T, X=study.X)
    >>> function.effect([[0.2, 0.5], [0.8, 0.5]]).shape
    (2,)
    """

    # Not the id of the class before its defaults were those of the figures: requests of then are others.
    method_id: ClassVar[str] = "discreet/papers/dp-cate-function/2"
    # Answers to queries that come later are no release to be answered from.
    release_types: ClassVar[tuple[type[Any], ...]] = ()
    neighbours: Neighbours = "replace-one"

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        learner: str | Weight | None = None,
        loss: str | Loss | None = None,
        knee: float | None = None,
        lam: float | None = None,
        penalty: Penalty | None = None,
        bandwidth: float | None = None,
        scaling: Scaling = "unit",
        basis: int = 50,
        calibration: Calibration = "published",
        split: Split | None = None,
        as_printed: bool = False,
        state: str | Path | None = None,
        model_regression: Any = None,
        model_propensity: Any = None,
        propensity: float | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.learner = learner
        self.loss = loss
        self.knee = knee
        self.lam = lam
        self.penalty = penalty
        self.bandwidth = bandwidth
        self.scaling = scaling
        self.basis = basis
        self.calibration = calibration
        self.split = split
        self.as_printed = as_printed
        self.state = state
        self.model_regression = model_regression
        self.model_propensity = model_propensity
        self.propensity = propensity
        self.random_state = random_state

    @on_ledger()
    def fit(self, Y: Any, T: Any, *, X: Any = None) -> DPCATEFunction:
        """Fit both stages to arrays or frames; claimed calibration: nothing is released before `effect` is asked."""
        self._before()
        return self._fit_chunk(gather(ArrayRecords.of(Y, T, X, bounds=self.bounds, propensity=self.propensity)))

    def _before(self) -> None:
        self.check()
        self._forget()
        if self.calibration != "proved":
            warn_of_claim("DPCATEFunction", f"{MEASURED} {_SECRET}")

    def _fit_chunk(self, rows: Chunk, progress: Progress | None = None) -> DPCATEFunction:
        if self._split is not None and len(rows.t) < 2 * MIN_ROWS:
            raise InvalidInput(f"split needs at least {2 * MIN_ROWS} records: bring more, or leave it out.")
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        nuisances, trained = self._first_stage(rows, budget)
        second = rows if self._split is None else take(rows, slice(len(rows.t) // 2, None))
        if self.calibration == "proved":
            centre = nuisances.average_effect(rows.x[: len(rows.t) // 2])
            self._public_release = self._proved(second, nuisances, centre, trained, budget, len(rows.t))
            return self
        self.secret_ = self._published(second, nuisances, budget)
        self._about = self._describe(len(rows.t))
        if self.state is not None:
            self.save(self.state)
        return self

    def effect(self, X: Any) -> Float:
        """Effects at rows of covariates inside the bounds, as often as you like; the same row, the same answer."""
        if hasattr(self, "_public_release"):
            return self._public_release.effect(X)
        return self._answering().ask(design(encode_queries(X, self.bounds, "X"), self.bounds))

    @property
    def release_(self) -> AnswersRelease | FunctionRelease:
        """What may be published: the answers so far, or the whole function."""
        if hasattr(self, "_public_release"):
            return self._public_release
        if not self._answering().answers:
            raise NotFitted("nothing has been answered yet, so that there is nothing to publish; call effect first.")
        return self._release_of(self.secret_)

    @property
    def guarantee_(self) -> Guarantee:
        """What the release promises."""
        return self.release_.guarantee

    def summary(self) -> str:
        """The release as a readable table."""
        return self.release_.summary()

    def save(self, path: str | Path) -> None:
        """Claimed calibration: keep the **secret** state in a file, and go on there. Publish ``release_`` instead."""
        self._answering().save(path, self._about)

    @classmethod
    def load(cls, path: str | Path) -> DPCATEFunction:
        """Go on from a secret state file: earlier queries get their earlier answers, new ones noise that fits them."""
        secret, about = SecretFunction.load(path)
        made = cls(
            epsilon=about["epsilon"], delta=about["delta"], bounds=Bounds.from_dict(about["bounds"]), state=str(path)
        )
        made.secret_, made._about = secret, about
        return made

    def close(self) -> None:
        """Let go of the state file, so that another process can load it; this object answers nothing new."""
        self._answering().close()

    def __getstate__(self) -> Any:
        if "secret_" in vars(self):
            raise InvalidInput(
                "this DPCATEFunction holds a function without noise and cannot be pickled or copied: publish its "
                "release_, and keep its state with save."
            )
        return super().__getstate__()

    def _check_budget(self, budget: Budget) -> None:
        if budget.pure:
            raise InvalidBudget("DPCATEFunction needs delta, e.g. delta=1e-5: its noise is Gaussian.")
        check_common(self)
        kernel.check_kernel(self)
        calibration_of(self.calibration)
        one_of("split", self.split, (None, *get_args(Split)))
        one_of("as_printed", self.as_printed, (False, True))
        if self._split == "private" and (self.model_regression is not None or self.model_propensity is not None):
            raise InvalidInput("split='private' has its own models: leave out model_..., or give split='public'.")
        if self.calibration == "proved":
            self._check_proved()
        elif self.state is not None and Path(self.state).exists():
            raise InvalidInput("state names a file that exists: load it to go on, or choose another name.")

    @property
    def _split(self) -> Split | None:
        """Models that saw the records are not covered: the proved calibration has private ones of its own."""
        return "private" if self.calibration == "proved" and self.split is None else self.split

    def _check_proved(self) -> None:
        if isinstance(self.learner, Weight) or isinstance(self.loss, Loss):
            raise InvalidInput("calibration='proved' knows the learners 'R' and 'DR' and the losses by name only.")
        if self.penalty == "sum" or self.as_printed or self.state is not None:
            raise InvalidInput("penalty='sum', as_printed and state belong to calibration='published': leave them out.")

    def _first_stage(self, rows: Chunk, budget: Budget) -> tuple[Nuisances, Guarantee | None]:
        """The nuisances, and what they promise to the records that trained them, if anything."""
        known, first = known_propensity(self), take(rows, slice(0, len(rows.t) // 2))
        if self._split == "private":
            # The two parts are disjoint, so that either may spend the whole budget.
            gate = Gate(Part(first, self.bounds), budget=budget)
            models = private_models(gate, known)
            return models, gate.guarantee(
                proof="dp_cate.md",
                public=kernel.public_facts(self, self._split),
                unit=kernel.protected_unit(self._split),
            )
        first = rows if self._split is None else first
        if not 0 < first.t.sum() < len(first.t):
            raise InvalidInput("One arm is empty in the half that trains the models: order the records differently.")
        given = first_stage(self.model_regression, self.model_propensity)
        clipped = self.calibration == "proved"
        trained = train(first, self.bounds, *given, known=known, clipped=clipped, rng=rng_of(self))
        if self.calibration == "proved":
            check_finite(*trained.raw(first.x[:MIN_ROWS]))
            check_row_wise(trained.parts, first.x[:MIN_ROWS])
        return trained, None

    def _published(self, rows: Chunk, nuisances: Nuisances, budget: Budget) -> SecretFunction:
        """Theorem 2: g_D, and r of (18)."""
        second = second_stage(self, rows, nuisances, clipped=False)
        function = second.span.function(second.stable.coefficients)
        L = published_slope(self, second, nuisances, function)
        h, q = function.kernel.bandwidth, function.centres.shape[1]
        r = noise_scale(L, h, q, settings_of(self).lam, len(rows.t), budget.epsilon, budget.delta or 0.0)
        return SecretFunction(function, r, as_printed=self.as_printed)

    def _proved(
        self, rows: Chunk, nuisances: Nuisances, centre: float, trained: Guarantee | None, budget: Budget, n: int
    ) -> FunctionRelease:
        """All coefficients through the gate."""
        second = second_stage(self, rows, nuisances, clipped=True, centre=centre)
        b, move, radius = second.stable
        geometry = Statistic(move=move, radius=radius, dimension=len(b), proof="dp_cate.md")
        gate = Gate(OneVector(vector=b, bounds=self.bounds), budget=budget)
        (noisy,) = gate.ask(Query("coefficients", 1.0, geometry, lambda chunk: chunk.x))
        own = gate.guarantee(
            proof="dp_cate.md", public=kernel.public_facts(self, self._split), unit=kernel.protected_unit(self._split)
        )
        return FunctionRelease(
            method=_TITLE,
            function=second.span.function(noisy.value, centre).to_dict(),
            noise_sd=float(noisy.sd),
            guarantee=own if trained is None else parallel(trained, own),
            bounds=self.bounds,
            settings=self._settings(n),
            notes=(_PULLED,),
        )

    def _settings(self, n: int) -> dict[str, Any]:
        given = settings_of(self)
        return {
            "records": n,
            "learner": weight_of(given.learner).name,
            "loss": given.loss if isinstance(given.loss, str) else given.loss.name,
            "lambda": given.lam,
            "calibration": "proved" if given.proved else "published",
            "split": self._split,
        }

    def _describe(self, n: int) -> dict[str, Any]:
        """What a state file says about itself beside the function."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "bounds": self.bounds.to_dict(),
            "settings": self._settings(n) | {"as printed": self.as_printed},
            "unit": kernel.protected_unit(self._split),
            "public": list(kernel.public_facts(self, self._split)),
        }

    def _release_of(self, secret: SecretFunction) -> AnswersRelease:
        about = self._about
        guarantee = claimed_guarantee(
            "DP-CATE, functional queries",
            Budget(epsilon=about["epsilon"], delta=about["delta"]),
            unit=about["unit"],
            public=tuple(about["public"]),
        )
        return AnswersRelease(
            method=_TITLE,
            effects=secret.answers,
            guarantee=replace(guarantee, status="test") if secret.seeded else guarantee,
            bounds=self.bounds,
            settings=about["settings"],
            notes=(f"Claimed, not private: {MEASURED[0].lower()}{MEASURED[1:]}", _SECRET),
        )

    def _answering(self) -> SecretFunction:
        if "secret_" not in vars(self):
            raise NotFitted("this DPCATEFunction has no function to ask; call fit first.")
        return self.secret_

    def _forget(self) -> None:
        if "secret_" in vars(self):
            self.secret_.close()
        for name in ("secret_", "_about", "_public_release"):
            self.__dict__.pop(name, None)
