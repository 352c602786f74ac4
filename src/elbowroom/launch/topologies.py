"""Topologies read by libhwloc itself: files of every version of hwloc, and this machine without a probe."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from elbowroom.errors import MachineError
from elbowroom.launch import hwloc_child, native
from elbowroom.launch.processes import Finished, run
from elbowroom.machine.hwloc import machine_of_document
from elbowroom.machine.hwloc_xml import V2_HINT, check_numbers, parse_topology, parse_xml, text_for_hwloc2
from elbowroom.machine.topology import Machine, here
from elbowroom.quantities import format_cores

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


def own_machine() -> Machine:
    """This machine as this process may use it, without a probe; MachineError as own_topology_xml."""
    return here(machine_of_document(parse_xml("this machine", own_topology_xml().encode())))


def _hwloc(text: bytes) -> Finished:
    """What libhwloc says; it is installed now where it is missing and ./elbowroom can."""
    finished = _hwloc_answer(text)
    missing = finished.code == hwloc_child.NO_LIBRARY
    return _hwloc_answer(text) if missing and native.install("libhwloc-dev") else finished


def _hwloc_answer(text: bytes) -> Finished:
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


Mode = Literal["kernels", "clock", "observe", "state"]


def probe_output(probe: Path | str, mode: Mode, patience: float = 60.0) -> dict[str, Any]:
    """What `probe MODE` prints, as an object; MachineError with the probe's own words if it fails."""
    answer = msgspec.json.decode(_run(probe, [mode], patience))
    if isinstance(answer, list):
        return {mode: answer}
    if not isinstance(answer, dict):
        raise MachineError("the probe printed no object", field="probe", value=mode)
    return answer


def topology_xml(probe: Path | str, patience: float = 60.0) -> str:
    """hwloc's description of this machine, as XML with PCI devices."""
    return _run(probe, ["topology", "--xml", "-"], patience)


class KernelRate(msgspec.Struct, frozen=True, kw_only=True):
    """A repetition of `probe kernel`: the rate of all cores together, in `unit`."""

    rate: float
    unit: str
    status: str


def kernel_rate(
    probe: Path | str, kernel: str, cores: Sequence[int], *, cursor: int, working_set: int, seconds: float
) -> KernelRate:
    """One repetition of a kernel on these cores, without MPI; `working_set`: bytes of each core.

    MachineError with the probe's own words if it fails.
    """
    arguments = {
        "kernel": kernel,
        "cores": format_cores(cores),
        "cursor": cursor,
        "working-set": working_set,
        "seconds": seconds,
        "repeat": 1,
    }
    words = [word for name, value in arguments.items() for word in (f"--{name}", str(value))]
    return msgspec.json.decode(_run(probe, ["kernel", *words], 60.0 + 10 * seconds), type=KernelRate)


def _run(probe: Path | str, arguments: list[str], patience: float) -> str:
    command = [str(probe), *arguments]
    done = run(
        command,
        field="probe",
        patience=patience,
        hint="see `elbowroom doctor`",
        doing=f"running the probe ({arguments[0]})",
    )
    if done.code != 0:
        raise MachineError(
            done.last_line,
            field="probe",
            value=" ".join(command),
            hint="run it by hand, and see `elbowroom doctor`",
        )
    return done.stdout
