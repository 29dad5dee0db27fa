"""Studies of uplift: the epsilon-ADUM paper's generator, advertising data and a generator of their shape."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from discreet.data.bounds import Bounds, Declared
from discreet.datasets.observational import data_file
from discreet.datasets.study import Float, Study
from discreet.exceptions import InvalidInput

HILLSTROM_FILE = Path("hillstrom") / "hillstrom.csv.gz"
CRITEO_FILE = Path("criteo") / "criteo-uplift-v2.1.csv.gz"

# The challenge's own description: months since the last purchase, dollars spent in the past year, what was bought.
HILLSTROM_BOUNDS: dict[str, Declared] = {
    "recency": (1.0, 12.0),
    "history": (0.0, 2_000.0),
    "mens": [0, 1],
    "womens": [0, 1],
    "zip_code": ["Rural", "Surburban", "Urban"],  # spelled as in the file
    "newbie": [0, 1],
    "channel": ["Multichannel", "Phone", "Web"],
}
HILLSTROM_ARMS = {"mens": ("Mens E-Mail",), "womens": ("Womens E-Mail",), "any": ("Mens E-Mail", "Womens E-Mail")}
HILLSTROM_OUTCOMES = {"visit": (0.0, 1.0), "conversion": (0.0, 1.0), "spend": (0.0, 500.0)}
_NO_MAIL = "No E-Mail"

# The features are anonymous projections, so that no bound follows from what they mean. These are generous ranges around
# a file that is itself public: for records of your own, ask whoever made the features.
CRITEO_RANGES = {
    "f0": (12.0, 27.0),
    "f1": (10.0, 16.5),
    "f2": (8.0, 9.1),
    "f3": (-8.5, 5.0),
    "f4": (10.0, 21.5),
    "f5": (-9.5, 4.5),
    "f6": (-32.0, 0.5),
    "f7": (4.5, 12.0),
    "f8": (3.6, 4.0),
    "f9": (13.0, 76.0),
    "f10": (5.0, 6.5),
    "f11": (-1.5, 0.0),
}
CRITEO_OUTCOMES = ("visit", "conversion")
# In the generator: where the common value of each feature lies within its range, and how many records have it.
_COMMON = np.array([0.0, 0.0, 0.2, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.2, 1.0])
_SHARE = np.array([0.0, 0.95, 0.3, 0.8, 0.92, 0.95, 0.5, 0.95, 0.45, 0.8, 0.94, 0.97])
_TREATED = 0.85


def adum(n: int, seed: int, *, sigma: float = 1.0, frequency: float = 1.0) -> Study:
    """Synthetic data of the epsilon-ADUM paper, section 3.1: X uniform on (-1, 1), half treated, effect sin(X).

    The paper calls this effect non-monotonic, which sin(X) is not on that range; ``frequency=numpy.pi`` makes the
    effect sin(pi X), which is.

    Parameters
    ----------
    n, seed : int
        Number of records, and seed of the draw.
    sigma : float
        Standard deviation of the outcome's noise; 1 in Figure 1, 0.1 in Figure 2.
    frequency : float
        The effect is sin(frequency X).

    Examples
    --------
    >>> from discreet.datasets import adum
    >>> study = adum(n=100, seed=1, sigma=0.1)
    >>> study.X.shape, bool(abs(study.effects).max() < 1)
    ((100, 1), True)
    """
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, 1))
    t = (rng.random(n) < 0.5).astype(np.float64)
    effect = np.sin(frequency * x[:, 0])
    # Four standard deviations: one outcome in ten thousand is clipped at most.
    most = 1.0 + 4.0 * sigma
    y = np.clip(t * effect + rng.normal(0.0, sigma, n), -most, most)  # (4), f^C = 0
    bounds = Bounds(outcome=(-most, most), covariates=[(-1.0, 1.0)], propensity=(0.4, 0.6))
    return Study(name="adum", X=x, T=t, Y=y, bounds=bounds, ate=0.0, effects=effect, propensity=np.full(n, 0.5))


def criteo_shaped(n: int, seed: int) -> Study:
    """Records of Criteo's shape: f0 to f11, most at one value, 85 % treated, visits raised by about .01.

    Made up, for scale: the real features' dependence is not reproduced.

    Examples
    --------
    >>> from discreet.datasets import criteo_shaped
    >>> trial = criteo_shaped(n=1_000, seed=1)
    >>> trial.X.shape, float(trial.propensity[0])
    ((1000, 12), 0.85)
    """
    rng = np.random.default_rng(seed)
    x = _criteo_covariates(n, rng)
    t = (rng.random(n) < _TREATED).astype(np.float64)
    control, treated = _criteo_risks(x)
    y = (rng.random(n) < np.where(t == 1, treated, control)).astype(np.float64)
    return Study(
        name="criteo-shaped",
        X=x,
        T=t,
        Y=y,
        bounds=_criteo_bounds(),
        ate=_criteo_shaped_ate(),
        effects=treated - control,
        propensity=np.full(n, _TREATED),
    )


def hillstrom(
    path: str | Path | None = None,
    *,
    treated: Literal["mens", "womens", "any"] = "any",
    outcome: Literal["visit", "conversion", "spend"] = "visit",
) -> Study:
    """Hillstrom's e-mail trial: 64,000 customers, a third each with a men's, a women's or no e-mail.

    Columns follow `HILLSTROM_BOUNDS`, whose ranges the challenge's description gives. Covariates come as an Arrow
    table; the column that repeats ``history`` in classes is left out. The truth is not known.

    Parameters
    ----------
    path : path, optional
        The data folder, or the file.
    treated : {"mens", "womens", "any"}
        Whose e-mail is the treatment; customers with another e-mail are left out. Control is no e-mail.
    outcome : {"visit", "conversion", "spend"}
        Within two weeks; spending is in dollars.

    Examples
    --------
    >>> from discreet.datasets import hillstrom
    >>> trial = hillstrom("data", treated="womens", outcome="spend")  # doctest: +SKIP
    """
    _one_of("treated", treated, tuple(HILLSTROM_ARMS))
    _one_of("outcome", outcome, tuple(HILLSTROM_OUTCOMES))
    table = _table(data_file(HILLSTROM_FILE, path), [*HILLSTROM_BOUNDS, "segment", outcome], numbers=[outcome])
    arms = pa.array([_NO_MAIL, *HILLSTROM_ARMS[treated]])
    table = table.filter(pc.is_in(table["segment"], value_set=arms))
    low, high = HILLSTROM_OUTCOMES[outcome]
    probability = 0.5 if treated != "any" else 2 / 3
    return Study(
        name=f"hillstrom-{treated}",
        X=table.select(list(HILLSTROM_BOUNDS)),
        T=_floats(pc.not_equal(table["segment"], _NO_MAIL)),
        Y=np.clip(_floats(table[outcome]), low, high),
        bounds=Bounds(outcome=(low, high), covariates=HILLSTROM_BOUNDS, propensity=(0.3, 0.7)),
        propensity=np.full(table.num_rows, probability),
    )


def criteo(path: str | Path | None = None, *, outcome: Literal["visit", "conversion"] = "visit") -> Study:
    """Criteo's uplift trial, version 2.1: 13,979,592 users of which 85 % were eligible for advertising.

    All of it needs about 2 GB of memory; `papers.ADUM.fit_table` reads the file a few thousand rows at a time.
    Features are clipped to `CRITEO_RANGES`.

    Parameters
    ----------
    path : path, optional
        The data folder, or the file.
    outcome : {"visit", "conversion"}
        Within two weeks.

    Examples
    --------
    >>> from discreet.datasets import criteo
    >>> trial = criteo("data", outcome="conversion")  # doctest: +SKIP
    """
    _one_of("outcome", outcome, CRITEO_OUTCOMES)
    wanted = [*CRITEO_RANGES, "treatment", outcome]
    table = _table(data_file(CRITEO_FILE, path), wanted, numbers=wanted)
    columns = [np.clip(_floats(table[name]), *ends) for name, ends in CRITEO_RANGES.items()]
    return Study(
        name="criteo",
        X=np.column_stack(columns),
        T=_floats(table["treatment"]),
        Y=_floats(table[outcome]),
        bounds=_criteo_bounds(),
        propensity=np.full(table.num_rows, _TREATED),
    )


def _criteo_bounds() -> Bounds:
    return Bounds(outcome=(0.0, 1.0), covariates=dict(CRITEO_RANGES), propensity=(0.7, 0.95))


def _criteo_covariates(n: int, rng: np.random.Generator) -> Float:
    low, high = np.array(list(CRITEO_RANGES.values())).T
    # One engaged user differs from the common values in many features at once.
    engaged = rng.random((n, 1))
    differs = rng.random((n, 12)) < np.clip(2.0 * (1.0 - _SHARE) * engaged, 0.0, 1.0) + (_SHARE == 0.0)
    far = rng.beta(1.5, 3.0, (n, 12))
    place = np.where(differs, np.abs(_COMMON - 0.05 - 0.9 * far), _COMMON)
    return np.asarray(np.clip(low + (high - low) * place, low, high))


def _criteo_risks(x: Float) -> tuple[Float, Float]:
    """Chances of a visit without and with advertising: engaged users visit more, and gain more."""
    low, high = np.array(list(CRITEO_RANGES.values())).T
    away = np.abs((x - low) / (high - low) - _COMMON)
    index = -4.4 - 2.0 * away[:, 0] + 1.2 * away[:, 3] + 2.5 * away[:, 6] + 1.5 * away[:, 9] + 2.0 * away[:, 8]
    gain = 0.15 + 0.5 * away[:, 9] + 0.6 * away[:, 8] - 0.2 * away[:, 0]
    return np.asarray(1 / (1 + np.exp(-index))), np.asarray(1 / (1 + np.exp(-index - gain)))


@cache
def _criteo_shaped_ate() -> float:
    control, treated = _criteo_risks(_criteo_covariates(400_000, np.random.default_rng(977)))
    return float(np.mean(treated - control))


def _table(path: Path, wanted: list[str], *, numbers: list[str]) -> Any:
    try:
        header = csv.open_csv(path).schema.names
        missing = [name for name in wanted if name not in header]
        if missing:
            raise InvalidInput(f"{str(path)!r} lacks the columns {', '.join(missing)}: check the file.")
        options = csv.ConvertOptions(include_columns=wanted, column_types=dict.fromkeys(numbers, pa.float64()))
        return csv.read_csv(path, convert_options=options)
    except pa.ArrowInvalid:
        # Arrow's own sentence quotes the value that it stumbled over.
        raise InvalidInput(f"{str(path)!r} is not a table of the expected columns: check the file.") from None


def _floats(column: Any) -> Float:
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidInput(f"{name} must be one of {', '.join(known)}: choose one.")
