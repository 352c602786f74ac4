"""This machine's topology from libhwloc itself, where the probe is not built yet (a dry run)."""

from __future__ import annotations

import ctypes
import os

from elbowroom.errors import MachineError

INCLUDE_DISALLOWED = 1 << 0  # HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED
KEEP_IMPORTANT = 3  # HWLOC_TYPE_FILTER_KEEP_IMPORTANT
BLACKLIST = 1 << 0  # HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST
COMPONENTS = (b"opencl", b"cuda", b"nvml", b"rsmi", b"levelzero", b"gl")
"""Not asked, as by the probe (core/machine/machine.cpp): their drivers take seconds."""


def topology_xml(library: str = "libhwloc.so.15") -> str:
    """hwloc's description of this machine as XML, with the settings of `probe topology`. MachineError where
    the library (version 2) is not installed or cannot read the machine.
    """
    try:
        hwloc = ctypes.CDLL(library, use_errno=True)
    except OSError as error:
        raise MachineError(
            f"cannot be read before the probe is built: {error}",
            field="topology",
            hint="on Debian or Ubuntu `apt-get install libhwloc15`, or start without --dry-run once",
        ) from error
    topology, text, length = ctypes.c_void_p(), ctypes.c_char_p(), ctypes.c_int()
    _check(hwloc.hwloc_topology_init(ctypes.byref(topology)))
    try:
        hwloc.hwloc_topology_set_flags(topology, ctypes.c_ulong(INCLUDE_DISALLOWED))
        hwloc.hwloc_topology_set_io_types_filter(topology, KEEP_IMPORTANT)
        for component in COMPONENTS:
            hwloc.hwloc_topology_set_components(topology, ctypes.c_ulong(BLACKLIST), component)
        _check(hwloc.hwloc_topology_load(topology))
        _check(
            hwloc.hwloc_topology_export_xmlbuffer(
                topology, ctypes.byref(text), ctypes.byref(length), ctypes.c_ulong(0)
            )
        )
        try:
            return (text.value or b"").decode()
        finally:
            hwloc.hwloc_free_xmlbuffer(topology, text)
    finally:
        hwloc.hwloc_topology_destroy(topology)


def _check(code: int) -> None:
    if code != 0:
        raise MachineError(
            f"hwloc cannot read this machine's topology ({os.strerror(ctypes.get_errno())})", field="topology"
        )
