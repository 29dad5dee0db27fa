"""Write what is made from the code: ``python docs/developers/write_reference.py``.

docs/reference/cli.md has every command with its options, docs/reference/service-options.md every option of the service,
docs/llms.txt the guide for language models and a list of all pages. A test compares all with what this writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

from discreet import guide
from discreet.cli import app
from discreet.serve.operations.configuration import PREFIX, options
from discreet.serve.settings import Settings

DOCS = Path(__file__).parent.parent
COMMANDS = DOCS / "reference" / "cli.md"
SERVICE = DOCS / "reference" / "service-options.md"
FOR_MODELS = DOCS / "llms.txt"
FOLDERS = ("tutorials", "how-to", "explanation", "reference", "proofs")

HEAD = """# The command line

Written by `python docs/developers/write_reference.py` from the commands; do not edit. `discreet COMMAND --help`
says the same.

Every command ends with 0 if it did what it was asked; with 2 and one sentence if it refused, in which case nothing was
spent unless the sentence says so; and with 1 if something unexpected happened.
"""
KINDS = {"str": "text", "int": "whole number", "float": "number", "Path": "path"}


def commands() -> str:
    """The page of all commands."""
    root: Any = typer.main.get_command(app)
    return "\n".join([HEAD, *_index(root), "", *_options(root, "discreet"), *_all(root, "discreet")]).rstrip() + "\n"


SERVICE_HEAD = """# Options of the service

Written by `python docs/developers/write_reference.py` from the settings; do not edit.

`discreet serve`, `discreet worker` and `discreet serve check` read a TOML file (`--config`, or `DISCREET_CONFIG`) in
which every option has its name. The environment overrides the file, and the command line overrides both. A key that is
no option is refused. In the environment a list is written with commas, and true is `true`, `yes`, `on` or `1`.
[Operate the service](../how-to/operate-the-service.md) says how to use them.

| option | in the environment | default | is |
| --- | --- | --- | --- |
"""


def service_options() -> str:
    """The page of the service's options."""
    offered = options()
    # As numpydoc has them: names, a colon and types, then the words, one level further in.
    text = re.sub(r"^.*?-{4,}\n", "", Settings.__doc__ or "", flags=re.DOTALL)
    parts = re.findall(r"^ {4}(\w[\w, ]*) : .*\n((?: {8}.*\n)+)", text + "\n", re.MULTILINE)
    lines = []
    for names, words in parts:
        known = [name.strip() for name in names.split(",") if name.strip() in offered]
        if known:
            shown = [", ".join(f"`{word}`" for word in column) for column in _three(known)]
            lines.append(f"| {' | '.join(shown)} | {_clean(words).replace('``', '`')} |")
    missing = set(offered) - _named(lines)
    assert not missing, f"Settings does not explain {missing}"
    return SERVICE_HEAD + "\n".join(lines) + "\n"


def _three(names: list[str]) -> tuple[list[str], list[str], list[Any]]:
    defaults = Settings()
    return names, [PREFIX + name.upper() for name in names], [repr(getattr(defaults, name)) for name in names]


def _named(lines: list[str]) -> set[str]:
    return {name for line in lines for name in re.findall(r"`(\w+)`", line.split(" | ")[0])}


def for_models() -> str:
    """The guide, and where to read on."""
    pages = [line for folder in FOLDERS for line in _pages(folder)]
    return "\n".join([guide().rstrip(), "", "## Pages", "", *pages]) + "\n"


def _pages(folder: str) -> Iterator[str]:
    for page in sorted((DOCS / folder).glob("*.md")):
        title = re.search(r"^# (.*)$", page.read_text(), re.MULTILINE)
        assert title, f"{page.name} has no title"
        yield f"* [{title[1]}]({folder}/{page.name})"


def _index(root: Any) -> Iterator[str]:
    yield "| command | does |"
    yield "| --- | --- |"
    for path, command in _walk(root, "discreet"):
        anchor = path.replace(" ", "-")
        yield f"| [`{path}`](#{anchor}) | {_sentence(command)} |"


def _walk(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        groups = hasattr(command, "commands")
        # A group may be a command itself.
        if not command.hidden and (not groups or command.invoke_without_command):
            yield f"{path} {name}", command
        if groups:
            yield from _walk(command, f"{path} {name}")


def _all(root: Any, path: str) -> Iterator[str]:
    for name, command in _walk(root, path):
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        shown = [each.name.upper() if each.required else f"[{each.name.upper()}]" for each in arguments]
        yield f"## {name}\n"
        yield f"{_clean(command.help)}\n"
        yield "```text\n" + " ".join([name, *shown, "[OPTIONS]"]) + "\n```\n"
        if arguments:
            yield "| argument | is |"
            yield "| --- | --- |"
            yield from (f"| `{each.name.upper()}` | {_clean(each.help)} |" for each in arguments)
            yield ""
        yield from _options(command, name)


def _options(command: Any, name: str) -> Iterator[str]:
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    if not options:
        return
    if name == "discreet":
        yield "## discreet\n"
    yield "| option | takes | default | is |"
    yield "| --- | --- | --- | --- |"
    for each in options:
        names = ", ".join(f"`{word}`" for word in [*each.opts, *each.secondary_opts])
        yield f"| {names} | {_kind(each)} | {_default(each)} | {_clean(each.help)} |"
    yield ""


def _kind(option: Any) -> str:
    if option.is_flag:
        return "nothing"
    wanted = option.type_descriptor.annotation
    if get_origin(wanted) is Literal:
        return " or ".join(f"`{word}`" for word in get_args(wanted))
    words = KINDS.get(getattr(wanted, "__name__", ""), "text")
    return f"{words}; may be repeated" if option.multiple else words


def _default(option: Any) -> str:
    if option.required:
        return "**needed**"
    return "" if option.is_flag or option.default in (None, [], ()) else f"`{option.default}`"


def _sentence(command: Any) -> str:
    return _clean(command.help).split(". ")[0].rstrip(".") + "."


def _clean(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").strip().replace("|", "\\|")


if __name__ == "__main__":
    for page, text in ((COMMANDS, commands()), (SERVICE, service_options()), (FOR_MODELS, for_models())):
        page.write_text(text, encoding="utf-8")
        print(f"Written: {page}")
