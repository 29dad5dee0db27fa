"""What somebody tries who has just installed the library; `tests/smoke-wheel.sh` runs it far from the source tree.

``python smoke_extras.py bare`` expects each extra's sentence, ``python smoke_extras.py all`` what the extras are for.
"""

import sys
from pathlib import Path

import discreet as dc
from discreet.datasets import private_ci

study = private_ci(1, n=2_000, seed=1)
ate = dc.ATE(epsilon=1.0, delta=1e-6, bounds=study.bounds).fit(study.Y, study.T, X=study.X)
named = dc.Bounds(outcome=(-1, 4), covariates={"a": (0, 1), "b": (0, 1)}, propensity=(0.1, 0.9))


def workbook():
    dc.ATE(epsilon=1.0, delta=1e-6, bounds=named).fit_table("study.xlsx", outcome="y", treatment="t")


def picture():
    from discreet.releases.report import save_page

    save_page(ate.release_, "effect.html", title="Effect")


def published():
    learner = dc.papers.PrivATE(epsilon=1.0, delta=1e-6, bounds=study.bounds)
    assert learner.get_params()["epsilon"] == 1.0


def postgresql():
    dc.Ledger("postgresql://nobody@127.0.0.1:1/nothing").open("study", epsilon=1)


def additive():
    dc.papers.SLearner(epsilon=4.0, delta=1e-6, bounds=study.bounds, base="ebm").fit(study.Y, study.T, X=study.X)


EXTRAS = {"files": workbook, "plots": picture, "papers": published, "postgresql": postgresql, "ebm": additive}
# Small enough to be installed in every build.
TRIED = ("files", "plots", "papers")

if sys.argv[1] == "bare":
    Path("study.xlsx").write_bytes(b"none")
    for extra, use in EXTRAS.items():
        try:
            use()
        except dc.MissingExtra as missing:
            if f"discreet[{extra}]" not in str(missing):
                raise SystemExit(f"{extra} is asked for as: {missing}") from None
        else:
            raise SystemExit(f"{extra} is not needed for what its sentence is about.")
    # Everything else does without them: published methods that train nothing, audits, ledgers.
    adum = dc.papers.ADUM(epsilon=1.0, bounds=study.bounds, by={0: 4}).fit(study.Y, study.T, X=study.X)
    assert adum.release_.guarantee.status == "proved"
    dc.papers.SLearner(epsilon=4.0, delta=1e-6, bounds=study.bounds).fit(study.Y, study.T, X=study.X)
    assert not dc.audit(dc.DifferenceInMeans(epsilon=1.0, bounds=dc.Bounds(outcome=(0, 1))), trials=5).violated
    ledger = dc.Ledger("sqlite:///budget.db")
    ledger.open("study", epsilon=2, delta=1e-5)
    print("Each extra asks for itself by name; the rest does without.")
else:
    import pandas as pd

    frame = pd.DataFrame({"y": study.Y, "t": study.T.astype(int), "a": study.X[:, 0], "b": study.X[:, 1]})
    frame.to_excel("study.xlsx", index=False)
    for extra in TRIED:
        EXTRAS[extra]()
    print(f"{', '.join(TRIED)}: installed, and do what they are for.")
