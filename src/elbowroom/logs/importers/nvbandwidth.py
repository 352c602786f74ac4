"""nvbandwidth: a matrix of copies between host and devices for each test."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from elbowroom.logs.lines import LogSection
from elbowroom.logs.reader import Importer
from elbowroom.logs.table import LogColumn, Table

_TITLE = re.compile(r"^Running ([a-z0-9]+(?:_[a-z0-9]+)+)\.$")
_HEADING = re.compile(r"[CG]PU\(row\).*\(column\).*\((GB/s|ns|us)\)")
_SUM = re.compile(r"^SUM \S+ ([\d.]+)$")


def _read(section: LogSection) -> Iterator[Table]:
    title = section.find(_TITLE)
    heading = section.find(_HEADING)
    numbers = section.take()
    if title is None or heading is None or numbers is None:
        return  # waived: this machine has no such path
    if not all(map(str.isdecimal, numbers.cells)):
        raise section.error(numbers, "does not number the columns", "the line is damaged")
    columns = [LogColumn("row", key=True), *map(LogColumn, numbers.cells)]
    matrix = section.table(title[1], columns)
    total = section.find(_SUM)
    cells = [
        (line, (row[0], int(column.name), value))
        for line, row in zip(matrix.lines, matrix.rows, strict=True)
        for column, value in zip(columns[1:], row[1:], strict=True)
        if value is not None
    ]
    rows = 1 if "CPU(row)" in heading[0] else len(numbers.cells)
    if total is None and len(matrix.rows) < rows:
        message = f"the line SUM {title[1]} is missing, and rows"
        raise section.error(matrix.lines[-1], message, "the log was cut here")
    if total and abs(sum(float(cell[2]) for _, cell in cells) - float(total[1])) > 0.006 * len(cells):
        message = f"the values do not add up to the sum {total[1]} of {title[1]}"
        raise section.error(matrix.lines[0], message, "a number is damaged, or two outputs are mixed")
    latency = heading[1] in ("ns", "us")
    value = LogColumn("latency" if latency else "bandwidth", heading[1])
    yield msgspec.structs.replace(
        matrix,
        columns=(LogColumn("row", key=True), LogColumn("column", key=True), value),
        rows=tuple(cell for _, cell in cells),
        lines=tuple(line for line, _ in cells),
    )


_SAMPLE = """\
Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     50.00     25.50

SUM host_to_device_memcpy_ce 75.50
"""
IMPORTER = Importer("nvbandwidth", "nvbandwidth", _TITLE, _read, _SAMPLE)
