"""mpi_stream of CEA: the TRIAD rate of each rank with its host."""

from __future__ import annotations

import re
from collections.abc import Iterator

from elbowroom.logs.lines import LogSection
from elbowroom.logs.reader import Importer
from elbowroom.logs.table import LogColumn, Table

_TITLE = re.compile(r"^MPI_STREAM .*version")
_HEADING = re.compile(r"^Triad Rate \((MB/s|GB/s)\):")
_ROW = re.compile(r"\S+\s+\d\S*$")
_SUMMARY = re.compile(r"^TRIAD_(?:MAX|MIN)\s*=\s*([\d.]+)\s+\S+ on (\S+)")
_THREADS = re.compile(r"Number of Threads requested = (\d+)")


def _read(section: LogSection) -> Iterator[Table]:
    section.take()
    settings: dict[str, int | float | str] = {}
    while (line := section.take()) is not None:
        if match := _THREADS.match(line.text):
            settings["threads"] = int(match[1])
        if heading := _HEADING.match(line.text):
            columns = [LogColumn("host", key=True, text=True), LogColumn("rate", heading[1])]
            table = section.table("Triad", columns, row=_ROW, settings=settings)
            rates = [float(row[1]) for row in table.rows if row[1] is not None]
            for name, limit in (("largest", max(rates)), ("smallest", min(rates))):
                summary = section.find(_SUMMARY)
                if summary is None:
                    raise section.error(
                        table.lines[-1], "no summary follows the rates", "the log was cut here"
                    )
                if float(summary[1]) != limit:
                    message = f"the {name} rate is {limit}, the summary says {summary[1]}"
                    raise section.error(
                        table.lines[0], message, "a number is damaged, or two outputs are mixed"
                    )
            yield table


_SAMPLE = """\
MPI_STREAM CEA MPI/OpenMP version $Revision: 0.2 $
Number of Threads requested = 4
Triad Rate (MB/s):
node1		12000.500000
node2		11000.250000


TRIAD_MAX          = 12000.500000		 MB/s on node1
TRIAD_MIN          = 11000.250000		 MB/s on node2
"""
IMPORTER = Importer("mpi_stream", "mpi_stream", _TITLE, _read, _SAMPLE)
