"""Runs libhwloc on XML from stdin, else on this machine, and writes XML of version 2 to stdout.

A process of its own: a library that parses what others wrote may abort, loop or fill memory. It imports
nothing of elbowroom, so that it starts fast.
"""

import ctypes
import ctypes.util
import os
import resource
import sys

NO_LIBRARY, REFUSED = 3, 4
"""Exit codes: there is no libhwloc, or it does not read this."""

SECONDS, BYTES = 10, 4 << 30

KEEP_ALL, KEEP_IMPORTANT = 0, 3
INCLUDE_DISALLOWED = 1
BLACKLIST = 1
COMPONENTS = (b"opencl", b"cuda", b"nvml", b"rsmi", b"levelzero", b"gl")
"""Not asked about this machine, as by the probe (core/machine/machine.cpp): their drivers take seconds."""

EXPORT_V2 = 2
"""hwloc 3 writes its own version unless it is told; hwloc 2 has no such flag."""


def library() -> ctypes.CDLL:
    """The site's libhwloc: that of a loaded module, else Debian's."""
    for name in ("libhwloc.so", "libhwloc.so.15"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    path = ctypes.util.find_library("hwloc")
    if path is None:
        sys.exit(NO_LIBRARY)
    return ctypes.CDLL(path)


def convert(hwloc: ctypes.CDLL, text: bytes) -> bytes:
    """What hwloc makes of a topology, of this machine where `text` is empty, disallowed parts included; exits
    where it refuses it. This machine is read with the settings of `probe topology`.
    """
    topology = ctypes.c_void_p()
    hwloc.hwloc_topology_init(ctypes.byref(topology))
    hwloc.hwloc_topology_set_flags(topology, ctypes.c_ulong(INCLUDE_DISALLOWED))
    if text:
        hwloc.hwloc_topology_set_all_types_filter(topology, KEEP_ALL)
    hwloc.hwloc_topology_set_io_types_filter(topology, KEEP_IMPORTANT)
    for component in () if text else COMPONENTS:
        hwloc.hwloc_topology_set_components(topology, ctypes.c_ulong(BLACKLIST), component)
    # The length counts the zero byte at the end.
    if text and hwloc.hwloc_topology_set_xmlbuffer(topology, text, len(text) + 1):
        sys.exit(REFUSED)
    if hwloc.hwloc_topology_load(topology):
        sys.exit(REFUSED)
    written, length = ctypes.c_void_p(), ctypes.c_int()
    flags = EXPORT_V2 if hwloc.hwloc_get_api_version() >> 16 > 2 else 0
    if hwloc.hwloc_topology_export_xmlbuffer(
        topology, ctypes.byref(written), ctypes.byref(length), ctypes.c_ulong(flags)
    ):
        sys.exit(REFUSED)
    return ctypes.string_at(written.value or 0, length.value - 1)


def main() -> None:
    """Limits first: hwloc sees the text only then."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for what, most in ((resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_AS, BYTES)):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    text = sys.stdin.buffer.read()
    for name in [name for name in os.environ if text and name.startswith("HWLOC_")]:
        del os.environ[name]
    # Why it refuses something is said on stderr.
    os.environ["HWLOC_XML_VERBOSE"] = "1"
    hwloc = library()
    sys.stdout.buffer.write(convert(hwloc, text))


if __name__ == "__main__":
    main()
