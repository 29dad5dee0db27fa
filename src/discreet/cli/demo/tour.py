"""A demonstration: studies whose truth is known, published as an average, as a function and by segment."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from scipy.special import ndtri

from discreet.cli.demo import effects as for_whom
from discreet.cli.demo.comparisons import Row, plot_splits, plot_widths
from discreet.cli.demo.effects import FILES, Effects
from discreet.data._arrays import Float
from discreet.data.bounds import Bounds, Range
from discreet.datasets import draw
from discreet.datasets._demo import DATA, HOME, OUTCOME, PUBLIC, TREATMENT, TRIAL
from discreet.datasets._demo import table as study_table
from discreet.estimators.ate import ATE
from discreet.exceptions import InvalidInput
from discreet.releases.average import Release
from discreet.releases.page import guarantee_facts, guess, inline_figure, page
from discreet.releases.parts.average_page import finding, save_report

if TYPE_CHECKING:
    from rich.console import Console

N, SEED, DELTA = 20_000, 1, 1e-6
EPSILONS = (0.25, 0.5, 1.0, 2.0)
CHOSEN = 1.0
BOUNDS, RELEASE, REPORT, PAGE = "bounds.toml", "release.json", "report.html", "demo.html"
# PrivATE spends this share of its budget on the estimate (Table 1 of the paper) and the rest on its variance.
_PRIVATE_SHARE = 0.9

Progress = Callable[[str, int, int], None]


class Open(NamedTuple):
    """An analysis without any privacy."""

    estimate: float
    se: float
    unadjusted: float
    reach: float
    """largest distance of one possible record's score from the estimate, for PrivATE's formula"""

    def interval(self) -> tuple[float, float]:
        """95 % interval."""
        half = float(ndtri(0.975)) * self.se
        return self.estimate - half, self.estimate + half


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """What the demonstration found."""

    truth: float
    n: int
    open: Open
    releases: dict[float, Release]
    effects: Effects
    page: Path

    @property
    def chosen(self) -> Release:
        """The release that the page is about."""
        return self.releases[CHOSEN]


def run(
    out: str | Path,
    *,
    n: int = N,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Demo:
    """Generate two studies, publish their effects in three ways, and write pages about it.

    Parameters
    ----------
    out : str or Path
        A directory for the studies, their bounds, releases and pages; made if it does not exist.
    n, seed : int
        Size and seed of the studies. The noise has no seed: it differs from run to run, as it has to.
    progress : callable, optional
        Called with (what, steps done, steps in all).
    """
    out = _directory(Path(out))
    show_progress, steps = progress or (lambda what, done, total: None), len(EPSILONS) + 5
    show_progress("generating two studies", 0, steps)
    study = draw("clinic", n, seed)
    assert study.ate is not None
    table = study_table(study.X, study.T, study.Y, OUTCOME)
    pq.write_table(table, out / DATA)
    lots = draw("clinic-trial", n, seed + 1)
    trial = study_table(lots.X, lots.T, lots.Y, HOME)
    pq.write_table(trial, out / TRIAL)
    PUBLIC.save(out / BOUNDS)
    show_progress("analysing it without privacy", 1, steps)
    unprotected = open_analysis(table, PUBLIC)
    releases = {}
    for step, epsilon in enumerate(EPSILONS):
        show_progress(f"publishing at epsilon = {epsilon:g}", 2 + step, steps)
        ate = ATE(epsilon=epsilon, delta=DELTA, bounds=PUBLIC)
        releases[epsilon] = ate.fit_table(str(out / DATA), outcome=OUTCOME, treatment=TREATMENT).release_
    show_progress("publishing the effect as a function", steps - 3, steps)
    function = for_whom.publish_function(out / DATA, PUBLIC, CHOSEN, DELTA, OUTCOME)
    show_progress("publishing effects by segment", steps - 2, steps)
    segments = for_whom.publish_segments(out / TRIAL, PUBLIC, CHOSEN)
    show_progress("drawing the pages", steps - 1, steps)
    assert lots.effects is not None
    effects = for_whom.compared(function, segments, trial, lots.effects)
    for_whom.save(effects, out)
    demo = Demo(truth=study.ate, n=n, open=unprotected, releases=releases, effects=effects, page=out / PAGE)
    demo.chosen.save(out / RELEASE)
    save_report(demo.chosen, out / REPORT, title="Effect of treatment on days in hospital")
    demo.page.write_bytes(_page(demo).encode())
    show_progress("done", steps, steps)
    return demo


def show(demo: Demo, console: "Console") -> None:
    """Print what was found as tables, and where the pages are."""
    from rich.table import Table

    table = Table(title="Does it work? (ATE) Effect on days in hospital", title_justify="left", title_style="bold")
    for heading in ("", "estimate", "95 % interval", "width", "attacker is right"):
        table.add_column(heading, justify="left" if not heading else "right")
    for row in _rows(demo):
        table.add_row(*row)
    release = demo.chosen
    console.print()
    console.print(table)
    say = partial(console.print, highlight=False)
    say(f"True effect: [bold]{demo.truth:.2f}[/] days (known, because the study was generated).")
    say(
        "The last column: how often someone who knows every other record can say, at most, which of two possible "
        "records is yours. A coin is right 50 times in 100."
    )
    say(f"\n[bold]{release.guarantee.budget}[/]: {finding(release)}")
    say(str(release.guarantee), style="dim")
    console.print()
    for_whom.show(demo.effects, console)
    say("\nPages about each release, and one about them all:")
    # Paths must be copied whole: no wrapping, no markup, no colours.
    for name in (REPORT, FILES["effect_page"], FILES["segments_page"], PAGE):
        say(str((demo.page.parent / name).resolve()), soft_wrap=True, markup=False)


def open_analysis(table: Any, bounds: Bounds) -> Open:
    """Doubly robust estimate with quadratic models and no privacy whatsoever."""
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    y, t = table[OUTCOME].to_numpy(), table[TREATMENT].to_numpy()
    columns: list[Float] = []
    for name, spec in zip(bounds.names, bounds.columns, strict=True):
        codes = spec.encode(table[name])
        columns += [codes] if isinstance(spec, Range) else [1.0 * (codes == k) for k in range(1, len(spec.levels))]
    Z = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler()).fit_transform(
        np.column_stack(columns)
    )
    pi = np.clip(LogisticRegression(max_iter=1000).fit(Z, t).predict_proba(Z)[:, 1], *bounds.propensity)
    mu0, mu1 = (np.clip(LinearRegression().fit(Z[t == a], y[t == a]).predict(Z), *bounds.outcome) for a in (0, 1))
    scores = mu1 - mu0 + t * (y - mu1) / pi - (1 - t) * (y - mu0) / (1 - pi)
    estimate = float(scores.mean())
    # The score is linear in the outcome, so its extremes are at the ends of the outcome's range.
    possible = [
        extreme
        for end in bounds.outcome
        for extreme in (mu1 - mu0 + (end - mu1) / pi, mu1 - mu0 - (end - mu0) / (1 - pi))
    ]
    return Open(
        estimate=estimate,
        se=float(scores.std(ddof=1) / np.sqrt(len(y))),
        unadjusted=float(y[t == 1].mean() - y[t == 0].mean()),
        reach=max(float(np.abs(scores - estimate).max()) for scores in possible),
    )


def formula_width(open_: Open, n: int, epsilon: float, delta: float) -> float:
    """Width of PrivATE's 95 % interval by its published formula (equations 13, 15 and 16 of the paper).

    Taken kindly: its supremum only runs over the covariates that occur, and its variance is left without noise.
    """
    epsilon1, delta1 = _PRIVATE_SHARE * epsilon, _PRIVATE_SHARE * delta
    r = open_.reach * 5 * np.sqrt(2 * np.log(n) * np.log(2 / delta1)) / (epsilon1 * n)  # (13)
    return float(2 * ndtri(0.975) * np.hypot(open_.se, r))  # (15) and (16)


def _directory(out: Path) -> Path:
    own = {DATA, TRIAL, BOUNDS, RELEASE, REPORT, PAGE, *FILES.values()}
    try:
        out.mkdir(parents=True, exist_ok=True)
        strangers = {path.name for path in out.iterdir()} - own
    except OSError:
        raise InvalidInput(f"{str(out)!r} cannot be made or read as a directory: choose another for --out.") from None
    if strangers:
        raise InvalidInput(f"{str(out)!r} holds other files already: choose a new directory for --out.")
    return out


def _rows(demo: Demo) -> list[tuple[str, str, str, str, str]]:
    low, high = demo.open.interval()
    rows = [
        ("no privacy", f"{demo.open.estimate:.2f}", f"{low:.2f} to {high:.2f}", f"{high - low:.2f}", "up to 100 in 100")
    ]
    for epsilon, release in sorted(demo.releases.items(), reverse=True):
        low, high = release.interval()
        label, right = f"discreet, ε = {epsilon:g}", f"{guess(release.guarantee)['times']} in 100"
        rows.append((label, f"{release.estimate:.2f}", f"{low:.2f} to {high:.2f}", f"{high - low:.2f}", right))
    return rows


def _page(demo: Demo) -> str:
    order = sorted(demo.releases, reverse=True)
    rows = [
        Row(
            label="no privacy",
            low=demo.open.interval()[0],
            high=demo.open.interval()[1],
            estimate=demo.open.estimate,
            kind="open",
        )
    ]
    for epsilon in order:
        low, high = demo.releases[epsilon].interval()
        rows.append(
            Row(label=f"discreet, ε = {epsilon:g}", low=low, high=high, estimate=demo.releases[epsilon].estimate)
        )
    for epsilon in order:
        half = formula_width(demo.open, demo.n, epsilon, DELTA) / 2
        label, centre = f"PrivATE's formula, ε = {epsilon:g}", demo.open.estimate
        rows.append(Row(label=label, low=centre - half, high=centre + half, kind="formula"))
    low, high = demo.chosen.interval()
    chosen_formula = formula_width(demo.open, demo.n, CHOSEN, DELTA)
    splits = plot_splits({f"ε = {epsilon:g}": demo.releases[epsilon] for epsilon in order})
    return page(
        "demo.html",
        title="discreet: a demonstration",
        n=f"{demo.n:,}",
        epsilon=f"{CHOSEN:g}",
        truth=f"{demo.truth:.2f}",
        unadjusted=f"{abs(demo.open.unadjusted):.2f} days {'shorter' if demo.open.unadjusted < 0 else 'longer'}",
        estimate=f"{demo.chosen.estimate:.2f}",
        low=f"{low:.2f}",
        high=f"{high:.2f}",
        covered=low <= demo.truth <= high,
        price=f"{(high - low) / (2 * float(ndtri(0.975)) * demo.open.se):.1f}",
        narrower=f"{chosen_formula / (high - low):,.0f}",
        widths=inline_figure(
            plot_widths(rows, truth=demo.truth),
            "95 % intervals without privacy, at several budgets, and by PrivATE's formula",
        ),
        splits=inline_figure(
            splits, "Shares of sampling, privacy noise and adjustment in the uncertainty, at several budgets"
        ),
        rows=_rows(demo),
        guarantee=guarantee_facts(demo.chosen.guarantee),
        guess=guess(demo.chosen.guarantee),
        files={"data": DATA, "trial": TRIAL, "bounds": BOUNDS, "release": RELEASE, "report": REPORT} | FILES,
        effects=for_whom.figures(demo.effects),
        importance=demo.effects.function.importance,
        people=for_whom.people_rows(demo.effects),
        segments=for_whom.segment_rows(demo.effects),
        home=HOME,
        outcome=OUTCOME,
        treatment=TREATMENT,
        delta=f"{DELTA:g}",
    )
