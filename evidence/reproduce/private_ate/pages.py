"""What can be reproduced of the PrivATE paper."""

from __future__ import annotations

from discreet.datasets.observational import RHC_FILE
from evidence.reproduce.private_ate import attack, attack_runs, figures, runs, tables
from evidence.reproduce.private_ate.catheter import catheter
from evidence.reproduce.private_ate.runs import DIFFERENCE, LEARNERS, OURS
from evidence.reproduce.targets import Target


def _methods(*prefixes: int) -> tuple[str, ...]:
    return tuple(f"{prefix} {method}" for prefix in prefixes for method in (*LEARNERS, OURS))


TARGETS = (
    Target(
        name="table1",
        title="PrivATE, Table 1: coverage on synthetic data",
        experiment="synthetic",
        run=runs.synthetic,
        cells=lambda full: _methods(1, 2),
        replications=lambda full: 500 if full else 8,
        page=tables.table1,
    ),
    Target(
        name="table2",
        title="PrivATE, Table 2: right heart catheter",
        experiment="catheter",
        run=catheter,
        cells=lambda full: ("kernel", OURS),
        replications=lambda full: 20 if full else 3,
        page=tables.table2,
        files=(RHC_FILE,),
    ),
    Target(
        name="table3",
        title="PrivATE, Table 3: coverage on a randomised trial",
        experiment="trial",
        run=runs.trial,
        cells=lambda full: (DIFFERENCE, *LEARNERS, OURS),
        replications=lambda full: 500 if full else 30,
        page=tables.table3,
    ),
    Target(
        name="fig4",
        title="PrivATE, Figure 4: widths by budget and by size",
        experiment="budgets",
        run=runs.budgets,
        cells=lambda full: _methods(*(figures.SIZES if full else figures.QUICK_SIZES)),
        replications=lambda full: 20 if full else 3,
        page=figures.fig4,
    ),
    Target(
        name="fig5",
        title="PrivATE, Figure 5: privacy and utility",
        experiment="utilities",
        run=runs.utilities,
        cells=lambda full: ("kernel", OURS),
        replications=lambda full: 50 if full else 5,
        page=figures.fig5,
    ),
    Target(
        name="fig6",
        title="PrivATE, Figure 6: intervals on randomised trials",
        experiment="trial",
        run=runs.trial,
        cells=lambda full: (DIFFERENCE, *LEARNERS, OURS),
        replications=lambda full: 10,
        page=figures.fig6,
    ),
    Target(
        name="supremum",
        title="PrivATE: the searched supremum against a grid",
        experiment="supremum",
        run=runs.supremum,
        cells=lambda full: runs.SUPREMUM_MODELS,
        replications=lambda full: 50 if full else 5,
        page=tables.supremum,
    ),
    Target(
        name="attack",
        title="PrivATE: what its widths and estimates give away",
        experiment="attack",
        run=attack_runs.run,
        cells=lambda full: (*attack_runs.WIDTH, *attack_runs.FEW),
        replications=lambda full: 20 if full else 3,
        page=attack.page,
    ),
)
