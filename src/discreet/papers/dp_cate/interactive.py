"""A function fitted to records that answers queries with the noise of one Gaussian process, and remembers them.

It **is** private: to answer new queries it has to keep the fitted function without noise. So it refuses to be copied
or pickled, and only its answers may be published.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np

from discreet.data._arrays import Float
from discreet.exceptions import InvalidInput
from discreet.papers.dp_cate.answer_log import Journal
from discreet.papers.dp_cate.gp_sampler import FactorRows
from discreet.papers.dp_cate.gp_sampler import Path as ProcessPath
from discreet.papers.dp_cate.kernel_regression import Function
from discreet.privacy.noise import drawing_is_seeded, published_gaussian


class Keeper(Protocol):
    """Where answers are remembered before they are given: a state file, or a transaction of a database."""

    def append(self, line: dict[str, Any]) -> None:
        """Remember one call."""

    def close(self) -> None:
        """Let others go on with it."""


class SecretFunction:
    """Answers g_D(x) + r U(x), U a sample path of the Gaussian process with the kernel of g_D.

    Parameters
    ----------
    function
        g_D: secret.
    r
        Scale of the noise; it may depend on the records, and is secret, too.
    as_printed
        Algorithm 2 as its text has it: after the first call answers are drawn from the process given earlier *outputs*,
        with neither g_D nor r. Otherwise answer_i = g_D(x_i) + r noise_i, noise_i given the *noise* at earlier queries.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> import discreet as dc
    >>> from discreet.datasets import dp_cate
    >>> study = dp_cate(1, n=200, seed=1)
    >>> models = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}
    >>> function = dc.papers.DPCATEFunction(epsilon=1.0, delta=1e-5, bounds=study.bounds, random_state=0, **models)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     _ = function.fit(study.Y, study.T, X=study.X)
    >>> function.secret_
    <SECRET function, fitted to records without noise: do not publish>
    """

    def __init__(self, function: Function, r: float, *, as_printed: bool = False) -> None:
        self._function, self._r, self._as_printed = function, r, as_printed
        self._path = ProcessPath(function.kernel, function.centres.shape[1])
        # Of each point that owns a random number: the number, and what the answers are in the same coordinates.
        self._numbers, self._outputs = np.empty(0), np.empty(0)
        self._answers: dict[bytes, float] = {}
        self._calls: list[dict[str, Any]] = []
        self._journal: Keeper | None = None
        self._seeded = False
        self._lock, self._process = threading.Lock(), os.getpid()

    @property
    def answers(self) -> tuple[float, ...]:
        """All answers so far, in the order in which their queries first came."""
        return tuple(self._answers.values())

    @property
    def seeded(self) -> bool:
        """Whether any answer was drawn with seeded noise."""
        return self._seeded

    def answered(self, x: Float) -> bool:
        """Whether all rows of x were asked before, so that nothing new would be answered."""
        with self._lock:
            return all(row.tobytes() in self._answers for row in np.ascontiguousarray(x))

    def ask(self, x: Float) -> Float:
        """Answers at rows of x; a row that was asked before gets the same answer again."""
        with self._lock:
            if os.getpid() != self._process:
                raise InvalidInput(
                    "this function belongs to another process: two that answer separately halve the noise."
                )
            keys = [row.tobytes() for row in np.ascontiguousarray(x)]
            new = {key: place for place, key in reversed(list(enumerate(keys))) if key not in self._answers}
            if new:
                self._answer(x[sorted(new.values())])
            return np.array([self._answers[key] for key in keys])

    def _answer(self, x: Float) -> None:
        rows = self._path.rows(x)
        drawn = published_gaussian(len(rows.fresh), 1.0)
        outputs = self._new_outputs(x, rows, drawn)
        call = {
            "queries": x.tolist(),
            "fresh": rows.fresh.tolist(),
            "numbers": drawn.tolist(),
            "answers": (rows.old @ self._outputs + rows.new @ outputs).tolist(),
            "seeded": drawing_is_seeded(),
        }
        # On disk before anything leaves, and before this object believes it: a crash forgets no answer.
        if self._journal is not None:
            self._journal.append(call)
        self._path.keep(x, rows)
        self._remember(call)
        self._outputs = np.append(self._outputs, outputs)

    def _new_outputs(self, x: Float, rows: FactorRows, drawn: Float) -> Float:
        """Answers of the points that own new numbers, in the coordinates of the numbers.

        All other answers follow from them: a point that earlier ones fix says nothing new about g_D.
        """
        from scipy.linalg import solve_triangular

        if self._as_printed and self._calls:
            return drawn
        noise = rows.old[rows.fresh] @ self._numbers + rows.new[rows.fresh] @ drawn
        answers = self._function(x[rows.fresh]) + self._r * noise
        if not len(answers):
            return answers
        rest = answers - rows.old[rows.fresh] @ self._outputs
        return np.asarray(solve_triangular(rows.new[rows.fresh], rest, lower=True))

    def _remember(self, call: dict[str, Any]) -> None:
        self._numbers = np.append(self._numbers, call["numbers"])
        self._answers.update(
            {np.array(row).tobytes(): answer for row, answer in zip(call["queries"], call["answers"], strict=True)}
        )
        self._seeded = self._seeded or call["seeded"]
        self._calls.append(call)

    def save(self, path: str | Path, about: dict[str, Any]) -> None:
        """Write a secret state file, and go on with it: later answers are appended before they are given."""
        with self._lock:
            if self._journal is not None:
                raise InvalidInput("the state is kept in a file or a database already: go on with that one.")
            self._journal = Journal.create(path, self.head(about), self._calls)

    def head(self, about: dict[str, Any]) -> dict[str, Any]:
        """All but the answers, as plain JSON: **secret**, because the function is in it without noise."""
        return {"function": self._function.to_dict(), "r": self._r, "as_printed": self._as_printed, "about": about}

    def go_on_in(self, journal: Keeper) -> None:
        """Have further answers remembered there before they are given."""
        with self._lock:
            self._journal = journal

    @classmethod
    def load(cls, path: str | Path) -> tuple[SecretFunction, dict[str, Any]]:
        """Go on from a state file, which nobody else may hold; and what was saved about it."""
        journal, head, calls = Journal.open(path)
        made = cls.restored(head, calls)
        made._journal = journal
        return made, head["about"]

    @classmethod
    def restored(cls, head: dict[str, Any], calls: list[dict[str, Any]]) -> SecretFunction:
        """Go on from what `head` gave and all calls that were remembered since."""
        made = cls(Function.from_dict(head["function"]), float(head["r"]), as_printed=head["as_printed"])
        owners = [call["queries"][place] for call in calls for place in call["fresh"]]
        at = [call["answers"][place] for call in calls for place in call["fresh"]]
        if owners:
            made._path.restore(np.array(owners))
            made._outputs = made._path.coordinates(np.array(at))
        for call in calls:
            made._remember(call)
        return made

    def close(self) -> None:
        """Let go of the state file; afterwards nothing new is answered."""
        with self._lock:
            if self._journal is not None:
                self._journal.close()
            self._process = -1

    def __repr__(self) -> str:
        return "<SECRET function, fitted to records without noise: do not publish>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidInput("a function that answers queries is secret and has one owner: it cannot be copied.")
