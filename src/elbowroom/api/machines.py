"""The machine here (doctor), and virtual machines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.experiments import EXPERIMENTS
from elbowroom.experiments.plans import PLANS
from elbowroom.files import write_atomically
from elbowroom.launch.launchers import LAUNCHERS
from elbowroom.launch.mpi import find_mpi
from elbowroom.launch.virtual import load
from elbowroom.machine.doctor import Diagnosis as Diagnosis
from elbowroom.machine.doctor import diagnose
from elbowroom.machine.doctor import listed as listed
from elbowroom.measure.doctor_facts import gather
from elbowroom.models.registry import MODELS
from elbowroom.models.threshold.fit import fit
from elbowroom.plugins import Registry
from elbowroom.points.point import WORKLOADS
from elbowroom.store.exporters import EXPORTERS
from elbowroom.verbs.model_file import curves_of
from elbowroom.verbs.run_folder import Run, open
from elbowroom.virtual.definition import CLOCK_GHZ, UNKNOWN_MEMORY_GB, checked, encode
from elbowroom.virtual.definition import Definition as Definition
from elbowroom.virtual.machines import MACHINES

if TYPE_CHECKING:
    from elbowroom.models.threshold.law import Threshold


class Diagnoses(msgspec.Struct, frozen=True, kw_only=True):
    """What `doctor --json` prints."""

    schema: str = "elbowroom/doctor"
    version: int = 1
    checks: tuple[Diagnosis, ...]


class VirtualMachineFacts(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A definition, and the NUMA nodes that its shape makes."""

    virtual: bool = True
    nodes: int


class VirtualMachineDocument(VirtualMachineFacts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `machine show --json` and `machine from-run --json` print; the latter with the `file` it wrote."""

    schema: str = "elbowroom/machine"
    version: int = 1
    file: str | msgspec.UnsetType = msgspec.UNSET


class VirtualMachineList(msgspec.Struct, frozen=True, kw_only=True):
    """What `machine list --json` prints."""

    schema: str = "elbowroom/machines"
    version: int = 1
    machines: tuple[VirtualMachineFacts, ...]


REGISTRIES: tuple[Registry[Any], ...] = (
    EXPERIMENTS,
    PLANS,
    WORKLOADS,
    LAUNCHERS,
    MODELS,
    MACHINES,
    EXPORTERS,
)
"""All that installed packages add to."""


def machine_document(definition: Definition, file: str | None = None) -> VirtualMachineDocument:
    """A virtual machine, and the file it was written to."""
    facts = msgspec.structs.asdict(definition)
    return VirtualMachineDocument(**facts, nodes=definition.shape.nodes, file=file or msgspec.UNSET)


def machine_list(definitions: Sequence[Definition]) -> VirtualMachineList:
    """Virtual machines."""
    listed = (
        VirtualMachineFacts(**msgspec.structs.asdict(item), nodes=item.shape.nodes) for item in definitions
    )
    return VirtualMachineList(machines=tuple(listed))


def machine_names() -> tuple[str, ...]:
    """Machines that `--machine` knows by name: the nine of Swartvagher's thesis, one with a GPU, and those of
    packages.
    """
    return MACHINES.names()


def virtual_machines() -> tuple[Definition, ...]:
    """Those that can be used."""
    return MACHINES.all()


def virtual_machine(spec: str) -> Definition:
    """What `--machine SPEC` stands for: NAME, FILE.toml or FILE.xml, `:credits` or `:published` behind it.

    UsageError for unknown names, with near ones, and for files that define no machine.
    """
    return load(spec).definition


def machine_text(definition: Definition) -> str:
    """The definition as TOML, which `--machine FILE.toml` reads."""
    return encode(definition)


def machine_from_run(run: Run | Path | str, path: Path | str | None = None) -> Definition:
    """A virtual machine that answers as the machine of a run does: its shape, caches and NIC, and bandwidths
    by the threshold model, calibrated robustly on the run's curves. Written to `path` as TOML.

    UsageError where the run holds no curves that data local to the first socket's cores can be learnt from.
    """
    run = run if isinstance(run, Run) else open(run)
    curves = curves_of(run).curves
    fitted = fit(curves, "robust", resamples=0)
    if fitted.model.local is None:
        raise UsageError(
            "has too few points with all data on the first node to learn local bandwidths from",
            field="run",
            value=str(run.path),
            hint="measure plan `model`",
        )
    definition = checked(_definition(run, fitted.model))
    if path is not None:
        text = f"# Made of the run {run.path.name}; see `elbowroom help virtual`.\n{machine_text(definition)}"
        write_atomically(Path(path), text.encode())
    return definition


def _definition(run: Run, model: Threshold) -> Definition:
    machine, shape, local = run.machine, model.shape, model.local
    assert local is not None
    clock = re.search(r"([\d.]+) ?GHz", machine.model)
    # One size of each level: the smallest, where caches differ.
    caches = {
        cache.level: (cache.level, cache.size, len(cache.cores))
        for cache in sorted(machine.caches, key=lambda cache: cache.size, reverse=True)
    }
    virtual = " (virtual)" if machine.virtual else ""
    return Definition(
        name=re.sub(r"[^\w.-]+", "-", machine.name),
        origin=f"run {run.path.name} of {machine.name}{virtual}, elbowroom {run.manifest.elbowroom}",
        processor=machine.model,
        network=", ".join(nic.name for nic in machine.nics) or "unknown network",
        sockets=shape.sockets,
        cores_per_socket=shape.cores_first_socket,
        numa_per_socket=shape.numa_per_socket,
        layout=shape.layout,
        threads_per_core=max(len(core.pus) for core in machine.cores),
        memory_gb=machine.memory / 1e9 or UNKNOWN_MEMORY_GB,
        nic_node=shape.nic_node or 0,
        caches=tuple(sorted(caches.values())),
        clock_ghz=float(clock[1]) if clock else CLOCK_GHZ,
        local=local,
        remote=model.remote,
    )


def doctor(mpi: str | None = None) -> list[Diagnosis]:
    """Each thing that a measurement depends on: ok, warn or n/a, with a hint.

    UsageError where the MPI that is named does not exist.
    """
    if mpi is not None:
        find_mpi(mpi)
    return [*diagnose(gather(mpi=mpi)), *_plugins()]


def _plugins() -> list[Diagnosis]:
    """A line for each plug-in that cannot be used."""
    hint = "update the package, or uninstall it"
    problems = (problem for registry in REGISTRIES for problem in registry.problems())
    return [Diagnosis(name="plug-ins", status="warn", text=problem, hint=hint) for problem in problems]
