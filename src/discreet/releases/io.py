"""Release files of every kind: one registry, one reader, one writer.

A release is paid for with privacy, so its file is read for ever. A kind has a name that never changes (``format`` in
the file) and a version. Whoever changes what a file holds raises the version, adds the step from the one before to
``upgrades`` and a file of the old version to tests/golden/releases. Old files keep the guarantee that they state: it is
checked against their events as in any other file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data._arrays import Float
from discreet.exceptions import InvalidInput, UnsupportedRelease
from discreet.releases import _upgrades

# Bits below the largest number of the factor that a file keeps: widths of intervals move by less than a thousandth.
_BITS = 14

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of release.

    Parameters
    ----------
    home
        Its class as "module:Class", imported when the first such file is read.
    version
        The version that is written.
    upgrades
        The step from each older version, in every shape that was written under its number, to the next.
    line_per_field
        Whether files have a line for each field; otherwise JSON is indented throughout.
    """

    home: str
    version: int = 1
    upgrades: Mapping[int, Upgrade] = field(default_factory=dict)
    line_per_field: bool = False

    def __post_init__(self) -> None:
        if set(self.upgrades) != set(range(1, self.version)):
            raise InvalidInput(f"upgrades of {self.home} must lead from each version below {self.version} to the next.")

    def load_class(self) -> Any:
        """The class that reads it."""
        module, _, name = self.home.partition(":")
        return getattr(import_module(module), name)


REGISTRY: dict[str, Kind] = {
    "discreet-release": Kind(home="discreet.releases.average:Release", version=2, upgrades={1: _upgrades.average_1}),
    "discreet-effect-release": Kind(
        home="discreet.releases.function:EffectRelease",
        version=3,
        upgrades={1: _upgrades.effect_function_1, 2: _upgrades.effect_function_2},
        line_per_field=True,
    ),
    "discreet-uplift": Kind(
        home="discreet.releases.segments:UpliftRelease", version=2, upgrades={1: _upgrades.segments_1}
    ),
    "discreet-policy": Kind(home="discreet.releases.policies.policy:Policy"),
    "discreet-policy-value": Kind(home="discreet.releases.policies.value:PolicyValueRelease"),
    "discreet-combined-release": Kind(home="discreet.releases.combined.release:CombinedRelease"),
    "discreet-survival": Kind(home="discreet.releases.survival.release:SurvivalRelease"),
    "discreet-local-effect": Kind(home="discreet.releases.local_effects.release:LocalEffectRelease"),
    "discreet-arms": Kind(home="discreet.releases.arms.release:ArmsRelease"),
    "discreet-arm-segments": Kind(home="discreet.releases.arms.segments:ArmSegmentsRelease"),
    "discreet-suggested-bounds": Kind(home="discreet.releases.suggested.release:SuggestedBounds"),
    "discreet-paper-release": Kind(home="discreet.papers.propensity.release:PointRelease"),
    "discreet-paper-answers": Kind(home="discreet.papers.dp_cate.release:AnswersRelease"),
    "discreet-paper-function": Kind(home="discreet.papers.dp_cate.release:FunctionRelease"),
    "discreet-paper-effects": Kind(home="discreet.papers.meta_learners.release:LearnerRelease"),
    "discreet-paper-segments": Kind(home="discreet.papers.adum.release:SegmentRelease"),
    "discreet-paper-two-model": Kind(home="discreet.papers.adum.two_model_release:TwoModelRelease"),
}
"""Kinds by the ``format`` of their files."""


def load(path: str | Path) -> Any:
    """Read a release file of any kind and version, those of published systems included.

    Parameters
    ----------
    path
        A file that the ``save`` of a release wrote.

    Returns
    -------
    A release of the library or of discreet.papers, of the class that its format names
        As it was published; its guarantee is checked against its events again.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trial = private_ci_rct(n=200, seed=1)
    >>> with dc.testing.seeded_noise(0):
    ...     means = dc.DifferenceInMeans(epsilon=1.0, bounds=trial.bounds).fit(trial.Y, trial.T, X=trial.X)
    >>> means.release_.save("release.json")
    >>> dc.load("release.json") == means.release_
    True
    """
    return read(read_json(path))


def read(plain: object) -> Any:
    """A release of any kind from its plain JSON."""
    return _kind_of(plain).load_class().from_dict(plain)


def write(path: str | Path, plain: Mapping[str, Any]) -> None:
    """Write a release file; numbers that are not finite are refused."""
    if REGISTRY[plain["format"]].line_per_field:
        lines = (f"{json.dumps(name)}: {_compact(value)}" for name, value in plain.items())
        text = "{\n" + ",\n".join(lines) + "\n}"
    else:
        text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
    Path(path).write_bytes(f"{text}\n".encode())


def read_json(path: str | Path) -> Any:
    """What a release file holds."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise InvalidInput(f"There is no release file {str(path)!r}: check the path.") from None
    except OSError:
        raise InvalidInput(f"The release file {str(path)!r} cannot be read: check its permissions.") from None
    if _is_pickle(content):
        raise UnsupportedRelease(
            f"{str(path)!r} is a pickle, not a release file: unpickle it with the version of discreet that wrote it "
            "and save its release_ there."
        )
    try:
        return json.loads(content.decode())
    except (ValueError, RecursionError):
        # Broken UTF-8 and broken JSON are both ValueErrors.
        raise UnsupportedRelease(f"{str(path)!r} is not complete JSON: give the file that save wrote.") from None


def head(format_: str) -> dict[str, Any]:
    """The first fields of a file: its kind and version."""
    return {"format": format_, "version": REGISTRY[format_].version}


def upgrade(plain: Mapping[str, Any], from_version: int) -> dict[str, Any]:
    """The fields of an older file as the current version has them, one version at a time."""
    kind, done = _kind_of(plain), dict(plain)
    with wrong_types_named():
        for version in range(from_version, kind.version):
            done = kind.upgrades[version](done) | {"version": version + 1}
        return done


def fields_of(plain: object, format_: str, known: set[str], optional: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The fields of a release of this kind and any version, upgraded, if they are exactly those that are known."""
    kind = _kind_of(plain)
    assert isinstance(plain, Mapping)
    if plain["format"] != format_:
        raise UnsupportedRelease(f"this is a release of another kind, {plain['format']!r}: read it with discreet.load.")
    found = plain.get("version")
    if type(found) is not int or found < 1:
        raise UnsupportedRelease("the release has no valid version; give a file that a release's save wrote.")
    if found > kind.version:
        raise UnsupportedRelease(f"the release has version {found}, newer than {kind.version}; upgrade discreet.")
    rest = upgrade(plain, found)
    rest = {name: value for name, value in rest.items() if name not in {"format", "version"}}
    if rest.keys() - optional != known - optional:
        needed = ", ".join(sorted(known - optional))
        raise InvalidInput(f"a release must have exactly the fields {needed}; check the file.")
    return rest


@contextmanager
def wrong_types_named() -> Iterator[None]:
    """Refuse in one sentence what has fields of the wrong type."""
    try:
        yield
    except (InvalidInput, UnsupportedRelease):
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise InvalidInput("a field of the release has a value of the wrong type; check the file.") from None


def plain_copy(adjustment: object) -> dict[str, Any]:
    """A copy through JSON: what cannot be written must not be released, and later changes must not reach it."""
    try:
        copy = json.loads(json.dumps(adjustment, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        copy = None
    if not isinstance(copy, dict):
        raise InvalidInput("what describes a release must be plain JSON by name; use text, numbers and lists.")
    return copy


def triangular_to_steps(factor: Float) -> dict[str, Any]:
    """A triangular factor as whole numbers of one step: in each row how many zeros come next, and a number, in turn.

    Most covariates have little to do with each other, so that this takes a tenth of the space of decimals.
    """
    largest = float(np.abs(factor).max())
    step = 2.0 ** (math.floor(math.log2(largest)) - _BITS) if largest else 1.0
    rows = []
    for i, row in enumerate(np.rint(factor / step).astype(int)):
        there = np.flatnonzero(row[: i + 1])
        zeros = np.diff(there, prepend=-1) - 1
        rows.append(np.column_stack([zeros, row[there]]).ravel().tolist())
    return {"step": step, "rows": rows}


def triangular_from_steps(step: float, rows: list[list[int]]) -> Float:
    """The factor that `triangular_to_steps` wrote."""
    factor = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        zeros, numbers = np.array(row, dtype=np.int64).reshape(-1, 2).T
        there = np.cumsum(zeros + 1) - 1
        if np.any(zeros < 0) or np.any(there > i):
            raise InvalidInput("factor must be triangular, a row for each coefficient; check the file.")
        factor[i, there] = numbers
    return factor * float(step)


def _kind_of(plain: object) -> Kind:
    named = plain.get("format") if isinstance(plain, Mapping) else None
    kind = REGISTRY.get(named) if isinstance(named, str) else None
    if kind is None:
        raise UnsupportedRelease(
            "this is not a release of discreet that this version knows; give a file that a release's save wrote, or "
            "upgrade discreet."
        )
    return kind


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _is_pickle(content: bytes) -> bool:
    """Whether it begins as pickles since protocol 2 do (and joblib's files); no UTF-8 text does."""
    return len(content) > 1 and content[0] == 0x80 and content[1] <= 5
