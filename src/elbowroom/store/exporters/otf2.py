"""The Open Trace Format 2, by lib/trace/outputs."""

from elbowroom.trace.exporter import Exporter

EXPORTER = Exporter(name="otf2", endings=(".otf2",))
