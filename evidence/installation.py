"""What an installation costs: ``python -m evidence.installation`` writes docs/evidence/installation.md, in some minutes.

The library is installed from this checkout into empty environments, once alone and once with each extra. The size of a
package is that of the files that it installed, compiled bytecode included. What a first estimate loads is asked of a
process that makes one from a CSV file.
"""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import tomllib
from datetime import date
from pathlib import Path

import discreet
from evidence.average.report import grid
from evidence.cache import ROOT

# What is for people who work on the library itself.
OWN = ("dev", "docs", "mutants", "evidence")
MOST = 500
SIZES = """
import json, sys
from importlib.metadata import distributions, packages_distributions
from pathlib import Path
sizes = {}
for each in distributions():
    files = [Path(each.locate_file(file)) for file in each.files or []]
    sizes[each.metadata["Name"].lower().replace("_", "-")] = sum(file.stat().st_size for file in set(files) if file.is_file()) / 1e6
print(json.dumps(sizes))
"""
FIRST = """
import csv, json, random, sys, time
random.seed(1)
with open("records.csv", "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["days", "treated", "age", "sex"])
    for _ in range(5_000):
        treated = random.randint(0, 1)
        rows.writerow([random.uniform(0, 30) - treated, treated, random.randint(18, 90), random.choice("fm")])
start = time.perf_counter()
import discreet as dc
bounds = dc.Bounds(outcome=(0, 40), covariates={"age": (18, 100), "sex": ["f", "m"]}, propensity=(0.1, 0.9))
ate = dc.ATE(epsilon=1, delta=1e-6, bounds=bounds).fit_table("records.csv", outcome="days", treatment="treated")
print(ate.summary(), file=sys.stderr)
ate.release_.save("effect.json")
seconds = time.perf_counter() - start
from importlib.metadata import packages_distributions
named = packages_distributions()
loaded = {name.lower().replace("_", "-") for top in {each.partition(".")[0] for each in sys.modules} for name in named.get(top, [])}
print(json.dumps({"seconds": seconds, "loaded": sorted(loaded)}))
"""


def environment(folder: Path, what: str) -> Path:
    """An empty environment with one thing installed; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run(
        [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-c",
            ROOT / "constraints.txt",
            what,
        ],
        check=True,
    )
    return python


def ask(python: Path, script: str, where: Path) -> dict:
    """What a script prints last, in an environment."""
    settings = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run([python, "-c", script], cwd=where, env=settings, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def reasons() -> dict[str, str]:
    """Why what a first estimate does not load is installed with the library nevertheless."""
    return {
        "sqlalchemy": "a budget that is kept must not need a second installation",
        "dp-accounting": "adds up guarantees that are not Gaussian: part of the promise",
        "joblib": "spreads long tables over processes",
        "typer": "the command line",
        "rich": "the command line",
        "threadpoolctl": "keeps processes of long tables to their cores",
        "pip": "comes with the environment",
        "setuptools": "comes with the environment",
    }


def page(bare: dict[str, float], extras: dict[str, dict[str, float]], first: dict, seconds: list[float]) -> str:
    """The page, in Markdown."""
    total = sum(bare.values())
    loaded = set(first["loaded"])
    direct = {_plain(each) for each in _project()["dependencies"]}
    rows = []
    for name, size in sorted(bare.items(), key=lambda each: -each[1]):
        if size < 1 and name not in direct:
            continue
        why = "a first estimate loads it" if name in loaded else reasons().get(name, "needed by one of the others")
        rows.append([name, f"{size:.0f}", "yes" if name in direct else "", why])
    need = sum(size for name, size in bare.items() if name in loaded)
    more = [
        [
            f"`discreet[{extra}]`",
            f"{sum(added.values()):.0f}",
            ", ".join(
                f"{name} {size:.0f}" for name, size in sorted(added.items(), key=lambda each: -each[1]) if size >= 1
            ),
        ]
        for extra, added in extras.items()
    ]
    largest = sorted(((bare[name], name) for name in loaded & bare.keys()), reverse=True)[:4]
    parts = [
        "# What an installation costs",
        f"Written by `python -m evidence.installation` on {date.today().isoformat()}; do not edit. discreet {discreet.__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}, versions of constraints.txt. "
        "Megabytes (a million bytes) of installed files.",
        grid(["aim", "wanted", "figure"], [
            ["`pip install discreet`", f"≤ {MOST} MB", f"{total:.0f} MB{'' if total <= MOST else ', **missed**'}"],
            ["import to estimate, 5,000 rows of a CSV file, median of " + str(len(seconds)), "≤ 3 s", f"{sorted(seconds)[len(seconds) // 2]:.1f} s{'' if sorted(seconds)[len(seconds) // 2] <= 3 else ', **missed**'}"],
        ]),
        f"An average effect from a CSV file, with its interval, summary and file, loads {need:.0f} MB of the {total:.0f}. The four largest of what it loads take {sum(size for size, _ in largest):.0f} MB: "
        + ", ".join(f"{name} {size:.0f}" for size, name in largest)
        + ". Below that one would have to do without one of them: without OpenDP noise would come from samplers that nobody but us has looked at, without Arrow, DuckDB, NumPy or SciPy there would be a second way to read, add up or account. "
        "None of the four has a smaller build on the index. (OpenDP's library is delivered with its symbols: stripped, it would be 107 MB smaller. That is for its makers to do.)",
        "## Always installed",
        grid(["package", "MB", "named by discreet", "why"], rows),
        "Packages below one megabyte that others bring are not listed.",
    ]  # fmt: skip
    if more:
        parts += [
            "## Extras",
            "What each adds to an environment that has the library.",
            grid(["extra", "MB", "of which"], more),
        ]
    return "\n\n".join(parts) + "\n"


def _plain(requirement: str) -> str:
    name = requirement
    for mark in "[<>=;! ":
        name = name.partition(mark)[0]
    return name.lower().replace("_", "-")


def _project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def main() -> None:
    """Install, measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extras", nargs="*", help="measure these alone")
    parser.add_argument(
        "--environment", type=Path, help="the interpreter of an environment that holds the library alone"
    )
    parser.add_argument("--out", type=Path, default=Path("docs/evidence/installation.md"))
    wanted = parser.parse_args()
    names = [name for name in _project()["optional-dependencies"] if name not in OWN]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        python = wanted.environment or environment(folder / "bare", str(ROOT))
        firsts = [ask(python, FIRST, folder) for _ in range(5)]
        bare = ask(python, SIZES, folder)
        print(f"alone: {sum(bare.values()):.0f} MB", flush=True)
        extras = {}
        for name in names if wanted.extras is None else wanted.extras:
            with tempfile.TemporaryDirectory() as other:
                sizes = ask(environment(Path(other) / "venv", f"{ROOT}[{name}]"), SIZES, folder)
            extras[name] = {each: size for each, size in sizes.items() if each not in bare}
            print(f"{name}: {sum(extras[name].values()):.0f} MB more", flush=True)
    wanted.out.write_text(page(bare, extras, firsts[0], [each["seconds"] for each in firsts]))


if __name__ == "__main__":
    main()
