"""Tables of all pairs of ranks: src,dst,latency,bandwidth, as ranks print them, in any order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from elbowroom.logs.lines import LogSection
from elbowroom.logs.reader import Importer
from elbowroom.logs.table import LogColumn, Table

_STARTS = re.compile(r"^\s*(?:src,\s*dst,|\d+,\d+,\d+\.\d+,\d+\.\d+\s*$)", re.I)
_HEADING = re.compile(
    r"^\s*src,\s*dst,\s*lat\w*\s*\((us|ns)\),\s*(?:bandwidth|bw)\w*\s*\(+(M|G)(?:bytes|B)/s(?:ec)?\)", re.I
)


def _read(section: LogSection) -> Iterator[Table]:
    heading = section.search(_HEADING)
    if heading is None:
        start = section.peek()
        assert start is not None
        hint = "the line src,dst,lat(us),bandwidth(Mbytes/sec) names columns and units"
        raise section.error(start, "no heading names the columns", hint)
    columns = [
        LogColumn("src", key=True),
        LogColumn("dst", key=True),
        LogColumn("latency", heading[1]),
        LogColumn("bandwidth", f"{heading[2]}B/s"),
    ]
    table = section.table("all pairs", columns, separator=",", skip=_HEADING)
    line_of: dict[tuple[object, ...], int] = {}
    for (key, _), line in zip(table.keyed(), table.lines, strict=True):
        if key[0] == key[1]:
            raise section.error(line, f"rank {key[0]} is paired with itself", "the line is damaged")
        if key in line_of:
            raise section.error(
                line, f"the pair {key[0]},{key[1]} is on line {line_of[key]} already", "two outputs are mixed"
            )
        line_of[key] = line
    yield table


_SAMPLE = """\
src,dst,lat(us),bandwidth((Mbytes/sec)
0,1,1.05,12000.500000
1,0,1.06,12001.250000
"""
IMPORTER = Importer("allpairs", "tables of all pairs", _STARTS, _read, _SAMPLE, continues=_STARTS)
