"""`elbowroom import`: what other programs measured, as curves or as the log of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_wrapped
from elbowroom.cli.tables import new_table, print_table
from elbowroom.errors import UsageError
from elbowroom.plan.kernels import find
from elbowroom.points.point import Note
from elbowroom.quantities import format_size, number, plural
from elbowroom.store.curves import KERNEL, SIZE, may_be_curves, read_curves
from elbowroom.verbs.declaration import Verb, argument, function_of, option

if TYPE_CHECKING:
    from elbowroom.logs.reader import Log
    from elbowroom.logs.table import Table
    from elbowroom.store.tables import StoredTables
    from elbowroom.verbs.run_folder import Run


class ImportFiles(Verb):
    """Make a run folder from what another program measured.

    FILE is a table of bandwidths of both sides (CSV, `elbowroom help predict`), or the log of a benchmark:
    OSU, IMB, NetPIPE, nccl-tests, nvbandwidth, STREAM, likwid-bench, mpi_stream or a table of all pairs. Logs
    are recognised by their content; several make one folder.
    """

    name = "import"
    has_tables = True

    files: Sequence[str | Path] | str | Path = argument(metavar="FILE...", nargs=-1)
    out: Path | str = option(
        "Folder of the run. Never overwritten.", "RUN", spelled="-o --out", required=True, positional=True
    )
    kernel: str | None = option("Kernel of the curves; default: memset_nt.", "KERNEL")
    size: int | None = option("Message size of the curves; default: 64MB.", "SIZE")
    command: Sequence[str] = ()

    def do(self) -> Run | LoggedTables:
        """Makes a run folder of curves measured with something else, or of the tables of logs; `kernel` and
        `size` (bytes) say what a file of curves does not.
        """
        from elbowroom.logs.reader import is_log, read_log
        from elbowroom.store.tables import store_tables

        files = [self.files] if isinstance(self.files, str | Path) else self.files
        paths = [Path(file) for file in files]
        if not paths:
            raise UsageError("is missing", field="file", hint="name a CSV file or the log of a benchmark")
        if len(paths) == 1 and not is_log(paths[0]) and may_be_curves(paths[0]):
            return self._curves(paths[0])
        for field in ("kernel", "size"):
            if (value := getattr(self, field)) is not None:
                hint = "leave it out: a log says itself what was measured"
                raise UsageError("is only valid with curves", field=field, value=value, hint=hint)
        logs: list[Log] = [read_log(path) for path in paths]
        return LoggedTables(Path(self.out), store_tables(logs, Path(self.out), self.command))

    def _curves(self, path: Path) -> Run:
        from elbowroom.measure import curves as measured_curves
        from elbowroom.verbs.run_folder import Run

        curves = read_curves(path)
        notes = []
        if self.kernel is not None:
            find(self.kernel)
            curves = msgspec.structs.replace(curves, kernel=self.kernel)
        if self.size is not None:
            curves = msgspec.structs.replace(curves, size=self.size)
        if self.kernel is None and self.size is None and (curves.kernel, curves.size) == (KERNEL, SIZE):
            reason = (
                f"neither file nor options name others than {KERNEL} and {format_size(SIZE)}, which are shown"
            )
            notes.append(Note(what="kernel and message size", reason=reason))
        folder, results = measured_curves.import_curves(
            curves, Path(self.out), notes=notes, command=self.command
        )
        return Run(folder, results)

    def document(self, result: Run | LoggedTables) -> dict[str, Any]:
        """That of `show`, with what was imported."""
        if isinstance(result, LoggedTables):
            return result.show()
        rows = len(result.points())
        return result.show() | {"imported": {"format": "curves", "tables": 1, "rows": rows}}

    def print(self, result: Run | LoggedTables) -> None:
        from elbowroom.verbs.run_tables import print_run

        if isinstance(result, LoggedTables):
            print_tables(result.stored)
        else:
            print_run(result)
        click.echo(f"run: {result.path}")

    def answer(self, result: Run | LoggedTables) -> Answer:
        """That of the run, or what the tables of logs hold."""
        from elbowroom.verbs.run_answer import run_answer

        return tables_answer(result) if isinstance(result, LoggedTables) else run_answer(result)

    def trusted(self, result: Run | LoggedTables) -> bool:
        """What others measured is not judged."""
        return True


import_curves = function_of(ImportFiles, "import_curves")


class LoggedTables:
    """The tables of logs in a run folder (`import`)."""

    def __init__(self, path: Path, stored: StoredTables) -> None:
        self.path, self.stored = path, stored

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables, in the order of the logs."""
        return self.stored.tables

    def show(self) -> dict[str, Any]:
        """What `show --json` prints: what only curves have is null."""
        stored = self.stored
        results = ("plan", "machine", "mpi", "measured_share", "verdict", "points", "findings")
        return {
            "schema": "elbowroom/show",
            "version": 1,
            "run": str(self.path),
            "elbowroom": stored.elbowroom,
            "created": stored.created,
            "command": list(stored.command),
            **dict.fromkeys(results),
            "notes": [{"what": where, "reason": _ignored(lines)} for where, lines in stored.ignored.items()],
            "imported": {"format": stored.benchmarks, "tables": len(stored.tables), "rows": stored.rows},
            "tables": msgspec.to_builtins(stored.tables),
        }


def tables_answer(logged: LoggedTables) -> Answer:
    """What the tables hold, and the folder's list, where they stand beside runs."""
    stored = logged.stored
    lines = sum(map(len, stored.ignored.values()))
    why = "Logs hold no state of the machine, so they are shown and not judged."
    if lines:
        why = f"{plural(lines, 'row')} of unknown tables were not imported. {why}"
    return Answer(
        f"{plural(len(stored.tables), 'table')} of {stored.benchmarks} with {plural(stored.rows, 'row')}.",
        why,
        command_line("list", logged.path.parent),
    )


def print_tables(stored: StoredTables) -> None:
    """A line for each table: what it is of, and the range of its values."""
    shown = new_table("benchmark", "~test", "~settings", ">rows", "~values")
    for table in stored.tables:
        settings = ", ".join(f"{name} {value}" for name, value in table.settings.items())
        shown.add_row(table.benchmark, table.test, settings, str(len(table.rows)), _range(table))
    print_table(shown)
    for where, lines in stored.ignored.items():
        print_wrapped(f"- {where}: {_ignored(lines)}")


def write_tables(folder: Path, out: str | None) -> Path:
    """Writes the tables of a folder of logs as one HTML page; default: report.html in the folder."""
    from elbowroom.draw.html import figure_page
    from elbowroom.files import write_atomically
    from elbowroom.store.tables import read_tables

    stored = read_tables(folder)
    answer = tables_answer(LoggedTables(folder, stored))
    rows = [
        (table.benchmark, table.test, *_row(table, row), f"{table.source} line {line}")
        for table in stored.tables
        for row, line in zip(table.rows, table.lines, strict=True)
    ]
    notes = [f"{at}: {_ignored(lines)}" for at, lines in stored.ignored.items()]
    page = figure_page(
        "What other programs measured",
        [(answer.verdict, (answer.why, *notes))],
        [],
        ("Tables", ("benchmark", "test", "row", "values", "from"), rows),
        command=" ".join(stored.command),
    )
    path = folder / "report.html" if out is None else Path(out)
    write_atomically(path, page.encode())
    return path


def _row(table: Table, row: Sequence[Any]) -> tuple[str, str]:
    """What a row is of, and its values with their units, as printed."""
    texts: tuple[list[str], list[str]] = ([], [])
    for column, cell in zip(table.columns, row, strict=True):
        unit = f" {column.unit}" if column.unit else ""
        texts[not column.key].append(f"{column.name} {'n/a' if cell is None else cell}{unit}")
    return ", ".join(texts[0]), ", ".join(texts[1])


def _range(table: Table) -> str:
    """The range of the first two columns with a unit."""
    parts = []
    for column in [column for column in table.columns if column.unit and not column.key][:2]:
        values = [value for value in table.values(column.name) if isinstance(value, int | float)]
        if values:
            unit = f" {column.unit}" if column.unit else ""
            ends = dict.fromkeys(map(number, (min(values), max(values))))
            parts.append(f"{column.name} {' to '.join(ends)}{unit}")
    return ", ".join(parts)


def _ignored(lines: Sequence[int]) -> str:
    places = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} to {lines[-1]}"
    return f"{places}: {plural(len(lines), 'row')} of an unknown table, not imported"
