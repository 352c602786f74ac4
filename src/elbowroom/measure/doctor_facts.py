"""Gathers the facts that `doctor` judges; whatever is missing becomes a reason, never an error."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from elbowroom.accept.formats import FORMATS
from elbowroom.errors import ElbowroomError, MachineError
from elbowroom.experiments import EXPERIMENTS
from elbowroom.experiments.plans import PLANS
from elbowroom.launch import build, gpu, starpu, topologies
from elbowroom.launch.launcher import LaunchRequest
from elbowroom.launch.launchers import LAUNCHERS, build_launch, detect
from elbowroom.launch.mpi import Mpi, find_mpi, loaded_library
from elbowroom.launch.session import Session
from elbowroom.logs.reader import IMPORTERS
from elbowroom.machine.doctor import DoctorLine, HostFacts, MpiLauncher
from elbowroom.machine.frequencies import Frequencies
from elbowroom.machine.hwloc import read_topology
from elbowroom.machine.identity import node_distances
from elbowroom.machine.state import Failure, known
from elbowroom.machine.topology import Machine, here
from elbowroom.measure.source import settable
from elbowroom.models.registry import MODELS
from elbowroom.plugins import Registry
from elbowroom.points.point import WORKLOADS
from elbowroom.store.exporters import EXPORTERS
from elbowroom.virtual.machines import MACHINES

_RANKS = 2
_PATIENCE = 30.0  # seconds for the ranks to come up

REGISTRIES: tuple[Registry[Any], ...] = (
    EXPERIMENTS,
    PLANS,
    WORKLOADS,
    LAUNCHERS,
    MODELS,
    MACHINES,
    EXPORTERS,
    IMPORTERS,
    FORMATS,
)
"""All that installed packages add to."""

Answer = TypeVar("Answer")


def gather(probe: Path | None = None, mpi: str | None = None) -> HostFacts:
    """All facts of this machine. `probe` None: the one for `mpi` (as `--mpi`), built now if it must be."""
    restored = _restored()
    library = _attempt(lambda: find_mpi(mpi))
    built = probe if probe is not None else _built(library)
    state = _fallback_state() if isinstance(built, Failure) else _probe_output(built, "state")
    if isinstance(state, Failure):
        state = _fallback_state()
    return HostFacts(
        probe=built if isinstance(built, Failure) else str(built),
        mpi=_launched(library, built),
        machine=_machine(built, known(state, "memory_kernel")),
        state=state,
        observers=_probe_output(built, "observe"),
        clock=_probe_output(built, "clock"),
        binding=_binding(),
        restored=restored,
        distances=node_distances(),
        starpu=_attempt(_starpu),
        openblas=_attempt(_openblas),
        gpu=_attempt(gpu.gpu_facts),
    )


def _starpu() -> str:
    """StarPU-MPI and its MPI: runs over StarPU take that one."""
    installed = starpu.find_starpu()
    return f"StarPU {installed.version}, of {installed.mpi.name} in {installed.mpi.prefix}"


def _openblas() -> str:
    name = build.blas_library()
    version = starpu.installed(name)
    if not version:
        raise MachineError(
            f"{'OpenBLAS' if name == 'openblas' else name} is not installed (kernels needs it)",
            hint="on Debian or Ubuntu `apt-get install libopenblas-dev`; another library: ELBOWROOM_BLAS",
        )
    return f"{'OpenBLAS' if name == 'openblas' else name} {version}"


def _attempt(action: Callable[[], Answer]) -> Answer | Failure:
    try:
        return action()
    except ElbowroomError as error:
        head = f"{error.field} {error.value}: " if error.value is not None else ""
        return Failure(reason=head + error.message, hint=error.hint)


def _built(mpi: Mpi | Failure) -> Path | Failure:
    if isinstance(mpi, Failure):
        return Failure(reason=f"not built, since there is no MPI: {mpi.reason}", hint=mpi.hint)
    return _attempt(lambda: build.probe(mpi))


def _probe_output(probe: Path | Failure, mode: topologies.Mode) -> dict[str, Any] | Failure:
    if isinstance(probe, Failure):
        return Failure(reason=f"needs the probe: {probe.reason}", hint=probe.hint)
    return _attempt(lambda: topologies.probe_output(probe, mode))


def _fallback_state() -> dict[str, Any]:
    """What Python reads by itself: the load."""
    try:
        return {"load": list(os.getloadavg())}
    except OSError:
        return {}


def _machine(probe: Path | Failure, memory: int | None) -> Machine | Failure:
    if isinstance(probe, Failure):
        return Failure(reason=f"needs the probe: {probe.reason}", hint=probe.hint)
    return _attempt(lambda: settable(here(read_topology(topologies.topology_xml(probe)), memory=memory)))


def _binding() -> Failure | None:
    """Binding to what this process has already must be allowed."""
    try:
        os.sched_setaffinity(0, os.sched_getaffinity(0))
    except OSError as error:
        return Failure(reason=error.strerror or str(error))
    return None


def _restored() -> str:
    """Sets back the frequencies that a killed run left constant, and tells; empty when there were none."""
    done = _attempt(Frequencies().restore)
    return done if isinstance(done, str) else f"left constant by a killed run: {done.reason}; {done.hint}"


def _launched(mpi: Mpi | Failure, probe: Path | Failure) -> MpiLauncher | Failure:
    """Starts two ranks, so that a launcher of another MPI (which starts two jobs of one) shows."""
    if isinstance(mpi, Failure):
        return mpi
    # Resolved, as the library is: prefixes are often links to where the files really are.
    prefix = str(Path(mpi.prefix).resolve())
    launcher = MpiLauncher(mpi=mpi.name, prefix=prefix, command=Path(mpi.launcher).name)
    if isinstance(probe, Failure):
        return launcher
    launcher = msgspec.structs.replace(launcher, library=loaded_library(probe), requested=_RANKS)
    hello = _attempt(lambda: _hello(mpi, probe))
    if isinstance(hello, Failure):
        return msgspec.structs.replace(launcher, failure=hello)
    return msgspec.structs.replace(
        launcher,
        came_up=len(hello.get("ranks", ())),
        transport=str(hello.get("mpi", {}).get("transport", "unknown")),
    )


def _hello(mpi: Mpi, probe: Path) -> dict[str, Any]:
    name = detect(os.environ)
    request = LaunchRequest(ranks=_RANKS, ranks_per_host=_RANKS, probe=str(probe), mpi=mpi)
    session = Session(build_launch(name, request), ranks=_RANKS, mpi=mpi, patience=_PATIENCE)
    session.close()
    return session.hello


def plugin_problems() -> list[DoctorLine]:
    """A line for each plug-in that cannot be used."""
    hint = "update the package, or uninstall it"
    problems = (problem for registry in REGISTRIES for problem in registry.problems())
    return [DoctorLine(name="plug-ins", status="warn", text=problem, hint=hint) for problem in problems]
