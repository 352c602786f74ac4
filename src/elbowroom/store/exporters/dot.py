"""The graph of tasks, for Graphviz, by lib/trace/outputs."""

from elbowroom.trace.exporter import Exporter

EXPORTER = Exporter(name="dot", endings=(".dot", ".gv"))
