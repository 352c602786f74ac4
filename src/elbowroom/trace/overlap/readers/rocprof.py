"""rocprofv3's JSON (`--output-format json`): kernels, copies and calls of one or several processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.trace.overlap.categories import LAUNCHED, STEP
from elbowroom.trace.overlap.event_rows import EventRows, RowLane
from elbowroom.trace.overlap.events import EventClass, Events
from elbowroom.trace.overlap.json_events import decompressed
from elbowroom.trace.overlap.tables import STEPS

FORMAT = "rocprof"
WRITTEN_BY = "rocprofv3's JSON"
MARK = b'"rocprofiler-sdk-tool"'
_CPU = 1
_CALLS = {"hip_api": "runtime", "hsa_api": "runtime", "rccl_api": LAUNCHED, "marker_api": "user_annotation"}
"""Tables of calls of the host, and the category of their events."""


class _Handle(msgspec.Struct, frozen=True):
    handle: int = 0


class _Size(msgspec.Struct, frozen=True):
    x: int = 1
    y: int = 1
    z: int = 1


class _Correlation(msgspec.Struct, frozen=True):
    internal: int = 0


class _Dispatch(msgspec.Struct, frozen=True):
    agent_id: _Handle
    kernel_id: int
    queue_id: _Handle = _Handle()
    grid_size: _Size = _Size()
    workgroup_size: _Size = _Size()


class _DeviceRecord(msgspec.Struct, frozen=True, kw_only=True):
    start_timestamp: int
    end_timestamp: int
    kind: int | str = 0
    operation: int | str = 0
    thread_id: int = 0
    correlation_id: _Correlation = _Correlation()
    stream_id: _Handle = _Handle()
    dispatch_info: _Dispatch | None = None
    src_agent_id: _Handle = _Handle()
    dst_agent_id: _Handle = _Handle()


class _Agent(msgspec.Struct, frozen=True):
    id: _Handle
    type: int = 0
    gpu_index: int | None = None
    cu_count: int = 0
    logical_node_type_id: int = 0


class _KernelSymbol(msgspec.Struct, frozen=True):
    kernel_id: int
    formatted_kernel_name: str = ""
    kernel_name: str = ""


class _RecordKind(msgspec.Struct, frozen=True):
    kind: str
    operations: list[str] = []


class _Message(msgspec.Struct, frozen=True):
    key: int
    value: str


class _Strings(msgspec.Struct, frozen=True):
    buffer_records: list[_RecordKind] = []
    marker_api: list[_Message] = []


class _Metadata(msgspec.Struct, frozen=True):
    pid: int = 0


class _RocprofProcess(msgspec.Struct, frozen=True):
    buffer_records: dict[str, msgspec.Raw]
    metadata: _Metadata = _Metadata()
    agents: list[_Agent] = []
    kernel_symbols: list[_KernelSymbol] = []
    strings: _Strings = _Strings()


class _File(msgspec.Struct, frozen=True):
    processes: list[_RocprofProcess] = msgspec.field(name="rocprofiler-sdk-tool")


def is_of(start: bytes) -> bool:
    """Whether the file is one, by its first bytes."""
    return MARK in start


def read(path: Path) -> Events:
    """The events of a file. UsageError where it is damaged."""
    rows, units = EventRows(), 0
    try:
        document = msgspec.json.decode(decompressed(path, "rocprofv3"), type=_File)
        alone = len(document.processes) == 1
        for process in document.processes:
            units = max([units, *(one.cu_count for one in process.agents if one.type != _CPU)])
            _ProcessRows(process, path.name if alone else f"process {process.metadata.pid}").add_to(rows)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"is damaged ({error})", field="trace", value=str(path), hint="write it again with rocprofv3"
        ) from error
    return rows.events(FORMAT, multiprocessors=units or None)


class _ProcessRows:
    """The events of one process; its rank is the process where it uses one device, else each device."""

    def __init__(self, process: _RocprofProcess, title: str) -> None:
        self.process, self.title = process, title
        self.names = {
            one.kernel_id: one.formatted_kernel_name or one.kernel_name for one in process.kernel_symbols
        }
        self.devices = {
            one.id.handle: one.logical_node_type_id if one.gpu_index is None else one.gpu_index
            for one in process.agents
            if one.type != _CPU
        }
        self.messages = {one.key: one.value for one in process.strings.marker_api}
        self.kernels = self._records("kernel_dispatch")
        self.copies = self._records("memory_copy")
        used = {one.dispatch_info.agent_id.handle for one in self.kernels if one.dispatch_info}
        self.one_device = len(used) <= 1

    def _records(self, table: str) -> list[_DeviceRecord]:
        raw = self.process.buffer_records.get(table)
        return [] if raw is None else msgspec.json.decode(raw, type=list[_DeviceRecord])

    def add_to(self, rows: EventRows) -> None:
        """Adds all its events."""
        for one in self.kernels:
            if one.dispatch_info is not None:
                self._add(rows, one, *self._kernel(one, one.dispatch_info))
        for one in self.copies:
            agent = one.dst_agent_id if one.dst_agent_id.handle in self.devices else one.src_agent_id
            name = f"memcpy {self._operation(one).removeprefix('MEMORY_COPY_')}".strip()
            lane = RowLane(self._rank(agent.handle), f"copies {one.stream_id.handle}", True)
            self._add(rows, one, EventClass(name=name, category="memcpy"), lane)
        for table, category in _CALLS.items():
            for one in self._records(table):
                message = self.messages.get(one.correlation_id.internal, "") if table == "marker_api" else ""
                name = message or self._operation(one)
                category = STEP if STEPS.match(name) else category
                lane = RowLane(self._host(), str(one.thread_id))
                self._add(rows, one, EventClass(name=name, category=category), lane)

    def _kernel(self, one: _DeviceRecord, dispatch: _Dispatch) -> tuple[EventClass, RowLane]:
        sizes = zip(_parts(dispatch.grid_size), _parts(dispatch.workgroup_size), strict=True)
        grid = "x".join(str(-(-items // max(group, 1))) for items, group in sizes)
        name = self.names.get(dispatch.kernel_id) or f"kernel {dispatch.kernel_id}"
        row = f"{dispatch.queue_id.handle}.{one.stream_id.handle}"
        lane = RowLane(self._rank(dispatch.agent_id.handle), row, True)
        return EventClass(name=name, category="kernel", detail=f"grid {grid}"), lane

    def _add(self, rows: EventRows, one: _DeviceRecord, kind: EventClass, lane: RowLane) -> None:
        rows.add(kind, lane, one.start_timestamp, one.end_timestamp, one.correlation_id.internal or -1)

    def _rank(self, agent: int) -> str:
        if self.one_device:
            return self.title
        return f"device {self.devices.get(agent, agent)}"

    def _host(self) -> str:
        return self.title if self.one_device else f"host of {self.title}"

    def _operation(self, one: _DeviceRecord) -> str:
        """The name of a record's operation: stated, or a number in the tables of names."""
        if isinstance(one.operation, str):
            return one.operation
        kinds = self.process.strings.buffer_records
        kind: Any = kinds[one.kind] if isinstance(one.kind, int) and 0 <= one.kind < len(kinds) else None
        if kind is None or not 0 <= one.operation < len(kind.operations):
            return f"operation {one.operation}"
        return str(kind.operations[one.operation])


def _parts(size: _Size) -> Iterator[int]:
    yield from (size.x, size.y, size.z)
