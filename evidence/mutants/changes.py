"""The mutants of one module: mutmut's changes of its source, what is left out of them, and how one is put in place.

mutmut itself leaves out every decorated function (all properties, and all that is cached, such as the noise plan of the
gate) and all constants. So its operators are used here, but not its loop: a mutant is a whole module's source, of which
one function's code, or one constant, takes the place of the original in a process that is thrown away afterwards.
"""

from __future__ import annotations

import difflib
import gc
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider
from mutmut.mutation.file_mutation import deep_replace
from mutmut.mutation.mutators import mutation_operators

# What any execution of the line would notice, whatever a test asserts, tells nothing about the tests.
_TRIVIAL = {"operator_assignment", "operator_dict_arguments", "operator_string"}
# Words and pictures: nothing that is released depends on them.
_UNSEEN = {"__repr__", "__str__", "_repr_html_"}
_PICTURES = "plot_"
# How much is kept in memory or read at once, from where on numbers are searched, and from where on processes are
# started: both sides of each give the same integers, and tests of their modules set them so that both are taken.
_MEASURES = {"KEPT_NUMBERS", "BATCH_ROWS", "MANY_ROWS", "_MOST_NUMBERS", "_SLICE", "_FEW_LEVELS"}
# Functions whose calls only say something, and an argument that only checks what holds anyway.
_SAYING = {"warn", "debug", "info", "cast"}
_CHECKING = {"strict"}
# In these the text is what is run.
_TEXT_IS_CODE = ("data/backends/sql.py",)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: where it is, what it looks like, and the module's source with it."""

    module: str
    function: str
    line: int
    lines: tuple[int, ...]
    old: str
    new: str
    occurrence: int
    source: str

    @property
    def change(self) -> str:
        """The change in words that do not depend on line numbers."""
        return f"{self.old} -> {self.new}"

    @property
    def constants(self) -> set[str]:
        """The names that a changed line outside of functions gives values to."""
        line = self.source.splitlines()[self.lines[0] - 1]
        return {each.strip() for each in line.split("=")[0].split(":")[0].split(",")}

    @property
    def users(self) -> list[int]:
        """The lines that use these names."""
        names = re.compile(rf"\b({'|'.join(map(re.escape, self.constants))})\b")
        return [number for number, line in enumerate(self.source.splitlines(), 1) if names.search(line)]

    @property
    def key(self) -> str:
        """What identifies it in the cache: equal changes of equal lines of one function are counted through."""
        return f"{self.function} | {self.change} | {self.occurrence}"


def mutants_of(module: str, path: Path) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    text = path.read_text()
    wrapper = MetadataWrapper(cst.parse_module(text))
    finder = _Finder(module)
    wrapper.visit(finder)
    pieces = [wrapper.module.code_for_node(each) for each in wrapper.module.body]
    header = "".join(wrapper.module.code_for_node(each) for each in wrapper.module.header)
    if header + "".join(pieces) != text:
        raise AssertionError(f"{path} is not the sum of its statements: the mutants would be of another text.")
    found, seen = [], Counter[str]()
    for place in finder.places:
        changed: Any = deep_replace(place.statement, place.node, place.changed)
        index = wrapper.module.body.index(place.statement)
        source = header + "".join([*pieces[:index], wrapper.module.code_for_node(changed), *pieces[index + 1 :]])
        old, new = _differing(text, source)
        if old == new:
            continue
        name = f"{place.function} | {old} -> {new}"
        found.append(Mutant(module, place.function, place.line, place.lines, old, new, seen[name], source))
        seen[name] += 1
    return found


def _differing(before: str, after: str) -> tuple[str, str]:
    """The lines that differ, without indentation."""
    old, new = before.splitlines(), after.splitlines()
    same = difflib.SequenceMatcher(None, old, new, autojunk=False) if len(old) != len(new) else None
    if same is None:
        pairs = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
        return _joined(a for a, _ in pairs), _joined(b for _, b in pairs)
    blocks = [each for each in same.get_opcodes() if each[0] != "equal"]
    return (
        _joined(line for _, low, high, _, _ in blocks for line in old[low:high]),
        _joined(line for _, _, _, low, high in blocks for line in new[low:high]),
    )


def _joined(lines: Iterator[str]) -> str:
    return " ".join(" ".join(lines).split())


@dataclass(frozen=True, slots=True)
class _Place:
    statement: Any
    node: Any
    changed: Any
    function: str
    line: int
    lines: tuple[int, ...]


class _Finder(cst.CSTVisitor):
    """Visits what may be changed, with mutmut's operators."""

    METADATA_DEPENDENCIES = (PositionProvider, ParentNodeProvider)

    def __init__(self, module: str) -> None:
        super().__init__()
        self.places: list[_Place] = []
        self._text_is_code = module in _TEXT_IS_CODE

    def on_visit(self, node: Any) -> bool:
        if self._left_out(node):
            return False
        for kind, operator in mutation_operators:
            if isinstance(node, kind):
                if operator.__name__ in _TRIVIAL and not self._matters(node, operator.__name__):
                    continue
                changes = list(operator(node))
                if operator.__name__ == "operator_string":
                    changes = changes[:1]
                for changed in changes:
                    if operator.__name__ == "operator_arg_removal" and not _is_shorter(node, changed):
                        continue
                    if _is_same_number(node, changed):
                        continue
                    self._note(node, changed)
        return True

    def _note(self, node: Any, changed: Any) -> None:
        above = [node, *self._above(node)]
        statement = above[-2]
        functions = [each for each in above if isinstance(each, cst.FunctionDef)]
        classes = [each for each in above if isinstance(each, cst.ClassDef)]
        if functions:
            function = ".".join([*(each.name.value for each in reversed(classes)), functions[-1].name.value])
        elif isinstance(statement, cst.SimpleStatementLine):
            function = "(module)"
        else:
            return
        line = self.get_metadata(PositionProvider, node).start.line
        self.places.append(_Place(statement, node, changed, function, line, self._lines(above)))

    def _lines(self, above: list[Any]) -> tuple[int, ...]:
        """The lines whose execution may execute the change: a whole simple statement, or a part of a compound one."""
        whole = above[0]
        for each in above:
            if isinstance(each, cst.BaseCompoundStatement | cst.IndentedBlock | cst.Module):
                break
            whole = each
        span = self.get_metadata(PositionProvider, whole)
        return tuple(range(span.start.line, span.end.line + 1))

    def _above(self, node: Any) -> Iterator[Any]:
        while (node := self.get_metadata(ParentNodeProvider, node, None)) is not None:
            yield node

    def _matters(self, node: Any, operator: str) -> bool:
        """A word matters where it is compared, and where it is code."""
        if operator != "operator_string":
            return False
        parent = self.get_metadata(ParentNodeProvider, node)
        compared = isinstance(parent, cst.Comparison | cst.ComparisonTarget)
        return compared or (self._text_is_code and not isinstance(parent, cst.Expr))

    def _left_out(self, node: Any) -> bool:
        if isinstance(node, cst.Annotation | cst.Raise | cst.Decorator | cst.Parameters | cst.Import | cst.ImportFrom):
            # The signature of a nested function or of a lambda is inside the code of its function, and is rarely more.
            return True
        if isinstance(node, cst.FunctionDef):
            return node.name.value in _UNSEEN or node.name.value.startswith(_PICTURES)
        if isinstance(node, cst.Assign):
            return isinstance(node.targets[0].target, cst.Name) and node.targets[0].target.value in _MEASURES
        if isinstance(node, cst.If):
            return isinstance(node.test, cst.Name) and node.test.value == "TYPE_CHECKING"
        if isinstance(node, cst.Arg):
            return node.keyword is not None and node.keyword.value in _CHECKING
        if isinstance(node, cst.Call):
            return _called(node) in _SAYING
        if isinstance(node, cst.Expr):
            return isinstance(node.value, cst.SimpleString | cst.ConcatenatedString)
        return False


def _called(call: Any) -> str:
    function = call.func
    return str(function.attr.value if isinstance(function, cst.Attribute) else getattr(function, "value", ""))


def _is_shorter(node: Any, changed: Any) -> bool:
    """An argument is left out, and not only because it cannot be wrong."""
    if len(changed.args) == len(node.args):
        return False
    gone = [each for each in node.args if each not in changed.args]
    return not any(each.keyword is not None and each.keyword.value in _CHECKING for each in gone)


def _is_same_number(node: Any, changed: Any) -> bool:
    """One more than 1e150 is 1e150."""
    return isinstance(node, cst.Float | cst.Integer) and node.evaluated_value == changed.evaluated_value


class Originals:
    """The functions of a module as they are in memory, found once, and all caches of the library."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self._functions: dict[tuple[str, int], list[FunctionType]] = {}
        self._caches: list[Any] = []
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename == module.__file__:
                place = (each.__code__.co_qualname, each.__code__.co_firstlineno)
                self._functions.setdefault(place, []).append(each)
            elif isinstance(each, _lru_cache_wrapper) and str(each.__module__).startswith("discreet"):
                self._caches.append(each)

    def replace(self, mutant: Mutant) -> None:
        """Run the mutant instead of the original from now on, in this process."""
        for cache in self._caches:
            cache.cache_clear()
        if mutant.function == "(module)":
            _change_constants(mutant, self.module)
            return
        code = compile(mutant.source, self.module.__file__, "exec", dont_inherit=True)
        for name in mutant.function.split("."):
            code = _inner(code, name, mutant.lines[0])
        if not any(place[0] == code.co_qualname for place in self._functions):
            raise LookupError(f"{mutant.function} of {mutant.module} is not in memory.")
        self._exchange(code)

    def _exchange(self, code: CodeType) -> None:
        """Exchange the code of a function, and of those inside it that exist already, such as what a decorator made."""
        lines = {line for name, line in self._functions if name == code.co_qualname}
        # Lines inside a function may have moved, where an argument was left out.
        line = code.co_firstlineno if code.co_firstlineno in lines or len(lines) != 1 else lines.pop()
        for function in self._functions.get((code.co_qualname, line), ()):
            if function.__code__.co_freevars == code.co_freevars:
                function.__code__ = code
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                self._exchange(inner)


def _inner(code: CodeType, name: str, line: int) -> CodeType:
    """The code of that name, and of those the last that begins before the line (the others are overloads)."""
    named = [each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == name]
    return max((each for each in named if each.co_firstlineno <= line), key=lambda each: each.co_firstlineno)


def _change_constants(mutant: Mutant, module: Any) -> None:
    """Give constants their changed values, wherever they were imported by name."""
    fresh = {"__name__": module.__name__, "__file__": module.__file__}
    exec(compile(mutant.source, module.__file__, "exec", dont_inherit=True), fresh)
    # Constants that are computed from it change with it.
    derived = {
        name
        for name, value in vars(module).items()
        if isinstance(value, int | float | str | tuple | frozenset) and value != fresh.get(name, value)
    }
    for name in mutant.constants | derived:
        old = vars(module)[name]
        for place, each in list(sys.modules.items()):
            if place.startswith("discreet") and vars(each).get(name) is old:
                setattr(each, name, fresh[name])
