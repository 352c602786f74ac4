"""Paje, by lib/trace/outputs."""

from elbowroom.trace.exporter import Exporter

EXPORTER = Exporter(name="paje", endings=(".paje", ".trace"))
