"""`elbowroom doctor` and `machine`: this machine, and virtual ones to run plans on."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from elbowroom import api
from elbowroom.cli.console import WIDTH, console, new_table, print_json, print_wrapped, styled
from elbowroom.cli.model_tables import UNITS, shape_line
from elbowroom.cli.options import Group, Output, command, json_option, mpi_option
from elbowroom.quantities import number

if TYPE_CHECKING:
    from elbowroom.api.machines import Definition, Diagnosis


@command()
@mpi_option
@json_option
def doctor(mpi: str | None, as_json: bool) -> int:
    """Check this machine: each check is ok, warn or n/a, with a hint."""
    checks = api.doctor(mpi=mpi)
    if as_json:
        print_json(api.machines.Diagnoses(checks=tuple(checks)))
    else:
        print_doctor(api.machines.listed(checks))
    return 0


def print_doctor(checks: Sequence[Diagnosis]) -> None:
    """One line for each thing looked at, with its hint below."""
    styles = {"ok": "green", "warn": "yellow", "n/a": "dim"}
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        head = f"{check.status:<5}{check.name:<{width}}  "
        lines = textwrap.wrap(check.text, WIDTH - len(head), break_on_hyphens=False) or [""]
        first = styled(head + lines[0])
        first.stylize(styles[check.status], 0, 4)
        console().print(first, soft_wrap=True)
        for line in lines[1:]:
            console().print(styled(" " * len(head) + line), soft_wrap=True)
        if check.hint:
            print_wrapped(f"hint: {check.hint}", indent=" " * len(head))


THESIS = "Swartvagher 2022"
"""How the origin of the published machines begins."""


@click.group(cls=Group)
def machine() -> None:
    """List, show and define virtual machines (`elbowroom help virtual`)."""


@machine.command("list")
@json_option
def list_(as_json: bool) -> int:
    """List the virtual machines."""
    machines = api.machines.virtual_machines()
    if as_json:
        print_json(api.machines.machine_list(machines))
        return 0
    table = new_table(
        ("machine", ""), ("processor", "wrap"), ("cores", "right"), ("nodes", "right"), ("network", "wrap"),
        ("NIC at", "right"),
    )  # fmt: skip
    for item in machines:
        cores = item.shape.cores
        table.add_row(
            item.name, item.processor, str(cores), str(item.shape.nodes), item.network, str(item.nic_node)
        )
    console().print(table)
    for item in machines:
        if not item.origin.startswith(THESIS):
            print_wrapped(f"Parameters of {item.name}: {item.origin}.")
    print_wrapped(
        f"Parameters of the published machines: {THESIS}, appendix E. All virtual: nothing is measured."
    )
    return 0


@machine.command()
@click.argument("spec", metavar="NAME|FILE")
@click.option("--toml", is_flag=True, help="Print TOML, to start a machine of your own from.")
@json_option
def show(spec: str, toml: bool, as_json: bool) -> int:
    """Show a virtual machine: shape, bandwidths, and their sources."""
    definition = api.virtual_machine(spec)
    if as_json:
        print_json(api.machines.machine_document(definition))
    elif toml:
        click.echo(api.machine_text(definition), nl=False)
    else:
        _print(definition)
    return 0


@machine.command("from-run")
@click.argument("path", metavar="RUN")
@click.option(
    "-o",
    "--out",
    type=Output(".toml", bare=True),
    metavar="FILE.toml",
    required=True,
    help="The file to write.",
)
@json_option
def from_run(path: str, out: str, as_json: bool) -> int:
    """Define a virtual machine from a run of plan `model`, or from imported curves."""
    definition = api.machine_from_run(path, out)
    if as_json:
        print_json(api.machines.machine_document(definition, out))
    else:
        _print(definition)
        click.echo(f"machine: {out}")
    return 0


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
    table = new_table(("parameter", ""), ("local", "right"), ("remote", "right"), ("unit", ""))
    local = msgspec.to_builtins(definition.local)
    remote = msgspec.to_builtins(definition.remote) if definition.remote is not None else {}
    for name, value in local.items():
        other = number(remote[name], 5) if name in remote else "-"
        table.add_row(name, number(value, 5), other, UNITS.get(name, "MB/s"))
    console().print(table)
