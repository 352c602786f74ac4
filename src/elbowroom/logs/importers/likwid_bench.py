"""likwid-bench: one test, one line of results."""

from __future__ import annotations

import re
from collections.abc import Iterator

from elbowroom.logs.lines import LogSection
from elbowroom.logs.reader import Importer
from elbowroom.logs.table import LogColumn, Table

_TITLE = re.compile(r"^LIKWID MICRO BENCHMARK")
_VALUE = re.compile(r"^([A-Z][\w ()/.]+?):\s+(\S+)(?: sec)?$")
_THREADS = re.compile(r"^Using (\d+) (threads|work groups)")
_COLUMNS = {
    "Size (Byte)": LogColumn("size", "B", key=True),
    "Time": LogColumn("time", "s"),
    "Iterations": LogColumn("iterations"),
    "Data volume (Byte)": LogColumn("volume", "B"),
    "MByte/s": LogColumn("bandwidth", "MB/s"),
    "MFlops/s": LogColumn("flops", "Mflop/s"),
}


def _read(section: LogSection) -> Iterator[Table]:
    start = section.take()
    settings: dict[str, int | float | str] = {}
    values: dict[str, tuple[int, str]] = {}
    while (line := section.take()) is not None and "Cycles per update" not in values:
        if match := _THREADS.match(line.text):
            settings[match[2]] = int(match[1])
        elif match := _VALUE.match(line.text):
            values[match[1]] = (line.number, match[2])
    missing = [name for name in ("Test", "Time", "MByte/s", "Cycles per update") if name not in values]
    if start is None or missing:
        last = max((number for number, _ in values.values()), default=start.number if start else 1)
        raise section.error(last, f"{missing[0]} is missing", "the log was cut here")
    cells = [(column, *values[name]) for name, column in _COLUMNS.items() if name in values]
    numbers = tuple(section.number(line, column.name, text) for column, line, text in cells)
    table = Table(
        section.benchmark, values["Test"][1], tuple(column for column, _, _ in cells), (numbers,),
        (values["MByte/s"][0],), section.source, settings,
    )  # fmt: skip
    row = dict(zip((column.name for column, _, _ in cells), numbers, strict=True))
    if "volume" in row and abs(row["volume"] / row["time"] / 1e6 / row["bandwidth"] - 1) > 0.01:
        raise section.error(
            values["MByte/s"][0], "data volume, time and MByte/s do not agree", "a number is damaged"
        )
    yield table


_SAMPLE = """\
LIKWID MICRO BENCHMARK
Test: copy
Using 1 work groups
Using 4 threads
Time:			2.000000e+00 sec
Size (Byte):		48000
Data volume (Byte):	40000000000
MByte/s:		20000.00
Cycles per update:	1.000000
"""
IMPORTER = Importer("likwid_bench", "likwid-bench", _TITLE, _read, _SAMPLE)
