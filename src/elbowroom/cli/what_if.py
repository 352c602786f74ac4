"""`elbowroom profile what-if`: a profiled program with fewer cores, data near the NIC, no overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from elbowroom import api
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.options import command, json_option
from elbowroom.quantities import percent, short_time
from elbowroom.verbs.fit import one_thread

if TYPE_CHECKING:
    from elbowroom.api.what_if import Change, WhatIf


@command("what-if")
@click.argument("directory", metavar="P")
@click.option("--model", metavar="M.json", help="Model of its machine; default: the newest in runs/.")
@click.option(
    "--fewer-cores",
    type=click.IntRange(min=1),
    metavar="N",
    help="So many computing cores less on a node; default: 1.",
)
@click.option("--cores", type=click.IntRange(min=1), metavar="N", help="Cores that compute on a node now.")
@click.option(
    "--comp-node", type=click.IntRange(min=0), default=0, metavar="NODE", help="Of computations' data now."
)
@click.option(
    "--comm-node", type=click.IntRange(min=0), default=0, metavar="NODE", help="Of messages' data now."
)
@click.option(
    "--communication-threads",
    is_flag=True,
    help="Other threads of a rank compute while its messages are pending.",
)
@click.option("--curve", metavar="FILE", help="NIC by `profile calibrate -o`; default: from the profile.")
@json_option
def what_if(
    directory: str,
    model: str | None,
    fewer_cores: int | None,
    cores: int | None,
    comp_node: int,
    comm_node: int,
    communication_threads: bool,
    curve: str | None,
    as_json: bool,
) -> None:
    """Predict the program's time with fewer cores, data near the NIC, no overlap.

    Each change by itself, with the 90 % interval of the model.
    """
    one_thread()
    found = api.predict_changes(
        directory,
        model,
        fewer_cores=fewer_cores,
        cores=cores,
        comp_node=comp_node,
        comm_node=comm_node,
        communication_threads=communication_threads,
        curve=curve,
    )
    if as_json:
        print_json(found)
    else:
        _print(found)


def _print(found: WhatIf) -> None:
    what = f"{found.steps} steps take " if found.steps else ""
    print_wrapped(
        f"{found.profile}: {what}{short_time(found.now_s)}; a rank of {found.node} computes "
        f"{short_time(found.computation_s)} and is {short_time(found.network_s)} on the network, "
        f"{short_time(found.both_s)} of that beside computation",
        style="bold",
    )
    print_wrapped(f"model: {found.model}")
    table = new_table(("what if", ""), ("then", "right"), ("change", "right"), ("90 %", ""))
    for change in found.changes:
        table.add_row(change.name, *_row(change))
    console().print(table)
    for change in found.changes:
        if change.reason:
            print_wrapped(f"n/a, {change.name}: {change.reason}")


def _row(change: Change) -> tuple[str, str, str]:
    if change.then_s is None or change.change is None:
        return "n/a", "n/a", ""
    low, high = (percent(value, sign=True) for value in (change.change.low, change.change.high))
    return (
        short_time(change.then_s.value),
        percent(change.change.value, sign=True),
        f"{low} to {high}",
    )
