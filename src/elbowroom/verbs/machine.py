"""`elbowroom machine`: virtual machines to run plans on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_wrapped
from elbowroom.cli.options import Output
from elbowroom.cli.tables import new_table, print_table
from elbowroom.errors import UsageError
from elbowroom.files import write_atomically
from elbowroom.quantities import number, plural
from elbowroom.verbs.declaration import Verb, argument, function_of, option
from elbowroom.verbs.model_tables import UNITS, shape_line
from elbowroom.verbs.run_options import out_option

if TYPE_CHECKING:
    from elbowroom.models.threshold.law import Threshold
    from elbowroom.verbs.run_folder import Run
    from elbowroom.virtual.definition import Definition, VirtualMachineDocument, VirtualMachineList

THESIS = "Swartvagher 2022"
"""How the origin of the published machines begins."""


class List(Verb):
    """List the virtual machines."""

    name = "machine list"
    has_tables = True

    def do(self) -> Sequence[Definition]:
        """Those that can be used."""
        from elbowroom.virtual.machines import MACHINES

        return MACHINES.all()

    def document(self, result: Sequence[Definition]) -> VirtualMachineList:
        from elbowroom.virtual.definition import VirtualMachineList, facts_of

        return VirtualMachineList(machines=tuple(map(facts_of, result)))

    def print(self, result: Sequence[Definition]) -> None:
        """One line for each machine, and where its parameters are from."""
        table = new_table("machine", "~processor", ">cores", ">nodes", "~network", ">NIC at")
        for item in result:
            shape = item.shape
            table.add_row(
                item.name,
                item.processor,
                str(shape.cores),
                str(shape.nodes),
                item.network,
                str(item.nic_node),
            )
        print_table(table)
        for item in result:
            if not item.origin.startswith(THESIS):
                print_wrapped(f"Parameters of {item.name}: {item.origin}.")
        print_wrapped(
            f"Parameters of the published machines: {THESIS}, appendix E. All virtual: nothing is measured."
        )


class MachineShow(Verb):
    """Show a virtual machine: shape, bandwidths, and their sources."""

    name = "machine show"

    spec: str = argument(metavar="NAME|FILE")
    toml: bool = option("Print TOML, to start a machine of your own from.", in_python=False)

    def do(self) -> Definition:
        """What `--machine SPEC` stands for: NAME, FILE.toml or FILE.xml, `:credits` or `:published` after it.

        UsageError for unknown names, with near ones, and for files that define no machine.
        """
        from elbowroom.launch.virtual import load

        return load(self.spec).definition

    def document(self, result: Definition) -> VirtualMachineDocument:
        """The definition, and the NUMA nodes that its shape makes."""
        return _document(result)

    def print(self, result: Definition) -> None:
        """The machine in a few lines, or as TOML."""
        if self.toml:
            click.echo(machine_text(result), nl=False)
        else:
            _print(result)

    def answer(self, result: Definition) -> Answer | None:
        """What the machine has, and a plan on it; TOML ends as it is."""
        return None if self.toml else _answer(result, self.spec)


class FromRun(Verb):
    """Define a virtual machine from a run of plan `model`, or from imported curves."""

    name = "machine from-run"

    run: Run | Path | str = argument(metavar="RUN")
    out: str = out_option(Output(".toml", bare=True), "The file to write.", "FILE.toml", required=True,
        )  # fmt: skip

    def do(self) -> Definition:
        """The machine; its file is written."""
        return machine_from_run(self.run, self.out)

    def document(self, result: Definition) -> VirtualMachineDocument:
        return _document(result, self.out)

    def print(self, result: Definition) -> None:
        """The machine in a few lines, and its file."""
        _print(result)
        click.echo(f"machine: {self.out}")

    def answer(self, result: Definition) -> Answer:
        return _answer(result, self.out)


virtual_machine = function_of(MachineShow, "virtual_machine")


def machine_names() -> tuple[str, ...]:
    """Machines that `--machine` knows by name: the nine of Swartvagher's thesis, one with a GPU, and those of
    packages.
    """
    from elbowroom.virtual.machines import MACHINES

    return MACHINES.names()


def machine_text(definition: Definition) -> str:
    """The definition as TOML, which `--machine FILE.toml` reads."""
    from elbowroom.virtual.definition import encode

    return encode(definition)


def machine_from_run(run: Run | Path | str, path: Path | str | None = None) -> Definition:
    """A virtual machine that answers as the machine of a run does: its shape, caches and NIC, and bandwidths
    by the threshold model, calibrated robustly on the run's curves. Written to `path` as TOML.

    UsageError where the run holds no curves that data local to the first socket's cores can be learnt from.
    """
    from elbowroom.models.threshold.fit import fit
    from elbowroom.verbs.model_file import curves_of
    from elbowroom.verbs.run_folder import open
    from elbowroom.virtual.definition import checked

    run = open(run)
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
        layout=shape.layout,
        threads_per_core=max(len(core.pus) for core in machine.cores),
        memory_gb=machine.memory / 1e9 or UNKNOWN_MEMORY_GB,
        nic_node=shape.nic_node or 0,
        caches=tuple(sorted(caches.values())),
        clock_ghz=float(clock[1]) if clock else CLOCK_GHZ,
        local=local,
        remote=model.remote,
    )


def _answer(definition: Definition, spec: str) -> Answer:
    shape, local = definition.shape, definition.local
    return Answer(
        f"{definition.name} is a virtual machine of {shape.cores} cores and "
        f"{plural(shape.nodes, 'NUMA node')}: nothing is measured on it.",
        f"The cores of a socket get {number(local.t_seq_max)} MB/s of their own memory at most, messages "
        f"alone {number(local.b_comm_seq)} MB/s; together they move {number(local.t_par_max)} MB/s at most.",
        command_line("run", "model", "--machine", spec),
    )


def _document(definition: Definition, file: str | None = None) -> VirtualMachineDocument:
    from elbowroom.virtual.definition import VirtualMachineDocument, facts_of

    facts = msgspec.structs.asdict(facts_of(definition))
    return VirtualMachineDocument(**facts, file=file or msgspec.UNSET)


def _print(definition: Definition) -> None:
    print_wrapped(shape_line(definition.shape), style="bold")
    if not isinstance(definition.notes, msgspec.UnsetType):
        print_wrapped("; ".join(definition.notes))
    print_wrapped(f"{definition.processor}; {definition.network}; {definition.memory_gb:g} GB")
    if not isinstance(definition.gpu, msgspec.UnsetType):
        gpu = definition.gpu
        print_wrapped(f"GPU: {gpu.name}; {gpu.sms} SMs; {gpu.memory_gb:g} GB; its parameters with --toml")
    print_wrapped(f"truth {definition.truth}; bandwidths: {definition.origin}")
    print()
    table = new_table("parameter", ">local", ">remote", "unit")
    local = msgspec.to_builtins(definition.local)
    remote = msgspec.to_builtins(definition.remote) if definition.remote is not None else {}
    for name, value in local.items():
        other = number(remote[name], 5) if name in remote else "-"
        table.add_row(name, number(value, 5), other, UNITS.get(name, "MB/s"))
    print_table(table)
