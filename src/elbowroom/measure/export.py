"""Writes what a run holds in the formats other programs read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from elbowroom.documents import encode
from elbowroom.draw.figure import Figure
from elbowroom.draw.files import save
from elbowroom.errors import UsageError
from elbowroom.files import disk_error, write_atomically, write_with
from elbowroom.measure.formats import FORMATS, Format, bmf, hwloc, junit, openmetrics, osu
from elbowroom.measure.results import Results
from elbowroom.store.folder import RunFolder
from elbowroom.store.sealed import seal, table


def export(
    folder: RunFolder, results: Results, show: Callable[[], dict[str, Any]], kind: Format, path: Path
) -> list[Path]:
    """Writes `kind` to `path` and returns the files written. CSV has no lists: batches are separated by
    blanks. `curves` are written elsewhere (store.curves).
    """
    if kind in ("png", "svg"):
        return _figures(results.figures(), kind, path)
    if kind == "parquet":
        seal(path, folder.entries(), folder.manifest.points)
    elif kind == "csv":
        _csv(folder, path)
    elif kind == "json":
        write_atomically(path, encode(show()))
    elif kind == "hwloc":
        write_atomically(path, hwloc.text(results, folder.topology()))
    elif kind in _TEXTS:
        text = _TEXTS[kind](results)
        write_atomically(path, text.encode() if isinstance(text, str) else text)
    else:
        raise UsageError("no such format", field="format", value=kind, hint=f"one of: {', '.join(FORMATS)}")
    return [path]


_TEXTS: dict[str, Callable[[Results], str | bytes]] = {
    "osu": osu.text,
    "bmf": bmf.text,
    "openmetrics": openmetrics.text,
    "junit": junit.text,
}
"""Formats that are made from the results alone."""


def _figures(figures: tuple[Figure, ...], kind: str, path: Path) -> list[Path]:
    try:
        path.mkdir(parents=True, exist_ok=True)
        files = [path / f"{figure.name}.{kind}" for figure in figures]
        for figure, file in zip(figures, files, strict=True):
            save(figure, file)
    except OSError as error:
        raise disk_error(error, path, "out") from error
    return files


def _csv(folder: RunFolder, path: Path) -> None:
    import pyarrow
    import pyarrow.csv

    sealed = table(folder.entries(), folder.manifest.points)
    columns: list[Any] = []
    for name in sealed.column_names:
        column = sealed.column(name)
        if pyarrow.types.is_list(column.type):
            texts = [None if cell is None else " ".join(map(str, cell)) for cell in column.to_pylist()]
            column = pyarrow.chunked_array([pyarrow.array(texts, pyarrow.string())])
        columns.append(column)
    flat = pyarrow.table(columns, names=sealed.column_names)

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            pyarrow.csv.write_csv(flat, file)

    write_with(path, write)
