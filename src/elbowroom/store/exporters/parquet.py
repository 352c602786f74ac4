"""A row for each event (store.trace_parquet)."""

from elbowroom.store.trace_parquet import write_parquet
from elbowroom.trace.exporter import Exporter

EXPORTER = Exporter(
    name="parquet",
    endings=(".parquet",),
    write=lambda stream, request: write_parquet(stream, request.path),
)
