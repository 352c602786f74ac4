"""Perfetto's protocol buffers, by lib/trace/outputs."""

from elbowroom.trace.exporter import Exporter

EXPORTER = Exporter(name="pftrace", endings=(".pftrace", ".perfetto-trace"))
