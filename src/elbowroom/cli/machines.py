"""`machine list`, `show`, `from-run`: virtual machines to run plans on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from elbowroom.cli.commands import _json, _Ordered, group
from elbowroom.cli.output import print_json

if TYPE_CHECKING:
    from elbowroom.virtual.definition import Definition

VERSION = 1


@group.group(cls=_Ordered)
def machine() -> None:
    """Virtual machines for `run PLAN --machine NAME`: nothing is measured, laws answer (docs/virtual.md)."""


@machine.command("list")
@_json
def list_(as_json: bool) -> int:
    """List the published machines."""
    from elbowroom import api
    from elbowroom.cli.tables import _say, _table, console

    found = [api.virtual_machine(name) for name in api.machine_names()]
    if as_json:
        print_json(
            {"schema": "elbowroom/machines", "version": VERSION, "machines": [_told(one) for one in found]}
        )
        return 0
    table = _table(
        ("machine", ""), ("processor", "wrap"), ("cores", "right"), ("nodes", "right"), ("network", "wrap"),
        ("NIC at", "right"),
    )  # fmt: skip
    for one in found:
        cores = one.sockets * one.cores_per_socket
        table.add_row(
            one.name, one.processor, str(cores), str(one.shape.nodes), one.network, str(one.nic_node)
        )
    console().print(table)
    _say("Parameters: Swartvagher 2022, appendix E. All virtual: nothing is measured.")
    return 0


@machine.command()
@click.argument("spec", metavar="NAME|FILE")
@click.option("--toml", is_flag=True, help="As TOML, to begin a machine of your own with.")
@_json
def show(spec: str, toml: bool, as_json: bool) -> int:
    """Show a virtual machine: shape, bandwidths, where they come from."""
    from elbowroom import api

    found = api.virtual_machine(spec)
    if as_json:
        print_json({"schema": "elbowroom/machine", "version": VERSION, **_told(found)})
    elif toml:
        click.echo(api.machine_text(found), nl=False)
    else:
        _print(found)
    return 0


@machine.command("from-run")
@click.argument("path", metavar="RUN")
@click.option("-o", "--out", metavar="FILE.toml", required=True, help="The file to write.")
@_json
def from_run(path: str, out: str, as_json: bool) -> int:
    """Make a virtual machine of a run, measured or imported: plan `model`, or curves of a file."""
    from elbowroom import api

    found = api.machine_from_run(path, out)
    if as_json:
        print_json({"schema": "elbowroom/machine", "version": VERSION, "file": out, **_told(found)})
    else:
        _print(found)
        click.echo(f"machine: {out}")
    return 0


def _told(definition: Definition) -> dict[str, Any]:
    import msgspec

    return {"virtual": True, "nodes": definition.shape.nodes, **msgspec.to_builtins(definition)}


def _print(definition: Definition) -> None:
    import msgspec

    from elbowroom.cli.model_tables import UNITS, shape_line
    from elbowroom.cli.tables import _say, _table, console
    from elbowroom.draw.numbers import number

    _say(shape_line(definition.shape), style="bold")
    _say(f"{definition.processor}; {definition.network}; {definition.memory_gb:g} GB")
    _say(f"truth {definition.truth}; bandwidths: {definition.origin}")
    print()
    table = _table(("parameter", ""), ("local", "right"), ("remote", "right"), ("unit", ""))
    local = msgspec.to_builtins(definition.local)
    remote = msgspec.to_builtins(definition.remote) if definition.remote is not None else {}
    for name, value in local.items():
        other = number(remote[name], 5) if name in remote else "-"
        table.add_row(name, number(value, 5), other, UNITS.get(name, "MB/s"))
    console().print(table)
