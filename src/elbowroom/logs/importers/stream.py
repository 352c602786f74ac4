"""STREAM in C, Fortran and MPI, and BabelStream."""

from __future__ import annotations

import re
from collections.abc import Iterator

from elbowroom.logs.lines import LogSection
from elbowroom.logs.reader import Importer
from elbowroom.logs.table import Cell, LogColumn, Table

_HEADING = re.compile(
    r"^\s*Function\s+(?:Best )?(?:Rate )?\(?(M(?:i?B|Bytes)/s(?:ec)?|G(?:i?B|Bytes)/s(?:ec)?)\)?\s+(.*)"
)
_TIMES = re.compile(r"(Avg|Average|Min|Max)")
_ROW = re.compile(r"[A-Z][A-Za-z0-9_]*\s*:?\s+[\d.]")
_ABOVE = {
    "threads": re.compile(r"Number of Threads (?:counted|requested)\s*=\s*(\d+)|threads?:? (\d+)"),
    "elements": re.compile(r"Array size\s*[=:]\s*(\d+)(?![\d.]| ?[MGK]i?B)"),
    "ranks": re.compile(
        r"Number of (?:MPI )?(?:processes|ranks|tasks)\s*[=:]\s*(\d+)|number of processors\s*=\s*(\d+)", re.I
    ),
}
_UNITS = {"MBytes/sec": "MB/s", "GBytes/sec": "GB/s"}
_ARRAYS = {"Copy": 2, "Scale": 2, "Mul": 2, "Dot": 2, "Add": 3, "Triad": 3}


def _read(section: LogSection) -> Iterator[Table]:
    heading = section.find(_HEADING)
    if heading is None:
        return
    times = [match.lower().replace("average", "avg") + " time" for match in _TIMES.findall(heading[2])]
    rate = LogColumn("rate", _UNITS.get(heading[1], heading[1]))
    columns = [LogColumn("function", key=True, text=True), rate, *(LogColumn(name, "s") for name in times)]
    matches = {name: section.above(pattern) for name, pattern in _ABOVE.items()}
    settings = {name: int(next(filter(None, match.groups()))) for name, match in matches.items() if match}
    table = section.table("STREAM", columns, row=_ROW, settings=dict(settings), drop=":")
    section.check_constant(table, _bytes, "rate and minimum time")
    yield table


def _bytes(row: dict[str, Cell]) -> float | None:
    arrays, rate, time = _ARRAYS.get(str(row["function"])), row["rate"], row.get("min time")
    if arrays is None or not isinstance(rate, float) or not isinstance(time, float) or time < 0.005:
        return None
    return rate * time / arrays


_SAMPLE = """\
Number of Threads counted = 4
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           16000.0     0.010200     0.010000     0.011000
Triad:          15000.0     0.016300     0.016000     0.017000
"""
IMPORTER = Importer("stream", "STREAM and BabelStream", _HEADING, _read, _SAMPLE)
