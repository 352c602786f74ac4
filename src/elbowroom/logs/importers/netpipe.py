"""NetPIPE: what it prints, and its file np.out."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence

from elbowroom.logs.lines import LogSection
from elbowroom.logs.reader import Importer
from elbowroom.logs.table import Cell, LogColumn, Table

_PRINTED = re.compile(
    r"^\s*\d+:\s+(\d+)\s*(?:bytes|B)\s+(\d+) times -->\s+([\d.]+) ([MG]bps)\s+in\s+([\d.]+) ?([nu]?)secs?$"
)
_FILE = re.compile(r"^\s*(\d+) (\d+\.\d{6}) {3}(\d+\.\d{8})$")
_ANY = re.compile(r"-->|^\s*\d+ \d")
_STARTS = re.compile(rf"^Now starting the main loop|{_FILE.pattern}")
_MICROSECONDS = {"n": 1e-3, "u": 1.0, "": 1e6}


def _read(section: LogSection) -> Iterator[Table]:
    rows, lines = list[tuple[Cell, ...]](), list[int]()
    while (line := section.peek()) is not None:
        if match := _PRINTED.match(line.text):
            rate = float(match[3]) * (1000 if match[4] == "Gbps" else 1)
            rows.append((int(match[1]), rate, float(match[5]) * _MICROSECONDS[match[6]]))
        elif match := _FILE.match(line.text):
            rows.append((int(match[1]), float(match[2]), float(match[3]) * 1e6))
        elif _ANY.search(line.text):
            raise section.error(line, "is not size, times, rate and time", "the line is damaged")
        if match:
            lines.append(line.number)
        section.take()
    if not rows:
        return
    usual = statistics.median(map(_bits, rows))
    if not 0.93 < usual < 1.03:
        raise section.error(lines[0], "rate, size and time do not agree", "the unit of the rate was changed")
    unit = "Mbit/s" if usual > 0.98 else "Mibit/s"  # up to version 3, a megabit is 2**20 bits
    columns = (LogColumn("size", "B", key=True), LogColumn("rate", unit), LogColumn("time", "us"))
    table = Table(section.benchmark, "ping-pong", columns, tuple(rows), tuple(lines), section.source)
    section.check_rising(table, "size")
    section.check_constant(table, lambda row: _bits(tuple(row.values())), "rate, size and time")
    yield table


def _bits(row: Sequence[Cell]) -> float:
    """Printed over computed rate."""
    size, rate, time = (float(cell or 0) for cell in row)
    return rate * time / (8 * size)


_SAMPLE = """\
Now starting the main loop
  0:       1 bytes   4457 times -->      0.38 Mbps in      20.00 usec
  1:    4096 bytes   1113 times -->   1562.50 Mbps in      20.00 usec
"""
IMPORTER = Importer("netpipe", "NetPIPE", _STARTS, _read, _SAMPLE, continues=_FILE)
