"""Reads an OTF2 archive with libotf2, in a process of its own: the library ends the process on some damage.

    python otf2_library.py LIBRARY ARCHIVE

writes to stdout a line of JSON (definitions, or an error), then records of trace.overlap.otf2.RECORDS for
each location, and one of kind DONE. Function names and constants are those of OTF2 2.0 to 3.1.
"""

from __future__ import annotations

import ctypes
import json
import sys
from array import array
from ctypes import CFUNCTYPE, byref, c_char_p, c_int, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any

ENTER, LEAVE, ISEND, IRECV, COMPLETE, DONE = range(6)
ACCELERATOR_GROUP = 2
"""OTF2_LOCATION_GROUP_TYPE_ACCELERATOR, of OTF2 3.0 and later: only there a group has a creator."""
FLUSH = 3 << 15
"""Events that are read before they are written."""

_EVENT = (c_int, c_uint64, c_uint64, c_uint64, c_void_p, c_void_p)
_REGION = CFUNCTYPE(*_EVENT, c_uint32)
_REQUEST = CFUNCTYPE(*_EVENT, c_uint64)
_MESSAGE = CFUNCTYPE(*_EVENT, c_uint32, c_uint32, c_uint32, c_uint64, c_uint64)
_STRING = CFUNCTYPE(c_int, c_void_p, c_uint32, c_char_p)
_REGIONS = CFUNCTYPE(
    c_int,
    c_void_p,
    c_uint32,
    c_uint32,
    c_uint32,
    c_uint32,
    c_uint8,
    c_uint8,
    c_uint32,
    c_uint32,
    c_uint32,
    c_uint32,
)
_LOCATION = CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint32, c_uint8, c_uint64, c_uint32)
_GROUP = CFUNCTYPE(c_int, c_void_p, c_uint32, c_uint32, c_uint8, c_uint32, c_uint32)
_CLOCK = CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64, c_uint64, c_uint64)


class Archive:
    """An open archive and what it defines."""

    def __init__(self, library: str, path: str) -> None:
        self.library = ctypes.CDLL(library)
        self.strings: dict[int, str] = {}
        self.regions: dict[int, tuple[int, int, int]] = {}
        self.locations: dict[int, tuple[int, int, int]] = {}
        self.counts: dict[int, int] = {}
        self.groups: dict[int, tuple[int, int]] = {}
        self.resolution = 1_000_000_000
        self._kept: list[Any] = []  # callbacks that the library holds
        self.reader = self.call("Reader_Open", path.encode(), pointer=True)
        if not self.reader:
            raise OSError("it cannot be opened")
        self.call("Reader_SetSerialCollectiveCallbacks", self.reader)

    def call(self, name: str, *arguments: Any, pointer: bool = False) -> Any:
        """Calls OTF2_NAME; a pointer or the error code, 0 for success."""
        function = getattr(self.library, f"OTF2_{name}")
        function.restype = c_void_p if pointer else c_int
        return function(*(c_void_p(one) if type(one) is int else one for one in arguments))

    def callbacks(self, of: str, functions: dict[str, Any]) -> Any:
        """A new table of callbacks."""
        table = self.call(f"{of}Callbacks_New", pointer=True)
        for name, function in functions.items():
            self._kept.append(function)
            self.call(f"{of}Callbacks_Set{name}Callback", table, function)
        return table

    def read_definitions(self) -> None:
        """All global definitions. OSError if they cannot be read."""

        def string(_: Any, number: int, text: bytes) -> int:
            self.strings[number] = text.decode("utf-8", "replace")
            return 0

        def region(
            _: Any, number: int, name: int, _c: int, _d: int, role: int, paradigm: int, *_more: int
        ) -> int:
            self.regions[number] = (name, role, paradigm)
            return 0

        def location(_: Any, number: int, name: int, kind: int, events: int, group: int) -> int:
            self.locations[number] = (name, kind, group)
            self.counts[number] = events
            return 0

        def group(_: Any, number: int, name: int, kind: int, _parent: int, creator: int) -> int:
            self.groups[number] = name, creator if kind == ACCELERATOR_GROUP else number
            return 0

        def clock(_: Any, resolution: int, *_more: int) -> int:
            self.resolution = resolution
            return 0

        definitions = self.call("Reader_GetGlobalDefReader", self.reader, pointer=True)
        table = self.callbacks(
            "GlobalDefReader",
            {"String": _STRING(string), "Region": _REGIONS(region), "Location": _LOCATION(location),
             "ClockProperties": _CLOCK(clock)},
        )  # fmt: skip
        # Before OTF2 3.0 a group has no creator, which is the last argument.
        self._kept.append(_GROUP(group))
        self.call("GlobalDefReaderCallbacks_SetLocationGroupCallback", table, self._kept[-1])
        self.call("Reader_RegisterGlobalDefCallbacks", self.reader, definitions, table, None)
        read = c_uint64()
        if self.call("Reader_ReadAllGlobalDefinitions", self.reader, definitions, byref(read)):
            raise OSError("its definitions are damaged")

    def open_locations(self) -> None:
        """Selects all locations, and reads the definitions of each: its numbers and its clock."""
        for number in self.locations:
            self.call("Reader_SelectLocation", self.reader, c_uint64(number))
        have_definitions = self.call("Reader_OpenDefFiles", self.reader) == 0
        if self.call("Reader_OpenEvtFiles", self.reader):
            raise OSError("its events cannot be opened")
        for number in self.locations if have_definitions else ():
            local = self.call("Reader_GetDefReader", self.reader, c_uint64(number), pointer=True)
            if local:
                read = c_uint64()
                self.call("Reader_ReadAllLocalDefinitions", self.reader, local, byref(read))
                self.call("Reader_CloseDefReader", self.reader, local)
        if have_definitions:
            self.call("Reader_CloseDefFiles", self.reader)

    def read_events(self, out: Any) -> bool:
        """Writes the events of all locations; False where some cannot be read."""
        records = array("q")
        table = self._event_callbacks(records)
        whole = True
        for number in self.locations:
            events = self.call("Reader_GetEvtReader", self.reader, c_uint64(number), pointer=True)
            if not events:
                continue
            self.call("Reader_RegisterEvtCallbacks", self.reader, events, table, c_void_p(number))
            read, left = c_uint64(FLUSH), self.counts[number]
            # A call at the end of a location fails.
            while read.value == FLUSH and left > 0:
                if self.call("Reader_ReadLocalEvents", self.reader, events, c_uint64(FLUSH), byref(read)):
                    whole = False
                    break
                left -= read.value
                out.write(records.tobytes())
                del records[:]
            out.write(records.tobytes())
            del records[:]
            self.call("Reader_CloseEvtReader", self.reader, events)
        return whole

    def _event_callbacks(self, records: array[int]) -> Any:
        extend = records.extend

        def enter(location: int, time: int, _p: int, _u: Any, _a: Any, region: int) -> int:
            extend((location, ENTER, time, region))
            return 0

        def leave(location: int, time: int, _p: int, _u: Any, _a: Any, region: int) -> int:
            extend((location, LEAVE, time, region))
            return 0

        def isend(location: int, time: int, _p: int, _u: Any, _a: Any, *message: int) -> int:
            extend((location, ISEND, time, message[-1]))
            return 0

        def request(location: int, time: int, _p: int, _u: Any, _a: Any, number: int) -> int:
            extend((location, IRECV, time, number))
            return 0

        def sent(location: int, time: int, _p: int, _u: Any, _a: Any, number: int) -> int:
            extend((location, COMPLETE, time, number))
            return 0

        def received(location: int, time: int, _p: int, _u: Any, _a: Any, *message: int) -> int:
            extend((location, COMPLETE, time, message[-1]))
            return 0

        return self.callbacks(
            "EvtReader",
            {"Enter": _REGION(enter), "Leave": _REGION(leave), "MpiIsend": _MESSAGE(isend),
             "MpiIrecvRequest": _REQUEST(request), "MpiIsendComplete": _REQUEST(sent),
             "MpiIrecv": _MESSAGE(received)},
        )  # fmt: skip

    def document(self) -> dict[str, Any]:
        """The definitions, with texts in place of their numbers."""
        text = self.strings.get
        return {
            "resolution": self.resolution,
            "regions": [
                [n, text(name, ""), role, paradigm] for n, (name, role, paradigm) in self.regions.items()
            ],
            "locations": [
                [n, text(name, ""), kind, self._process(group)]
                for n, (name, kind, group) in self.locations.items()
            ],
        }

    def _process(self, group: int) -> str:
        """The name of a location group; of a device's group that of the process which created it."""
        name, creator = self.groups.get(group, (-1, group))
        if creator != group and creator in self.groups:
            group, name = creator, self.groups[creator][0]
        return self.strings.get(name, f"process {group}")


def main(library: str, path: str) -> int:
    """Writes what the archive holds."""
    out = sys.stdout.buffer
    try:
        archive = Archive(library, path)
        archive.read_definitions()
        archive.open_locations()
    except (OSError, AttributeError) as error:
        out.write(json.dumps({"error": str(error)}).encode() + b"\n")
        return 0
    out.write(json.dumps(archive.document()).encode() + b"\n")
    whole = archive.read_events(out)
    out.write(array("q", (0, DONE, 0, int(whole))).tobytes())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
