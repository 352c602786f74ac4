"""Intel MPI Benchmarks (IMB-MPI1, -NBC, -RMA, -P2P, -IO, -MT)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from elbowroom.logs.lines import LogSection
from elbowroom.logs.reader import Importer
from elbowroom.logs.table import Cell, LogColumn, Table

_TITLE = re.compile(r"^#?\s*Benchmarking (\S+)$")
_HEADING = re.compile(r"^\s*(?:Group\s+)?#(?:bytes|repetitions)\b")
_SETTING = re.compile(r"#\s*#(processes|threads) = (\d+)|\(\s*(\d+) (groups) of|(MODE): (\S+)")
_SKIPPED = re.compile(r"out-of-mem|time-?out|hours|exceed")
_RATES = {"Mbytes/sec": ("bandwidth", "MB/s"), "Msg/sec": ("messages", "1/s"), "#bytes": ("size", "B")}
_UNITS = {"usec": "us", "msec": "ms", "sec": "s", "%": "%"}


def _read(section: LogSection) -> Iterator[Table]:
    title = section.find(_TITLE)
    if title is None:
        return
    settings: dict[str, int | float | str] = {}
    for line in section.lines():
        if _HEADING.match(line.text):
            columns = [_column(section, line.number, text) for text in line.cells]
            group = columns[0].name == "group"
            rising = "size" if any(column.name == "size" for column in columns) and not group else ""
            table = section.table(title[1], columns, skip=_SKIPPED, settings=dict(settings), rising=rising)
            section.check_constant(table, _agreement, "bandwidth, size and time or messages/s")
            yield table
        for match in _SETTING.finditer(line.text):
            name, value = next((match[a], match[b]) for a, b in ((1, 2), (4, 3), (5, 6)) if match[a])
            settings[name.lower()] = int(value) if value.isdecimal() else value


def _column(section: LogSection, line: int, text: str) -> LogColumn:
    if text in _RATES:
        return LogColumn(*_RATES[text], key=text == "#bytes")
    name, _, unit = text.rstrip("]").partition("[")
    if unit and unit not in _UNITS:
        raise section.error(line, f"unknown unit {unit}", f"known are {', '.join(_UNITS)}")
    return LogColumn(name.lstrip("#").lower(), _UNITS.get(unit, ""), key=name.lower() == "group")


def _agreement(row: dict[str, Cell]) -> float | None:
    size, bandwidth, time, rate = (row.get(name) for name in ("size", "bandwidth", "t", "messages"))
    if not isinstance(size, int) or not isinstance(bandwidth, float) or bandwidth < 1 or not size:
        return None
    if isinstance(time, float) and time >= 1:
        return bandwidth * time / size
    return bandwidth / (rate * size) if isinstance(rate, (int, float)) and rate >= 1000 else None


_SAMPLE = """\
# Benchmarking PingPong
# #processes = 2
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         1.00         0.00
         4096         1000         2.00      2048.00
"""
IMPORTER = Importer("imb", "Intel MPI Benchmarks", _TITLE, _read, _SAMPLE)
