"""Tables in memory as Arrow data, which pandas, polars, DuckDB and others take without copying it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.files import write_with

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas
    import polars
    import pyarrow

ROWS, COLUMNS = 5, 12
"""What a notebook shows of a frame."""


class Frame:
    """A table of equally long columns, with the Arrow PyCapsule interface: `polars.DataFrame(frame)`,
    `pandas.DataFrame.from_arrow(frame)` and `pyarrow.table(frame)` take it as it is.
    """

    def __init__(self, table: pyarrow.Table) -> None:
        self._table = table

    def __repr__(self) -> str:
        return f"Frame(rows={len(self)}, columns={len(self.columns)})"

    def __str__(self) -> str:
        fields = [f"{field.name}: {field.type}" for field in self._table.schema]
        return "\n".join((f"{len(self)} rows of {len(fields)} columns", *fields))

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __getitem__(self, column: str) -> npt.NDArray[np.generic]:
        """The values of a column, without a copy where it holds numbers and none is missing; KeyError."""
        chunked = self._table[column]
        values = chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()
        array: npt.NDArray[np.generic] = values.to_numpy(zero_copy_only=False)
        return array

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._table.column_names)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as an Arrow stream in a PyCapsule; consumers of data frames call it."""
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Names and types of the columns as an Arrow schema in a PyCapsule."""
        return self._table.schema.__arrow_c_schema__()

    def to_arrow(self) -> pyarrow.Table:
        """The table of pyarrow that holds the data."""
        return self._table

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of pandas; UsageError where pandas is not installed."""
        try:
            import pandas  # noqa: F401
        except ImportError as error:
            raise _missing("pandas") from error
        frame: pandas.DataFrame = self._table.to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A data frame of polars; UsageError where polars is not installed."""
        try:
            import polars
        except ImportError as error:
            raise _missing("polars") from error
        return polars.DataFrame(self)

    def write(self, path: Path | str, *, own: bool = False) -> Path:
        """Writes a Parquet file, whole or not at all; `own`: into the folder of its run."""
        import pyarrow.parquet

        def write(temporary: Path) -> None:
            # pyarrow takes a name for UTF-8, or for an address.
            with temporary.open("wb") as file:
                pyarrow.parquet.write_table(self._table, file, compression="zstd")

        write_with(Path(path), write, own=own)
        return Path(path)

    def _repr_html_(self) -> str:
        names = self.columns[:COLUMNS]
        shown = self._table.select(list(names)).slice(0, ROWS).to_pylist()
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(_cell(row[name]))}</td>' for name in names)}</tr>" for row in shown
        )
        more = f"; the first {len(names)}" if len(names) < len(self.columns) else ""
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{len(self)} rows of {len(self.columns)} columns{more}</p>"
        )


def of_columns(columns: Mapping[str, Any], schema: str) -> Frame:
    """A frame of arrays of numpy or Arrow, all of one length; numbers are not copied. `schema` names the kind
    of table in the metadata of its files.
    """
    import pyarrow

    return Frame(pyarrow.table(columns).replace_schema_metadata({"schema": schema, "version": "1"}))


def frame(results: Iterable[Any]) -> Frame:
    """A table of results, a row for each: points, predictions, changes, listed runs, setups ...

    What a result holds inside is a column of its own: `comm.kept.low` is the column `comm_kept_low`. What is
    missing is null. UsageError for what is not a list of results.
    """
    import pyarrow

    try:
        rows = [_flat(_plain(result)) for result in results]
    except TypeError as error:
        raise UsageError(
            f"is not a list of results ({error})", field="results", hint="give for instance run.points()"
        ) from error
    names = dict.fromkeys(name for row in rows for name in row)
    return Frame(pyarrow.table({name: _column([row.get(name) for row in rows]) for name in names}))


def _plain(result: Any) -> dict[str, Any]:
    """A result as plain data, with the keys of its document."""
    if hasattr(result, "plain"):
        result = result.plain()
    elif hasattr(result, "_asdict"):
        result = result._asdict()
    plain = msgspec.to_builtins(result, enc_hook=str)
    if not isinstance(plain, dict):
        raise TypeError(f"{type(result).__name__} has no fields")
    return plain


def _flat(plain: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    row: dict[str, Any] = {}
    for key, value in plain.items():
        row |= _flat(value, f"{before}{key}_") if isinstance(value, dict) else {f"{before}{key}": value}
    return row


def _column(values: Sequence[Any]) -> Any:
    """The values as Arrow data; as text where they are of several types."""
    import pyarrow

    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
        return pyarrow.array([None if value is None else str(value) for value in values])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.4g}"
    return str(value)


def _missing(library: str) -> UsageError:
    hint = f"pip install {library}, or use .to_arrow()"
    return UsageError("is not installed", field=f"to_{library}", value=library, hint=hint)
