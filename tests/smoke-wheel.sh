#!/bin/sh
# Install the wheel and the source distribution from dist/, each into a fresh environment far from the source tree, and
# do with each what somebody does who has just installed it:
#
#     tests/smoke-wheel.sh [python3.12]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

set -- "$root"/dist/discreet-*.whl "$root"/dist/discreet-*.tar.gz
[ $# = 2 ] && [ -f "$1" ] && [ -f "$2" ] || { echo "dist/ must hold one wheel and one sdist: run make build." >&2; exit 1; }

echo "What the wheel holds"
"$python" - "$1" <<'CHECK'
import sys
import zipfile

names = zipfile.ZipFile(sys.argv[1]).namelist()
strangers = [name for name in names if name.split("/")[0] not in {"discreet"} and ".dist-info/" not in name]
sys.exit(f"not of the package: {strangers}") if strangers else None
inside = [name for name in names if {"tests", "evidence", "benchmarks"} & set(name.split("/")[:-1])]
sys.exit(f"neither tests nor evidence belong here: {inside}") if inside else None
needed = ("discreet/py.typed", ".html", ".css", ".dist-info/licenses/LICENSE", ".dist-info/entry_points.txt")
missing = [end for end in needed if not any(name.endswith(end) for name in names)]
sys.exit(f"missing: {missing}") if missing else None
CHECK

for package in "$@"; do
  echo "A fresh environment with ${package##*/}"
  rm -rf "$work/venv" "$work/desk"
  mkdir "$work/desk"
  cd "$work/desk"
  "$python" -m venv "$work/venv"
  PIP_CONSTRAINT=$root/constraints.txt "$work/venv/bin/pip" install --quiet --disable-pip-version-check "$package"
  # Neither the source tree nor the caller's settings may help out.
  unset PYTHONPATH PYTHONHOME
  "$work/venv/bin/python" -W error - <<'TRY'
import sys
from importlib.metadata import version
from pathlib import Path

import discreet as dc
from discreet.datasets import private_ci

assert Path(dc.__file__).is_relative_to(sys.prefix), dc.__file__
assert dc.__version__ == version("discreet")
assert "dc.ATE" in dc.guide()
study = private_ci(1, n=2_000, seed=1)
ate = dc.ATE(epsilon=1.0, delta=1e-6, bounds=study.bounds).fit(study.Y, study.T, X=study.X)
low, high = ate.ate_interval()
assert low < ate.ate_ < high and ate.guarantee_.status == "proved"
rows = "\n".join(f"{y},{int(t)},{a},{b}" for y, t, (a, b) in zip(study.Y, study.T, study.X, strict=True))
Path("study.csv").write_text(f"y,t,a,b\n{rows}\n")
dc.Bounds(outcome=(-1, 4), covariates={"a": (0, 1), "b": (0, 1)}, propensity=(0.1, 0.9)).save("bounds.toml")
TRY
  shown=$("$work/venv/bin/discreet" --version)
  said=$("$work/venv/bin/python" -c 'import discreet; print("discreet", discreet.__version__)')
  [ "$shown" = "$said" ] || { echo "discreet --version says '$shown', not '$said'." >&2; exit 1; }
  "$work/venv/bin/discreet" ate study.csv --outcome y --treatment t --bounds bounds.toml \
    --epsilon 1 --delta 1e-6 --out effect.json >/dev/null
  "$work/venv/bin/python" -c 'import discreet; print(discreet.Release.load("effect.json").summary().splitlines()[0])'
  # An extra that is missing asks for itself, and one that is installed does its work.
  "$work/venv/bin/python" "$root/tests/smoke_extras.py" bare
  case "$package" in
  *.whl)
    PIP_CONSTRAINT=$root/constraints.txt "$work/venv/bin/pip" install --quiet --disable-pip-version-check \
      "$package[files,plots,papers]"
    "$work/venv/bin/python" "$root/tests/smoke_extras.py" all
    ;;
  esac
done
echo "Both work."
