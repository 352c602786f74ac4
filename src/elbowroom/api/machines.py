"""Virtual machines, as Python sees them: the published ones, those of files, and one made of a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from elbowroom.api.predicting import curves_of
from elbowroom.api.runs import Run, open
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from elbowroom.model.threshold import Threshold
    from elbowroom.virtual.definition import Definition


def machine_names() -> tuple[str, ...]:
    """Machines that `--machine` knows by name: the nine of Swartvagher's thesis."""
    from elbowroom.model.published import names

    return names()


def virtual_machine(spec: str) -> Definition:
    """What `--machine SPEC` stands for: NAME, FILE.toml or FILE.xml, `:credits` or `:published` behind it.

    UsageError for unknown names, with near ones, and for files that define no machine.
    """
    from elbowroom.launch.virtual import load

    return load(spec).definition


def machine_text(definition: Definition) -> str:
    """The definition as TOML, which `--machine FILE.toml` reads."""
    from elbowroom.virtual.definition import encode

    return encode(definition)


def machine_from_run(run: Run | Path | str, path: Path | str | None = None) -> Definition:
    """A virtual machine that answers as the machine of a run does: its shape, caches and NIC, and bandwidths
    by the threshold model, calibrated robustly on the run's curves. Written to `path` as TOML.

    UsageError where the run holds no curves that data local to the first socket's cores can be learnt from.
    """
    from elbowroom.model.threshold_fit import fit
    from elbowroom.store.files import write_atomically
    from elbowroom.virtual.definition import checked

    run = run if isinstance(run, Run) else open(run)
    curves = curves_of(run).curves
    fitted = fit(curves, "robust", resamples=0)
    if fitted.model.local is None:
        raise UsageError(
            "has too few points with all data on the first node to learn local bandwidths from",
            field="run",
            value=str(run.path),
            mend="measure plan `model`",
        )
    definition = checked(_definition(run, fitted.model))
    if path is not None:
        text = f"# Made of the run {run.path.name}; see docs/virtual.md.\n{machine_text(definition)}"
        write_atomically(Path(path), text.encode())
    return definition


def _definition(run: Run, model: Threshold) -> Definition:
    from elbowroom.virtual.definition import CLOCK_GHZ, UNKNOWN_MEMORY_GB, Definition

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
        threads_per_core=max(len(core.pus) for core in machine.cores),
        memory_gb=machine.memory / 1e9 or UNKNOWN_MEMORY_GB,
        nic_node=shape.nic_node or 0,
        caches=tuple(sorted(caches.values())),
        clock_ghz=float(clock[1]) if clock else CLOCK_GHZ,
        local=local,
        remote=model.remote,
    )
