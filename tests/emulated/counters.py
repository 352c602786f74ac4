"""Keeps a counter of each event of the kernel open as long as the machine runs.

With the first counter of an event Linux changes its own code, that of switching tasks for instance, and
changes it back with the last. QEMU 7.2 was seen to go on executing the breakpoint that the kernel sets
meanwhile (finish_task_switch, exc_int3): all cores then handle breakpoints and nothing else. While these
counters are open, programs that count change nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct

_PERF_EVENT_OPEN = 298  # of x86-64
_SOFTWARE = 1
_EVENTS = range(9)  # PERF_COUNT_SW_CPU_CLOCK to PERF_COUNT_SW_EMULATION_FAULTS
_SIZE = 64  # bytes of the first version of perf_event_attr


def main() -> None:
    """Opens the counters, says so, and waits for a signal."""
    system = ctypes.CDLL(None, use_errno=True)
    for event in _EVENTS:
        attributes = struct.pack("IIQQQQQIIQ", _SOFTWARE, _SIZE, event, 0, 0, 0, 0, 0, 0, 0)
        if system.syscall(_PERF_EVENT_OPEN, attributes, 0, -1, -1, 0) < 0:
            raise SystemExit(f"perf_event_open of event {event}: {os.strerror(ctypes.get_errno())}")
    print("the counters are open", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
