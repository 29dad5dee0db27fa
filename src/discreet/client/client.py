"""What a service offers, as methods: data sets, plans, requests, releases."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from discreet.client.transport import Transport, failure
from discreet.data.bounds import Bounds
from discreet.estimators.planning.plan import Plan
from discreet.exceptions import InvalidInput
from discreet.releases import io
from discreet.releases.average import Uncertainty

if TYPE_CHECKING:
    from httpx2 import Client as HttpClient

# What a plan has under the same name in the library and in the service's answers.
_PLANNED = ("estimator", "noise_sd", "width", "detectable_effect", "epsilon", "delta", "n", "alpha")
_OPEN = ("queued", "running")
# Rows of one question about effects, as the service takes them.
_ROWS = 2_000
# Seconds between two questions about a job: as often as it may be seen to have ended, and at most.
_FIRST, _LONGEST = 0.25, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceDataset:
    """A data set of a service: what is public about it, and its budgets.

    Parameters
    ----------
    id, title, about
        What it is called, and a sentence about it.
    outcome, treatment
        Names of its columns.
    bounds
        What is declared about its records.
    records
        How many there are, or what was declared about that where it is private; None if nothing was.
    neighbours
        Which data sets its releases make indistinguishable.
    kinds
        What can be asked of it.
    columns
        Further columns by what they are, such as an instrument.
    budget
        Spent and left, as the caller may see it; empty in a list.

    Examples
    --------
    >>> import discreet as dc
    >>> facts = {"id": "trial", "title": "A trial", "about": "", "outcome": "days", "treatment": "treated"}
    >>> bounds = dc.Bounds(outcome=(0, 40))
    >>> from discreet.client import ServiceDataset
    >>> data = ServiceDataset(**facts, bounds=bounds, records=1_000, neighbours="replace-one", kinds=("ate",))
    >>> data.bounds.outcome
    (0.0, 40.0)
    """

    id: str
    title: str
    about: str
    outcome: str
    treatment: str
    bounds: Bounds
    records: int | None
    neighbours: str
    kinds: tuple[str, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    budget: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """A data set as the service describes it."""
        names = ("id", "title", "about", "outcome", "treatment", "records", "neighbours", "columns")
        more: dict[str, Any] = {"bounds": Bounds.from_dict(plain["bounds"]), "kinds": tuple(plain["kinds"])}
        return cls(**{name: plain[name] for name in names}, **more, budget=plain.get("budget", {}))


class ServiceJob:
    """A request that a service works on, or has answered.

    Parameters
    ----------
    client : Client
        Whose request it is.
    id : str, optional
        What the service calls it; None where a stored release answers it.
    release : str, optional
        The release that answers it already.

    Examples
    --------
    >>> import discreet as dc
    >>> client = dc.client.Client("https://discreet.example.org", token="discreet_1_2")
    >>> from discreet.client import ServiceJob
    >>> ServiceJob(client, "1c0ffee")
    <request 1c0ffee at https://discreet.example.org>
    """

    def __init__(self, client: Client, id: str | None, release: str | None = None) -> None:  # noqa: A002
        self.client, self.id, self.release = client, id, release

    def __repr__(self) -> str:
        what = f"request {self.id}" if self.id is not None else f"release {self.release}"
        return f"<{what} at {self.client.address}>"

    def state(self) -> dict[str, Any]:
        """How it goes: state, progress, whether it was charged, and the name of its release once there is one."""
        if self.id is None:
            return {"state": "done", "progress": 100, "release": self.release, "charged": False}
        found: dict[str, Any] = self.client._transport.get(f"/requests/{quote(self.id, safe='')}")
        return found

    def wait(self, *, timeout: float | None = None, progress: bool | None = None) -> Any:
        """Wait for the release.

        Parameters
        ----------
        timeout : float, optional
            Seconds after which to give up waiting; the request goes on.
        progress : bool, optional
            Whether to show a bar; by default on a terminal.

        Returns
        -------
        Release, EffectRelease, UpliftRelease, ...
            The same object as the estimator's ``release_``.
        """
        started, pause = time.monotonic(), _FIRST
        with _bar(progress) as show:
            while (found := self.state())["state"] in _OPEN:
                show(found["state"], found["progress"])
                if timeout is not None and time.monotonic() - started + pause > timeout:
                    raise TimeoutError(f"request {self.id} has not ended yet: wait for it again, or stop it.")
                time.sleep(pause)
                pause = min(1.4 * pause, _LONGEST)
        if found["state"] != "done":
            raise failure(found)
        self.release = found["release"]
        return self.client.release(str(self.release))

    def stop(self) -> dict[str, Any]:
        """Ask for its end; what was charged stays charged."""
        if self.id is None:
            raise InvalidInput("this request was answered by a stored release: there is nothing left to stop.")
        found: dict[str, Any] = self.client._transport.post(f"/requests/{quote(self.id, safe='')}/stop")
        return found


class Client:
    """A curator's service: analysts plan for free, ask, and read releases, and nobody sees a record.

    Parameters
    ----------
    address : str
        Where the service is; http:// only on this machine.
    token : str, optional
        Access token; by default the environment's ``DISCREET_TOKEN``.
    patience : float
        Seconds for which a request is sent again while the service cannot be reached or asks to wait. A request for a
        release has a key of its own, so that it spends once however often it is sent.
    http : httpx2.Client, optional
        What sends, for proxies and certificates of your own.

    Notes
    -----
    What the service refuses is raised as by the library: `BudgetExceeded`, `LedgerRefused` (frozen, or not allowed),
    `InvalidInput`, `SourceFailed` where a request was charged and released nothing, and `LedgerUnavailable` where the
    service cannot be reached.

    Examples
    --------
    >>> import discreet as dc
    >>> client = dc.client.Client("https://discreet.example.org", token="discreet_1_2")
    >>> client
    <Client of https://discreet.example.org>
    >>> dc.client.Client("http://discreet.example.org", token="discreet_1_2")
    Traceback (most recent call last):
        ...
    discreet.exceptions.InvalidInput: address must begin with https://: a token that travels in the clear is ...
    """

    def __init__(
        self, address: str, *, token: str | None = None, patience: float = 60.0, http: HttpClient | None = None
    ) -> None:
        self._transport = Transport(address, token or "", patience, http)

    @property
    def address(self) -> str:
        """Where the service is."""
        return self._transport.address

    def __repr__(self) -> str:
        return f"<Client of {self.address}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._transport.close()

    def me(self) -> dict[str, Any]:
        """Who one is, and what one's token allows."""
        found: dict[str, Any] = self._transport.get("/me")
        return found

    def datasets(self) -> list[ServiceDataset]:
        """Data sets that one may use, without their budgets."""
        return [ServiceDataset.from_dict(each) for each in self._transport.pages("/datasets")]

    def dataset(self, name: str) -> ServiceDataset:
        """A data set with its budgets."""
        return ServiceDataset.from_dict(self._transport.get(_of_dataset(name)))

    def dummy(self, name: str, n: int = 100) -> dict[str, list[Any]]:
        """Made-up rows of a data set's schema, column by column, to try programs on."""
        found: dict[str, list[Any]] = self._transport.get(f"{_of_dataset(name)}/dummy", n=n)
        return found

    def plan(self, dataset: str, kind: str = "ate", **asked: Any) -> Plan:
        """What a request would cost and bring; free. As `discreet.plan`, with what the service knows of the data set.

        Parameters
        ----------
        dataset : str
            Its name.
        kind : str
            What would be estimated.
        **asked
            ``epsilon=`` or ``width=``, ``delta=``, ``alpha=``, ``covariates=``, and the options of the kind.
        """
        plain = dict(self._transport.post(f"{_of_dataset(dataset)}/plan", {"kind": kind} | asked))
        facts: dict[str, Any] = {name: plain[name] for name in _PLANNED}
        facts |= {"assumptions": (*plain["assumptions"], *plain["notes"])}
        facts |= {"uncertainty": Uncertainty.from_dict(plain["uncertainty"])}
        return Plan(**facts, without_privacy=plain["width_without_privacy"])

    def ask(self, dataset: str, kind: str, *, epsilon: float, key: str | None = None, **asked: Any) -> ServiceJob:
        """Ask for a release; its budget is reserved now, and charged before a record is read.

        Parameters
        ----------
        dataset : str
            Its name.
        kind : str
            What to estimate: one of the data set's ``kinds``.
        epsilon : float
            What it may spend.
        key : str, optional
            What you call this request. Under the same key it is sent again at no cost, even from another program.
        **asked
            ``delta=``, ``covariates=``, and the options of the kind, such as ``by=`` or ``horizon=``.
        """
        body = {"kind": kind, "epsilon": epsilon} | asked
        made = self._transport.post(f"{_of_dataset(dataset)}/requests", body, key or os.urandom(16).hex())
        return ServiceJob(self, made["job"], made["release"])

    def jobs(self) -> list[dict[str, Any]]:
        """One's requests, the newest first."""
        return list(self._transport.pages("/requests"))

    def job(self, name: str) -> ServiceJob:
        """A request by its name."""
        return ServiceJob(self, name)

    def releases(self) -> list[dict[str, Any]]:
        """Own and published releases, the newest first: what they are, without their content."""
        return list(self._transport.pages("/releases"))

    def release(self, name: str) -> Any:
        """A release: the same object as the estimator's ``release_``, which answers for itself from here on."""
        return io.read(self._transport.get(_of_release(name))["release"])

    def publish(self, name: str) -> dict[str, Any]:
        """Show a release to everybody who may use its data set; it cannot be taken back."""
        found: dict[str, Any] = self._transport.post(f"{_of_release(name)}/publish")
        return found

    def effects(self, name: str, rows: Sequence[Mapping[str, Any]], *, alpha: float = 0.05) -> list[dict[str, float]]:
        """Effects for people, from a released function; needed where it answers one query at a time ('dp-cate').

        Parameters
        ----------
        name : str
            The release.
        rows : list of dict
            One for each person, with exactly the declared covariates.
        alpha : float
            One minus the level of the intervals, where the release has any.
        """
        found: list[dict[str, float]] = []
        for start in range(0, len(rows), _ROWS):
            body = {"rows": [dict(row) for row in rows[start : start + _ROWS]], "alpha": alpha}
            found += self._transport.post(f"{_of_release(name)}/effects", body)["effects"]
        return found


def _of_dataset(name: str) -> str:
    return f"/datasets/{quote(name, safe='')}"


def _of_release(name: str) -> str:
    return f"/releases/{quote(name, safe='')}"


@contextmanager
def _bar(wanted: bool | None) -> Iterator[Any]:
    """Shows how a request goes."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    terminal = Console(stderr=True)
    shown = terminal.is_terminal if wanted is None else wanted
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=terminal, transient=True, disable=not shown) as bar:
        task = bar.add_task("queued", total=100)
        yield lambda state, done: bar.update(task, description=state, completed=done)
