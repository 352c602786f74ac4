"""OSU micro-benchmarks, versions 2 to 7, and their variants for accelerators, one-sided calls and Python."""

from __future__ import annotations

import re
from collections.abc import Iterator

from elbowroom.logs.lines import LogSection
from elbowroom.logs.reader import Importer
from elbowroom.logs.table import Cell, LogColumn, Table

_TITLE = re.compile(r"^#\s*((?:OSU|OMB)\S*) (.+?) Test\s*(?:v|\(Version )?([\d.]*)")
_HEADING = re.compile(r"^#\s*(?:Size|Avg|Overall)\b.*(?:\)|/s)")
_SETTING = re.compile(r"\[ ([a-z ]+): (\d+) \]|^# ([A-Z][A-Za-z ]+): (\S.*?)\.?$")
_UNITS = {"us": "us", "ms": "ms", "ns": "ns", "MB/s": "MB/s", "GB/s": "GB/s", "%": "%", "": ""}
_RATES = {"MB/s": ("bandwidth", "MB/s"), "GB/s": ("bandwidth", "GB/s"), "Messages/s": ("messages", "1/s")}


def _read(section: LogSection) -> Iterator[Table]:
    title = section.find(_TITLE)
    if title is None:
        return
    settings: dict[str, int | float | str] = {}
    for line in section.lines():
        if _HEADING.match(line.text):
            columns = [
                _column(section, line.number, text) for text in re.split(r"\s{2,}|\t+", line.text[1:].strip())
            ]
            known: dict[str, int | float | str] = {"version": title[3], **settings}
            table = section.table(title[2], columns, settings=known, rising="size" if columns[0].key else "")
            section.check_constant(table, _agreement, "MB/s, messages/s and size", expected=1)
            yield table
        for match in _SETTING.finditer(line.text):
            settings[(match[1] or match[3]).lower()] = int(match[2]) if match[2] else match[4]


def _column(section: LogSection, line: int, text: str) -> LogColumn:
    if text in _RATES:
        return LogColumn(*_RATES[text])
    name, _, unit = text.rstrip(")").rpartition("(") if text.endswith(")") else (text, "", "")
    if unit not in _UNITS:
        raise section.error(line, f"unknown unit {unit}", f"known are {', '.join(filter(None, _UNITS))}")
    name = name.strip().lower()
    return LogColumn(name, "B" if name == "size" else unit, key=name == "size", text=name == "validation")


def _agreement(row: dict[str, Cell]) -> float | None:
    size, bandwidth, messages = (row.get(name) for name in ("size", "bandwidth", "messages"))
    if not (isinstance(size, int) and isinstance(bandwidth, float) and isinstance(messages, float)):
        return None
    return 1e6 * bandwidth / (size * messages) if bandwidth >= 1 and size and messages else None


_SAMPLE = """\
# OSU MPI Multiple Bandwidth / Message Rate Test v7.4
# [ pairs: 2 ] [ window size: 64 ]
# Size                  MB/s        Messages/s
1                      10.00       10000000.00
4096                 8192.00        2000000.00
"""
IMPORTER = Importer("osu", "OSU micro-benchmarks", _TITLE, _read, _SAMPLE)
