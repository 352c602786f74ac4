"""nccl-tests and rccl-tests: all_reduce_perf and its like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from elbowroom.logs.lines import Line, LogSection
from elbowroom.logs.reader import Importer
from elbowroom.logs.table import Cell, LogColumn, Table

_HEADING = re.compile(r"^#\s*size\s+count\s+type\b")
_STARTS = re.compile(rf"^#\s*n[tT]hreads?:? \d+ nGpus:? \d+|{_HEADING.pattern}")
_NAME = re.compile(r"(\w+)_perf\b")
_UNITS = {"size": "B", "count": "", "time": "us", "algbw": "GB/s", "busbw": "GB/s"}


def _read(section: LogSection) -> Iterator[Table]:
    named = section.above(_NAME) or _NAME.search(section.source)
    settings: dict[str, int | float | str] = {}
    for line in section.lines():
        if re.match(r"#\s+Rank\s+\d+ ", line.text):
            settings["ranks"] = int(settings.get("ranks", 0)) + 1
        if _HEADING.match(line.text):
            units, names = section.take(), line.text[1:].split()
            if units is None or not {"(us)", "(GB/s)"} <= set(units.cells):
                raise section.error(line, "the units are not us and GB/s", "(us) and (GB/s) stand below")
            columns = _columns(names, section.peek_row())
            table = section.table(
                named[1] if named else "not named", columns, settings=dict(settings), rising="size"
            )
            for place in ("out-of-place", "in-place"):
                section.check_constant(table, partial(_agreement, place), "algbw, size and time", expected=1)
            yield table


def _columns(names: list[str], row: Line | None) -> list[LogColumn]:
    """Of the heading; `redop` and `root` are left empty by collectives that have none."""
    spare = len(names) - (len(row.cells) if row else len(names))
    names = [name for name in names if name not in ("redop", "root")[:spare]]
    columns, met = [], set[str]()
    for name in names:
        place = "in-place " if name in met else "out-of-place " if name in ("time", "algbw", "busbw") else ""
        met.add(name)
        name, key = name.replace("#wrong", "wrong"), name in ("size", "count", "type", "redop", "root")
        text = name in ("type", "redop")
        columns.append(LogColumn(place + name, _UNITS.get(name, ""), key=key, text=text, same_digits=False))
    return columns


def _agreement(place: str, row: dict[str, Cell]) -> float | None:
    size, time, rate = row.get("size"), row.get(f"{place} time"), row.get(f"{place} algbw")
    if not (isinstance(size, int) and isinstance(time, (int, float)) and isinstance(rate, float)) or rate < 1:
        return None
    return 1000 * rate * time / size if size else None


_SAMPLE = """\
# nThread 1 nGpus 2 minBytes 8 maxBytes 33554432 step: 2(factor) warmup iters: 5 iters: 20
#    size    count   type  redop  root    time  algbw  busbw #wrong    time  algbw  busbw #wrong
#     (B)  (elements)                     (us) (GB/s) (GB/s)           (us) (GB/s) (GB/s)
 33554432  8388608  float    sum    -1  335.54 100.00 100.00      0  335.54 100.00 100.00    N/A
"""
IMPORTER = Importer("nccl_tests", "nccl-tests and rccl-tests", _STARTS, _read, _SAMPLE, continues=_HEADING)
