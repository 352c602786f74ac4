"""Chrome's trace events, by lib/trace/outputs."""

from elbowroom.trace.exporter import Exporter

EXPORTER = Exporter(name="json", endings=(".json",))
