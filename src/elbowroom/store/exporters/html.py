"""The timeline as a page (trace.timeline)."""

from typing import IO

from elbowroom.files import write_atomically
from elbowroom.trace.exporter import Exporter, ExportRequest
from elbowroom.trace.timeline import timeline_page


def write(stream: IO[bytes], request: ExportRequest) -> None:
    """The page of what is asked for."""
    page = timeline_page(
        stream,
        request.directory,
        begin_ns=request.begin_ns,
        end_ns=request.end_ns,
        categories=request.categories,
    )
    write_atomically(request.path, page.encode())


EXPORTER = Exporter(name="html", endings=(".html",), write=write, parts=True)
