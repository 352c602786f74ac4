"""`elbowroom nic`: programs behind an emulated NIC; the options of it that other commands have too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from elbowroom import api
from elbowroom.cli.dry_runs import dry_run_option, show_planned
from elbowroom.cli.options import Group
from elbowroom.errors import UsageError
from elbowroom.quantities import parse_bandwidth, parse_cores

if TYPE_CHECKING:
    from elbowroom.api.emulated_nic import NicSettings

Function = TypeVar("Function", bound=Callable[..., Any])

RANKS_PER_NODE = click.option(
    "--ranks-per-node", type=click.IntRange(1, 1024), metavar="N", help="Of an emulated node; default: 1."
)


def _nodes(name: str) -> Callable[[Function], Function]:
    return click.option(
        name, "nic_nodes", metavar="LIST", help="Emulated nodes of this job's ranks; default: 0,1,2 …"
    )


def _name(name: str) -> Callable[[Function], Function]:
    return click.option(
        name, "nic_name", metavar="NAME", help="Jobs of the same name share the nodes; default: none does."
    )


def nic_options(function: Function) -> Function:
    """`--nic BANDWIDTH` and what belongs to it; `nic_settings` reads them."""
    options = (
        click.option("--nic", metavar="RATE", help="Run behind an emulated NIC: 50MB/s (help nic)."),
        RANKS_PER_NODE,
        _nodes("--nic-nodes"),
        _name("--nic-name"),
    )
    for option in reversed(options):
        function = option(function)
    return function


def nic_settings(options: dict[str, Any], field: str = "nic") -> NicSettings | None:
    """The emulated NIC that the options name, if any; UsageError for what is none."""
    others = {name: options[name] for name in ("ranks_per_node", "nic_nodes", "nic_name")}
    if options[field] is None:
        for name, value in others.items():
            if value is not None:
                raise UsageError("is of an emulated NIC", field=name, value=value, hint="give --nic 50MB/s")
        return None
    nodes = others["nic_nodes"]
    settings = api.emulated_nic.NicSettings(
        bandwidth=parse_bandwidth(options[field], field),
        ranks_per_node=others["ranks_per_node"] or 1,
        nodes=() if nodes is None else parse_cores(nodes, "nodes"),
        **({} if others["nic_name"] is None else {"name": others["nic_name"]}),
    )
    api.emulated_nic.check(settings)
    return settings


@click.group(cls=Group)
def nic() -> None:
    """Run MPI programs behind an emulated NIC of known bandwidth."""


@nic.command()
@click.option("--bandwidth", required=True, metavar="RATE", help="Of each direction of a node: 50MB/s.")
@RANKS_PER_NODE
@_nodes("--nodes")
@_name("--name")
@dry_run_option
@click.argument("command", nargs=-1, metavar="-- CMD...", type=click.UNPROCESSED)
def run(command: tuple[str, ...], dry_run: bool, **options: Any) -> int:
    """Run CMD with its ranks on emulated nodes.

    Messages between nodes share each node's NIC; messages inside a node are not limited. All ranks are on
    this host and communicate over TCP. Output and exit code are those of CMD.
    """
    settings = nic_settings(options, "bandwidth")
    assert settings is not None
    if dry_run:
        return show_planned(api.emulated_nic.plan_behind_nic(command, settings), as_json=False)
    return api.run_behind_nic(command, settings)
