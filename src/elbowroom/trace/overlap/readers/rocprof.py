"""rocprofv3's JSON (`--output-format json`): kernels, copies and calls of one or several processes."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import IO, Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.trace.overlap.categories import LAUNCHED, STEP
from elbowroom.trace.overlap.event_rows import EventRows, RowLane, StoredRows
from elbowroom.trace.overlap.events import NONE, EventClass, launch_detail
from elbowroom.trace.overlap.json_stream import JsonStream, json_stream
from elbowroom.trace.overlap.tables import STEPS

FORMAT = "rocprof"
WRITTEN_BY = "rocprofv3's JSON"
MARK = b'"rocprofiler-sdk-tool"'
_CPU = 1
_Key = tuple[Any, ...]
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
    group_segment_size: int = 0


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


_FIELDS: dict[str, Any] = {
    "metadata": _Metadata, "agents": list[_Agent], "kernel_symbols": list[_KernelSymbol], "strings": _Strings
}  # fmt: skip
"""Of a process, beside its records: whole, since they are small."""
_RECORDS = msgspec.json.Decoder(list[_DeviceRecord])


def is_of(start: bytes) -> bool:
    """Whether the file is one, by its first bytes."""
    return MARK in start


def read(path: Path, store: IO[bytes]) -> StoredRows:
    """The events of a file, in `store`. UsageError where it is damaged."""
    rows, processes = EventRows(store), list[_RocprofProcess]()
    try:
        with json_stream(path, "rocprofv3") as stream:
            for key in stream.members():
                if key != "rocprofiler-sdk-tool":
                    stream.skip()
                    continue
                for _ in stream.items():
                    processes.append(_RocprofProcess(len(processes)))
                    processes[-1].read(stream, rows)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"is damaged ({error})", field="trace", value=str(path), hint="write it again with rocprofv3"
        ) from error
    units = max((one.cu_count for process in processes for one in process.gpus), default=0)
    alone = path.name if len(processes) == 1 else ""
    return rows.stored(
        FORMAT,
        kind_of=lambda key: processes[key[0]].class_of(*key[1:]),
        lane_of=lambda key: processes[key[0]].lane_of(alone, *key[1:]),
        multiprocessors=units or None,
    )


class _RocprofProcess:
    """One process; its rank is the process where it uses one device, else each device. Its classes and lanes
    begin with its `number`: names may come behind the records.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.fields: dict[str, Any] = {}
        self.used: set[int] = set()  # devices, by their handles
        self._messages: dict[Any, str] | None = None

    def read(self, stream: JsonStream, rows: EventRows) -> None:
        """All that it has. msgspec.DecodeError where it has no records."""
        records = False
        for field in stream.members():
            if field in _FIELDS:
                self.fields[field] = stream.value(_FIELDS[field])
            elif field == "buffer_records":
                records = True
                for table in stream.members():
                    self._read_table(stream, table, rows)
            else:
                stream.skip()
        if not records:
            raise msgspec.DecodeError("a process has no buffer_records")

    def _read_table(self, stream: JsonStream, table: str, rows: EventRows) -> None:
        keys = {"kernel_dispatch": self._kernel, "memory_copy": self._copy}.get(table)
        if keys is None and table not in _CALLS:
            stream.skip()
            return
        for batch in stream.batches(_RECORDS):
            for one in batch:
                place = self._call(one, table) if keys is None else keys(one)
                if place is not None:
                    correlation = one.correlation_id.internal or NONE
                    rows.add(*place, one.start_timestamp, one.end_timestamp, correlation)

    def _kernel(self, one: _DeviceRecord) -> tuple[_Key, _Key] | None:
        if (launch := one.dispatch_info) is None:
            return None
        agent = launch.agent_id.handle
        self.used.add(agent)
        grid, group = launch.grid_size, launch.workgroup_size
        sizes = (grid.x, grid.y, grid.z), (group.x, group.y, group.z), launch.group_segment_size
        row = f"{launch.queue_id.handle}.{one.stream_id.handle}"
        return (self.number, "", launch.kernel_id, sizes), (self.number, row, agent, agent)

    def _copy(self, one: _DeviceRecord) -> tuple[_Key, _Key]:
        lane = f"copies {one.stream_id.handle}", one.dst_agent_id.handle, one.src_agent_id.handle
        return (self.number, "memory_copy", one.kind, one.operation), (self.number, *lane)

    def _call(self, one: _DeviceRecord, table: str) -> tuple[_Key, _Key]:
        message = one.correlation_id.internal if table == "marker_api" else None
        # Its text where that is known already: there may be as many numbers as records.
        key = self.number, table, one.kind, one.operation, self.messages.get(message, message)
        return key, (self.number, str(one.thread_id))

    @cached_property
    def gpus(self) -> list[_Agent]:
        """Its devices."""
        return [one for one in self.fields.get("agents", ()) if one.type != _CPU]

    @cached_property
    def devices(self) -> dict[int, int]:
        """Their numbers by handle."""
        return {
            one.id.handle: one.logical_node_type_id if one.gpu_index is None else one.gpu_index
            for one in self.gpus
        }

    @cached_property
    def names(self) -> dict[int, str]:
        """Of kernels."""
        symbols = self.fields.get("kernel_symbols", ())
        return {one.kernel_id: one.formatted_kernel_name or one.kernel_name for one in symbols}

    @property
    def messages(self) -> dict[Any, str]:
        """Texts of markers by their number, as far as they are known."""
        if self._messages is None and "strings" in self.fields:
            self._messages = {one.key: one.value for one in self.fields["strings"].marker_api}
        return self._messages or {}

    def class_of(self, table: str, kind: int | str, operation: Any, message: Any = None) -> EventClass:
        """Of the kernel `kind` with the sizes `operation`, or of an operation in a table of records."""
        if not table:
            items, group, shared = operation
            grid = [-(-one // max(of_group, 1)) for one, of_group in zip(items, group, strict=True)]
            name = self.names.get(int(kind)) or f"kernel {kind}"
            return EventClass(name=name, category="kernel", detail=launch_detail(grid, group, shared))
        name = self._operation(kind, operation)
        if table == "memory_copy":
            return EventClass(name=f"memcpy {name.removeprefix('MEMORY_COPY_')}".strip(), category="memcpy")
        name = self.messages.get(message, message if isinstance(message, str) else "") or name
        return EventClass(name=name, category=STEP if STEPS.match(name) else _CALLS[table])

    def lane_of(self, alone: str, row: str, target: int | None = None, source: int = 0) -> RowLane:
        """A row of a device, which is the target of its copies or else their source; without one a thread.
        `alone`: what the process is called where it is the only one.
        """
        one_device = len(self.used) <= 1
        title = alone or f"process {self.fields.get('metadata', _Metadata()).pid}"
        if target is None:
            return RowLane(title if one_device else f"host of {title}", row)
        agent = target if target in self.devices else source
        return RowLane(title if one_device else f"device {self.devices.get(agent, agent)}", row, True)

    def _operation(self, kind: int | str, operation: int | str) -> str:
        """The name of an operation: stated, or a number in the tables of names."""
        if isinstance(operation, str):
            return operation
        kinds = self.fields.get("strings", _Strings()).buffer_records
        of_kind = kinds[kind] if isinstance(kind, int) and 0 <= kind < len(kinds) else None
        if of_kind is None or not 0 <= operation < len(of_kind.operations):
            return f"operation {operation}"
        return str(of_kind.operations[operation])
