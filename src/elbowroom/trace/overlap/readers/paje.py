"""Traces in Pajé's format: StarPU, SimGrid, Akypuera, Score-P's converters."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from elbowroom.errors import UsageError
from elbowroom.trace.overlap.event_rows import EventRows, RowLane, StoredRows
from elbowroom.trace.overlap.events import EventClass
from elbowroom.trace.overlap.json_events import lines_of
from elbowroom.trace.overlap.readers.states import link_class, messages_of, rank_of, state_class

FORMAT = "paje"
WRITTEN_BY = "Pajé (.trace, .paje)"
_DEFINITION = re.compile(r"%\s*EventDef\s+(\w+)\s+(\S+)")
_FIELD = re.compile(r"%\s+(\w+)\s+\w+")
_MS, _S = 10**6, 10**9
_IN_MS = re.compile(r"Worker State|Memory Node|User Thread|StarPU", re.IGNORECASE)
"""Names of types in traces of StarPU, whose times are in ms; those of other programs are in seconds."""
_MOST_DOUBTS = 3


def is_of(start: bytes) -> bool:
    """Whether the file is one, by its first bytes."""
    return re.search(rb"^\s*%\s*EventDef\s+(Paje)?\w+\s+\d+", start, re.MULTILINE) is not None


def read(path: Path, store: IO[bytes]) -> StoredRows:
    """The states and links of a file, in `store`. UsageError where it defines no events."""
    trace = _PajeTrace(EventRows(store))
    for number, line in enumerate(lines_of(path, "its program"), 1):
        trace.take(line.decode("utf-8", "replace").strip(), number)
    if not trace.actions:
        raise UsageError(
            "defines no events", field="trace", value=str(path), hint="give the file that the program wrote"
        )
    trace.finish()
    return trace.rows.stored(
        FORMAT,
        kind_of=_class_of,
        lane_of=trace.lane_of,
        scale=trace.unit / _S,
        notes=(f"times are taken as {'ms' if trace.unit == _MS else 's'}",),
        doubts=tuple(f"{path.name}: {text}" for text in trace.doubts),
    )


@dataclass
class _Container:
    name: str
    parent: str
    lane: RowLane | None = None
    states: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    """By type, what is open: its begin and value, the outermost first."""


class _PajeTrace:
    """What is known while the lines come. States and links go to `rows`: of class (type, value) or (type,),
    on lane (container, whether it is a link); their times as if the file's were in seconds.
    """

    def __init__(self, rows: EventRows) -> None:
        self.rows = rows
        self.layout: dict[str, tuple[str, list[str]]] = {}
        self.defined = ""
        self.names: dict[str, str] = {}
        self.containers: dict[str, _Container] = {}
        self.open_links: dict[tuple[str, str], tuple[float, str]] = {}
        self.last = 0.0
        self.unit = _S
        self.actions = 0
        self.doubts: list[str] = []

    def take(self, line: str, number: int) -> None:
        """A line: a part of a definition, a comment, or an event."""
        if line.startswith("%"):
            self._define(line)
            return
        if not line or line.startswith("#"):
            return
        try:
            words = shlex.split(line) if '"' in line or "'" in line else line.split()
            name, fields = self.layout[words[0]]
            values = dict(zip(fields, words[1:], strict=False))
            if "Time" in values:
                self.last = max(self.last, _time(values))
            if (action := _ACTIONS.get(name)) is not None:
                self.actions += 1
                action(self, values)
        except (KeyError, ValueError, IndexError):
            if len(self.doubts) < _MOST_DOUBTS:
                self.doubts.append(f"line {number} cannot be read")

    def _define(self, line: str) -> None:
        if match := _DEFINITION.match(line):
            self.defined = match[2]
            self.layout[match[2]] = match[1].removeprefix("Paje"), []
        elif (match := _FIELD.match(line)) and self.defined in self.layout:
            self.layout[self.defined][1].append(match[1])

    def name_type(self, values: dict[str, str]) -> None:
        """A type or a value with its alias."""
        name = values["Name"]
        self.names[values.get("Alias", name)] = name
        if _IN_MS.search(name):
            self.unit = _MS

    def create(self, values: dict[str, str]) -> None:
        """A container: a process, a thread, a memory."""
        name = values["Name"]
        container = _Container(name, values.get("Container", "0"))
        self.containers[values.get("Alias", name)] = container
        self.containers.setdefault(name, container)

    def push(self, values: dict[str, str]) -> None:
        """A state begins inside another one."""
        self._open(values).append((_time(values), self._name(values["Value"])))

    def set(self, values: dict[str, str]) -> None:
        """A state begins in place of those that were open."""
        self.reset(values)
        self.push(values)

    def pop(self, values: dict[str, str]) -> None:
        """The innermost state ends."""
        if opened := self._open(values):
            self._end(values, *opened.pop())

    def reset(self, values: dict[str, str]) -> None:
        """All open states end."""
        opened = self._open(values)
        while opened:
            self._end(values, *opened.pop())

    def start_link(self, values: dict[str, str]) -> None:
        """A link leaves a container."""
        source = values.get("StartContainer") or values["SourceContainer"]
        self.open_links[values["Type"], values["Key"]] = _time(values), source

    def end_link(self, values: dict[str, str]) -> None:
        """A link reaches a container."""
        start, source = self.open_links.pop((values["Type"], values["Key"]))
        if source in self.containers:
            self.rows.add((self._name(values["Type"]),), (source, True), _ns(start), _ns(_time(values)))

    def destroy(self, values: dict[str, str]) -> None:
        """A container ends, and what is open there."""
        self._close(values["Name"] if "Name" in values else values["Container"], _time(values))

    def finish(self) -> None:
        """What is still open ends with the trace."""
        for alias in list(self.containers):
            self._close(alias, self.last)

    def _close(self, alias: str, time: float) -> None:
        for type_name, opened in self.containers[alias].states.items():
            while opened:
                start, value = opened.pop()
                self._add(alias, (self._name(type_name), value), start, time)

    def _open(self, values: dict[str, str]) -> list[tuple[float, str]]:
        return self.containers[values["Container"]].states.setdefault(values["Type"], [])

    def _end(self, values: dict[str, str], start: float, value: str) -> None:
        self._add(values["Container"], (self._name(values["Type"]), value), start, _time(values))

    def _add(self, alias: str, kind: tuple[str, str], start: float, end: float) -> None:
        self.rows.add(kind, (alias, False), _ns(start), _ns(end))

    def _name(self, alias: str) -> str:
        return self.names.get(alias, alias)

    def lane_of(self, key: tuple[str, bool]) -> RowLane:
        """The lane of a container, or that of the messages of its rank."""
        alias, of_links = key
        names = self.path(alias)
        lane = RowLane(rank_of(names) or "the program", names[-1])
        return messages_of(lane.rank) if of_links else lane

    def path(self, alias: str) -> list[str]:
        """The names of the containers from the outermost to this one."""
        names: list[str] = []
        while (one := self.containers.get(alias)) is not None and len(names) < 64:
            names.insert(0, one.name)
            alias = one.parent
        return names


_ACTIONS: dict[str, Callable[[_PajeTrace, dict[str, str]], None]] = {
    **dict.fromkeys(
        (
            "DefineContainerType",
            "DefineStateType",
            "DefineLinkType",
            "DefineEntityValue",
            "DefineEventType",
            "DefineVariableType",
        ),
        _PajeTrace.name_type,
    ),
    "CreateContainer": _PajeTrace.create,
    "DestroyContainer": _PajeTrace.destroy,
    "PushState": _PajeTrace.push,
    "SetState": _PajeTrace.set,
    "PopState": _PajeTrace.pop,
    "ResetState": _PajeTrace.reset,
    "StartLink": _PajeTrace.start_link,
    "EndLink": _PajeTrace.end_link,
}


def _class_of(key: tuple[Any, ...]) -> EventClass | None:
    """The class of a state (type, value), or of a link (type,), which may be none."""
    if len(key) == 1:
        return link_class(key[0])
    type_name, value = key
    return state_class(value, type_name)


def _time(values: dict[str, str]) -> float:
    """ValueError for what is no time."""
    time = float(values["Time"])
    if not math.isfinite(time):
        raise ValueError(values["Time"])
    return time


def _ns(time: float) -> int:
    return round(time * _S)
