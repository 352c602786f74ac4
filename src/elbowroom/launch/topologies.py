"""Topologies read by libhwloc itself: files of every version of hwloc, and this machine without a probe."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from elbowroom.errors import MachineError
from elbowroom.launch import hwloc_child
from elbowroom.launch.processes import Finished, run
from elbowroom.machine.hwloc import machine_of_document
from elbowroom.machine.hwloc_xml import V2_HINT, check_numbers, parse_topology, parse_xml, text_for_hwloc2
from elbowroom.machine.topology import Machine

_PATIENCE = 60.0
_PACKAGES = "apt-get install libhwloc-dev, or load the site's hwloc"


def read_topology_file(path: Path) -> Machine:
    """The machine of hwloc's XML of version 1, 2 or 3.

    UsageError that names the file and a hint where it cannot be read; of version 3, the hint is how to export
    it for hwloc 2.
    """
    document = parse_topology(path)
    major = document.version.split(".")[0]
    if major not in ("1", "2", "3"):
        newer = document._replace(hint=V2_HINT)
        raise newer.error(f"written by hwloc {document.version}, which is not known here", document.root)
    check_numbers(document)
    finished = _hwloc(text_for_hwloc2(document).encode())
    if finished.code == hwloc_child.NO_LIBRARY:
        if major == "1":
            raise document._replace(hint=_PACKAGES).error("version 1 needs libhwloc, which is missing")
        return machine_of_document(document)
    if finished.code:
        raise document.error(f"hwloc does not read it: {_reason(finished)}")
    written = parse_xml(document.name, finished.stdout.encode())
    return machine_of_document(written._replace(hint=document.hint, from_file=False))


def own_topology_xml() -> str:
    """hwloc's description of this machine, with the settings of `probe topology`, which need not be built
    (a dry run). MachineError where libhwloc is not installed or cannot read the machine.
    """
    finished = _hwloc(b"")
    if finished.code:
        missing = finished.code == hwloc_child.NO_LIBRARY
        raise MachineError(
            "cannot be read before the probe is built: "
            + ("libhwloc is missing" if missing else _reason(finished)),
            field="topology",
            hint=f"{_PACKAGES}; or start without --dry-run once",
        )
    return finished.stdout


def _hwloc(text: bytes) -> Finished:
    return run(
        [sys.executable, "-I", "-S", hwloc_child.__file__],
        field="topology",
        patience=_PATIENCE,
        given=text,
        leaves_nothing=True,
    )


def _reason(finished: Finished) -> str:
    if finished.code == -signal.SIGXCPU:
        return f"it did not end within {hwloc_child.SECONDS} s"
    if finished.code < 0:
        return f"it was ended by signal {-finished.code}"
    return " ".join(finished.last_line.split())[:200]
