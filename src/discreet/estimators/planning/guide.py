"""A short guide for language models, and for people in a hurry."""

from importlib import import_module
from importlib.resources import files

from discreet.estimators.registry import REGISTRY, Entry


def guide() -> str:
    """How to use this version: what never to do, a first release, and every estimator by name.

    It is written for language models, and is no worse for people.

    Returns
    -------
    str
        Markdown. Its blocks of code run.

    Examples
    --------
    >>> import discreet as dc
    >>> print(dc.guide().splitlines()[0])
    # discreet, for language models and people in a hurry
    """
    # The package's own list of names, which is above all packages.
    public = [name for name in import_module("discreet").__all__ if name != "__version__"]
    text = (files(__package__) / "guide.md").read_text(encoding="utf-8")
    text = text.replace("<!-- estimators -->", "\n".join(_line(entry) for entry in REGISTRY.values()))
    return text.replace("<!-- names -->", ", ".join(f"`dc.{name}`" for name in public) + ".")


def _line(entry: Entry) -> str:
    module, _, name = entry.path.partition(":")
    place = "dc.papers" if module == "discreet.papers" else "dc"
    command = f" (`discreet {entry.name}`)" if entry.command else ""
    return f"* `{place}.{name}`{command}: {entry.help[0].lower()}{entry.help[1:]}"
