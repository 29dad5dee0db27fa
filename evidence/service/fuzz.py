"""Requests that nobody thought of: schemathesis makes them from the service's own description."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode

# Names that exist, so that half of the cases get further than the first lookup.
Known = dict[str, list[str]]
Send = Callable[..., Any]


def fuzz(description: dict[str, Any], send: Send, cases: int, known: Known, start: int = 0) -> Counter[tuple[str, int]]:
    """Send so many requests; how often each operation answered with each status.

    Parameters
    ----------
    description : dict
        The OpenAPI description.
    send : callable
        Takes a method, a path, its parameters, query parameters, a body and headers; returns a status.
    cases : int
        How many requests in all.
    known : dict
        Values of path parameters that exist.
    start : int
        Seed.
    """
    schema = schemathesis.openapi.from_dict(description)
    # An operation that cannot be read has no ok(), and ends the run.
    operations = [each.ok() for each in schema.get_all_operations()]  # type: ignore[union-attr]
    found: Counter[tuple[str, int]] = Counter()
    for number, operation in enumerate(operations):
        share = cases // len(operations) + (number < cases % len(operations))
        for mode, part in ((GenerationMode.POSITIVE, share - share // 2), (GenerationMode.NEGATIVE, share // 2)):
            if part:
                _run(operation, mode, part, known, send, found, start + number)
    return found


def _run(operation: Any, mode: Any, cases: int, known: Known, send: Send, found: Any, start: int) -> None:
    label = f"{operation.method.upper()} {operation.path}"
    sent = 0

    @seed(start)
    @settings(
        max_examples=cases,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), real=st.booleans(), pick=st.integers(0, 1000))
    def run(case: Any, real: bool, pick: int) -> None:
        nonlocal sent
        if sent >= cases:
            return
        sent += 1
        parameters = dict(case.path_parameters or {})
        if real:
            parameters |= {name: known[name][pick % len(known[name])] for name in parameters if known.get(name)}
        query, headers = dict(case.query or {}), sendable(case.headers or {})
        status = send(operation.method.upper(), operation.path, parameters, query, case.body, headers)
        found[label, status] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run()
        except Exception as error:
            # An operation without anything to get wrong has no negative cases.
            if "Unsatisfiable" not in type(error).__name__ and "negat" not in str(error).lower():
                raise
    while sent < cases:
        # Small operations run out of cases; the rest are asked again, with names that exist.
        sent += 1
        names = [part.strip("{}") for part in operation.path.split("/") if part.startswith("{")]
        parameters = {name: (known.get(name) or ["1"])[sent % len(known.get(name) or ["1"])] for name in names}
        found[label, send(operation.method.upper(), operation.path, parameters, {}, None, {})] += 1


def sendable(headers: Any) -> dict[str, str]:
    """Headers that HTTP can carry; who sends is not for the fuzzer to say."""
    found = {str(name): str(value) for name, value in dict(headers).items()}
    return {
        name: value
        for name, value in found.items()
        if name.lower() != "authorization" and value.isascii() and value.isprintable()
    }
